/// Whether a write waits for the reads that keep the log above its bound, and when these end.
///
/// Writes wait, or reads end, or the log grows: it grows. A read is waited for once and briefly. If
/// that was in vain, no write waits until it has gone:
///
/// - The store knows its own reads. One that has become too old is told to end, and so is one that
///   still keeps the log at its second bound.
/// - A read of another process has gone when a checkpoint beside the writes has moved all it found.
/// - Short reads that overlap keep the log although none of them lasts. They are waited for again
///   whenever the log has grown by a quarter, and for longer at the second bound.
struct LogBound {
    /// Who was waited for in vain.
    enum Blocker: Equatable {
        /// Reads of the store's own that had begun by then; those that had by `toldBegunBy` are
        /// told to end.
        case ownReads(
            begunBy: ContinuousClock.Instant, toldBegunBy: ContinuousClock.Instant? = nil)
        case otherProcess
    }

    /// What is to be done about a log of some size.
    enum Step: Equatable {
        /// It is below its bound, or its reads were waited for in vain a moment ago.
        case none
        /// The read that keeps it is still there.
        case leave
        /// The next write waits so long for the reads.
        case wait(Duration)
        /// The reads that began by then are told to end.
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
                    "the read kept its snapshot for longer than \(configuration.snapshotAgeMax)",
                    hint: "Read again, in shorter reads, or raise Configuration.snapshotAgeMax.")
            case .byteCount:
                StoreError(
                    .snapshotExpired,
                    "the read kept the write-ahead log until it had "
                        + "\(configuration.snapshotWALByteCountMax) bytes",
                    hint: "Read again, in shorter reads, or raise "
                        + "Configuration.snapshotWALByteCountMax.")
            }
        }
    }

    static let patience = Duration.milliseconds(50)
    /// At the second bound, for reads that were not waited for.
    static let lastPatience = Duration.seconds(1)

    /// Frames of the log from which reads are waited for.
    let frameCountMax: Int
    /// Frames of the log at which they end.
    private let lastFrameCount: Int
    private let ageMax: Duration
    /// Of how many frames on a write waits.
    private var waitFrameCount: Int
    private(set) var blocker: Blocker?

    init(_ configuration: Configuration, pageByteCount: Int) {
        frameCountMax = max(
            configuration.checkpointPageCount, configuration.walByteCountMax / pageByteCount)
        lastFrameCount = max(
            frameCountMax, configuration.snapshotWALByteCountMax / pageByteCount)
        ageMax = configuration.snapshotAgeMax
        waitFrameCount = frameCountMax
    }

    /// What a log of that many frames asks for.
    ///
    /// - Parameter oldestRead: When the oldest of the store's own reads that run now began.
    mutating func step(
        at frameCount: Int, oldestRead: () -> ContinuousClock.Instant?
    ) -> Step {
        guard frameCount >= frameCountMax else { return .none }
        switch blocker {
        case .otherProcess: return .leave
        case .ownReads(let begunBy, let toldBegunBy):
            guard let oldest = oldestRead(), oldest <= begunBy else {
                blocker = nil
                // First what it kept is moved beside the writes.
                waitWhenGrown(from: frameCount)
                return .none
            }
            if let toldBegunBy, oldest <= toldBegunBy { return .leave }
            return end(oldest, begunBy, frameCount)
        case nil:
            guard frameCount >= waitFrameCount else { return .none }
            return .wait(frameCount < lastFrameCount ? Self.patience : Self.lastPatience)
        }
    }

    /// Whether reads that were waited for have to end.
    private mutating func end(
        _ oldest: ContinuousClock.Instant, _ begunBy: ContinuousClock.Instant, _ frameCount: Int
    ) -> Step {
        if frameCount >= lastFrameCount {
            blocker = .ownReads(begunBy: begunBy, toldBegunBy: begunBy)
            return .end(begunBy: begunBy, .byteCount)
        }
        let tooOld = ContinuousClock.now - ageMax
        guard oldest <= tooOld else { return .leave }
        blocker = .ownReads(begunBy: begunBy, toldBegunBy: tooOld)
        return .end(begunBy: tooOld, .age)
    }

    private mutating func waitWhenGrown(from frameCount: Int) {
        let grown = frameCount + frameCount / 4 + 1
        waitFrameCount = frameCount < lastFrameCount ? min(grown, lastFrameCount) : grown
    }

    /// Reads were waited for in vain.
    ///
    /// - Parameters:
    ///   - beginning: When the wait began.
    ///   - isMoved: Whether all is in the main file nevertheless: then no read is of an old
    ///     snapshot.
    ///   - oldestRead: When the oldest of the store's own reads that run now began.
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

    /// A checkpoint that waited for nobody has moved all that it found.
    mutating func didMoveAll() {
        if blocker != nil { didRestart() }
    }

    /// The log begins at its start again, or nobody is known to keep it.
    mutating func didRestart() {
        blocker = nil
        waitFrameCount = frameCountMax
    }
}
