import Metrics

/// The state of a pool at one moment, and its totals since it was made.
public struct StorePoolStatistics: Sendable, Hashable {
    /// Stores that are open, that are opening or that are closing.
    public let openStoreCount: Int
    /// How many of those somebody uses.
    public let pinnedStoreCount: Int
    /// The most stores that may be open now, by all bounds: see ``StorePool/Configuration``.
    public let maximumOpenStoreCount: Int
    /// Uses that wait for a key, a place or an opening.
    public let waitingUseCount: Int
    /// The totals since the pool was made.
    public let counts: Counts

    /// The totals of a pool since it was made. They never fall.
    public struct Counts: Sendable, Hashable {
        /// Uses that got their store.
        public internal(set) var useCount = 0
        /// Stores that were opened. If it grows nearly as fast as ``useCount``, more stores are in
        /// use by turns than may be open at once.
        public internal(set) var openedCount = 0
        /// Stores that were closed, because they were idle or their place was needed.
        public internal(set) var parkedCount = 0
        /// Keys that were not given and stores that could not be opened.
        public internal(set) var failedCount = 0
        /// Uses that waited in vain for `waitTimeout`.
        public internal(set) var timedOutCount = 0
        /// How often the limit on open files refused a store, which was then tried again.
        public internal(set) var tooManyFilesCount = 0
        /// The total time that uses waited for their store.
        public internal(set) var waitDuration = Duration.zero
        /// The longest time that a use waited for its store.
        public internal(set) var maximumWaitDuration = Duration.zero

        mutating func admit(since beginning: ContinuousClock.Instant) {
            let wait = beginning.duration(to: .now)
            useCount += 1
            waitDuration += wait
            maximumWaitDuration = max(maximumWaitDuration, wait)
        }
    }
}

/// A pool's metrics, for the program's metrics backend.
struct StorePoolMetrics: Sendable {
    private let open = Gauge(label: "coffer.pool.open")
    private let pinned = Gauge(label: "coffer.pool.pinned")
    private let waiting = Gauge(label: "coffer.pool.waiting")
    private let opened = Counter(label: "coffer.pool.opened")
    private let parked = Counter(label: "coffer.pool.parked")
    private let failures = Counter(label: "coffer.pool.failures")
    private let wait = Timer(label: "coffer.pool.wait")

    /// Records what a change of the roster did.
    func record(_ old: PoolRoster.Facts, _ new: PoolRoster.Facts) {
        if new.openStoreCount != old.openStoreCount { open.record(new.openStoreCount) }
        if new.pinnedStoreCount != old.pinnedStoreCount { pinned.record(new.pinnedStoreCount) }
        if new.waitingUseCount != old.waitingUseCount { waiting.record(new.waitingUseCount) }
        add(new.counts.openedCount - old.counts.openedCount, to: opened)
        add(new.counts.parkedCount - old.counts.parkedCount, to: parked)
        add(new.failureCount - old.failureCount, to: failures)
    }

    /// Records how long a use waited for its store.
    func didWait(_ duration: Duration) {
        wait.recordNanoseconds(duration.nanoseconds)
    }

    private func add(_ count: Int, to counter: Counter) {
        if count > 0 { counter.increment(by: Int64(count)) }
    }
}

extension PoolRoster.Facts {
    fileprivate var failureCount: Int { counts.failedCount + counts.timedOutCount }
}
