import Synchronization

/// The line of writes, and the commit that those who wait together share.
///
///     wait in line            Gate, `waitUnlessDeadlocked` or `admitted`
///     BEGIN, if none is open  `begin`
///     SAVEPOINT, if it was    `Connection.part`, with all up to RELEASE or ROLLBACK TO
///     the body
///     probe, foreign keys
///     RELEASE
///     pass the turn on …      `passOn`: the next one goes on at SAVEPOINT, this one waits
///     … or COMMIT             `commit`, or `abandon` if SQLite has ended the transaction
///     settle                  everybody's call returns
///
/// 1. *Turns.* The gate admits one at a time, first in, first out. Only who has the turn touches
///    the writer. A synchronous body runs on its caller's thread, an asynchronous one on one of
///    `WorkThreads`. One whose task is cancelled, or whose time is up, leaves the line; one that is
///    cancelled before its thread has come begins nothing.
/// 2. *The first of a group* opens the transaction and needs no savepoint: while it runs nothing
///    else is in there. So undoing it undoes all, and it alone is interrupted when its task is
///    cancelled; a pause interrupts whoever runs, and its group with it. The bodies after it run
///    in a savepoint each: one that throws, or leaves a foreign key unsatisfied, is undone alone.
///    But a page that fails authentication ends the whole group: what else the others have read is
///    suspect as well.
/// 3. *Passing on.* A write shares its turn if it is `.immediate` and its body waits for the store
///    alone (`Request`). If it does, and the next in line does, the turn goes to that one and the
///    transaction stays open. Who passed it on waits to be settled, also if it was undone: what it
///    has seen of the others is not durable yet. Otherwise who has the turn commits: nobody waits,
///    the next one does not share, the group has had its number of bodies or its time
///    (`GroupCommit`: it bounds when the last body begins, not when it ends). So does who is inside
///    another store's body: a later member might wait for just that store. A lone write waits for
///    no other and pays for no savepoint.
/// 4. *Settling.* After COMMIT everybody is told, in the order of the line. If COMMIT fails all get
///    its error, also those who had thrown one of their own, and nothing is applied. If SQLite ends
///    the transaction in a body, that caller gets its own error, those who had run get
///    `.rolledBack`, and the rest of the line begins a new group. No body runs twice. If even a
///    rollback failed, the writer was closed, and the next group opens it again.
///
/// Those who observe are told before the turn is given up, so in the order of the commits. A
/// checkpoint that writes must wait for keeps the turn after COMMIT, and gives it up on its own
/// thread. Work that is no write (`rekey`, `close`, reads without WAL, the look for commits of
/// other processes) stands in the same line and never shares, so it finds no transaction open.
final class WriteQueue: Sendable {
    /// Told once what became of the commit: `nil` if it is durable.
    private typealias Settle = @Sendable (StoreError?) -> Void

    /// One whose body has run in the open transaction, and who waits for its end.
    private struct Member {
        let isKept: Bool
        let settle: Settle
    }

    /// What belongs to the open transaction. Only who has the turn changes it.
    private struct Group {
        /// Those whose work stands in it and who wait.
        var members: [Member] = []
        /// How many bodies have run in it, with those that were undone.
        var bodyCount = 0
        var beginning = ContinuousClock.now
    }

    /// How one write goes about it.
    struct Request: Sendable {
        var mode = TransactionMode.immediate
        /// How long to wait in line; `nil` for as long as it takes.
        var timeout: Duration?
        /// Whether it may share its commit with others.
        var isSharing = true
        /// Whether foreign keys have no effect in it; only for work of Coffer's own.
        var pausesForeignKeys = false
        var caller = Caller(fileID: #fileID, line: #line)

        /// For work of Coffer's own, and bodies that wait for something else than the store.
        static let alone = Self(isSharing: false)

        /// Another kind of transaction than the group's, or a body that waits for something else,
        /// would hold up who shares with it.
        fileprivate var sharesTurns: Bool { isSharing && mode == .immediate }
    }

    /// How a body ended.
    private enum Ending {
        case kept(AfterCommit)
        /// It asked to be undone, which is no failure.
        case undone
        case failed(any Error)

        var isKept: Bool { if case .kept = self { true } else { false } }

        var error: (any Error)? { if case .failed(let error) = self { error } else { nil } }

