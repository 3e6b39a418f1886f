/// What a store does at one moment, and what it has done since it was opened.
public struct StoreStatistics: Sendable, Hashable {
    /// Connections that read, opened on demand; at most `Configuration.maximumReaderCount`. A
    /// writable store without WAL has none: its reads queue for the writer.
    public let openReaderCount: Int
    /// How many of those wait for the next read.
    public let idleReaderCount: Int
    /// Reads that wait for a connection.
    public let waitingReadCount: Int
    /// Writes that wait behind the running one; also reads, in a writable store without WAL.
    public let waitingWriteCount: Int
    /// The write that runs now and holds up the others, and since when.
    public let runningWrite: RunningWrite?
    /// When the oldest running read began: the WAL keeps what its snapshot needs.
    public let oldestReadBeginning: ContinuousClock.Instant?
    /// What writes have done.
    public let writes: WriteStatistics
    /// What checkpoints have done.
    public let checkpoints: CheckpointStatistics

    /// The share of pages found decrypted in memory, of all pages that finished reads and writes
    /// looked up; 1 if they looked up none.
    public let cacheHitRate: Double
    /// Hits, misses and size of the store's ``BucketCache``; zeros if it has none.
    public let bucketCache: BucketCacheStatistics
    /// Bytes of decrypted pages that the store may keep now. It is less than the configuration says
    /// while stores of the process must share. 0 without a file.
    public let maximumCacheByteCount: Int
    /// How long deriving the key took when the store was opened; 0 for a raw key.
    public let derivationDuration: Duration
    /// Whether all keys of the process, of any store, are in memory that the system does not swap
    /// out; `false` once the system has refused to lock some (`RLIMIT_MEMLOCK`, `ulimit -l`).
    public let isKeyMemoryLocked: Bool

    /// Connections that are reading now.
    public var readerInUseCount: Int { openReaderCount - idleReaderCount }
}

/// What the checkpoints of a store have done since it was opened.
public struct CheckpointStatistics: Sendable, Hashable {
    /// How many checkpoints ran.
    public internal(set) var count = 0
    /// The total time of all checkpoints.
    public internal(set) var duration = Duration.zero
    /// Pages in the WAL when it was last looked at, from `checkpointPageCount` on.
    public internal(set) var walFrameCount = 0
    /// How many of the WAL's pages are in the main file since the last checkpoint.
    public internal(set) var movedFrameCount = 0
    /// How often the next write had to wait for a checkpoint.
    public internal(set) var pauseCount = 0
    /// The total time for which writes had to wait, at most.
    public internal(set) var pauseDuration = Duration.zero
    /// Whether a read of another process, or of your own `Connection`, keeps the WAL above
    /// `maximumWALByteCount`: it grows until that transaction ends.
    public internal(set) var isKeptByOtherProcess = false
    /// Whether a checkpoint could not be finished and will be tried again, without anybody waiting.
    /// Until then the WAL is longer than `maximumWALByteCount`, or the main file has pages under
    /// the key before `rekey`.
    public internal(set) var isOwed = false
}

/// Hits, misses and size of a ``BucketCache``, counted since the store was opened.
public struct BucketCacheStatistics: Sendable, Hashable {
    /// Gets that found their value in the cache.
    public internal(set) var hitCount = 0
    /// Gets that read the store.
    public internal(set) var missCount = 0
    /// Entries in the cache, also those that a commit has made useless.
    public internal(set) var entryCount = 0
    /// The bytes that count towards ``BucketCache/maximumByteCount``.
    public internal(set) var byteCount = 0
}

extension StoreCore {
    var statistics: StoreStatistics {
        let readers = pool.readerCounts
        var cache = pool.readerCache
        cache += queue.counters.cache
        let lookCount = cache.hitCount + cache.missCount
        return StoreStatistics(
            openReaderCount: readers.open, idleReaderCount: readers.idle,
            waitingReadCount: pool.hasReaders ? readGate.waitingCount : 0,
            waitingWriteCount: waitingWriteCount, runningWrite: queue.counters.running,
            oldestReadBeginning: pool.oldestReadBeginning, writes: writes,
            checkpoints: checkpointer.counts,
            cacheHitRate: lookCount == 0 ? 1 : Double(cache.hitCount) / Double(lookCount),
            bucketCache: decodedValues?.statistics ?? BucketCacheStatistics(),
            maximumCacheByteCount: pool.file?.cache.byteCount ?? 0,
            derivationDuration: derivationDuration, isKeyMemoryLocked: !LockedMemory.wasRefused)
    }
}

extension Store {
    /// The most bytes of decrypted pages that all stores of this process together keep in memory; 1
    /// GiB by default.
    ///
    /// ```swift
    /// Store.maximumProcessCacheByteCount = 256 << 20
    /// ```
    ///
    /// If the sizes that the stores ask for (``Configuration/maximumCacheByteCount``) fit, each
    /// store gets its size. Otherwise all get the same fraction of it: a half, a quarter, and so
    /// on. A connection keeps 256 KiB in any case: 1 000 stores with four readers may take 1.2 GiB.
    /// Idle connections release the excess at once, busy ones when their transaction ends. Each
    /// `Connection` of your own, and each store without a file, gets the size in its configuration.
    ///
    /// - Complexity: Setting it is O(*stores*).
    public static var maximumProcessCacheByteCount: Int {
        get { PageCacheBudget.shared.maximumByteCount }
        set { PageCacheBudget.shared.maximumByteCount = newValue }
    }
}
