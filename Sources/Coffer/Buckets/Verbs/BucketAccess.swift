/// One bucket on one connection, for one verb: Swift's keys and values over the table's.
struct BucketAccess<Key: BucketKey, V: Sendable> {
    private let bucket: Bucket<Key, V>
    private var table: BucketTable

    init(_ connection: Connection, _ bucket: Bucket<Key, V>) throws(StoreError) {
        self.bucket = bucket
        table = try BucketTable(connection, bucket.plan)
    }

    // MARK: Reading

    /// The value of a key, and what a cache may keep of it.
    ///
    /// - Parameters:
    ///   - key: As the file has it.
    ///   - commitNumber: The number that the look in the cache has returned.
    func reading(
        _ key: Value, commitNumber: UInt64
    ) throws(StoreError) -> (value: V?, entry: CachedEntry?) {
        guard let stored = try table.value(key) else {
            // Where entries expire, a clock that is set back may bring one back.
            guard !table.hasExpiry else { return (nil, nil) }
            let absent = CachedEntry(
                V?.none, expires: nil, byteCount: key.byteCount, commitNumber: commitNumber)
            return (nil, absent)
        }
        var expires: Int64?
        if table.hasExpiry, case .integer(let time)? = try table.expiration(key, now: .min) {
            expires = time
        }
        let value = try value(stored)
        let entry = CachedEntry(
            value, expires: expires, byteCount: key.byteCount + stored.byteCount,
            commitNumber: commitNumber)
        return (value, entry)
    }

    func remainingLifetime(of key: Key) throws(StoreError) -> RemainingLifetime? {
        let now = try table.now()
        switch try table.expiration(try stored(key), now: now) {
        case nil: return nil
        case .integer(let time)?:
            let (rest, isTooLong) = time.subtractingReportingOverflow(now)
            return .limited(.microseconds(isTooLong ? .max : rest))
        case _?: return .unlimited
        }
    }

    func count(_ range: KeyRange<Key>) throws(StoreError) -> Int {
        try table.count(try bounds(range))
    }

    /// The rows of a scan; see `BucketTable.rows`.
    func rows(_ columns: String, _ scan: BucketTable.Scan) throws(StoreError) -> ScannedRows {
        try table.rows(columns, scan)
    }

    func scan(
        _ range: KeyRange<Key>, _ order: ScanOrder, after: Key?, _ maximumCount: Int?
    ) throws(StoreError) -> BucketTable.Scan {
        BucketTable.Scan(
            bounds: try bounds(range), order: order,
            after: try after.map { (key) throws(StoreError) in try stored(key) },
            maximumCount: maximumCount)
    }

    // MARK: Writing

    mutating func setIfAbsent(
        _ value: V, _ key: Key, _ expiration: Expiration
    ) throws(StoreError) -> Bool {
        try table.putIfAbsent(
            try stored(key), try stored(value), until: try time(expiration),
            lifetime: bucket.lifetime)
    }

    /// Replaces the value of an entry, whose time of expiry stays.
    ///
    /// - Returns: Whether there is such an entry, or one that has just expired.
    func replace(_ value: V, _ key: Key) throws(StoreError) -> Bool {
        try table.replace(try stored(key), with: try stored(value))
    }

    mutating func touch(_ key: Key, _ expiration: Expiration) throws(StoreError) -> Bool {
        try table.touch(try stored(key), until: try time(expiration))
    }

    func remove(_ key: Key) throws(StoreError) -> Bool {
        try table.remove(try stored(key))
    }

    func removeAll(_ range: KeyRange<Key>) throws(StoreError) -> Int {
        try table.removeAll(try bounds(range))
    }

    /// Removes the first entry of a scan, and returns it; `nil` if there is none.
    func pop(
        _ range: KeyRange<Key>, _ order: ScanOrder
    ) throws(StoreError) -> BucketEntry<Key, V>? {
        let scan = BucketTable.Scan(bounds: try bounds(range), order: order, maximumCount: 1)
        guard let found = try table.first(scan) else { return nil }
        let key: Key = try bucket.plan.key(found.key)
        let entry = BucketEntry(key: key, value: try value(found.value))
        _ = try table.remove(found.key)
        return entry
    }

    // MARK: Coding

    private func bounds(_ range: KeyRange<Key>) throws(StoreError) -> KeyBounds {
        try bucket.plan.stored(range)
    }

    private func time(_ expiration: Expiration) throws(StoreError) -> Int64? {
        try bucket.plan.time(expiration, lifetime: bucket.lifetime) { () throws(StoreError) in
            try table.now()
        }
    }

    private func stored(_ key: Key) throws(StoreError) -> Value { try bucket.plan.stored(key) }

    private func stored(_ value: V) throws(StoreError) -> Value {
        try bucket.coder.stored(value, in: bucket.plan)
    }

    private func value(_ stored: Value) throws(StoreError) -> V {
        try bucket.coder.value(stored, in: bucket.plan)
    }
}
