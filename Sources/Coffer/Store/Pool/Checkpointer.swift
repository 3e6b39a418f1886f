import Dispatch
import Synchronization

/// Moves the WAL into the main file, on its own connection and thread, so that no commit pays for
/// it.
///
/// SQLite restarts the WAL when all of it is in the main file and no reader needs it. With writers
/// that never pause, or readers that overlap, that moment may not come:
///
/// 1. From `checkpointPageCount` on, a checkpoint runs alongside the writes and moves nearly all.
///    If no read stopped it short, the next write waits for a second checkpoint. That one moves the
///    few pages written in the meantime, and the WAL restarts unless a read still needs its end. A
///    file that does not grow is also faster to sync.
/// 2. From `maximumWALByteCount` on, which mostly reads cause, the next write waits for a
///    checkpoint that waits for the reads, once and briefly, unless one of them has lasted long
///    already: see `WALBound`.
/// 3. Unfinished work is *owed*: a WAL above its bound, and pages under an old key. A timer tries
///    again. It holds up nobody, and stops once a checkpoint has finished.
final class Checkpointer: Sendable {
    /// What the WAL needs after a commit.
    enum Need: Equatable {
        case nothing, besideWrites
        case beforeNextWrite
        /// The same, and the checkpoint waits this long for reads.
        case afterReads(Duration)
        /// No checkpoint now, because a read has lasted too long to be waited for.
        case later(isNew: Bool)
        /// No checkpoint: reads that began by then must end.
        case end(begunBy: ContinuousClock.Instant, WALBound.Reason)

        /// Whether the write gate stays held until the checkpoint has ended.
        var keepsWriteGate: Bool {
            switch self {
            case .nothing, .besideWrites, .later, .end: false
            case .beforeNextWrite, .afterReads: true
            }
        }
    }

    private struct State {
        var isScheduled = false
        /// Whether a checkpoint alongside the writes has moved all it found.
        var isNearlyMoved = false
        /// The WAL's size at the last checkpoint.
        var triedFrameCount = 0
        /// How often the WAL has restarted; a restart makes an earlier checkpoint's result
        /// meaningless.
        var restartCount = 0
        /// The WAL's size after the last commit.
        var frameCount = 0
        var bound: WALBound
        /// Whether the log has a message about what keeps this WAL too long.
        var isTold = false
        var debt = Debt()
        var counts = CheckpointStatistics()
    }

    /// A checkpoint that could not be finished.
    private struct Debt {
        var isOwed = false
        /// How long to wait before the next attempt.
        var delay = Checkpointer.firstDelay
        var alarm = Alarm()

        /// Ends the debt: nothing is owed, no attempt follows, and the next debt begins with the
        /// shortest delay.
        mutating func end() {
            (isOwed, delay) = (false, Checkpointer.firstDelay)
            alarm.stop()
        }
    }

    private static let firstDelay = Duration.milliseconds(100)
    private static let maximumDelay = Duration.seconds(5)

    private let pool: ConnectionPool
    /// The write gate.
    private let writeGate: Gate
    let thread = DispatchQueue(label: "coffer.checkpoint")
    private let state: Mutex<State>

    private struct Slot {
        var reader: ConnectionPool.Reader?
        /// Whether no connection may be opened: the store is suspended or closed.
        var isStopped = false

        /// Returns the connection for checkpoints, opened if necessary.
        ///
        /// - Returns: `nil` if none may be opened: the store is suspended or closed.
        /// - Throws: The errors of opening.
        mutating func connection(_ pool: ConnectionPool) throws(StoreError) -> Connection? {
            guard !isStopped else { return nil }
            if let reader, !pool.hasCurrentKey(reader) { close() }
            if reader == nil { reader = try pool.openReader(isCounted: false) }
            return reader?.connection
        }

        mutating func close() {
            reader?.connection.close()
            reader = nil
        }
    }

    /// Held while a checkpoint runs.
    private let slot = Mutex(Slot())
    /// This many pages are worth a checkpoint.
    private let frameCount: Int
    private let maximumFrameCount: Int
    /// Moving this many takes too long while a write waits.
    private let farFrameCount: Int
    private let metrics: StoreMetrics
    /// Whether there is a WAL that this store moves.
    private let hasWAL: Bool

