import Synchronization

/// One snapshot of a store that outlives a call: every read of it sees the same commits.
///
/// ```swift
/// let snapshot = try await store.snapshot()
/// for page in 0..<pageCount { try await show(snapshot.read { tx in try tx.fetch(notes(page)) }) }
/// ```
///
/// It uses one of `maximumReaderCount` connections until `close()` or until it is released, and
/// keeps the WAL from restarting. Its reads run one at a time.
public final class StoreSnapshot: Sendable {
    private enum State {
        case open(ConnectionPool.Reader)
        case ended(StoreError)
    }

    private let core: StoreCore
    private let snapshotGate = Gate(permitCount: 1)
    private let state: Mutex<State>

    /// Makes a snapshot of a reader whose transaction has already read something. Takes over the
    /// reader and one permit of the read gate, and gives both back at its end.
    fileprivate init(core: StoreCore, reader: ConnectionPool.Reader) {
        self.core = core
        state = Mutex(.open(reader))
        let end: @Sendable () -> Void = { [weak self] in self?.endBecauseStopped() }
        // On another thread and weakly: the thread that stops the snapshot must not wait for its
        // reads, and the signal must not keep the store alive.
        reader.stop.whenStopped { _ in WorkThreads.run(end) }
    }

    deinit {
        end(Self.closed)
    }

    /// Runs `body` on the snapshot, on this thread.
    ///
    /// - Parameter body: The work.
    /// - Returns: What `body` returns, after every page that it read has passed authentication.
    /// - Throws: What `body` throws; `StoreError` `.damaged` if a page failed authentication, which
    ///   ends the snapshot; `.snapshotExpired`, `.suspended`, `.closed` if the snapshot has ended;
    ///   `.busy` if another read of this snapshot does not end within `waitTimeout`;
    ///   `.wouldDeadlock` in the body of another store that the wait depends on; `.misuse` inside a
    ///   body of the store.
    public func read<T>(_ body: (inout ReadTransaction) throws -> T) throws -> T {
        try core.requireOutside()
        try snapshotGate.waitUnlessDeadlocked(
            timeout: core.configuration.waitTimeout, for: "the snapshot")
        defer { snapshotGate.leave() }
        return try run(cancellation: nil, body)
    }

    /// Runs `body` on the snapshot, on one of Coffer's threads.
    ///
    /// - Throws: As the synchronous form; `CancellationError` if the task was cancelled.
    public func read<T: Sendable>(
        _ body: @escaping @Sendable (inout ReadTransaction) throws -> T
    ) async throws -> T {
        do {
            return try await snapshotGate.admitted(
                timeout: core.configuration.waitTimeout, for: "the snapshot",
                on: core.configuration.threads
            ) { [self] cancellation, done in
                let result = Result { try run(cancellation: cancellation, body) }
                WorkThread.willEnd()
                snapshotGate.leave()
                done(result)
            }
        } catch {
            throw error.ofTask
        }
    }

    /// Ends the snapshot, and returns its connection to the store. Later reads of the snapshot
    /// throw `.closed`. A second call does nothing.
    ///
    /// - Throws: `StoreError` `.busy` if a read of the snapshot does not end within `waitTimeout`;
    ///   `.wouldDeadlock` in the body of another store that the wait depends on; `.misuse` inside a
    ///   body of the store.
    public func close() throws {
        try core.requireOutside()
        try snapshotGate.waitUnlessDeadlocked(
            timeout: core.configuration.waitTimeout, for: "a read of the snapshot")
        defer { snapshotGate.leave() }
        end(Self.closed)
    }

    // MARK: Inside the gate

    private func run<T>(
        cancellation: Cancellation?, _ body: (inout ReadTransaction) throws -> T
    ) throws -> T {
        let reader = try state.withLock { state throws(StoreError) in
            switch state {
            case .open(let reader): return reader
            case .ended(let reason): throw reason
            }
        }
        let connection = reader.connection
        let scope = TransactionScope(
            connection, stop: reader.stop, cancellation: cancellation, isWholeRun: false)
        // Damage ends the transaction, and with it the snapshot.
        defer {
            scope.end()
            if !connection.isInTransaction { end(Self.closed) }
        }
        do {
            return try connection.member(isFirst: false) {
                try core.run(body, in: scope, at: core.readGate, snapshotGate: snapshotGate)
            }
        } catch {
            core.pool.events.failed(error, on: connection)
            throw scope.explained(error)
        }
    }