        /// What the caller gets, once it is known what became of all that the body saw.
        ///
        /// - Parameter failure: Why that was undone, if it was.
        func result(_ failure: StoreError?) -> Result<AfterCommit, any Error> {
            if let failure { return .failure(failure) }
            switch self {
            case .kept(let afterCommit): return .success(afterCommit)
            case .undone: return .success(AfterCommit())
            case .failed(let error): return .failure(error)
            }
        }
    }

    let gate: Gate
    let counters: WriteCounters
    private let group = Mutex(Group())
    /// What the open transaction touches, for those who observe.
    ///
    /// Proof that it is safe: only who has the turn uses it.
    private nonisolated(unsafe) var recording: (any CommitRecorder)?
    private let observers: CommitObservers
    private let pool: ConnectionPool
    private let checkpointer: Checkpointer
    private let limits: Configuration.GroupCommit

    /// - Parameter turns: Has one place.
    init(
        pool: ConnectionPool, turns: Gate, checkpointer: Checkpointer,
        observers: CommitObservers
    ) {
        gate = turns
        self.observers = observers
        counters = WriteCounters(pool.metrics)
        self.pool = pool
        self.checkpointer = checkpointer
        limits = pool.configuration.groupCommit
    }

    /// Names the store where bodies and waits are told apart.
    var id: ObjectIdentifier { ObjectIdentifier(self) }

    // MARK: Two ways to wait

    /// Runs `body` on this thread when its turn has come, and returns when it is durable.
    func write(_ request: Request, _ body: (TransactionScope) throws -> Void) throws {
        let beginning = ContinuousClock.now
        try gate.waitUnlessDeadlocked(
            timeout: request.timeout, for: "the write queue", isSharing: request.sharesTurns)
        let ending = run(request, waitingSince: beginning, cancellation: nil, body)
        // A lone write makes nothing to wait on.
        let turn = canPassOn(request) ? Gate.Turn() : nil
        let failure: StoreError?
        if let turn, passOn(ending, { turn.come($0) }) {
            failure = turn.failure()
        } else {
            failure = end(ending)
        }
        try ending.result(failure).get().run()
    }

    /// The same without holding a thread while it waits; `body` runs on one of Coffer's.
    func write(
        _ request: Request, _ body: @escaping @Sendable (TransactionScope) throws -> Void
    ) async throws {
        let beginning = ContinuousClock.now
        let afterCommit = try await gate.admitted(
            timeout: request.timeout, for: "the write queue", isSharing: request.sharesTurns,
            on: pool.configuration.threads
        ) { (cancellation, done: @escaping Gate.Done<AfterCommit>) in
            let ending = self.run(
                request, waitingSince: beginning, cancellation: cancellation, body)
            WorkThread.willEnd()
            let settle: Settle = { done(ending.result($0)) }
            if self.canPassOn(request), self.passOn(ending, settle) { return }
            settle(self.end(ending))
        }
        afterCommit.run()
    }

    // MARK: A turn

    private func run(
        _ request: Request, waitingSince beginning: ContinuousClock.Instant,
        cancellation: Cancellation?, _ body: (TransactionScope) throws -> Void
    ) -> Ending {
        // Cancelled after its turn had come and before its thread had: nothing is begun.
        if let reason = cancellation?.reason { return .failed(reason) }
        counters.didBegin(request.caller, waitingSince: beginning)
        let scope = TransactionScope(
            pool.writer, stop: pool.writerStop, cancellation: cancellation)
        defer { scope.end() }
        do {
            let isFirst = try begin(request)
            // What an interrupt stops takes its whole transaction with it.
            if isFirst { cancellation?.aim(at: pool.writer.interruptHandle) }
            try pool.writer.part(isFirst: isFirst) {
                defer { cancellation?.release() }
                try HeldStore.hold(id, kind: .writing, scope: scope, at: gate) {
                    try scope.run { try body(scope) }
                    if scope.isUndone(level: 0) { throw TransactionScope.Undone() }
                }
            }
            return .kept(scope.afterCommit)
        } catch is TransactionScope.Undone {
            return .undone
        } catch {
            pool.events.failed(error, on: pool.writer)
            return .failed(scope.explained(error))
        }
    }

    /// Whether this is the first of its group.
    private func begin(_ request: Request) throws(StoreError) -> Bool {
        let isFirst = !pool.writer.isInTransaction
        if isFirst {
            try pool.openWriter().beginShared(
                request.mode, pausesForeignKeys: request.pausesForeignKeys)
            recording = observers.begin(pool.writer)
            try requireTransaction()
            let beginning = ContinuousClock.now
            group.withLock { $0.beginning = beginning }
        }
        group.withLock { $0.bodyCount += 1 }
        return isFirst
    }