    init(_ pool: ConnectionPool, writeGate: Gate) throws(StoreError) {
        metrics = pool.metrics
        (self.pool, self.writeGate) = (pool, writeGate)
        frameCount = pool.configuration.checkpointPageCount
        let bound = WALBound(
            pool.configuration, pageByteCount: pool.profile.pageByteCount)
        maximumFrameCount = bound.maximumFrameCount
        farFrameCount = max(frameCount, maximumFrameCount / 8)
        state = Mutex(State(bound: bound))
        hasWAL = pool.hasReaders && pool.mode != .readOnly
        if hasWAL { try pool.writer.watchWAL() }
    }

    var counts: CheckpointStatistics {
        state.withLock { state in
            var counts = state.counts
            counts.isOwed = state.debt.isOwed
            counts.isKeptByOtherProcess = state.bound.blocker == .otherProcess
            return counts
        }
    }

    // MARK: After a commit

    /// Decides what the WAL needs after a commit.
    ///
    /// Treats the WAL as restarted if it is shorter than before, or not longer than what a
    /// checkpoint has moved.
    ///
    /// - Parameter count: The frames in the WAL after the commit.
    func need(after count: Int) -> Need {
        state.withLock { state in
            if count < state.frameCount || count <= state.counts.movedFrameCount {
                didRestart(&state)
            }
            state.frameCount = count
            guard count >= frameCount else { return .nothing }
            state.counts.walFrameCount = count
            let isKept = state.counts.movedFrameCount < state.triedFrameCount
            let step = state.bound.step(
                at: count, isKept: isKept, oldestRead: { pool.oldestReadBeginning })
            switch step {
            case .none: break
            // Everything that can be moved has been moved.
            case .leave: return .nothing
            case .passOver:
                defer { state.isTold = true }
                return .later(isNew: !state.isTold)
            case .end(let begunBy, let reason): return .end(begunBy: begunBy, reason)
            case .wait(let patience):
                // If a single commit exceeded the bound, its pages are first moved alongside the
                // writes.
                let isNear = count - state.triedFrameCount < farFrameCount
                if isNear || state.triedFrameCount >= maximumFrameCount {
                    return .afterReads(patience)
                }
            }
            if state.isNearlyMoved {
                state.isNearlyMoved = false
                // A large transaction in between is moved alongside the writes as well.
                let isNear = count - state.counts.movedFrameCount < frameCount
                if isNear { return .beforeNextWrite }
            }
            // Not after each commit, because every checkpoint waits for the disk as a commit does.
            guard count - state.triedFrameCount >= frameCount else { return .nothing }
            defer { state.isScheduled = true }
            return state.isScheduled ? .nothing : .besideWrites
        }
    }

    private func didRestart(_ state: inout State) {
        state.bound.didRestart()
        state.isTold = false
        state.counts.movedFrameCount = 0
        state.triedFrameCount = 0
        state.isNearlyMoved = false
        state.restartCount += 1
    }

    /// Begins what `need` asks for, and does not wait for a checkpoint, which runs on the
    /// checkpoint thread.
    ///
    /// If `need` keeps the write gate, that thread leaves the gate after the checkpoint. Reads that
    /// must end have been asked to when this returns.
    func start(_ need: Need) {
        switch need {
        case .nothing: return
        case .end(let begunBy, let reason): return end(readsBegunBy: begunBy, reason)
        case .later(let isNew): return leaveForLater(isNew)
        case .besideWrites, .beforeNextWrite, .afterReads: break
        }
        // A strong reference: a store that is released in the meantime closes when this is over.
        thread.async { [self] in
            run(need)
            if need.keepsWriteGate { writeGate.leave() }
        }
    }

