extension Reading where Self: ~Copyable {
    func access<K, V>(_ bucket: Bucket<K, V>) throws -> BucketAccess<K, V> {
        try BucketAccess(connection(), bucket)
    }

    /// The table of a bucket. The verbs that are called most use it without a `BucketAccess`, which
    /// Swift copies through the metadata of its types, for 2 000 instructions a call.
    func table<K, V>(of bucket: Bucket<K, V>) throws -> BucketTable {
        try BucketTable(connection(), bucket.plan)
    }

    // MARK: One key

    /// The value under a key; `nil` if the bucket has no such key, or nothing was ever stored in
    /// it.
    ///
    /// - Throws: `StoreError` `.mismatch` if the stored value does not fit the type or the bucket
    ///   was made with other types; `.damaged` if a page fails authentication; otherwise as
    ///   `rows(_:)`.
    /// - Complexity: O(log *entries*).
    public func get<K, V>(_ key: K, in bucket: Bucket<K, V>) throws -> V? {
        try value(of: key, bucket, table(of: bucket))
    }

    private func value<K, V>(
        of key: K, _ bucket: Bucket<K, V>, _ table: BucketTable
    ) throws -> V? {
        if V.self == [UInt8].self, bucket.plan.coding == .sql {
            let bytes = try table.bytes(bucket.plan.stored(key))
            // Equal types have the same bits.
            return unsafeBitCast(bytes, to: V?.self)
        }
        // A copy, because the type's own code may use the bucket while it decodes.
        guard let stored = try table.value(bucket.plan.stored(key)) else { return nil }
        return try bucket.coder.value(stored, in: bucket.plan)
    }

    /// The value under a key, or a default if there is none. A stored value that does not fit the
    /// type is an error, never the default.
    ///
    /// - Throws: As `get(_:in:)`, and errors of `value`.
    /// - Complexity: O(log *entries*).
    public func get<K, V>(
        _ key: K, default value: @autoclosure () throws -> V, in bucket: Bucket<K, V>
    ) throws -> V {
        try get(key, in: bucket) ?? value()
    }

    /// The values under several keys; a key that the bucket does not have is left out.
    ///
    /// - Throws: As `get(_:in:)`.
    /// - Complexity: O(*keys* · log *entries*).
    public func get<K, V>(
        _ keys: some Sequence<K>, in bucket: Bucket<K, V>
    ) throws -> [K: V] {
        let table = try table(of: bucket)
        var values = [K: V](minimumCapacity: keys.underestimatedCount)
        for key in keys {
            // A key that is absent must not take away an equal one: Swift's texts are equal in any
            // normalisation, and keys of buckets are not.
            if let found = try value(of: key, bucket, table) { values[key] = found }
        }
        return values
    }

    /// Whether there is a value under a key; `false` also if nothing was ever stored in the bucket.
    ///
    /// - Throws: `StoreError` `.mismatch` if the bucket was made with other types; `.damaged` if a
    ///   page fails authentication; otherwise as `rows(_:)`.
    /// - Complexity: O(log *entries*).
    public func contains<K, V>(_ key: K, in bucket: Bucket<K, V>) throws -> Bool {
        try table(of: bucket).contains(bucket.plan.stored(key))
    }

    /// How long the entry of a key still lives; `nil` if there is none.
    ///
    /// - Throws: As `contains(_:in:)`.
    /// - Complexity: O(log *entries*).
    public func remainingLifetime<K, V>(
        of key: K, in bucket: Bucket<K, V>
    ) throws -> RemainingLifetime? {
        try access(bucket).remainingLifetime(of: key)
    }

    // MARK: Ranges

    /// The number of entries in a range; 0 also if nothing was ever stored in the bucket.
    ///
    /// - Throws: As `contains(_:in:)`.
    /// - Complexity: O(*entries* of the range).
    public func count<K, V>(
        in bucket: Bucket<K, V>, _ range: KeyRange<K> = .all
    ) throws -> Int {
        try access(bucket).count(range)
    }

