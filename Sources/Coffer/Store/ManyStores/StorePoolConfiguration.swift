extension StorePool {
    /// How many stores a pool has open, and how it opens them.
    ///
    /// ```swift
    /// var configuration = StorePool.Configuration()
    /// configuration.maximumOpenStoreCount = 1_000
    /// configuration.store.durability = .process
    /// let pool = try StorePool(configuration: configuration) { path in
    ///     try await kms.key(for: path)
    /// }
    /// ```
    ///
    /// The least of three bounds holds, and at least one store can be open:
    /// ``maximumOpenStoreCount``, ``maximumDescriptorCount``, and
    /// ``Store/maximumProcessCacheByteCount``, of which each connection takes 256 KiB at least.
    /// ``StorePoolStatistics/maximumOpenStoreCount`` is the result.
    public struct Configuration: Sendable {
        /// The most stores that are open at once, in use or idle; 500 by default.
        public var maximumOpenStoreCount = 500

        /// The most file descriptors that the open stores may need together. `nil` for three
        /// quarters of the process's limit (`ulimit -n`), as it is when a store is to be opened.
        ///
        /// A store counts for 5, and 2 more for each reader of `store.maximumReaderCount`. Leave
        /// some to the rest of the process: at the limit, the engine does not always tell why a
        /// file cannot be opened.
        public var maximumDescriptorCount: Int?

        /// How long an idle store stays open; a minute by default, `nil` until its place is needed.
        public var idleDuration: Duration? = .seconds(60)

        /// How long a use waits for its store, which includes the key, a place and the opening,
        /// before `.busy`; also how long `StorePool.close()` waits for uses to end. 30 s by
        /// default.
        public var waitTimeout: Duration = .seconds(30)

        /// Whether a missing file is made, and whether an existing one is opened;
        /// ``OpenMode/createIfMissing`` by default.
        public var mode = OpenMode.createIfMissing

        /// How to open each store. Unlike a store by itself, it has one reader, and its metrics
        /// have no dimension of their own: `metricsLabel` is empty.
        public var store: Coffer.Configuration = {
            var store = Coffer.Configuration()
            store.maximumReaderCount = 1
            store.metricsLabel = ""
            return store
        }()

        /// The value of the dimension `store` in the metrics of the store at this path; `nil` for
        /// `store.metricsLabel`. See ``Configuration/metricsLabel``.
        ///
        /// Backends keep a series for each value. Return one of few values, such as a plan or a
        /// shard, unless there are few stores.
        public var metricsLabel: (@Sendable (_ path: String) -> String)?

        /// Runs after each opening of a store, before its first use: migrates the schema, for
        /// example. It runs on one of Coffer's threads and must not use the pool. An error that it
        /// throws is the error of opening, and closes the store. It may run again for the same use,
        /// if the limit on open files has refused it.
        public var setUp: (@Sendable (Store) throws -> Void)?

        /// The defaults.
        public init() {}

        /// Makes a configuration with other bounds.
        ///
        /// - Parameters:
        ///   - maximumOpenStoreCount: The most stores that are open at once.
        ///   - idleDuration: How long an idle store stays open; `nil` until its place is needed.
        public init(maximumOpenStoreCount: Int, idleDuration: Duration? = .seconds(60)) {
            self.maximumOpenStoreCount = maximumOpenStoreCount
            self.idleDuration = idleDuration
        }

        /// The descriptors that one store may need: see `DescriptorLimit.hint`.
        private var storeDescriptorCount: Int { 5 + 2 * store.maximumReaderCount }

        /// How many stores may be open at once by all bounds.
        var capacity: Int {
            let descriptors =
                maximumDescriptorCount ?? DescriptorLimit.countOfProcess.map { $0 / 4 * 3 }
            let cache = store.cacheBudget.maximumByteCount
            let least =
                PageCacheBudget.connectionByteCountMin * (store.maximumReaderCount + 1)
            let byDescriptors = descriptors.map { $0 / storeDescriptorCount } ?? .max
            return max(1, min(maximumOpenStoreCount, byDescriptors, cache / least))
        }

        /// - Throws: `.misuse` for a bound that admits no store, or for a negative time.
        func check() throws(StoreError) {
            guard maximumOpenStoreCount > 0 else {
                throw StoreError(
                    .misuse, "a pool for \(maximumOpenStoreCount) open stores opens none",
                    hint: "Set maximumOpenStoreCount to 1 or more.")
            }
            if let count = maximumDescriptorCount, count < storeDescriptorCount {
                throw StoreError(
                    .misuse, "\(count) descriptors are too few for one store",
                    hint: "Set maximumDescriptorCount to \(storeDescriptorCount) or more.")
            }
            guard idleDuration ?? .zero >= .zero, waitTimeout >= .zero else {
                throw StoreError(
                    .misuse, "a duration of the pool's configuration is negative",
                    hint: "Set idleDuration and waitTimeout to zero or more.")
            }
        }

        /// The configuration of the store at this path.
        func configuration(of path: String) -> Coffer.Configuration {
            var configuration = store
            if let metricsLabel { configuration.metricsLabel = metricsLabel(path) }
            return configuration
        }
    }
}
