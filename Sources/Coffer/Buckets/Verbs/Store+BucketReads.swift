// One read of a bucket in one call: each verb of a transaction, in a read of its own.

extension Store {
    /// The value under a key; `nil` if there is none.
    ///
    /// - Throws: As `get(_:in:)` of a transaction, and as `read(_:)`.
    /// - Complexity: O(log *entries*); O(1) for a value in the ``BucketCache``.
    public func get<K, V>(_ key: K, in bucket: Bucket<K, V>) throws -> V? {
        // Inside a body, a get sees what its transaction sees.
        guard let cache = core.decodedValues, HeldStore.current(of: core.id) == nil else {
            return try read { tx in try tx.get(key, in: bucket) }
        }
        let stored = try bucket.plan.stored(key)
        let place = CachedPlace(stored, in: bucket.plan, of: V.self)
        let look = cache.look(for: place)
        if let entry = look.entry, try isLive(entry) { return entry.value(of: V.self) }
        let reading = try read { tx in
            try bucket.reading(stored, tx, for: cache, commitNumber: look.commitNumber)
        }
        if let entry = reading.entry { cache.keep(entry, at: place) }
        return reading.value
    }

    /// The value under a key; `nil` if there is none.
    ///
    /// - Throws: As the synchronous form; `CancellationError` if the task was cancelled.
    /// - Complexity: As the synchronous form.
    public func get<K, V>(_ key: K, in bucket: Bucket<K, V>) async throws -> V? {
        guard let cache = core.decodedValues else {
            return try await read { tx in try tx.get(key, in: bucket) }
        }
        try Task.checkCancellation()
        let stored = try bucket.plan.stored(key)
        let place = CachedPlace(stored, in: bucket.plan, of: V.self)
        let look = cache.look(for: place)
        if let entry = look.entry, try isLive(entry) { return entry.value(of: V.self) }
        let reading = try await read { tx in
            try bucket.reading(stored, tx, for: cache, commitNumber: look.commitNumber)
        }
        if let entry = reading.entry { cache.keep(entry, at: place) }
        return reading.value
    }

    private func isLive(_ entry: CachedEntry) throws(StoreError) -> Bool {
        guard let expires = entry.expires else { return true }
        return try core.configuration.currentDate().microseconds() < expires
    }

    /// The value under a key, or a default if there is none.
    ///
    /// - Throws: As `get(_:default:in:)` of a transaction, and as `read(_:)`.
    public func get<K, V>(
        _ key: K, default value: @autoclosure () throws -> V, in bucket: Bucket<K, V>
    ) throws -> V {
        try get(key, in: bucket) ?? value()
    }

    /// The value under a key, or a default if there is none.
    ///
    /// - Throws: As the synchronous form; `CancellationError` if the task was cancelled.
    public func get<K, V>(
        _ key: K, default value: @autoclosure () throws -> V, in bucket: Bucket<K, V>
    ) async throws -> V {
        try await get(key, in: bucket) ?? value()
    }

    /// The values under several keys, on one snapshot.
    ///
    /// - Throws: As `get(_:in:)` of a transaction, and as `read(_:)`.
    public func get<K, V>(
        _ keys: some Sequence<K> & Sendable, in bucket: Bucket<K, V>
    ) throws -> [K: V] {
        try read { tx in try tx.get(keys, in: bucket) }
    }

    /// The values under several keys, on one snapshot.
    ///
    /// - Throws: As the synchronous form; `CancellationError` if the task was cancelled.
    public func get<K, V>(
        _ keys: some Sequence<K> & Sendable, in bucket: Bucket<K, V>
    ) async throws -> [K: V] {
        try await read { tx in try tx.get(keys, in: bucket) }
    }

    /// Whether there is a value under a key.
    ///
    /// - Throws: As `contains(_:in:)` of a transaction, and as `read(_:)`.
    public func contains<K, V>(_ key: K, in bucket: Bucket<K, V>) throws -> Bool {
        try read { tx in try tx.contains(key, in: bucket) }
    }

    /// Whether there is a value under a key.
    ///
    /// - Throws: As the synchronous form; `CancellationError` if the task was cancelled.
    public func contains<K, V>(_ key: K, in bucket: Bucket<K, V>) async throws -> Bool {
        try await read { tx in try tx.contains(key, in: bucket) }
    }

    /// How long the entry of a key still lives; `nil` if there is none.
    ///
    /// - Throws: As `remainingLifetime(of:in:)` of a transaction, and as `read(_:)`.
    public func remainingLifetime<K, V>(
        of key: K, in bucket: Bucket<K, V>
    ) throws -> RemainingLifetime? {
        try read { tx in try tx.remainingLifetime(of: key, in: bucket) }
    }

    /// How long the entry of a key still lives; `nil` if there is none.
    ///
    /// - Throws: As the synchronous form; `CancellationError` if the task was cancelled.
    public func remainingLifetime<K, V>(
        of key: K, in bucket: Bucket<K, V>
    ) async throws -> RemainingLifetime? {
        try await read { tx in try tx.remainingLifetime(of: key, in: bucket) }
    }

    /// The number of entries in a range.
    ///
    /// - Throws: As `count(in:_:)` of a transaction, and as `read(_:)`.
    public func count<K, V>(in bucket: Bucket<K, V>, _ range: KeyRange<K> = .all) throws -> Int {
        try read { tx in try tx.count(in: bucket, range) }
    }

