/// Decides whether a write waits for the reads that keep the WAL above its bound, and when they
/// end.
///
/// Writes could wait, reads could end, or the WAL could grow: it grows. A write waits for reads
/// once and briefly. It does not wait for a read of this store that has lasted as long already. If
/// a read remains, no write waits until that read has gone:
///
/// - The store knows its own reads. It asks a read to end when the read has become too old, or
///   still keeps the WAL at its second bound.
/// - A read of another process has gone when a checkpoint alongside the writes has moved all it
///   found.
/// - Short reads that overlap keep the WAL although none of them lasts. A write waits for them
///   again whenever the WAL has grown by a quarter, and for longer at the second bound.
struct WALBound {
    /// The reads for which no further write waits, because one waited in vain or passed them over.
    enum Blocker: Equatable {
        /// This store's reads that began by `begunBy`. Those that began by `toldBegunBy` were asked
        /// to end.
        case ownReads(
            begunBy: ContinuousClock.Instant, toldBegunBy: ContinuousClock.Instant? = nil)
        case otherProcess
    }

    /// What to do about a WAL of some size.
    enum Step: Equatable {
        /// It is below its bound, has not grown by a quarter since a vain wait, or the blocking
        /// read ended.
        case none
        /// The read that keeps it is still running.
        case leave
        /// A read keeps it that has lasted longer than the next write would wait.
        case passOver
        /// The next write waits this long for the reads.
        case wait(Duration)
        /// The reads that began by then are asked to end.
        case end(begunBy: ContinuousClock.Instant, Reason)
    }

    /// Why a read has to end.
    enum Reason: Equatable {
        case age, byteCount

        func error(_ configuration: Configuration) -> StoreError {
            switch self {
            case .age:
                StoreError(
                    .snapshotExpired,
                    "the read kept its snapshot for longer than "
                        + "\(configuration.maximumSnapshotAge)",
                    hint: "Read again, in shorter reads, or raise Configuration.maximumSnapshotAge."
                )
            case .byteCount:
                StoreError(
                    .snapshotExpired,
                    "the read kept the write-ahead log from restarting until it had "
                        + "\(configuration.maximumSnapshotWALByteCount) bytes",
                    hint: "Read again, in shorter reads, or raise "
                        + "Configuration.maximumSnapshotWALByteCount.")
            }
        }
    }

    static let patience = Duration.milliseconds(50)
    /// At the second bound, for reads that no write has waited for.
    static let lastPatience = Duration.seconds(1)

    /// Frames of the WAL from which a write waits for reads.
    let maximumFrameCount: Int
    /// Frames of the WAL at which reads end.
    private let lastFrameCount: Int
    private let maximumAge: Duration
    /// Frames of the WAL from which the next write waits.
    private var waitFrameCount: Int
    private(set) var blocker: Blocker?

    init(_ configuration: Configuration, pageByteCount: Int) {
        maximumFrameCount = max(
            configuration.checkpointPageCount, configuration.maximumWALByteCount / pageByteCount)
        lastFrameCount = max(
            maximumFrameCount, configuration.maximumSnapshotWALByteCount / pageByteCount)
        maximumAge = configuration.maximumSnapshotAge
        waitFrameCount = maximumFrameCount
    }

    /// Decides what a WAL of that many frames needs. Forgets a blocker of this store's own reads
    /// once they have ended.
    ///
    /// - Parameters:
    ///   - frameCount: The frames of the WAL after the last commit.
    ///   - isKept: Whether the last checkpoint could not move all of it. A read that has lasted
    ///     long keeps nothing if it has not begun its snapshot.
    ///   - oldestRead: When the oldest running read of this store began; `nil` if none runs.
    /// - Returns: The step; `.none` below `maximumFrameCount`.
    mutating func step(
        at frameCount: Int, isKept: Bool, oldestRead: () -> ContinuousClock.Instant?
    ) -> Step {
        guard frameCount >= maximumFrameCount else { return .none }
        switch blocker {
        case .otherProcess: return .leave
        case .ownReads(let begunBy, let toldBegunBy):
            guard let oldest = oldestRead(), oldest <= begunBy else {
                blocker = nil
                // First, a checkpoint alongside the writes moves the pages that the read kept.
                waitWhenGrown(from: frameCount)
                return .none
            }
            if let toldBegunBy, oldest <= toldBegunBy { return .leave }
            return end(oldest, begunBy, frameCount)
        case nil:
            guard frameCount >= waitFrameCount else { return .none }
            let patience = frameCount < lastFrameCount ? Self.patience : Self.lastPatience
            let late = ContinuousClock.now - patience
            guard isKept, let oldest = oldestRead(), oldest <= late else {
                return .wait(patience)
            }
            blocker = .ownReads(begunBy: late)
            waitWhenGrown(from: frameCount)
            return .passOver
        }
    }

    /// Decides whether reads that a write waited for, or passed over, must end.
    ///
    /// - Returns: `.end` at the second bound, or if the oldest read has reached the maximum age of
    ///   a snapshot; otherwise `.leave`.
    private mutating func end(
        _ oldest: ContinuousClock.Instant, _ begunBy: ContinuousClock.Instant, _ frameCount: Int
    ) -> Step {
        if frameCount >= lastFrameCount {
            blocker = .ownReads(begunBy: begunBy, toldBegunBy: begunBy)
            return .end(begunBy: begunBy, .byteCount)
        }
        let tooOld = ContinuousClock.now - maximumAge
        guard oldest <= tooOld else { return .leave }
        blocker = .ownReads(begunBy: begunBy, toldBegunBy: tooOld)
        return .end(begunBy: tooOld, .age)
    }

    private mutating func waitWhenGrown(from frameCount: Int) {
        let grown = frameCount + frameCount / 4 + 1
        waitFrameCount = frameCount < lastFrameCount ? min(grown, lastFrameCount) : grown
    }

    /// Records what a write waited for in vain, as `blocker`. The next write waits only once the
    /// WAL has grown by a quarter.
    ///
    /// - Parameters:
    ///   - frameCount: The frames of the WAL.
    ///   - beginning: When the wait began.
    ///   - isMoved: Whether the main file has everything nevertheless. Then no read uses an old
    ///     snapshot, and there is no blocker.
    ///   - oldestRead: When the oldest running read of this store began; `nil` if none runs.
    mutating func didWaitInVain(
        at frameCount: Int, since beginning: ContinuousClock.Instant, isMoved: Bool,
        oldestRead: ContinuousClock.Instant?
    ) {
        waitWhenGrown(from: frameCount)
        if isMoved {
            blocker = nil
        } else if let oldestRead, oldestRead <= beginning {
            blocker = .ownReads(begunBy: beginning)
        } else {
            blocker = .otherProcess
        }
    }

    /// Does what `didRestart()` does if there is a blocker, and otherwise nothing. For a checkpoint
    /// that waited for nobody and moved everything it found.
    mutating func didMoveAll() {
        if blocker != nil { didRestart() }
    }

    /// Forgets the blocker, and lets writes wait again from `maximumFrameCount` on: the WAL
    /// restarted, or no known read keeps it.
    mutating func didRestart() {
        blocker = nil
        waitFrameCount = maximumFrameCount
    }
}
