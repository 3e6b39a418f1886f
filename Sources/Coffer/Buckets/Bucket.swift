/// A named set of values under typed keys, in its own table.
///
/// ```swift
/// let sessions = Bucket<String, Session>("sessions", lifetime: .seconds(1800))
/// try await store.set(Session(user: "ada"), for: "s1", in: sessions)
/// let session = try await store.get("s1", in: sessions)
/// ```
///
/// A bucket is only a name with types: making one touches no store. The first `set` makes its
/// table, which is named `bucket:` and the name. Strings, numbers, dates, UUIDs and `Data` are
/// stored as themselves, every other `Codable` value as JSON text, or by a ``BucketCodec`` as
/// bytes. The file records the type of the keys and the coding of the values: verbs throw
/// `.mismatch` for other ones. It does not record the Swift type of the values.
public struct Bucket<Key: BucketKey, Value: Sendable>: Sendable {
    /// The name given to the bucket.
    public let name: String
    /// How long an entry lives that is set without an ``Expiration`` of its own; `nil` for entries
    /// that do not expire.
    ///
    /// Each program uses the lifetime that it names here. The file keeps the first one, for the
    /// tool `coffer`.
    public let lifetime: Duration?
    let plan: BucketPlan
    let coder: ValueCoder<Value>

    /// The name of its table.
    var table: String { plan.table }

    /// Names a bucket of `Codable` values; reads and changes no store.
    ///
    /// - Parameters:
    ///   - name: Any text that is not empty. With an empty name, every verb throws `.misuse`. Verbs
    ///     also throw it if the name of an existing bucket differs only in ASCII case.
    ///   - lifetime: How long an entry lives that is set without an ``Expiration`` of its own;
    ///     `nil` for entries that stay.
    public init(_ name: String, lifetime: Duration? = nil) where Value: Codable {
        self.init(name, coder: .standard(), lifetime: lifetime)
    }

    /// Names a bucket whose values a codec makes bytes of; reads and changes no store.
    ///
    /// - Parameters:
    ///   - name: As in `init(_:lifetime:)`.
    ///   - codec: Makes bytes of values, and values of bytes.
    ///   - lifetime: As in `init(_:lifetime:)`.
    public init(_ name: String, codec: BucketCodec<Value>, lifetime: Duration? = nil) {
        self.init(name, coder: ValueCoder(codec), lifetime: lifetime)
    }

    init(
        _ name: String, coder: ValueCoder<Value>, lifetime: Duration?,
        recordKey: Result<RecordKey, StoreError>? = nil
    ) {
        self.name = name
        self.lifetime = lifetime
        self.coder = coder
        plan = .shared(
            name: name, keyType: Key.keyType, coding: coder.coding, recordKey: recordKey)
    }
}

/// One key with its value.
public struct BucketEntry<Key: BucketKey, Value: Sendable>: Sendable {
    /// The key.
    public let key: Key
    /// The value.
    public let value: Value
}

extension BucketEntry: Equatable where Value: Equatable {}

/// The order in which a scan visits keys.
public enum ScanOrder: Sendable, Hashable {
    /// From the first key to the last.
    case ascending
    /// From the last key to the first.
    case descending
}
