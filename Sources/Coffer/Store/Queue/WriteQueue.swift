import Synchronization

/// The queue of writes, and the commit that consecutive writes share.
///
///     wait in the queue       Gate, `waitUnlessDeadlocked` or `admitted`
///     BEGIN, if none is open  `begin`
///     SAVEPOINT, otherwise    `Connection.member`, with everything up to RELEASE or ROLLBACK TO
///     the body
///     probe, foreign keys
///     RELEASE
///     pass the write gate on  `passOn`: the next write continues at SAVEPOINT, this one waits
///     … or COMMIT             `commit`, or `abandon` if the transaction is gone
///     settle                  every call returns
///
/// 1. *Queueing.* The write gate has one permit and admits first in, first out. Only its holder
///    uses the writer. A synchronous body runs on its caller's thread, an asynchronous one on a
///    thread of `WorkThreads`. A write whose task is cancelled, or whose timeout expires, leaves
///    the queue. A write that is cancelled after it was admitted, but before its thread runs,
///    begins nothing.
/// 2. *The first of a group* opens the transaction. It needs no savepoint, because the transaction
///    holds no other work while it runs: undoing it undoes everything. For the same reason only the
///    first body is interrupted when its task is cancelled. `suspend` interrupts any running body,
///    and its group with it. Each later body runs in a savepoint. If it throws or leaves a foreign
///    key unsatisfied, only its own work is undone. But a page that fails authentication ends the
///    whole group: whatever the other bodies read is suspect as well.
/// 3. *Passing on.* A write can share a commit if its mode is `.immediate` and its body waits only
///    for the store (`Request`). If this write and the next in the queue can both share, the write
///    gate passes to the next one and the transaction stays open. The write that passed it on waits
///    for the commit, even if it was undone, because what it saw of the others is not durable yet.
///    The holder commits instead if no write is waiting, the next one does not share, or the group
///    has had its number of bodies or its time (`GroupCommit` bounds when the last body begins, not
///    when it ends). It also commits if its call is inside another store's body, because a later
///    member might wait for that very store. A lone write waits for no other write and needs no
///    savepoint.
/// 4. *Settling.* After COMMIT the members' calls return in queue order. If COMMIT fails, every
///    member gets its error, even one whose body had thrown an error of its own, and nothing is
///    applied. If SQLite ends the transaction during a body, that body's caller gets the body's
///    error. The earlier members get `.rolledBack`, and the rest of the queue begins a new group.
///    No body runs twice. If even a rollback failed, the writer was closed, and the next group
///    reopens it.
///
/// `WriteQueue` notifies observers before it leaves the write gate, so in the order of the commits.
/// A checkpoint that writes must wait for keeps the gate after COMMIT and leaves it on the
/// checkpoint thread. Work that is not a write (`rekey`, `close`, reads without WAL, the check for
/// commits of other processes) uses the same gate and never shares, so it finds no transaction
/// open.
final class WriteQueue: Sendable {
    /// Called once with the outcome of the commit: `nil` if it is durable.
    private typealias Settle = @Sendable (StoreError?) -> Void

    /// A write whose body has run in the open transaction, and which waits for its end.
    private struct Member {
        let isKept: Bool
        let settle: Settle
    }

    /// State of the open transaction. Only the holder of the write gate changes it.
    private struct Group {
        /// The writes that ran in it and wait for its end.
        var members: [Member] = []
        /// The number of bodies that ran in it, including undone ones.
        var bodyCount = 0
        var beginning = ContinuousClock.now
    }

    /// How one write is to run.
    struct Request: Sendable {
        var mode = TransactionMode.immediate
        /// How long to wait in the queue; `nil` waits indefinitely.
        var timeout: Duration?
        /// Whether it may share its commit with others.
        var isSharing = true
        /// Whether foreign keys are not enforced in it; only for internal work.
        var pausesForeignKeys = false
        var caller = Caller(fileID: #fileID, line: #line)

        /// For internal work, and bodies that wait for something other than the store.
        static let unshared = Self(isSharing: false)

        /// Another transaction mode, or a body that waits for something else, would hold up the
        /// writes that share the commit.
        fileprivate var sharesTurns: Bool { isSharing && mode == .immediate }
    }

