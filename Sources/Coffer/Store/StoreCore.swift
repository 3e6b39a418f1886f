import Synchronization

/// The core behind a store: decides which thread may use which connection, and when.
///
/// Writes go through the `WriteQueue`. A read waits for the read gate (one permit for each reader),
/// runs its body in a reader's transaction, is probed and leaves the gate. In a writable store
/// without WAL, a read uses the write gate and the writer instead. `rekey` and `close` take the
/// write gate and then every permit of the read gate, so that nothing else runs.
final class StoreCore: Sendable {
    let pool: ConnectionPool
    let configuration: Configuration
    /// Of the configuration; beside it, so that a read or write finds it fast.
    let tracer: (any StoreTracer)?
    let derivationDuration: Duration
    let queue: WriteQueue
    let readGate: Gate
    let checkpointer: Checkpointer
    let life = Mutex(Life.open)
    /// Admits one change of `life` at a time.
    let lifeGate = Gate(permitCount: 1)
    /// The observers of commits.
    let commitObservers = CommitObservers()
    /// `nil` without a WAL, and if the configuration asks for none.
    let decodedValues: DecodedValues?
    let sweeper: ExpirySweeper

    convenience init(
        path: String, key: borrowing StoreKey, mode: OpenMode, configuration: Configuration
    ) throws(StoreError) {
        let opening = try Opening(
            path: path, mode: mode, configuration: configuration,
            cacheByteCount: ConnectionPool.cacheByteCount(configuration))
        if case .file(_, let identity) = try opening.file.status() {
            // Checked first, so that no key is derived in vain.
            try OpenFiles.require(identity, isFreeAt: opening.file.path)
        }
        let opened = try opening.open(key: key)
        let configuration = try configuration.resolved(opened.handle.journalMode())
        let pool = try ConnectionPool(opened: opened, mode: mode, configuration: configuration)
        try self.init(pool, derivationDuration: opening.derivationDuration)
    }

    /// Makes a core with one connection, to a new and empty database that has no file.
    ///
    /// - Parameter location: In memory, or temporary.
    /// - Throws: Errors of the configuration, and of opening the database.
    convenience init(
        without location: Location, configuration: Configuration
    ) throws(StoreError) {
        // A file that a backup copies it into is a new file.
        var configuration = try configuration.resolved(.wal)
        // Nobody else can commit.
        configuration.foreignCommitInterval = nil
        let pool = try ConnectionPool(without: location, configuration: configuration)
        try self.init(pool, derivationDuration: .zero)
    }

    private init(_ pool: ConnectionPool, derivationDuration: Duration) throws(StoreError) {
        self.pool = pool
        self.derivationDuration = derivationDuration
        configuration = pool.configuration
        tracer = configuration.tracer
        decodedValues =
            pool.journalMode == .wal ? configuration.bucketCache.map(DecodedValues.init) : nil
        sweeper = ExpirySweeper(every: configuration.expirySweepInterval)
        let writeGate = Gate(permitCount: 1)
        checkpointer = try Checkpointer(pool, writeGate: writeGate)
        queue = WriteQueue(
            pool: pool, writeGate: writeGate, checkpointer: checkpointer, observers: commitObservers
        )
        readGate = Gate(permitCount: configuration.maximumReaderCount)
        pool.metrics.derivation.recordNanoseconds(derivationDuration.nanoseconds)
        try EngineNotice.log(to: configuration.logger)
        pool.events.opened(
            pool.profile, pool.journalMode, derivation: derivationDuration)
        pool.file?.cache.onTrim { [weak self] in self?.fitIdleCaches() }
        pool.writer.willExpire = { [sweeper, weak self] work in sweeper.begin(work, self) }
    }

    deinit {
        if life.withLock({ $0 }) != .closed { pool.events.closed() }
        sweeper.stop()
        checkpointer.stop()
        pool.closeConnections()
        pool.file?.leaveCacheBudget()
    }

    /// Fits the cache of each connection that no body uses now to its share, which has become
    /// smaller.
    private func fitIdleCaches() {
        while (try? readGate.enterAtOnce()) == true {
            defer { readGate.leave() }
            guard pool.fitCacheOfIdleReader() else { break }
        }
        guard (try? queue.gate.enterAtOnce()) == true else { return }
        defer { queue.gate.leave() }
        pool.fitCache(of: pool.writer)
    }

    var waitingWriteCount: Int { queue.gate.waitingCount }

    var writes: WriteStatistics { queue.counters.writes }

    /// Identifies the store to `HeldStore`.
    var id: ObjectIdentifier { queue.id }

    // MARK: Writing

    func write<T>(
        _ request: WriteQueue.Request, cancellation: Cancellation? = nil,
        _ body: (inout WriteTransaction) throws -> T
    ) throws -> T {
        if let held = HeldStore.current(of: id) { return try joinWrite(held, body) }
        try requireWritable()
        var value: T?
        try queue.write(request, cancellation: cancellation) { scope in
            var transaction = WriteTransaction(scope: scope, level: scope.level)
            value = try body(&transaction)
        }
        return try value.returned()
    }

    func write<T: Sendable>(
        _ request: WriteQueue.Request,
        _ body: @escaping @Sendable (inout WriteTransaction) throws -> T
    ) async throws -> T {
        try requireWritable()
        let returned = Returned<T>()
        do {
            try await queue.write(request) { scope in
                var transaction = WriteTransaction(scope: scope, level: scope.level)
                returned.keep(try body(&transaction))
            }
        } catch {
            throw error.ofTask
        }
        return try returned.value()
    }

