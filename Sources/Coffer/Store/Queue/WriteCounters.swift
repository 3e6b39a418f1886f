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
            counts.writes.maximumWaitDuration = max(counts.writes.maximumWaitDuration, wait)
        }
    }

    /// Counts the end of a commit, which ends the running write as well.
    ///
    /// - Parameters:
    ///   - count: The bodies with work in the transaction; zero does not count as a commit.
    ///   - beginning: When COMMIT began.
    ///   - isDurable: Whether COMMIT succeeded; otherwise the bodies count as undone.
    ///   - cache: The writer's cache hits and misses since the last commit.
    ///   - waitingCount: The number of writes in the queue.
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
            counts.writes.maximumGroupWriteCount = max(counts.writes.maximumGroupWriteCount, count)
            counts.writes.commitDuration += duration
            counts.writes.maximumCommitDuration = max(counts.writes.maximumCommitDuration, duration)
        }
    }

    /// Counts a group whose transaction is gone, which ends the running write as well.
    ///
    /// - Parameter count: The bodies of the group, which count as undone.
    func didAbandon(_ count: Int) {
        counts.withLock { $0.running = nil }
        didUndo(count)
    }

    /// Counts bodies that were undone.
    ///
    /// - Parameter count: How many; zero changes nothing.
    func didUndo(_ count: Int) {
        guard count > 0 else { return }
        metrics.undone.increment(by: Int64(count))
        counts.withLock { $0.writes.undoneCount += count }
    }
}

/// The source location of a call.
struct Caller: Sendable {
    var fileID: StaticString
    var line: UInt
}

/// The write that holds the write gate now: its body runs, or it commits.
public struct RunningWrite: Sendable, Hashable {
    /// The file of the call of `write`, as `Module/File.swift`.
    public let fileID: String
    /// The line of the call of `write`.
    public let line: Int
    /// When the write began to run.
    public let beginning: ContinuousClock.Instant

    init(caller: Caller, beginning: ContinuousClock.Instant) {
        fileID = "\(caller.fileID)"
        line = Int(caller.line)
        self.beginning = beginning
    }
}

/// What the writes of a store have done since it was opened.
public struct WriteStatistics: Sendable, Hashable {
    /// Bodies that returned and whose work is durable.
    public internal(set) var committedCount = 0
    /// Commits; group commit makes them fewer than bodies.
    public internal(set) var commitCount = 0
    /// Bodies that threw, asked to be undone, or whose group's transaction failed.
    public internal(set) var undoneCount = 0
    /// The most bodies that one commit made durable.
    public internal(set) var maximumGroupWriteCount = 0
    /// The total time that writes waited in the queue.
    public internal(set) var waitDuration = Duration.zero
    /// The longest time that one write waited in the queue.
    public internal(set) var maximumWaitDuration = Duration.zero
    /// The total time of all commits.
    public internal(set) var commitDuration = Duration.zero
    /// The time of the longest commit.
    public internal(set) var maximumCommitDuration = Duration.zero

    /// Bodies for each commit, on average; 0 before the first commit.
    public var groupCountMean: Double {
        commitCount == 0 ? 0 : Double(committedCount) / Double(commitCount)
    }

    /// Bodies that have ended, in whatever way.
    var endedCount: Int { committedCount + undoneCount }
    /// The time of a commit, on average; 0 before the first.
    var commitDurationMean: Duration { commitDuration / max(1, commitCount) }
}
