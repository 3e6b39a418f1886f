import Dispatch
import Synchronization

/// The queue behind a store: who may use which connection, and when.
///
/// A write waits for the write gate (one permit), runs its body in `BEGIN IMMEDIATE`, is probed and
/// committed, and leaves. A read waits for the read gate (one permit for each reader) and does the
/// same on a reader with `BEGIN`. Without WAL a read takes the write gate instead. `rekey` and
/// `close` take the write gate and then every permit of the read gate, so that nothing runs.
final class StoreCore: Sendable {
    let pool: ConnectionPool
    let configuration: Configuration
    private let claim: OpenFiles.Claim
    private let writeGate = Gate(permitCount: 1)
    private let readGate: Gate
    /// Who is told of commits.
    let observation = StoreObservation()
    /// Async bodies block their thread, so they never run on the cooperative pool.
    private let writeThread = DispatchQueue(label: "coffer.write")
    private let readThreads = DispatchQueue(label: "coffer.read", attributes: .concurrent)

    init(
        path: String, key: borrowing StoreKey, mode: OpenMode, configuration: Configuration
    ) throws(StoreError) {
        let opening = try Opening(
            path: path, mode: mode, configuration: configuration,
            cacheByteCount: ConnectionPool.cacheByteCount(configuration))
        if case .file(_, let identity) = try opening.file.status() {
            // Asked before, so that no key is derived in vain.
            try OpenFiles.require(identity, isFreeAt: opening.file.path)
        }
        let opened = try opening.open(key: key)
        guard case .file(_, let identity) = try opened.file.status() else {
            throw StoreError(.notFound, "the file \(opened.file.path) was removed")
        }
        claim = try OpenFiles.Claim(identity, path: opened.file.path)
        let configuration = try configuration.resolved(opened.handle.journalMode())
        self.configuration = configuration
        pool = try ConnectionPool(opened: opened, mode: mode, configuration: configuration)
        readGate = Gate(permitCount: configuration.readerCountMax)
        try EngineNotice.log(to: configuration.logger)
    }

    deinit {
        pool.closeReaders()
        pool.writer.close()
        claim.release()
    }

    var waitingWriteCount: Int { writeGate.waitingCount }

    var statistics: StoreStatistics {
        let readers = pool.readerCounts
        return StoreStatistics(
            openReaderCount: readers.open, idleReaderCount: readers.idle,
            waitingReadCount: pool.hasReaders ? readGate.waitingCount : 0,
            waitingWriteCount: writeGate.waitingCount)
    }

    private var id: ObjectIdentifier { ObjectIdentifier(self) }

    // MARK: Writing

    func write<T>(_ body: (inout WriteTransaction) throws -> T) throws -> T {
        if let held = HeldStore.current(of: id) { return try joinWrite(held, body) }
        try writeGate.wait(timeout: nil, for: "the write queue")
        defer { writeGate.leave() }
        return try runWrite(cancellation: nil, body)
    }

    func write<T: Sendable>(
        _ body: @escaping @Sendable (inout WriteTransaction) throws -> T
    ) async throws -> T {
        try await admitted(to: writeGate, on: writeThread, timeout: nil) { cancellation in
            try self.runWrite(cancellation: cancellation, body)
        }
    }