    /// - Throws: Why SQLite has ended the transaction while the recording looked at it.
    private func requireTransaction() throws(StoreError) {
        guard !pool.writer.isInTransaction, let failure = recording?.failure else { return }
        pool.writer.undoShared()
        throw failure
    }

    /// Whether the next in line may go on in the same transaction while this thread waits.
    private func canPassOn(_ request: Request) -> Bool {
        request.sharesTurns && gate.isNextSharing && pool.writer.isInTransaction && hasRoom
            && !HeldStore.isInsideAny
    }

    /// Gives the turn to the next in line, who goes on in the same transaction.
    ///
    /// - Parameter settle: Called after the commit, on any thread. Also a body that was undone
    ///   waits for it: it has seen what others did, and that is not durable yet.
    /// - Returns: Whether the turn is given away.
    private func passOn(_ ending: Ending, _ settle: @escaping Settle) -> Bool {
        // Before the turn is gone: from then on others may commit.
        group.withLock { $0.members.append(Member(isKept: ending.isKept, settle: settle)) }
        if gate.pass() { return true }
        group.withLock { _ = $0.members.popLast() }
        return false
    }

    private var hasRoom: Bool {
        let (count, beginning) = group.withLock { ($0.bodyCount, $0.beginning) }
        return count < limits.writeCountMax
            && beginning.duration(to: .now) < limits.durationMax
    }

    /// Ends a turn that is not passed on, and with it the group.
    ///
    /// - Returns: Why the work of the group is undone, if it is.
    private func end(_ ending: Ending) -> StoreError? {
        guard pool.writer.isInTransaction else {
            let failure = abandon(because: ending.error)
            counters.didUndo(1)
            // What it threw is why all is undone; what it returned may tell of what is undone.
            return ending.error == nil ? failure : nil
        }
        return commit(Member(isKept: ending.isKept) { _ in })
    }

    /// Makes the group durable, tells everybody, and lets the next in line in.
    private func commit(_ own: Member) -> StoreError? {
        let beginning = ContinuousClock.now
        var failure: StoreError?
        recording?.finish()
        do throws(StoreError) {
            try requireTransaction()
            try pool.writer.commitShared()
        } catch {
            failure = error
        }
        // Before the next write begins: events come in the order of the commits.
        if failure == nil { observers.committed(recording, on: pool.writer) }
        recording = nil
        let members = takeGroup()
        count(members + [own], since: beginning, failure)
        if let failure { pool.events.commitFailed(count: members.count + 1, failure) }
        if let loss = pool.loss { observers.close(loss) }
        let need = checkpointer.need(after: pool.writer.logFrameCount)
        let cacheByteCount = pool.fitCache(of: pool.writer)
        // The turn stays taken until the log is moved; nobody but the next write waits for it.
        if !need.keepsTurn { gate.leave() }
        for member in members { member.settle(failure) }
        pool.file?.cache.trimIfSmaller(than: cacheByteCount)
        checkpointer.start(need)
        return failure
    }

    private func count(
        _ members: [Member], since beginning: ContinuousClock.Instant, _ failure: StoreError?
    ) {
        let keptCount = members.filter(\.isKept).count
        counters.didCommit(
            keptCount, since: beginning, isDurable: failure == nil,
            cache: pool.writer.takeCacheCounts(), waitingCount: gate.lineLength)
        counters.didUndo(members.count - keptCount)
    }

    /// Nothing of the group is left: SQLite has ended its transaction.
    ///
    /// - Returns: What those were told who had run in it; `nil` if there were none.
    private func abandon(because error: (any Error)?) -> StoreError? {
        recording?.stop()
        recording = nil
        let members = takeGroup()
        counters.didAbandon(members.count)
        if let loss = pool.loss { observers.close(loss) }
        gate.leave()
        guard !members.isEmpty else { return nil }
        pool.events.groupUndone(count: members.count, error)
        let failure = StoreError(
            .rolledBack, "another write, which shared the commit, made SQLite undo it",
            hint: "Run it again.", cause: error)
        for member in members { member.settle(failure) }
        return failure
    }

    private func takeGroup() -> [Member] {
        group.withLock { group in
            defer { (group.members, group.bodyCount) = ([], 0) }
            return group.members
        }
    }
}