    /// How a body ended.
    private enum Ending {
        case kept(AfterCommit)
        /// The body asked to be undone, which is not a failure.
        case undone
        case failed(any Error)

        var isKept: Bool { if case .kept = self { true } else { false } }

        var error: (any Error)? { if case .failed(let error) = self { error } else { nil } }

        /// The result for the caller, once it is known whether the group was committed.
        ///
        /// - Parameter failure: Why the group's work was undone; `nil` if it was committed.
        /// - Returns: `failure`, if there is one. Otherwise the error of the body, or the work to
        ///   run after the commit. That work is empty for an undone body.
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
    /// What the open transaction changes, for observers.
    ///
    /// Proof that it is safe: only the holder of the write gate uses it.
    private nonisolated(unsafe) var recording: (any CommitRecorder)?
    private let observers: CommitObservers
    private let pool: ConnectionPool
    private let checkpointer: Checkpointer
    private let limits: Configuration.GroupCommit

    /// Makes the queue of the pool's writer.
    ///
    /// - Parameter writeGate: The gate that admits one user of the writer at a time; it has one
    ///   permit.
    init(
        pool: ConnectionPool, writeGate: Gate, checkpointer: Checkpointer,
        observers: CommitObservers
    ) {
        gate = writeGate
        self.observers = observers
        counters = WriteCounters(pool.metrics)
        self.pool = pool
        self.checkpointer = checkpointer
        limits = pool.configuration.groupCommit
    }

    /// Identifies the store to `HeldStore`.
    var id: ObjectIdentifier { ObjectIdentifier(self) }

    // MARK: Two ways to wait

    /// Runs `body` on this thread once the write gate admits it. Returns when its work is durable
    /// and the work for after the commit has run.
    ///
    /// - Throws: What `body` throws, once its work is undone. The errors of
    ///   `Gate.waitUnlessDeadlocked`, and of BEGIN. The error of COMMIT, or `.rolledBack` if
    ///   another body of the group made SQLite end the transaction; both replace what `body` threw.
    func write(
        _ request: Request, cancellation: Cancellation? = nil,
        _ body: (TransactionScope) throws -> Void
    ) throws {
        let beginning = ContinuousClock.now
        try gate.waitUnlessDeadlocked(
            timeout: request.timeout, for: "the write queue", isSharing: request.sharesTurns,
            cancellation: cancellation)
        let ending = run(request, waitingSince: beginning, cancellation: cancellation, body)
        // A lone write creates nothing to wait on.
        let waiter = canPassOn(request) ? Gate.Waiter() : nil
        let failure: StoreError?
        if let waiter, passOn(ending, { waiter.come($0) }) {
            failure = waiter.failure()
        } else {
            failure = end(ending)
        }
        try ending.result(failure).get().run()
    }

    /// Does the same without blocking a thread while it waits; `body` runs on a thread of
    /// `WorkThreads`.
    ///
    /// - Throws: As the synchronous form, without `.wouldDeadlock`; `.cancelled` if the task was
    ///   cancelled.
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

    // MARK: One write

