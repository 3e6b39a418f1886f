#if Service
import Coffer
import Tracing

/// Spans of swift-distributed-tracing for the reads and writes of a store, in the tracer that the
/// program has.
///
/// ```swift
/// var configuration = Configuration()
/// configuration.tracer = DistributedTracer()
/// let store = try await Store(path: "notes.db", key: key, configuration: configuration)
/// ```
///
/// A span lasts from the call to its return: the wait, the body, the commit. The event
/// `coffer.body` marks the end of the wait. The parent is the span in which the call was made.
/// Without a tracer each call costs what the tracer that does nothing costs.
///
/// | Attribute | Value |
/// |---|---|
/// | `db.system.name` | `sqlite` |
/// | `db.namespace` | the label of the store: ``Coffer/Configuration/metricsLabel`` |
/// | `db.operation.name` | `read` or `write` |
/// | `code.file.path`, `code.line.number` | the call of `write` |
/// | `error.type` | the code of a `StoreError`, or the type of another error |
///
/// Spans never have SQL, values, keys or the text of an error.
public struct DistributedTracer: StoreTracer {
    /// Makes the tracer.
    public init() {}

    /// Begins a span in the program's tracer.
    ///
    /// - Parameter transaction: The read or write.
    /// - Returns: The span.
    public func begin(_ transaction: TracedTransaction) -> any TransactionSpan {
        let operation = transaction.kind.rawValue
        let name = transaction.store.isEmpty ? operation : "\(operation) \(transaction.store)"
        let span = startSpan(name, ofKind: .client)
        span.updateAttributes { attributes in
            attributes["db.system.name"] = "sqlite"
            attributes["db.operation.name"] = operation
            if !transaction.store.isEmpty { attributes["db.namespace"] = transaction.store }
            if let fileID = transaction.fileID { attributes["code.file.path"] = fileID }
            if let line = transaction.line { attributes["code.line.number"] = line }
        }
        return DistributedSpan(span: span)
    }
}

private struct DistributedSpan: TransactionSpan {
    let span: any Span

    func bodyBegins() {
        span.addEvent("coffer.body")
    }

    func end(_ error: (any Error)?) {
        if let error {
            // Its text may have SQL with values, or be of the program.
            let type =
                (error as? StoreError)?.code.description ?? String(reflecting: type(of: error))
            span.attributes["error.type"] = type
            span.setStatus(SpanStatus(code: .error))
        }
        span.end()
    }
}
#else
/// Spans of swift-distributed-tracing for the reads and writes of a store.
@available(
    *, unavailable,
    message: "name the trait Service of the package: .package(…, traits: [.defaults, \"Service\"])"
)
public enum DistributedTracer {}
#endif
