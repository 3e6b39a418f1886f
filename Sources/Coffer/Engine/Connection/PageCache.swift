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

extension Handle {
    /// Limits the size of the page cache.
    ///
    /// - Parameter schema: The quoted name of the database.
    func setCacheByteCount(_ byteCount: Int, schema: String = "main") throws(StoreError) {
        let byteCount = max(byteCount, PageCacheBudget.connectionByteCountMin)
        // Negative: KiB, in 32 bits. SQLCipher's own default is 2 MB.
        try run("PRAGMA \(schema).cache_size = -\(min(byteCount >> 10, Int(Int32.max)))")
    }
}

extension Connection {
    /// Limits the page cache of this connection to `byteCount` bytes, if that is another limit than
    /// before. Call it outside a transaction. A failure is ignored, and the next call tries again.
    @inline(__always)
    func fitCache(to byteCount: Int) {
        if byteCount != cacheByteCount { resizeCache(to: byteCount) }
    }

    @inline(never)
    private func resizeCache(to byteCount: Int) {
        // A change that fails is tried again after the next transaction.
        guard let handle, (try? handle.setCacheByteCount(byteCount)) != nil else { return }
        cacheByteCount = byteCount
    }

    /// The counts since the last call. The engine counts in 32 bits and wraps.
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
