import Metrics

/// What a store tells the metrics backend of its program, if that has bootstrapped one before the
/// store was opened. See <https://github.com/apple/swift-metrics>.
final class StoreMetrics: Sendable {
    /// How long deriving the key took.
    let derivation = Timer(label: "coffer.key.derivation")
    /// How long changes of the key took, with their checkpoints.
    let rekey = Timer(label: "coffer.rekey")
    /// How many writes stood in line when a commit ended.
    let queueDepth = Gauge(label: "coffer.write.depth")
    /// Pages that were found decrypted in memory, and those that were not.
    let cacheHits = Counter(label: "coffer.cache.hits")
    let cacheMisses = Counter(label: "coffer.cache.misses")
    /// How long writes stood in line.
    let wait = Timer(label: "coffer.write.wait")
    /// How long commits took.
    let commit = Timer(label: "coffer.commit")
    /// How many bodies a commit made durable.
    let groupCount = Recorder(label: "coffer.commit.bodies")
    /// Bodies that were undone.
    let undone = Counter(label: "coffer.write.undone")
    /// How long checkpoints took.
    let checkpoint = Timer(label: "coffer.checkpoint")
    /// Pages in the write-ahead log when a checkpoint ended.
    let logFrameCount = Gauge(label: "coffer.log.pages")
}

extension StoreMetrics {
    /// Asked after each read: a counter is told only what it would count.
    func add(_ cache: CacheCounts) {
        if cache.hitCount > 0 { cacheHits.increment(by: Int64(cache.hitCount)) }
        if cache.missCount > 0 { cacheMisses.increment(by: Int64(cache.missCount)) }
    }
}

extension Duration {
    /// Whole nanoseconds, rounded down; the greatest number for what is longer.
    var nanoseconds: Int64 {
        let parts = components
        let (seconds, isTooLong) = parts.seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, overflows) = seconds.addingReportingOverflow(parts.attoseconds / 1_000_000_000)
        guard isTooLong || overflows else { return sum }
        return parts.seconds < 0 ? .min : .max
    }
}
