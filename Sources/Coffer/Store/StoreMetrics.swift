import Dispatch
import Metrics

/// A store's metrics, for the program's metrics backend if one was bootstrapped before the store
/// was opened. See <https://github.com/apple/swift-metrics>.
final class StoreMetrics: Sendable {
    /// Whether there is a backend. Without one, reads do not look at the clock.
    private let isOn: Bool
    /// How long deriving the key took.
    let derivation: Timer
    /// How long changes of the key took, with their checkpoints.
    let rekey: Timer
    /// How long rotations of the key took, and how long writes waited for them.
    let rotation: Timer
    let rotationPause: Timer
    /// How often the store went on under a key that another process had rotated.
    let heals: Counter
    /// How many writes waited in the queue when a commit ended.
    let queueDepth: Gauge
    /// Pages that were found decrypted in memory, and pages that were not.
    let cacheHits: Counter
    let cacheMisses: Counter
    /// How long writes waited in the queue.
    let wait: Timer
    /// How long commits took.
    let commit: Timer
    /// How many bodies a commit made durable.
    let groupCount: Recorder
    /// Bodies that were undone.
    let undone: Counter
    /// How long checkpoints took.
    let checkpoint: Timer
    /// Pages in the write-ahead log when a checkpoint ended.
    let walFrameCount: Gauge
    /// How long reads waited for a connection.
    private let readWait: Timer
    /// How long reads took after that wait.
    private let read: Timer

    /// Creates a store's metrics in the program's backend, if there is one.
    ///
    /// - Parameter store: The value of the dimension `store`, which distinguishes stores; empty for
    ///   no dimension.
    init(store: String) {
        let store = store.isEmpty ? [] : [("store", store)]
        isOn = !(MetricsSystem.factory is NOOPMetricsHandler)
        derivation = Timer(label: "coffer.key.derivation", dimensions: store)
        rekey = Timer(label: "coffer.rekey", dimensions: store)
        rotation = Timer(label: "coffer.rotation", dimensions: store)
        rotationPause = Timer(label: "coffer.rotation.pause", dimensions: store)
        heals = Counter(label: "coffer.key.heals", dimensions: store)
        queueDepth = Gauge(label: "coffer.write.depth", dimensions: store)
        cacheHits = Counter(label: "coffer.cache.hits", dimensions: store)
        cacheMisses = Counter(label: "coffer.cache.misses", dimensions: store)
        wait = Timer(label: "coffer.write.wait", dimensions: store)
        commit = Timer(label: "coffer.commit", dimensions: store)
        groupCount = Recorder(label: "coffer.commit.bodies", dimensions: store)
        undone = Counter(label: "coffer.write.undone", dimensions: store)
        checkpoint = Timer(label: "coffer.checkpoint", dimensions: store)
        walFrameCount = Gauge(label: "coffer.log.pages", dimensions: store)
        readWait = Timer(label: "coffer.read.wait", dimensions: store)
        read = Timer(label: "coffer.read", dimensions: store)
    }

    // MARK: Reads

    // Times of reads are nanoseconds of uptime, or 0 without a backend. An optional instant of the
    // standard library's clock would cost such a read 300 instructions.

    /// The time now, as nanoseconds of uptime; 0 without a backend.
    func beginning() -> UInt64 { isOn ? DispatchTime.now().uptimeNanoseconds : 0 }

    /// Records how long a read waited.
    ///
    /// - Parameter beginning: When the wait began, as `beginning()` returned it; 0 records nothing.
    /// - Returns: The time now, as nanoseconds of uptime; 0 if `beginning` is 0.
    func didWait(since beginning: UInt64) -> UInt64 {
        beginning == 0 ? 0 : record(readWait, since: beginning)
    }

    func didRead(since beginning: UInt64) {
        if beginning != 0 { _ = record(read, since: beginning) }
    }

    @inline(never)
    private func record(_ timer: Timer, since beginning: UInt64) -> UInt64 {
        let now = DispatchTime.now().uptimeNanoseconds
        timer.recordNanoseconds(Int64(clamping: now - min(beginning, now)))
        return now
    }
}

extension StoreMetrics {
    /// Adds the hits and misses to their counters. It is called after each read, so it touches a
    /// counter only if there is something to count.
    func add(_ cache: CacheCounts) {
        if cache.hitCount > 0 { cacheHits.increment(by: Int64(cache.hitCount)) }
        if cache.missCount > 0 { cacheMisses.increment(by: Int64(cache.missCount)) }
    }
}

extension Duration {
    /// Whole nanoseconds, rounded toward zero; `Int64.max` or `.min` if they do not fit.
    var nanoseconds: Int64 {
        let parts = components
        let (seconds, isTooLong) = parts.seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, overflows) = seconds.addingReportingOverflow(parts.attoseconds / 1_000_000_000)
        guard isTooLong || overflows else { return sum }
        return parts.seconds < 0 ? .min : .max
    }
}