    /// A write inside a body of the same store is a part of its transaction.
    private func joinWrite<T>(
        _ held: HeldStore, _ body: (inout WriteTransaction) throws -> T
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

    private func runWrite<T>(
        cancellation: Cancellation?, _ body: (inout WriteTransaction) throws -> T
    ) throws -> T {
        guard pool.mode != .readOnly else {
            throw StoreError(.readOnly, "the store was opened for reading only")
        }
        var recording: CommitRecording?
        defer { recording?.stop() }
        let result = try run(on: pool.writer, .immediate, kind: .writing, cancellation) { scope in
            recording = observation.begin(pool.writer)
            var transaction = WriteTransaction(scope: scope, level: scope.level)
            let result = try body(&transaction)
            recording?.finish()
            return result
        }
        // The next write has not begun: events come in the order of the commits.
        observation.committed(recording, on: pool.writer)
        return result
    }

    /// Asks on the writer whether another connection has committed, unless a write runs, which
    /// asks by itself.
    func askForForeignCommits() {
        guard (try? writeGate.wait(timeout: .zero, for: "the writer")) != nil else { return }
        defer { writeGate.leave() }
        observation.noticeForeignCommits(pool.writer)
    }

    // MARK: Reading

    func read<T>(_ body: (inout ReadTransaction) throws -> T) throws -> T {
        if let held = HeldStore.current(of: id) {
            var transaction = ReadTransaction(scope: held.scope, level: held.scope.level)
            return try body(&transaction)
        }
        let gate = pool.hasReaders ? readGate : writeGate
        try gate.wait(timeout: configuration.waitTimeout, for: "a free connection")
        defer { gate.leave() }
        return try runRead(cancellation: nil, body)
    }

    func read<T: Sendable>(
        _ body: @escaping @Sendable (inout ReadTransaction) throws -> T
    ) async throws -> T {
        let gate = pool.hasReaders ? readGate : writeGate
        let threads = pool.hasReaders ? readThreads : writeThread
        return try await admitted(
            to: gate, on: threads, timeout: configuration.waitTimeout
        ) { cancellation in
            try self.runRead(cancellation: cancellation, body)
        }
    }

    private func runRead<T>(
        cancellation: Cancellation?, _ body: (inout ReadTransaction) throws -> T
    ) throws -> T {
        let connection = pool.hasReaders ? try pool.takeReader() : pool.writer
        defer { if pool.hasReaders { pool.giveBack(connection) } }
        return try run(on: connection, .deferred, kind: .reading, cancellation) { scope in
            var transaction = ReadTransaction(scope: scope, level: scope.level)
            return try body(&transaction)
        }
    }

    // MARK: Both

    private func run<T>(
        on connection: Connection, _ mode: TransactionMode, kind: HeldStore.Kind,
        _ cancellation: Cancellation?, _ body: (TransactionScope) throws -> T
    ) throws -> T {
        let scope = TransactionScope(connection, cancellation: cancellation)
        defer { scope.end() }
        return try HeldStore.hold(id, kind: kind, scope: scope) {
            try connection.transaction(mode) {
                let result = try body(scope)
                try scope.requireWhole()
                return result
            }
        }
    }

    /// Waits in line without a thread, then runs `work` on a thread that may block.
    private func admitted<T: Sendable>(
        to gate: Gate, on threads: DispatchQueue, timeout: Duration?,
        _ work: @escaping @Sendable (Cancellation) throws -> T
    ) async throws -> T {
        let cancellation = Cancellation()
        let slot = TicketSlot()
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let ticket = Gate.Ticket { decision in
                    switch decision {
                    case .failure(let error): continuation.resume(throwing: error)
                    case .success:
                        threads.async {
                            let result = Result { try work(cancellation) }
                            gate.leave()
                            continuation.resume(with: result)
                        }
                    }
                }
                if slot.hold(ticket) { gate.enter(ticket) } else { gate.cancel(ticket) }
                guard let timeout else { return }
                expire(ticket, of: gate, after: timeout)
            }
        } onCancel: {
            cancellation.cancel()
            if let ticket = slot.cancel() { gate.cancel(ticket) }
        }
    }

    /// A timer only for one who really waits: an idle store has none.
    private func expire(
        _ ticket: Gate.Ticket, of gate: Gate, after timeout: Duration
    ) {
        guard ticket.isWaiting else { return }
        let deadline = DispatchTime.now() + .milliseconds(timeout.milliseconds)
        // Not on the store's own queue, which a running body may block.
        DispatchQueue.global().asyncAfter(deadline: deadline) { [weak ticket] in
            if let ticket { gate.expire(ticket, waitingFor: "a free connection") }
        }
    }

    // MARK: Alone

    /// Runs `work` while nothing else uses the store.
    ///
    /// - Throws: `.busy` if running work does not end within `waitTimeout`; `.misuse` in a body.
    func alone<T>(_ work: () throws(StoreError) -> T) throws(StoreError) -> T {
        try requireOutside()
        let deadline = ContinuousClock.now + configuration.waitTimeout
        try writeGate.wait(timeout: configuration.waitTimeout, for: "running writes to end")
        defer { writeGate.leave() }
        var readerCount = 0
        defer { for _ in 0..<readerCount { readGate.leave() } }
        while readerCount < configuration.readerCountMax {
            let timeLeft = deadline - ContinuousClock.now
            try readGate.wait(timeout: timeLeft, for: "running reads to end")
            readerCount += 1
        }
        return try work()
    }

    /// - Throws: `.misuse` inside a body of this store on this thread.
    func requireOutside() throws(StoreError) {
        guard HeldStore.current(of: id) == nil else {
            throw StoreError(
                .misuse, "this would wait for the transaction it is called from",
                hint: "Call it outside of read and write.")
        }
    }

    func rekey(to key: borrowing StoreKey) throws(StoreError) {
        try alone { () throws(StoreError) in
            guard pool.mode != .readOnly else {
                throw StoreError(.readOnly, "the store was opened for reading only")
            }
            // All readers are of the old key: new ones open on demand.
            pool.closeReaders()
            try pool.writer.changeKey(to: key)
        }
    }

    func close() throws(StoreError) {
        do throws(StoreError) {
            try alone { () throws(StoreError) in shut() }
        } catch  where error.code == .closed {
            // Closed before.
        }
    }

    private func shut() {
        let reason = StoreError(.closed, "the store was closed")
        writeGate.close(reason)
        readGate.close(reason)
        pool.closeReaders()
        pool.writer.close()
        claim.release()
        observation.close(reason)
    }
}

/// Connects a task's cancellation with the ticket that the task is about to draw.
private final class TicketSlot: Sendable {
    private enum State {
        case empty
        case holding(Gate.Ticket)
        case cancelled
    }

    private let state = Mutex(State.empty)

    /// `false` if the task was cancelled before.
    func hold(_ ticket: Gate.Ticket) -> Bool {
        state.withLock { state in
            if case .cancelled = state { return false }
            state = .holding(ticket)
            return true
        }
    }

    func cancel() -> Gate.Ticket? {
        state.withLock { state in
            defer { state = .cancelled }
            if case .holding(let ticket) = state { return ticket }
            return nil
        }
    }
}