    /// The entries of a range of keys, in the order of the keys; empty if there are none.
    ///
    /// ```swift
    /// var last: String?
    /// repeat {
    ///     let page = try tx.entries(in: users, .prefix("a"), after: last, maximumCount: 100)
    ///     last = page.last?.key
    /// } while last != nil
    /// ```
    ///
    /// - Parameters:
    ///   - bucket: The bucket.
    ///   - range: Which keys; see ``KeyRange``.
    ///   - order: In which order.
    ///   - after: The last key of the page before: the page begins behind it, in the direction of
    ///     `order`. The key need not exist any more. `nil` gives the first page, so stop when a
    ///     page is empty.
    ///   - maximumCount: The most entries to return; `nil` for all, none for 0 or less.
    /// - Throws: `StoreError` `.mismatch` if a stored value or key does not fit its type, or the
    ///   bucket was made with other types; `.damaged` if a page fails authentication; otherwise as
    ///   `rows(_:)`.
    /// - Complexity: O(log *entries* + *returned*), and the expired entries in between that nobody
    ///   has swept yet.
    public func entries<K, V>(
        in bucket: Bucket<K, V>, _ range: KeyRange<K> = .all, order: ScanOrder = .ascending,
        after: K? = nil, maximumCount: Int? = nil
    ) throws -> [BucketEntry<K, V>] {
        let access = try access(bucket)
        let rows = try access.rows(
            "key, value", access.scan(range, order, after: after, maximumCount))
        let (plan, decode) = (bucket.plan, bucket.coder.decode)
        var entries: [BucketEntry<K, V>] = []
        while let row = try rows.next() {
            let key: K = try plan.key(row.column(0))
            let value = try plan.value(row.column(1), by: decode)
            entries.append(BucketEntry(key: key, value: value))
        }
        return entries
    }

    /// The keys of a range, in their order; reads no values. Otherwise as
    /// `entries(in:_:order:after:maximumCount:)`, also in complexity.
    ///
    /// - Throws: As `entries(in:_:order:after:maximumCount:)`.
    public func keys<K, V>(
        in bucket: Bucket<K, V>, _ range: KeyRange<K> = .all, order: ScanOrder = .ascending,
        after: K? = nil, maximumCount: Int? = nil
    ) throws -> [K] {
        let access = try access(bucket)
        let rows = try access.rows("key", access.scan(range, order, after: after, maximumCount))
        let plan = bucket.plan
        var keys: [K] = []
        while let row = try rows.next() { keys.append(try plan.key(row.column(0))) }
        return keys
    }

    /// The values of a range of keys, in the order of the keys. Otherwise as
    /// `entries(in:_:order:after:maximumCount:)`, also in complexity.
    ///
    /// - Throws: As `entries(in:_:order:after:maximumCount:)`.
    public func values<K, V>(
        in bucket: Bucket<K, V>, _ range: KeyRange<K> = .all, order: ScanOrder = .ascending,
        after: K? = nil, maximumCount: Int? = nil
    ) throws -> [V] {
        let access = try access(bucket)
        let rows = try access.rows("value", access.scan(range, order, after: after, maximumCount))
        let (plan, decode) = (bucket.plan, bucket.coder.decode)
        var values: [V] = []
        while let row = try rows.next() {
            values.append(try plan.value(row.column(0), by: decode))
        }
        return values
    }

    /// The entry with the first key of a range; `nil` if there is none.
    ///
    /// - Throws: As `entries(in:_:order:after:maximumCount:)`.
    /// - Complexity: O(log *entries*), and the expired entries before it.
    public func first<K, V>(
        in bucket: Bucket<K, V>, _ range: KeyRange<K> = .all
    ) throws -> BucketEntry<K, V>? {
        try entries(in: bucket, range, maximumCount: 1).first
    }

    /// The entry with the last key of a range; `nil` if there is none.
    ///
    /// - Throws: As `entries(in:_:order:after:maximumCount:)`.
    /// - Complexity: O(log *entries*), and the expired entries after it.
    public func last<K, V>(
        in bucket: Bucket<K, V>, _ range: KeyRange<K> = .all
    ) throws -> BucketEntry<K, V>? {
        try entries(in: bucket, range, order: .descending, maximumCount: 1).first
    }

    /// Calls `body` for each entry of a range, in the order of the keys, with one entry in memory
    /// at a time.
    ///
    /// - Parameters:
    ///   - bucket: The bucket.
    ///   - range: Which keys.
    ///   - order: In which order.
    ///   - body: Returns whether to go on. A change of the bucket inside of it may or may not be
    ///     seen by the rest of the scan.
    /// - Throws: What `body` throws; as `entries(in:_:order:after:maximumCount:)`.
    /// - Complexity: O(log *entries* + *visited*).
    public func forEachEntry<K, V>(
        in bucket: Bucket<K, V>, _ range: KeyRange<K> = .all, order: ScanOrder = .ascending,
        _ body: (BucketEntry<K, V>) throws -> Bool
    ) throws {
        let access = try access(bucket)
        let rows = try access.rows("key, value", access.scan(range, order, after: nil, nil))
        let (plan, decode) = (bucket.plan, bucket.coder.decode)
        while let row = try rows.next() {
            let key: K = try plan.key(row.column(0))
            let value = try plan.value(row.column(1), by: decode)
            guard try body(BucketEntry(key: key, value: value)) else { return }
        }
    }
}
