/// One get of a store that asks the cache first.
struct CachedGet<Key: BucketKey, V: Sendable>: Sendable {
    private let bucket: Bucket<Key, V>
    private let stored: Value
    private let cache: DecodedValues
    private let finding: DecodedValues.Finding<V>

    /// Looks for the key in the cache.
    ///
    /// - Throws: Errors of storing the key; of the configuration's clock.
    init(
        _ key: Key, _ bucket: Bucket<Key, V>, _ cache: DecodedValues, configuration: Configuration
    ) throws(StoreError) {
        self.bucket = bucket
        self.cache = cache
        stored = try bucket.plan.stored(key)
        finding = try cache.find(CachedKey<V>(stored, bucket.plan)) { () throws(StoreError) in
            try configuration.currentDate().microseconds()
        }
    }

    /// What the cache has: `nil` for nothing, and an inner `nil` if the key is known to be absent.
    var found: V?? {
        if case .found(let value) = finding { value } else { nil }
    }

    /// Reads the key.
    ///
    /// - Throws: As `get(_:in:)` of a transaction.
    func read(_ transaction: borrowing ReadTransaction) throws -> CachedReading<V> {
        let connection = try transaction.connection()
        cache.attach(to: try connection.current())
        return try BucketAccess(connection, bucket).reading(stored)
    }

    /// Gives what was read to the cache, and returns the value.
    func keep(_ reading: CachedReading<V>) -> V? {
        if case .nothing(let commitNumber) = finding {
            cache.keep(reading, CachedKey(stored, bucket.plan), commitNumber: commitNumber)
        }
        return reading.value
    }
}
