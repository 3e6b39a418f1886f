import Dispatch
import Synchronization

/// Moves the write-ahead log into the main file, on a connection and a thread of its own, so that
/// no commit pays for it.
///
/// SQLite starts the log anew when all of it is in the main file and no reader needs it. Beside
/// writers who never pause, or readers who overlap, that moment may not come:
///
/// 1. From `checkpointPageCount` on a checkpoint runs beside the writes and moves nearly all. If no
///    read stood in its way, the next write waits for another one, which moves the few pages that
///    were written meanwhile, and the log starts anew unless a read still needs its end. A file
///    that does not grow is also faster to sync.
/// 2. From `walByteCountMax` on, which mostly reads bring about, the next write waits for one that
///    waits for the reads: at first for a tenth of a second, and if that was not enough for twice
///    as long when the log has grown by half, up to two seconds. Short reads thus never keep the
///    log, and a long one holds up the writers now and then. A read that is older than
///    `snapshotAgeMax` then is told to end with `.snapshotExpired`.
final class Checkpointer: Sendable {
    /// What the log was found to be after a commit.
    enum Need: Equatable {
        case nothing, besideWrites
        case beforeNextWrite(waitsForReads: Bool)

        /// Whether the turn in the write queue is kept until the checkpoint has ended.
        var keepsTurn: Bool { self != .nothing && self != .besideWrites }
    }

    private struct State {
        var isScheduled = false
        /// Whether one beside the writes has moved all that it found.
        var isNearlyMoved = false
        /// The log's size at the last one.
        var triedFrameCount = 0
        /// How often the log has started anew: what a checkpoint found before tells nothing then.
        var restartCount = 0
        /// Of how many frames on the next write waits for a checkpoint.
        var pauseFrameCount: Int
        /// How long that one waits for reads.
        var patience = Checkpointer.firstPatience
        /// The log's size after the last commit.
        var frameCount = 0
        /// Whether it was told that readers keep the log too long.
        var isTooLong = false
        var counts = CheckpointStatistics()
    }

    private let pool: ConnectionPool
    private let thread = DispatchQueue(label: "coffer.checkpoint")
    private let state: Mutex<State>
    private static let firstPatience = Duration.milliseconds(100)
    /// Well below `waitTimeout`: who waits for the turn meanwhile shall not give up.
    private static let patienceMax = Duration.seconds(2)

    private struct Slot {
        var reader: ConnectionPool.Reader?
        /// Whether nothing may be opened: the store is suspended or closed.
        var isStopped = false

        mutating func close() {
            reader?.connection.close()
            reader = nil
        }
    }

    /// Held while a checkpoint runs.
    private let slot = Mutex(Slot())
    /// That many pages are worth a checkpoint.
    private let frameCount: Int
    private let frameCountMax: Int
    private let metrics: StoreMetrics

    init(_ pool: ConnectionPool) throws(StoreError) {
        metrics = pool.metrics
        self.pool = pool
        let byteCount = pool.configuration.walByteCountMax
        frameCount = pool.configuration.checkpointPageCount
        frameCountMax = max(frameCount, byteCount / pool.profile.pageByteCount)
        state = Mutex(State(pauseFrameCount: frameCountMax))
        if pool.hasReaders, pool.mode != .readOnly { try pool.writer.watchLog() }
    }

    var counts: CheckpointStatistics { state.withLock { $0.counts } }

    /// Whether a log of that many frames is to be moved.
    func need(after count: Int) -> Need {
        state.withLock { state in
            if count < state.frameCount || count <= state.counts.movedFrameCount {
                didRestart(&state)
            }
            state.frameCount = count
            guard count >= frameCount else { return .nothing }
            state.counts.logFrameCount = count
            if count >= state.pauseFrameCount { return .beforeNextWrite(waitsForReads: true) }
            if state.isNearlyMoved {
                state.isNearlyMoved = false
                // A large transaction in between is moved beside the writes as well.
                let isNear = count - state.counts.movedFrameCount < frameCount
                if isNear { return .beforeNextWrite(waitsForReads: false) }
            }
            // Not after each commit: every checkpoint asks the disk as a commit does.
            guard count - state.triedFrameCount >= frameCount else { return .nothing }
            defer { state.isScheduled = true }
            return state.isScheduled ? .nothing : .besideWrites
        }
    }

    private func didRestart(_ state: inout State) {
        (state.pauseFrameCount, state.patience) = (frameCountMax, Self.firstPatience)
        state.counts.movedFrameCount = 0
        state.triedFrameCount = 0
        state.isNearlyMoved = false
        state.restartCount += 1
    }