    private func run(_ need: Need) {
        let beginning = ContinuousClock.now
        defer {
            state.withLock { state in
                if need == .besideWrites { state.isScheduled = false }
                guard need.keepsWriteGate else { return }
                state.counts.pauseCount += 1
                state.counts.pauseDuration += beginning.duration(to: .now)
            }
        }
        do throws(StoreError) {
            if case .afterReads(let patience) = need {
                try moveAll(waiting: patience)
            } else {
                try move(isBesideWrites: need == .besideWrites)
            }
        } catch {
            // The next commit tries again; a WAL that stays loses nothing.
            pool.events.checkpointFailed(error)
        }
    }

    private func move(isBesideWrites: Bool) throws(StoreError) {
        try slot.withLock { slot throws(StoreError) in
            guard let connection = try slot.connection(pool) else { return }
            _ = try moveWAL(connection, isBesideWrites: isBesideWrites)
            if isBesideWrites { connection.syncMainFile() }
        }
    }

    /// Runs and counts a checkpoint that waits for nobody.
    ///
    /// - Returns: Whether everything it found is in the main file; `false` also if another
    ///   connection runs a checkpoint.
    /// - Throws: Errors of the checkpoint, such as `.full` and `.io`.
    private func moveWAL(
        _ connection: Connection, isBesideWrites: Bool
    ) throws(StoreError) -> Bool {
        let beginning = ContinuousClock.now
        let restartCount = state.withLock { $0.restartCount }
        guard let result = try connection.moveWAL() else { return false }
        let duration = beginning.duration(to: .now)
        metrics.checkpoint.recordNanoseconds(duration.nanoseconds)
        metrics.walFrameCount.record(Int64(result.walFrameCount))
        state.withLock { state in
            state.counts.count += 1
            state.counts.duration += duration
            guard state.restartCount == restartCount else { return }
            state.triedFrameCount = result.walFrameCount
            state.counts.movedFrameCount = result.checkpointedFrameCount
            state.isNearlyMoved = isBesideWrites && result.isComplete
            if result.isComplete { state.bound.didMoveAll() }
        }
        return result.isComplete
    }

    // MARK: Reads that keep the WAL

    private func moveAll(waiting patience: Duration) throws(StoreError) {
        let beginning = ContinuousClock.now
        let outcome = try slot.withLock { slot throws(StoreError) -> Outcome? in
            guard let connection = try slot.connection(pool) else { return nil }
            let outcome = try connection.moveWholeWAL(waiting: patience)
            // Afterwards, because its result shows how far the first one came.
            let isMoved = try moveWAL(connection, isBesideWrites: false)
            return outcome == .readersRemain
                ? Outcome(isMoved: isMoved, oldestRead: pool.oldestReadBeginning) : nil
        }
        // Even a WAL that restarts keeps its length until the next write.
        owe()
        if let outcome { didWaitInVain(since: beginning, outcome) }
    }

    /// The findings after a vain wait for reads.
    private struct Outcome {
        let isMoved: Bool
        let oldestRead: ContinuousClock.Instant?
    }

    private func didWaitInVain(
        since beginning: ContinuousClock.Instant, _ outcome: Outcome
    ) {
        let isNew = state.withLock { state in
            defer { state.isTold = true }
            state.bound.didWaitInVain(
                at: max(state.frameCount, maximumFrameCount), since: beginning,
                isMoved: outcome.isMoved, oldestRead: outcome.oldestRead)
            return !state.isTold
        }
        // Outside the slot, because it calls the user's code.
        if isNew { tellOfLength() }
    }

    /// A timer moves what a read leaves, because no write waits for that read.
    private func leaveForLater(_ isNew: Bool) {
        owe()
        if isNew { tellOfLength() }
    }

    /// Calls the user's code.
    private func tellOfLength() {
        let (count, blocker) = state.withLock { ($0.frameCount, $0.bound.blocker) }
        pool.events.walIsTooLong(
            pageCount: max(count, maximumFrameCount), maximumPageCount: maximumFrameCount,
            isOtherProcess: blocker == .otherProcess)
    }

    private func end(
        readsBegunBy instant: ContinuousClock.Instant, _ reason: WALBound.Reason
    ) {
        let count = pool.stopReaders(reason.error(pool.configuration), since: instant)
        guard count > 0 else { return }
        pool.events.expiredSnapshots(count: count, age: instant.duration(to: .now))
    }

