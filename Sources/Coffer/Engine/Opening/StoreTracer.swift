/// Begins a span for each read and write of a store: the bridge to a tracing system.
///
/// ```swift
/// struct SlowLog: StoreTracer {
///     func begin(_ transaction: TracedTransaction) -> any TransactionSpan {
///         Stopwatch(transaction)
///     }
/// }
/// configuration.tracer = SlowLog()
/// ```
///
/// `CofferService` has one for swift-distributed-tracing. A tracer never sees SQL, values or keys.
/// Its calls are part of the read or write: they must be short and must not use the store.
public protocol StoreTracer: Sendable {
    /// Begins the span of a read or write that waits for its turn from now on.
    ///
    /// Runs where `read` or `write` was called, with the task-local values of that task. A read or
    /// write inside a body of the same store is part of that body, and begins no span.
    ///
    /// - Parameter transaction: The read or write.
    /// - Returns: The span, which hears of the body and of the end.
    func begin(_ transaction: TracedTransaction) -> any TransactionSpan
}

/// The span of one read or write.
public protocol TransactionSpan: Sendable {
    /// The wait is over: the body is about to run. Called on the body's thread, at most once.
    func bodyBegins()

    /// The read or write is over; a write without an error is committed. Called once.
    ///
    /// - Parameter error: The error that the caller gets; `nil` after success. An error of the
    ///   body may hold values.
    func end(_ error: (any Error)?)
}

/// The facts of a read or write that a ``StoreTracer`` may show.
public struct TracedTransaction: Sendable, Hashable {
    /// The kind of transaction.
    public enum Kind: String, Sendable, Hashable {
        case read, write
    }

    /// The kind of transaction.
    public let kind: Kind
    /// The label that the metrics of the store have: see ``Configuration/metricsLabel``.
    public let store: String
    /// The file of the call of `write`, as `Module/File.swift`; `nil` for a read.
    public let fileID: String?
    /// The line of the call of `write`; `nil` for a read.
    public let line: Int?
}
