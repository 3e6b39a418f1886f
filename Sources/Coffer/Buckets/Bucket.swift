/// A named set of values under typed keys, in its own table.
///
/// ```swift
/// let sessions = Bucket<String, Session>("sessions")
/// try await store.write { tx in try tx.set(Session(user: "ada"), for: "s1", in: sessions) }
/// let session = try await store.read { tx in try tx.get("s1", in: sessions) }
/// ```
///
/// A bucket is only a name with types: making one touches no store. The first `set` makes its
/// table, which is named `bucket:` and the name. Strings, numbers, dates, UUIDs and `Data` are
/// stored as themselves, every other `Codable` value as JSON text.
public struct Bucket<Key: BucketKey, Value: Codable & Sendable>: Sendable {
    /// The name given to the bucket.
    public let name: String
    let plan: BucketPlan

    /// The name of its table.
    var table: String { plan.table }

    /// Names a bucket; reads and changes no store.
    ///
    /// - Parameter name: Any text that is not empty. With an empty name, every verb throws
    ///   `.misuse`. So it does if the name of an existing bucket differs only in the case of ASCII
    ///   letters. The same name with other types is another view of the same table; Coffer refuses
    ///   keys of another type.
    public init(_ name: String) {
        self.name = name
        plan = .shared(name: name, keyType: Key.columnType, coding: ValueCoding(Value.self))
    }
}

/// One key with its value.
public struct BucketEntry<Key: BucketKey, Value: Codable & Sendable>: Sendable {
    /// The key.
    public let key: Key
    /// The value.
    public let value: Value
}

extension BucketEntry: Equatable where Value: Equatable {}

extension Reading where Self: ~Copyable {
    /// The value under a key; `nil` if the bucket has no such key, or nothing was ever stored in
    /// it.
    ///
    /// - Throws: `StoreError` `.mismatch` if the stored value does not fit the type or the bucket
    ///   has keys of another type; `.damaged` if a page fails authentication; otherwise as
    ///   `rows(_:)`.
    /// - Complexity: O(log *entries*).
    public func get<K, V>(_ key: K, in bucket: Bucket<K, V>) throws -> V? {
        try BucketTable(connection(), bucket.plan).get(key)
    }

    /// Whether there is a value under a key; `false` also if nothing was ever stored in the bucket.
    ///
    /// - Throws: `StoreError` `.mismatch` if the bucket has keys of another type; `.damaged` if a
    ///   page fails authentication; otherwise as `rows(_:)`.
    /// - Complexity: O(log *entries*).
    public func contains<K, V>(_ key: K, in bucket: Bucket<K, V>) throws -> Bool {
        try BucketTable(connection(), bucket.plan).contains(key)
    }

    /// The number of entries; 0 also if nothing was ever stored in the bucket.
    ///
    /// - Throws: `StoreError` `.mismatch` if the bucket has keys of another type; `.damaged` if a
    ///   page fails authentication; otherwise as `rows(_:)`.
    /// - Complexity: O(*entries*).
    public func count<K, V>(in bucket: Bucket<K, V>) throws -> Int {
        try BucketTable(connection(), bucket.plan).count()
    }

    /// The entries of a range of keys, in the order of the keys; empty if there are none.
    ///
    /// Texts are ordered by their UTF-8 bytes, which is the order of their Unicode scalars; in a
    /// file of UTF-16 texts, by their UTF-16 bytes. UUIDs and `Data` are ordered by their bytes.
    ///
    /// - Parameters:
    ///   - bucket: The bucket.
    ///   - from: The first key of the range; `nil` for the first key of the bucket.
    ///   - below: The first key after the range; `nil` for no end.
    ///   - maximumCount: The most entries to return; `nil` for all, none for 0 or less.
    /// - Throws: `StoreError` `.mismatch` if a stored value or key does not fit its type, or the
    ///   bucket has keys of another type; `.damaged` if a page fails authentication; otherwise as
    ///   `rows(_:)`.
    /// - Complexity: O(log *entries* + *returned*).
    public func entries<K, V>(
        in bucket: Bucket<K, V>, from: K? = nil, below: K? = nil, maximumCount: Int? = nil
    ) throws -> [BucketEntry<K, V>] {
        try BucketTable(connection(), bucket.plan).entries(from: from, below: below, maximumCount)
    }

    /// The entries whose keys begin with a prefix, in the order of the keys; empty if there are
    /// none.
    ///
    /// - Parameters:
    ///   - bucket: The bucket.
    ///   - prefix: The start of the keys, compared byte by byte; an empty prefix matches all keys.
    ///   - maximumCount: The most entries to return; `nil` for all, none for 0 or less.
    /// - Throws: `StoreError` `.mismatch` if a stored value or key does not fit its type, or the
    ///   bucket has keys of another type; `.damaged` if a page fails authentication; otherwise as
    ///   `rows(_:)`.
    /// - Complexity: O(log *entries* + *returned*).
    public func entries<K: PrefixedBucketKey, V>(
        in bucket: Bucket<K, V>, prefix: K, maximumCount: Int? = nil
    ) throws -> [BucketEntry<K, V>] {
        try BucketTable(connection(), bucket.plan).entries(from: prefix, below: nil, maximumCount) {
            $0.hasBytePrefix(prefix)
        }
    }
}

extension WriteTransaction {
    /// Stores a value under a key, and replaces an existing one. The first call makes the bucket's
    /// table.
    ///
    /// - Throws: `StoreError` `.mismatch` if the value cannot be stored (NaN, a failing
    ///   `encode(to:)`) or the bucket has keys of another type; `.constraint` if a key of your own
    ///   type becomes NULL; `.full`, `.io`, `.damaged`; otherwise as `execute(_:)`.
    /// - Complexity: O(log *entries*).
    public func set<K, V>(
        _ value: V, for key: K, in bucket: Bucket<K, V>
    ) throws {
        try BucketTable(connection(), bucket.plan).set(value, for: key)
    }

    /// Removes a key and its value, if the bucket has the key.
    ///
    /// - Returns: Whether the key existed; `false` is not an error.
    /// - Throws: `StoreError` `.mismatch` if the bucket has keys of another type; `.full`, `.io`,
    ///   `.damaged`.
    /// - Complexity: O(log *entries*).
    @discardableResult
    public func remove<K, V>(_ key: K, in bucket: Bucket<K, V>) throws -> Bool {
        try BucketTable(connection(), bucket.plan).remove(key)
    }

    /// Removes every entry of a bucket; its table remains.
    ///
    /// - Returns: The number of removed entries.
    /// - Throws: `StoreError` `.mismatch` if the bucket has keys of another type; `.full`, `.io`,
    ///   `.damaged`.
    /// - Complexity: O(*entries*).
    @discardableResult
    public func removeAll<K, V>(in bucket: Bucket<K, V>) throws -> Int {
        try BucketTable(connection(), bucket.plan).removeAll()
    }
}
