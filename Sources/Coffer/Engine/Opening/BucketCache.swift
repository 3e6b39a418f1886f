/// How many decoded values a store keeps, so that a repeated get needs no SQL, no decryption and no
/// decoding.
///
/// ```swift
/// var configuration = Configuration()
/// configuration.bucketCache = BucketCache(maximumCount: 10_000)
/// let store = try await Store(path: "app.db", key: key, configuration: configuration)
/// let session = try await store.get(id, in: sessions)  // read
/// let again = try await store.get(id, in: sessions)  // from the cache
/// ```
///
/// Only `get` of a ``Store`` uses it, also that of a ``Setting``; transactions read their snapshot.
/// Absent keys are kept too. A get never returns a stale value: each one first compares the header
/// of the WAL's index in shared memory, which every commit of every process changes. After any
/// commit to the file, each value is read once more, so the cache serves stores that are read more
/// often than written. Without a WAL nothing is kept.
///
/// The values stay in memory in the clear until they are replaced, or the store is suspended or
/// closed. Leave the cache off for values that must not.
public struct BucketCache: Sendable, Hashable {
    /// The most values that are kept. Those not used for longest go first, many at once.
    public var maximumCount: Int
    /// The most bytes of the kept values and keys, as they are stored in the file, and 128 for each
    /// entry. A decoded value may take more. A single value of more than half of it is not kept.
    public var maximumByteCount: Int

    /// Makes the bounds of a cache.
    ///
    /// - Parameters:
    ///   - maximumCount: The most values.
    ///   - maximumByteCount: The most bytes.
    public init(maximumCount: Int = 10_000, maximumByteCount: Int = 16 << 20) {
        self.maximumCount = maximumCount
        self.maximumByteCount = maximumByteCount
    }
}