    // MARK: Owed checkpoints

    /// Marks a checkpoint as owed: a timer tries again, later and without holding up anybody. It
    /// stops when the main file has everything that the WAL has and the WAL is within its bound.
    ///
    /// Also needed after a key change whose checkpoint could not finish: until then the main file
    /// without its WAL is under the old key. Does nothing if this store moves no WAL.
    func owe() {
        guard hasWAL else { return }
        state.withLock { state in
            state.debt.isOwed = true
            setAlarm(&state)
        }
    }

    private func setAlarm(_ state: inout State) {
        state.debt.alarm.set(.now + state.debt.delay) { [weak self] in self?.ring() }
    }

    private func ring() {
        let isOwed = state.withLock { state in
            state.debt.alarm.didRing()
            return state.debt.isOwed
        }
        if isOwed { thread.async { [self] in pay() } }
    }

    private func pay() {
        guard state.withLock({ $0.debt.isOwed }) else { return }
        let isOver: Bool
        do throws(StoreError) {
            let isPaid = try slot.withLock { slot throws(StoreError) -> Bool? in
                guard let connection = try slot.connection(pool) else { return nil }
                guard try moveWAL(connection, isBesideWrites: true) else { return false }
                return try shorten(connection)
            }
            // A suspended store continues with it after `resume`.
            guard let isPaid else { return }
            isOver = isPaid
        } catch {
            pool.events.checkpointFailed(error)
            // A disk may get room; time does not cure other failures.
            isOver = error.code != .full && error.code != .io
        }
        state.withLock { state in
            if isOver {
                state.bound.didMoveAll()
                return state.debt.end()
            }
            guard state.debt.isOwed else { return }
            state.debt.delay = min(state.debt.delay * 2, Self.maximumDelay)
            setAlarm(&state)
        }
    }

    /// Truncates a WAL that is longer than its bound, if nobody uses it.
    ///
    /// - Returns: Whether the WAL is within its bound now; `false` while a write runs or somebody
    ///   uses the WAL.
    /// - Throws: Errors of the checkpoint other than `.busy`.
    private func shorten(_ connection: Connection) throws(StoreError) -> Bool {
        guard state.withLock({ $0.triedFrameCount >= maximumFrameCount }) else { return true }
        // A running write may restart it.
        guard (try? writeGate.enterAtOnce()) == true else { return false }
        defer { writeGate.leave() }
        return try connection.cutWAL()
    }

    // MARK: Pause and end

    /// Waits for a running checkpoint and closes the connection for checkpoints. Then runs `work`
    /// while no checkpoint runs, and returns its result.
    ///
    /// Only for the holder of the write gate, because a checkpoint may hold that gate.
    ///
    /// - Parameter isLast: Whether no checkpoint may run after `work`.
    /// - Throws: What `work` throws.
    func pausing<T, E: Error>(isLast: Bool = false, _ work: () throws(E) -> T) throws(E) -> T {
        let result = try slot.withLock { slot throws(E) in
            slot.close()
            // The WAL may restart in `work`, and reach its old length with the next write.
            defer { forgetWAL() }
            let result = try work()
            slot.isStopped = isLast
            return result
        }
        if isLast { state.withLock { $0.debt.end() } }
        return result
    }

    /// Forgets the results of earlier checkpoints: the WAL counts as restarted and empty.
    private func forgetWAL() {
        state.withLock { state in
            didRestart(&state)
            state.frameCount = 0
        }
    }

    /// Closes the connection for checkpoints, and opens none until `allow()`. An owed checkpoint is
    /// not tried meanwhile.
    func stop() {
        slot.withLock { slot in
            slot.close()
            slot.isStopped = true
        }
        state.withLock { $0.debt.alarm.stop() }
    }

    func allow() {
        slot.withLock { $0.isStopped = false }
        state.withLock { if $0.debt.isOwed { setAlarm(&$0) } }
    }
}

extension CheckpointResult {
    fileprivate var isComplete: Bool { walFrameCount == checkpointedFrameCount }
}