    /// Runs a write inside a write body of the same store, in a savepoint of its transaction.
    ///
    /// - Parameter held: The transaction of that body.
    /// - Throws: What `body` throws, after the savepoint is undone; `.misuse` if `held` only reads;
    ///   otherwise as `TransactionScope.inSavepoint`.
    private func joinWrite<T>(
        _ held: HeldStore.Transaction, _ body: (inout WriteTransaction) throws -> T
    ) throws -> T {
        guard held.kind == .writing else {
            throw StoreError(
                .misuse, "a write cannot start inside a read of the same store",
                hint: "Start with store.write { }, which also reads.")
        }
        let scope = held.scope
        return try scope.inSavepoint(level: scope.level) { level in
            var transaction = WriteTransaction(scope: scope, level: level)
            return try body(&transaction)
        }
    }

    func requireWritable() throws(StoreError) {
        guard pool.mode != .readOnly else {
            throw StoreError(.readOnly, "the store was opened for reading only")
        }
    }

    /// Waits for the write gate, for work that is not a write. Its caller must leave the gate.
    ///
    /// - Throws: `.cancelled` if the caller's task was cancelled meanwhile or before; otherwise as
    ///   `Gate.waitUnlessDeadlocked`.
    func waitForWriter(_ cancellation: Cancellation?) throws(StoreError) {
        if let cancellation, cancellation.isCancelled { throw cancellation.reasonOfWaiting }
        try queue.gate.waitUnlessDeadlocked(
            timeout: configuration.waitTimeout, for: "the write queue", cancellation: cancellation)
    }

    /// Tells the observers of commits if another connection has committed, as the writer sees it.
    /// Does nothing while a write runs, because each write checks by itself, or while the store
    /// admits nothing.
    func askForForeignCommits() {
        guard (try? queue.gate.wait(timeout: .zero, for: "the writer")) != nil else { return }
        defer { queue.gate.leave() }
        commitObservers.noticeForeignCommits(pool.writer)
        // Otherwise no later commit would be noticed until this store writes.
        if pool.writer.isUnreadable, pool.file?.hasKeyring == true { _ = try? pool.currentWriter() }
    }

    // MARK: Reading

    func read<T>(
        timeout: Duration? = nil, cancellation: Cancellation? = nil,
        _ body: (inout ReadTransaction) throws -> T
    ) throws -> T {
        if let held = HeldStore.current(of: id) {
            var transaction = ReadTransaction(scope: held.scope, level: held.scope.level)
            return try body(&transaction)
        }
        let timeout = timeout ?? configuration.waitTimeout
        let gate = pool.hasReaders ? readGate : queue.gate
        let beginning = pool.metrics.beginning()
        try gate.waitUnlessDeadlocked(
            timeout: timeout, for: "a free connection", cancellation: cancellation)
        defer { gate.leave() }
        return try runRead(waitingSince: beginning, cancellation: cancellation, body)
    }

    func read<T: Sendable>(
        timeout: Duration? = nil, _ body: @escaping @Sendable (inout ReadTransaction) throws -> T
    ) async throws -> T {
        let gate = pool.hasReaders ? readGate : queue.gate
        let returned = Returned<T>()
        let beginning = pool.metrics.beginning()
        do {
            try await gate.admitted(
                timeout: timeout ?? configuration.waitTimeout, for: "a free connection",
                on: configuration.threads
            ) { cancellation, done in
                let result = Result {
                    returned.keep(
                        try self.runRead(
                            waitingSince: beginning, cancellation: cancellation, body))
                }
                WorkThread.willEnd()
                gate.leave()
                done(result)
            }
        } catch {
            throw error.ofTask
        }
        return try returned.value()
    }

    private func runRead<T>(
        waitingSince beginning: UInt64, cancellation: Cancellation?,
        _ body: (inout ReadTransaction) throws -> T
    ) throws -> T {
        // Cancelled after the gate admitted it and before its thread ran.
        if let reason = cancellation?.reason { throw reason }
        let beginning = pool.metrics.didWait(since: beginning)
        defer { pool.metrics.didRead(since: beginning) }
        return try pool.withRead(cancellation) { connection, stop in
            let scope = TransactionScope(connection, stop: stop, cancellation: cancellation)
            defer { scope.end() }
            do {
                let result = try connection.member(isFirst: true) {
                    cancellation?.aim(at: connection.interruptHandle)
                    defer { cancellation?.release() }
                    return try run(body, in: scope, at: pool.hasReaders ? readGate : queue.gate)
                }
                try connection.commitShared()
                return result
            } catch {
                pool.events.failed(error, on: connection)
                throw scope.explained(error)
            }
        }
    }

    /// Runs the body of a read in an open transaction.
    ///
    /// - Parameters:
    ///   - scope: The state of that transaction.
    ///   - gate: The gate at which others wait for the body to end.
    ///   - snapshotGate: The gate at which other reads of the same snapshot wait; `nil` without
    ///     one.
    /// - Returns: What `body` returns.
    /// - Throws: What `body` throws; the reason to stop, if `body` returned although one of its
    ///   verbs was refused for that reason.
    func run<T>(
        _ body: (inout ReadTransaction) throws -> T, in scope: TransactionScope, at gate: Gate,
        snapshotGate: Gate? = nil
    ) throws -> T {
        try HeldStore.hold(id, kind: .reading, scope: scope, at: gate, snapshotGate: snapshotGate) {
            try scope.run {
                var transaction = ReadTransaction(scope: scope, level: scope.level)
                return try body(&transaction)
            }
        }
    }
}