    /// Moves what can be moved, on the checkpoint thread.
    ///
    /// - Parameter leave: Gives up the turn in the write queue, if it is kept.
    func start(_ need: Need, _ leave: @escaping @Sendable () -> Void) {
        guard need != .nothing else { return }
        // Strong: a store that is let go meanwhile closes when this is over.
        thread.async { [self] in
            run(need)
            if need.keepsTurn { leave() }
        }
    }

    private func run(_ need: Need) {
        defer { if need == .besideWrites { state.withLock { $0.isScheduled = false } } }
        let beginning = ContinuousClock.now
        let restartCount = state.withLock { $0.restartCount }
        var isLeft = false
        do throws(StoreError) {
            let result = try slot.withLock { slot throws(StoreError) -> CheckpointResult? in
                guard !slot.isStopped else { return nil }
                if slot.reader == nil { slot.reader = try pool.openReader(isCounted: false) }
                guard let connection = slot.reader?.connection else { return nil }
                if need == .beforeNextWrite(waitsForReads: true) {
                    isLeft = try !moveAll(connection)
                }
                // After it, as it tells how far the other one has come.
                let result = try connection.moveLog()
                if need == .besideWrites { connection.syncMainFile() }
                return result
            }
            if let result {
                didRun(need, since: beginning, result, unlessRestartedSince: restartCount)
            }
        } catch {
            // The next commit asks again; nothing is lost by a log that stays.
            pool.events.checkpointFailed(error)
        }
        // Not in the slot: it calls code of the user's.
        if isLeft { didLeave(state.withLock { $0.counts.logFrameCount }) }
    }

    /// - Returns: `false` if reads keep a part of the log.
    private func moveAll(_ connection: Connection) throws(StoreError) -> Bool {
        let patience = state.withLock { $0.patience }
        let outcome = try connection.moveWholeLog(waiting: patience)
        state.withLock { state in
            guard outcome == .readersRemain else { return }
            let count = max(state.pauseFrameCount, state.frameCount)
            state.pauseFrameCount = count + count / 2 + 1
            state.patience = min(patience * 2, Self.patienceMax)
        }
        return outcome != .readersRemain
    }

    private func didRun(
        _ need: Need, since beginning: ContinuousClock.Instant, _ result: CheckpointResult,
        unlessRestartedSince restartCount: Int
    ) {
        let duration = beginning.duration(to: .now)
        metrics.checkpoint.recordNanoseconds(duration.nanoseconds)
        metrics.logFrameCount.record(Int64(result.logFrameCount))
        state.withLock { state in
            state.counts.count += 1
            state.counts.duration += duration
            if result.isComplete { state.isTooLong = false }
            guard state.restartCount == restartCount else { return }
            state.triedFrameCount = result.logFrameCount
            state.counts.movedFrameCount = result.checkpointedFrameCount
            state.isNearlyMoved = need == .besideWrites && result.isComplete
        }
    }

    /// Readers need a part of a log above its bound.
    private func didLeave(_ count: Int) {
        let isNew = state.withLock { state in
            defer { state.isTooLong = true }
            return !state.isTooLong
        }
        if isNew { pool.events.logIsTooLong(pageCount: count, pageCountMax: frameCountMax) }
        expireSnapshots()
    }

    private func expireSnapshots() {
        let age = pool.configuration.snapshotAgeMax
        let count = pool.stopReaders(
            StoreError(
                .snapshotExpired, "the read kept its snapshot for longer than \(age)",
                hint: "Read again, in shorter reads, or raise Configuration.snapshotAgeMax."),
            since: .now - age)
        if count > 0 { pool.events.expiredSnapshots(count: count, age: age) }
    }

    /// Runs `work` while no checkpoint runs and its connection is closed.
    ///
    /// Only who has the turn in the write queue may ask for it: a checkpoint may keep the turn.
    ///
    /// - Parameter isLast: Whether none may run after it.
    func pausing<E: Error>(isLast: Bool = false, _ work: () throws(E) -> Void) throws(E) {
        try slot.withLock { slot throws(E) in
            slot.close()
            try work()
            slot.isStopped = isLast
        }
    }

    /// Opens nothing any more.
    func stop() {
        slot.withLock { slot in
            slot.close()
            slot.isStopped = true
        }
    }

    func allow() {
        slot.withLock { $0.isStopped = false }
    }
}

extension CheckpointResult {
    fileprivate var isComplete: Bool { logFrameCount == checkpointedFrameCount }
}