    private func run(
        _ request: Request, waitingSince beginning: ContinuousClock.Instant,
        cancellation: Cancellation?, _ body: (TransactionScope) throws -> Void
    ) -> Ending {
        // Cancelled after the gate admitted it and before its thread ran: begin nothing.
        if let reason = cancellation?.reason { return .failed(reason) }
        counters.didBegin(request.caller, waitingSince: beginning)
        let scope = TransactionScope(
            pool.writer, stop: pool.writerStop, cancellation: cancellation)
        defer { scope.end() }
        do {
            let isFirst = try begin(request, cancellation)
            // An interrupt may roll back the whole transaction, so only the first body is a target.
            if isFirst { cancellation?.aim(at: pool.writer.interruptHandle) }
            try pool.writer.member(isFirst: isFirst) {
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

    /// Prepares the writer for one body: begins a transaction, with its recording, if none is open.
    ///
    /// - Returns: Whether the body is the first of its group.
    /// - Throws: The errors of opening the writer and of BEGIN, such as `.busy`.
    private func begin(
        _ request: Request, _ cancellation: Cancellation?
    ) throws(StoreError) -> Bool {
        let isFirst = !pool.writer.isInTransaction
        if isFirst {
            try pool.beginWrite(
                request.mode, pausesForeignKeys: request.pausesForeignKeys, cancellation)
            recording = observers.begin(pool.writer)
            try requireTransaction()
            let beginning = ContinuousClock.now
            group.withLock { $0.beginning = beginning }
        }
        group.withLock { $0.bodyCount += 1 }
        return isFirst
    }

    /// Does nothing if the transaction is open or its recording has not failed.
    ///
    /// - Throws: The recording's failure, if SQLite ended the transaction during it.
    private func requireTransaction() throws(StoreError) {
        guard !pool.writer.isInTransaction, let failure = recording?.failure else { return }
        pool.writer.undoShared()
        throw failure
    }

    /// Whether the next write in the queue may continue in the same transaction while this caller
    /// waits. Both must share commits, the transaction must be open, and the group must have room.
    /// The thread must be in no body of any store.
    private func canPassOn(_ request: Request) -> Bool {
        request.sharesTurns && gate.isNextSharing && pool.writer.isInTransaction && hasRoom
            && !HeldStore.isInsideAny
    }

    /// Passes the write gate to the next write in the queue, which continues in the same
    /// transaction.
    ///
    /// An undone body waits for the commit too: it saw what others did, and that is not durable
    /// yet.
    ///
    /// - Parameter settle: Called after the commit, on any thread, with the reason of its failure
    ///   or `nil`.
    /// - Returns: Whether the gate was passed on. If not, `settle` is not called.
    private func passOn(_ ending: Ending, _ settle: @escaping Settle) -> Bool {
        // Before the gate is passed on, because from then on others may commit.
        group.withLock { $0.members.append(Member(isKept: ending.isKept, settle: settle)) }
        if gate.pass() { return true }
        group.withLock { _ = $0.members.popLast() }
        return false
    }

    private var hasRoom: Bool {
        let (count, beginning) = group.withLock { ($0.bodyCount, $0.beginning) }
        return count < limits.maximumWriteCount
            && beginning.duration(to: .now) < limits.maximumDuration
    }

    /// Ends a write that does not pass the gate on, and its group: commits the transaction, or
    /// abandons the group if the transaction is gone. Leaves the write gate.
    ///
    /// - Returns: The error that replaces the body's result: that of COMMIT, or `.rolledBack` if
    ///   SQLite ended the transaction although the body returned. Otherwise `nil`.
    private func end(_ ending: Ending) -> StoreError? {
        guard pool.writer.isInTransaction else {
            let failure = abandon(because: ending.error)
            counters.didUndo(1)
            // A body's own error explains the rollback. A returned value may describe rolled-back
            // data, so report the rollback instead.
            return ending.error == nil ? failure : nil
        }
        return commit(Member(isKept: ending.isKept) { _ in })
    }

    /// Commits the transaction, reports the outcome to all members of the group, and leaves the
    /// write gate. If the next write must wait for a checkpoint, the gate is left when that has
    /// ended.
    ///
    /// - Returns: Why nothing was committed; `nil` if the group's work is durable.
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
        // Before the next write begins, so that events come in the order of the commits.
        if failure == nil { observers.committed(recording, on: pool.writer) }
        recording = nil
        let members = takeGroup()
        count(members + [own], since: beginning, failure)
        if let failure { pool.events.commitFailed(count: members.count + 1, failure) }
        if let loss = pool.loss { observers.close(loss) }
        let need = checkpointer.need(after: pool.writer.walFrameCount)
        let cacheByteCount = pool.fitCache(of: pool.writer)
        // Hold the gate until the checkpoint has ended; only the next write waits for it.
        if !need.keepsWriteGate { gate.leave() }
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
            cache: pool.writer.takeCacheCounts(), waitingCount: gate.queueLength)
        counters.didUndo(members.count - keptCount)
    }

    /// Ends a group whose transaction is gone: SQLite ended it, or it failed to begin or was
    /// undone. Its earlier members get `.rolledBack`. Leaves the write gate.
    ///
    /// - Parameter error: What ended it; the cause of the members' error.
    /// - Returns: The error for the earlier members; `nil` if there were none.
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
            .rolledBack, "another write, which shared the commit, made SQLite roll it back",
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
