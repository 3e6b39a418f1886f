import Synchronization

/// Counts what the write queue does.
final class WriteCounters: Sendable {
    private struct Counts {
        var running: (caller: Caller, beginning: ContinuousClock.Instant)?
        var writes = WriteStatistics()
        var cache = CacheCounts()
    }

    private let counts = Mutex(Counts())
    private let metrics: StoreMetrics

    init(_ metrics: StoreMetrics) {
        self.metrics = metrics
    }

    var running: RunningWrite? {
        counts.withLock { $0.running }.map {
            RunningWrite(caller: $0.caller, beginning: $0.beginning)
        }
    }
    var writes: WriteStatistics { counts.withLock { $0.writes } }
    var cache: CacheCounts { counts.withLock { $0.cache } }

    func didBegin(_ caller: Caller, waitingSince beginning: ContinuousClock.Instant) {
        let now = ContinuousClock.now
        let wait = beginning.duration(to: now)
        metrics.wait.recordNanoseconds(wait.nanoseconds)
        counts.withLock { counts in
            counts.running = (caller, now)
            counts.writes.waitDuration += wait
            counts.writes.waitDurationMax = max(counts.writes.waitDurationMax, wait)
        }
    }

    /// The turn ends as well.
    ///
    /// - Parameters:
    ///   - count: The bodies whose work was in the transaction; none is no commit.
    ///   - beginning: When COMMIT began.
    ///   - cache: What the writer found in its cache meanwhile.
    ///   - waitingCount: The writes that stand in line.
    func didCommit(
        _ count: Int, since beginning: ContinuousClock.Instant, isDurable: Bool,
        cache: CacheCounts, waitingCount: Int
    ) {
        let duration = beginning.duration(to: .now)
        metrics.commit.recordNanoseconds(duration.nanoseconds)
        metrics.queueDepth.record(Int64(waitingCount))
        metrics.add(cache)
        if isDurable {
            metrics.groupCount.record(Int64(count))
        } else {
            metrics.undone.increment(by: Int64(count))
        }
        counts.withLock { counts in
            counts.running = nil
            counts.cache += cache
            guard count > 0 else { return }
            guard isDurable else {
                counts.writes.undoneCount += count
                return
            }
            counts.writes.committedCount += count
            counts.writes.commitCount += 1
            counts.writes.groupCountMax = max(counts.writes.groupCountMax, count)
            counts.writes.commitDuration += duration
            counts.writes.commitDurationMax = max(counts.writes.commitDurationMax, duration)
        }
    }

    /// SQLite has ended the transaction, and so the turn ends.
    func didAbandon(_ count: Int) {
        counts.withLock { $0.running = nil }
        didUndo(count)
    }

    /// - Parameter count: How many bodies have left nothing.
    func didUndo(_ count: Int) {
        guard count > 0 else { return }
        metrics.undone.increment(by: Int64(count))
        counts.withLock { $0.writes.undoneCount += count }
    }
}

/// Where a call stands in its program.
struct Caller: Sendable {
    var fileID: StaticString
    var line: UInt
}

/// A write that has the turn now: its body runs, or it commits.
public struct RunningWrite: Sendable, Hashable {
    /// The file of the call of `write`, as `Module/File.swift`.
    public let fileID: String
    /// The line of the call of `write`.
    public let line: Int
    /// When its turn began.
    public let beginning: ContinuousClock.Instant

    init(caller: Caller, beginning: ContinuousClock.Instant) {
        fileID = "\(caller.fileID)"
        line = Int(caller.line)
        self.beginning = beginning
    }
}

/// What the writes of a store have done since it was opened.
public struct WriteStatistics: Sendable, Hashable {
    /// Bodies that returned and are durable.
    public internal(set) var committedCount = 0
    /// Commits: with group commit fewer than bodies.
    public internal(set) var commitCount = 0
    /// Bodies that threw, asked to be undone, or whose commit failed.
    public internal(set) var undoneCount = 0
    /// Most bodies that one commit made durable.
    public internal(set) var groupCountMax = 0
    /// The time that all of them together stood in line.
    public internal(set) var waitDuration = Duration.zero
    /// The longest time that one of them stood in line.
    public internal(set) var waitDurationMax = Duration.zero
    /// The time that all commits took.
    public internal(set) var commitDuration = Duration.zero
    /// The time that the longest commit took.
    public internal(set) var commitDurationMax = Duration.zero

    /// Bodies for each commit, on average; 0 before the first commit.
    public var groupCountMean: Double {
        commitCount == 0 ? 0 : Double(committedCount) / Double(commitCount)
    }
}
