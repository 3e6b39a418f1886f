import CSQLCipher

/// How often a page was found decrypted in a connection's cache, and how often not.
struct CacheCounts: Sendable {
    var hitCount = 0
    var missCount = 0

    static func += (counts: inout CacheCounts, more: CacheCounts) {
        counts.hitCount += more.hitCount
        counts.missCount += more.missCount
    }
}

extension Connection {
    /// What was counted since the last call. The engine counts in 32 bits and wraps.
    func takeCacheCounts() -> CacheCounts {
        guard let handle, !handle.isClosed else { return CacheCounts() }
        let hitCount = coffer_cache_hit_count(handle.db)
        let missCount = coffer_cache_miss_count(handle.db)
        defer { handle.toldCache = (hitCount, missCount) }
        return CacheCounts(
            hitCount: Int(hitCount &- handle.toldCache.hitCount),
            missCount: Int(missCount &- handle.toldCache.missCount))
    }
}
