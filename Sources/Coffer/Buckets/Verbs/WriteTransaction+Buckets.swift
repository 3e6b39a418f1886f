extension WriteTransaction {
    // MARK: Setting

    /// Stores a value under a key, and replaces an existing one with its time of expiry. The first
    /// call makes the bucket's table.
    ///
    /// - Parameters:
    ///   - value: The value.
    ///   - key: The key.
    ///   - bucket: The bucket.
    ///   - expiration: When the entry ends; after the bucket's lifetime by default. The first entry
    ///     of a bucket that expires adds a column to the table.
    /// - Throws: `StoreError` `.mismatch` if the value cannot be stored (NaN, a failing
    ///   `encode(to:)`) or the bucket was made with other types; `.constraint` if a key of your own
    ///   type becomes NULL, or a trigger refuses the entry; `.full`, `.io`, `.damaged`; otherwise
    ///   as `execute(_:)`.
    /// - Complexity: O(log *entries*).
    public func set<K, V>(
        _ value: V, for key: K, in bucket: Bucket<K, V>, expiring expiration: Expiration = .standard
    ) throws {
        var table = try table(of: bucket)
        let end = try bucket.plan.time(expiration, lifetime: bucket.lifetime) {
            () throws(StoreError) in try table.now()
        }
        try table.put(
            bucket.plan.stored(key), bucket.coder.stored(value, in: bucket.plan), until: end,
            lifetime: bucket.lifetime)
    }

    /// Stores the values of several keys, as `set(_:for:in:expiring:)` does one by one.
    ///
    /// ```swift
    /// try tx.set(["ada": 36, "grace": 85], in: ages)
    /// ```
    ///
    /// - Throws: As `set(_:for:in:expiring:)`. If you catch the error, the entries before the
    ///   failing one remain; rethrow it to undo all.
    /// - Complexity: O(*values* · log *entries*).
    public func set<K, V>(
        _ values: some Sequence<(key: K, value: V)>, in bucket: Bucket<K, V>,
        expiring expiration: Expiration = .standard
    ) throws {
        // The sequence may use the transaction itself, so each element asks for it again.
        for (key, value) in values { try set(value, for: key, in: bucket, expiring: expiration) }
    }

    /// Stores a value under a key that has none.
    ///
    /// - Returns: Whether it did; `false` if the key has a value, which stays.
    /// - Throws: As `set(_:for:in:expiring:)`.
    /// - Complexity: O(log *entries*).
    public func setIfAbsent<K, V>(
        _ value: V, for key: K, in bucket: Bucket<K, V>, expiring expiration: Expiration = .standard
    ) throws -> Bool {
        var access = try access(bucket)
        return try access.setIfAbsent(value, key, expiration)
    }

    // MARK: Updating

    /// Changes the value under a key in place.
    ///
    /// ```swift
    /// try tx.update("ada", in: carts) { cart in cart = (cart ?? Cart()).adding(item) }
    /// ```
    ///
    /// The entry keeps its time of expiry, also if that comes while `body` runs; a new one has the
    /// bucket's lifetime.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - bucket: The bucket.
    ///   - body: Changes the value, `nil` for a key without one. Leaving `nil` removes the entry.
    /// - Returns: What `body` returns.
    /// - Throws: What `body` throws, and then nothing was changed; as `get(_:in:)` and
    ///   `set(_:for:in:expiring:)`.
    /// - Complexity: O(log *entries*).
    @discardableResult
    public func update<K, V, R>(
        _ key: K, in bucket: Bucket<K, V>, _ body: (inout V?) throws -> R
    ) throws -> R {
        var value = try get(key, in: bucket)
        let exists = value != nil
        let result = try body(&value)
        // `body` may have used the bucket, or ended the transaction.
        guard let value else {
            try remove(key, in: bucket)
            return result
        }
        // No second look at the clock: an entry that has ended meanwhile stays so.
        let isReplaced = try exists && access(bucket).replace(value, key)
        if !isReplaced { try set(value, for: key, in: bucket) }
        return result
    }

    /// Changes the value under a key in place, or a default if there is none.
    ///
    /// ```swift
    /// try tx.update("ada", default: [], in: tags) { $0.append("new") }
    /// ```
    ///
    /// - Returns: What `body` returns.
    /// - Throws: As `update(_:in:_:)`.
    /// - Complexity: O(log *entries*).
    @discardableResult
    public func update<K, V, R>(
        _ key: K, default initial: @autoclosure () throws -> V, in bucket: Bucket<K, V>,
        _ body: (inout V) throws -> R
    ) throws -> R {
        try update(key, in: bucket) { (stored: inout V?) in
            var value = try stored ?? initial()
            let result = try body(&value)
            stored = value
            return result
        }
    }

    /// Stores a value if the key has the expected one.
    ///
    /// ```swift
    /// let (isMine, holder) = try tx.compareExchange(
    ///     "lock", expected: nil, desired: me, in: locks, expiring: .after(.seconds(30)))
    /// ```
    ///
    /// Pass as `expected` what a verb has returned: a `Date` comes back rounded to microseconds.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - expected: The value that the key must have; `nil` for none. An expired entry is none.
    ///   - desired: The value to store; `nil` to remove the entry.
    ///   - bucket: The bucket.
    ///   - expiration: When the stored entry ends; after the bucket's lifetime by default. The
    ///     time that the entry had is not kept.
    /// - Returns: Whether it was stored, and the value that was there before.
    /// - Throws: As `get(_:in:)` and `set(_:for:in:expiring:)`.
    /// - Complexity: O(log *entries*).
    public func compareExchange<K, V: Equatable>(
        _ key: K, expected: V?, desired: V?, in bucket: Bucket<K, V>,
        expiring expiration: Expiration = .standard
    ) throws -> (exchanged: Bool, original: V?) {
        let original = try get(key, in: bucket)
        guard original == expected else { return (false, original) }
        if let desired {
            try set(desired, for: key, in: bucket, expiring: expiration)
        } else if original != nil {
            try remove(key, in: bucket)
        }
        return (true, original)
    }

    /// Adds to the integer under a key, and returns the sum. A key without a value counts as 0.
    ///
    /// The entry keeps its time of expiry; a new one has the bucket's lifetime.
    ///
    /// - Throws: `StoreError` `.mismatch` if the sum does not fit the type, and then nothing was
    ///   changed; as `get(_:in:)` and `set(_:for:in:expiring:)`.
    /// - Complexity: O(log *entries*).
    @discardableResult
    public func increment<K, V: FixedWidthInteger>(
        _ key: K, by amount: V = 1, in bucket: Bucket<K, V>
    ) throws -> V {
        try add(key, bucket) { $0.addingReportingOverflow(amount) }
    }

    /// Subtracts from the integer under a key, and returns the difference. Otherwise as
    /// `increment(_:by:in:)`.
    ///
    /// - Throws: As `increment(_:by:in:)`.
    /// - Complexity: O(log *entries*).
    @discardableResult
    public func decrement<K, V: FixedWidthInteger>(
        _ key: K, by amount: V = 1, in bucket: Bucket<K, V>
    ) throws -> V {
        try add(key, bucket) { $0.subtractingReportingOverflow(amount) }
    }

    private func add<K, V: FixedWidthInteger>(
        _ key: K, _ bucket: Bucket<K, V>, _ operation: (V) -> (partialValue: V, overflow: Bool)
    ) throws -> V {
        let old = try get(key, in: bucket)
        let (sum, isTooLarge) = operation(old ?? 0)
        guard !isTooLarge else {
            throw StoreError(
                .mismatch, "the counter would leave the range of \(V.self)",
                hint: "Nothing was changed. Use a wider integer, or begin again at 0.",
                table: bucket.table, column: "value")
        }
        let isReplaced = try old != nil && access(bucket).replace(sum, key)
        if !isReplaced { try set(sum, for: key, in: bucket) }
        return sum
    }

    /// Changes when an entry expires, for sliding expiry.
    ///
    /// Each call is a write. Calling it only when less than half of the lifetime remains saves
    /// most of them.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - bucket: The bucket.
    ///   - expiration: When the entry ends; after the bucket's lifetime by default.
    /// - Returns: Whether there is such an entry; `false` also for an expired one.
    /// - Throws: `StoreError` `.mismatch` if the bucket was made with other types, or the time
    ///   cannot be stored; `.full`, `.io`, `.damaged`.
    /// - Complexity: O(log *entries*).
    @discardableResult
    public func touch<K, V>(
        _ key: K, in bucket: Bucket<K, V>, expiring expiration: Expiration = .standard
    ) throws -> Bool {
        var access = try access(bucket)
        return try access.touch(key, expiration)
    }

    // MARK: Removing

    /// Removes a key and its value, if the bucket has the key.
    ///
    /// - Returns: Whether the key existed; `false` is not an error.
    /// - Throws: `StoreError` `.mismatch` if the bucket was made with other types; `.full`, `.io`,
    ///   `.damaged`.
    /// - Complexity: O(log *entries*).
    @discardableResult
    public func remove<K, V>(_ key: K, in bucket: Bucket<K, V>) throws -> Bool {
        try access(bucket).remove(key)
    }

    /// Removes several keys and their values.
    ///
    /// - Returns: How many of them existed.
    /// - Throws: As `remove(_:in:)`.
    /// - Complexity: O(*keys* · log *entries*).
    @discardableResult
    public func remove<K, V>(
        _ keys: some Sequence<K>, in bucket: Bucket<K, V>
    ) throws -> Int {
        var count = 0
        for key in keys where try remove(key, in: bucket) { count += 1 }
        return count
    }

    /// Removes every entry of a range; the bucket's table remains.
    ///
    /// - Returns: The number of removed entries.
    /// - Throws: `StoreError` `.mismatch` if the bucket was made with other types; `.full`, `.io`,
    ///   `.damaged`.
    /// - Complexity: O(*entries* of the range).
    @discardableResult
    public func removeAll<K, V>(
        in bucket: Bucket<K, V>, _ range: KeyRange<K> = .all
    ) throws -> Int {
        try access(bucket).removeAll(range)
    }

    /// Removes a key, and returns the value that it had; `nil` if it had none.
    ///
    /// - Throws: As `get(_:in:)` and `remove(_:in:)`; a value that does not fit the type stays.
    /// - Complexity: O(log *entries*).
    public func take<K, V>(_ key: K, in bucket: Bucket<K, V>) throws -> V? {
        guard let value = try get(key, in: bucket) else { return nil }
        try remove(key, in: bucket)
        return value
    }

    /// Removes the entry with the first key of a range, and returns it; `nil` if there is none.
    ///
    /// With keys that grow, the bucket is a queue. At most one caller, in any process, gets an
    /// entry. A number that `increment` gives in the same transaction grows strictly; a date
    /// follows the clock, which may go back.
    ///
    /// The entry is gone once the transaction has committed: a crash during the work that follows
    /// loses it. To survive that, move the entry into another bucket in the same transaction, and
    /// remove it from there when the work is done.
    ///
    /// - Throws: As `entries(in:_:order:after:maximumCount:)` and `remove(_:in:)`. An entry whose
    ///   value does not decode stays, and each call throws until somebody removes it.
    /// - Complexity: O(log *entries*), and the expired entries before it.
    public func popFirst<K, V>(
        in bucket: Bucket<K, V>, _ range: KeyRange<K> = .all
    ) throws -> BucketEntry<K, V>? {
        try access(bucket).pop(range, .ascending)
    }

    /// Removes the entry with the last key of a range, and returns it; `nil` if there is none.
    ///
    /// - Throws: As `popFirst(in:_:)`.
    /// - Complexity: O(log *entries*).
    public func popLast<K, V>(
        in bucket: Bucket<K, V>, _ range: KeyRange<K> = .all
    ) throws -> BucketEntry<K, V>? {
        try access(bucket).pop(range, .descending)
    }
}
