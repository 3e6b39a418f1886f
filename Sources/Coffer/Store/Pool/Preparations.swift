import Synchronization

/// The closures that each connection of a store runs before its use, in order.
final class Preparations: Sendable {
    typealias Preparation = @Sendable (Connection) throws -> Void

    private let all = Mutex<[Preparation]>([])
    private let knownCount = Atomic(0)

    var count: Int { knownCount.load(ordering: .acquiring) }

    func append(_ preparation: @escaping Preparation) {
        let count = all.withLock { all in
            all.append(preparation)
            return all.count
        }
        knownCount.store(count, ordering: .releasing)
    }

    /// Runs the closures that the connection has not run yet.
    ///
    /// - Throws: A `StoreError` that one of them throws; `.misuse`, with the cause, for any other
    ///   error.
    func apply(to connection: Connection) throws(StoreError) {
        for preparation in all.withLock({ $0 }).dropFirst(connection.preparationCount) {
            do {
                try preparation(connection)
            } catch let error as StoreError {
                throw error
            } catch {
                throw StoreError(
                    .misuse, "a closure of prepareConnections failed", cause: error)
            }
            connection.preparationCount += 1
        }
    }
}

extension Store {
    /// Runs a closure on every connection of the store, now and before the first use of each that
    /// opens later.
    ///
    /// ```swift
    /// try store.prepareConnections { connection in
    ///     try connection.register(function: "initials", argumentCount: 1) { … }
    ///     try connection.register(collation: "finder") { $0.localizedStandardCompare($1) }
    /// }
    /// ```
    ///
    /// For functions, aggregates, window functions, collations and tokenizers. A change of the key
    /// keeps them, and so does `reopen`. What a store needs from its first transaction, such as a
    /// collation of an index, belongs into `Configuration.prepare`. A pragma belongs there too: a
    /// change of the key and `reopen` open connections again, and run that closure only.
    ///
    /// It waits for the write that runs. Reads that run, and snapshots that are open, go on
    /// without; a read that begins after the return has it.
    ///
    /// - Parameter body: Registers what SQL may use. It must not keep the connection.
    /// - Throws: What `body` throws: connections that open later then do not run it. `.misuse`
    ///   inside a body of the store; `.busy` after `Configuration.waitTimeout`; `.closed`.
    public func prepareConnections(
        _ body: @escaping @Sendable (Connection) throws -> Void
    ) throws {
        try core.prepareConnections(body)
    }

    /// Runs a closure on every connection of the store, as the synchronous form does.
    ///
    /// - Throws: As the synchronous form; `CancellationError` if the task is cancelled before the
    ///   closure runs.
    public func prepareConnections(
        _ body: @escaping @Sendable (Connection) throws -> Void
    ) async throws {
        try await Self.cancellableOffPool { [core] cancellation in
            try core.prepareConnections(body, cancellation)
        }
    }
}

extension StoreCore {
    fileprivate func prepareConnections(
        _ body: @escaping @Sendable (Connection) throws -> Void,
        _ cancellation: Cancellation? = nil
    ) throws {
        try requireOutside()
        try waitForWriter(cancellation)
        defer { queue.gate.leave() }
        try pool.prepare(body)
    }
}
