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
    /// Limits the page cache of a database to `byteCount`, rounded down to KiB. A limit below
    /// 256 KiB counts as 256 KiB.
    ///
    /// - Parameter schema: The quoted name of the database.
    /// - Throws: As `run(_:)`.
    func setCacheByteCount(_ byteCount: Int, schema: String = "main") throws(StoreError) {
        let byteCount = max(byteCount, PageCacheBudget.connectionByteCountMin)
        // Negative: KiB, in 32 bits. SQLCipher's own default is 2 MB.
        try run("PRAGMA \(schema).cache_size = -\(min(byteCount >> 10, Int(Int32.max)))")
    }
}

extension Connection {
    /// Sets the limit of the main file's page cache to `byteCount`. A failure leaves
    /// `cacheByteCount` as it is, so that the next call tries again. Must not run inside a
    /// transaction.
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

    /// The hits and misses of the page cache since the last call; 0 each if nothing is open. The
    /// engine counts in 32 bits and wraps.
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