    private func endBecauseStopped() {
        guard (try? snapshotGate.wait(timeout: nil, for: "a read of the snapshot")) != nil else {
            return
        }
        defer { snapshotGate.leave() }
        let reason = state.withLock { state -> StoreError? in
            if case .open(let reader) = state { reader.stop.reason } else { nil }
        }
        if let reason { end(reason) }
    }

    private func end(_ reason: StoreError) {
        let reader = state.withLock { state -> ConnectionPool.Reader? in
            guard case .open(let reader) = state else { return nil }
            state = .ended(reason)
            return reader
        }
        guard let reader else { return }
        core.endSnapshot(reader)
    }

    private static var closed: StoreError { StoreError(.closed, "the snapshot was closed") }
}

extension Store {
    /// Takes a snapshot: the store as it is now, for as long as the snapshot is kept.
    ///
    /// - Returns: A snapshot that has every write whose call has returned.
    /// - Throws: `StoreError` `.busy` if no connection becomes free within `waitTimeout`;
    ///   `.unsupported` for a store without WAL or without a file, where a snapshot would hold up
    ///   every write; `.wouldDeadlock` in the body of another store; `.wrongKey` if another process
    ///   changed the key; `.damaged` if the schema cannot be read; `.closed`, `.suspended`.
    public func snapshot() throws -> StoreSnapshot {
        try core.snapshot()
    }

    /// Takes a snapshot, without blocking a thread of the cooperative pool.
    ///
    /// - Throws: As the synchronous form; `CancellationError` if the task was cancelled while
    ///   it waited for a connection.
    public func snapshot() async throws -> StoreSnapshot {
        do {
            return try await core.snapshot()
        } catch {
            throw error.ofTask
        }
    }
}

extension StoreCore {
    fileprivate func snapshot() throws(StoreError) -> StoreSnapshot {
        try requireWAL()
        try readGate.waitUnlessDeadlocked(
            timeout: configuration.waitTimeout, for: "a free connection")
        return try takeSnapshot()
    }

    fileprivate func snapshot() async throws -> StoreSnapshot {
        try requireWAL()
        return try await readGate.admitted(
            timeout: configuration.waitTimeout, for: "a free connection", on: configuration.threads
        ) { cancellation, done in
            done(Result { try self.takeSnapshot(cancellation) })
        }
    }

    private func requireWAL() throws(StoreError) {
        _ = try pool.requireFile(
            "reads share the connection with writes, which a snapshot would block")
        guard pool.journalMode == .wal else {
            throw StoreError(
                .unsupported, "a snapshot needs WAL mode",
                hint: "Set Configuration.journalMode to .wal, or read in one body.")
        }
    }

    /// Begins a snapshot on a reader. Hands the caller's permit of the read gate to the snapshot,
    /// or leaves the gate on failure.
    ///
    /// - Throws: The errors of opening a reader and of its first read; the reason, if the reader
    ///   was stopped meanwhile.
    private func takeSnapshot(
        _ cancellation: Cancellation? = nil
    ) throws(StoreError) -> StoreSnapshot {
        do throws(StoreError) {
            let reader = try pool.withCurrentKey(cancellation) { () throws(StoreError) in
                try takeReading()
            }
            return StoreSnapshot(core: self, reader: reader)
        } catch {
            readGate.leave()
            throw error
        }
    }

    /// Takes a reader and begins a snapshot on it.
    private func takeReading() throws(StoreError) -> ConnectionPool.Reader {
        let reader = try pool.takeReader()
        // Before the transaction, so that a read that keeps the WAL is known from its first moment.
        reader.stop.begin(reader.connection.interruptHandle)
        do throws(StoreError) {
            try reader.connection.beginSnapshot()
        } catch {
            let reason = reader.stop.reason
            reader.stop.end()
            pool.giveBack(reader)
            throw reason ?? error
        }
        return reader
    }

    fileprivate func endSnapshot(_ reader: ConnectionPool.Reader) {
        reader.stop.end()
        reader.connection.undoShared()
        pool.giveBack(reader)
        readGate.leave()
    }
}