    /// The number of entries in a range.
    ///
    /// - Throws: As the synchronous form; `CancellationError` if the task was cancelled.
    public func count<K, V>(
        in bucket: Bucket<K, V>, _ range: KeyRange<K> = .all
    ) async throws -> Int {
        try await read { tx in try tx.count(in: bucket, range) }
    }

    /// The entries of a range, in the order of the keys.
    ///
    /// - Throws: As `entries(in:_:order:after:maximumCount:)` of a transaction, and as `read(_:)`.
    public func entries<K, V>(
        in bucket: Bucket<K, V>, _ range: KeyRange<K> = .all, order: ScanOrder = .ascending,
        after: K? = nil, maximumCount: Int? = nil
    ) throws -> [BucketEntry<K, V>] {
        try read { tx in
            try tx.entries(
                in: bucket, range, order: order, after: after, maximumCount: maximumCount)
        }
    }

    /// The entries of a range, in the order of the keys.
    ///
    /// - Throws: As the synchronous form; `CancellationError` if the task was cancelled.
    public func entries<K, V>(
        in bucket: Bucket<K, V>, _ range: KeyRange<K> = .all, order: ScanOrder = .ascending,
        after: K? = nil, maximumCount: Int? = nil
    ) async throws -> [BucketEntry<K, V>] {
        try await read { tx in
            try tx.entries(
                in: bucket, range, order: order, after: after, maximumCount: maximumCount)
        }
    }

    /// The keys of a range, in their order; reads no values.
    ///
    /// - Throws: As `keys(in:_:order:after:maximumCount:)` of a transaction, and as `read(_:)`.
    public func keys<K, V>(
        in bucket: Bucket<K, V>, _ range: KeyRange<K> = .all, order: ScanOrder = .ascending,
        after: K? = nil, maximumCount: Int? = nil
    ) throws -> [K] {
        try read { tx in
            try tx.keys(in: bucket, range, order: order, after: after, maximumCount: maximumCount)
        }
    }

    /// The keys of a range, in their order; reads no values.
    ///
    /// - Throws: As the synchronous form; `CancellationError` if the task was cancelled.
    public func keys<K, V>(
        in bucket: Bucket<K, V>, _ range: KeyRange<K> = .all, order: ScanOrder = .ascending,
        after: K? = nil, maximumCount: Int? = nil
    ) async throws -> [K] {
        try await read { tx in
            try tx.keys(in: bucket, range, order: order, after: after, maximumCount: maximumCount)
        }
    }

    /// The values of a range, in the order of the keys.
    ///
    /// - Throws: As `values(in:_:order:after:maximumCount:)` of a transaction, and as `read(_:)`.
    public func values<K, V>(
        in bucket: Bucket<K, V>, _ range: KeyRange<K> = .all, order: ScanOrder = .ascending,
        after: K? = nil, maximumCount: Int? = nil
    ) throws -> [V] {
        try read { tx in
            try tx.values(in: bucket, range, order: order, after: after, maximumCount: maximumCount)
        }
    }

    /// The values of a range, in the order of the keys.
    ///
    /// - Throws: As the synchronous form; `CancellationError` if the task was cancelled.
    public func values<K, V>(
        in bucket: Bucket<K, V>, _ range: KeyRange<K> = .all, order: ScanOrder = .ascending,
        after: K? = nil, maximumCount: Int? = nil
    ) async throws -> [V] {
        try await read { tx in
            try tx.values(in: bucket, range, order: order, after: after, maximumCount: maximumCount)
        }
    }

    /// The entry with the first key of a range; `nil` if there is none.
    ///
    /// - Throws: As `first(in:_:)` of a transaction, and as `read(_:)`.
    public func first<K, V>(
        in bucket: Bucket<K, V>, _ range: KeyRange<K> = .all
    ) throws -> BucketEntry<K, V>? {
        try read { tx in try tx.first(in: bucket, range) }
    }

    /// The entry with the first key of a range; `nil` if there is none.
    ///
    /// - Throws: As the synchronous form; `CancellationError` if the task was cancelled.
    public func first<K, V>(
        in bucket: Bucket<K, V>, _ range: KeyRange<K> = .all
    ) async throws -> BucketEntry<K, V>? {
        try await read { tx in try tx.first(in: bucket, range) }
    }

    /// The entry with the last key of a range; `nil` if there is none.
    ///
    /// - Throws: As `last(in:_:)` of a transaction, and as `read(_:)`.
    public func last<K, V>(
        in bucket: Bucket<K, V>, _ range: KeyRange<K> = .all
    ) throws -> BucketEntry<K, V>? {
        try read { tx in try tx.last(in: bucket, range) }
    }

    /// The entry with the last key of a range; `nil` if there is none.
    ///
    /// - Throws: As the synchronous form; `CancellationError` if the task was cancelled.
    public func last<K, V>(
        in bucket: Bucket<K, V>, _ range: KeyRange<K> = .all
    ) async throws -> BucketEntry<K, V>? {
        try await read { tx in try tx.last(in: bucket, range) }
    }
}

extension Bucket {
    /// Reads a key for the cache, for which the transaction's connection vouches from now on.
    ///
    /// - Throws: As `get(_:in:)` of a transaction.
    fileprivate func reading(
        _ stored: Coffer.Value, _ transaction: borrowing ReadTransaction, for cache: DecodedValues,
        commitNumber: UInt64
    ) throws -> (value: Value?, entry: CachedEntry?) {
        let connection = try transaction.connection()
        cache.attach(to: try connection.current())
        return try BucketAccess(connection, self).reading(stored, commitNumber: commitNumber)
    }
}
