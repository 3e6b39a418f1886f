/// A type that can be the key of a bucket.
///
/// `String`, integers, `UUID`, `Data`, `Date`, `Bool` and ``CompositeKey`` are keys. A type of your
/// own with a raw value needs one word, as does one that converts to text and back:
///
/// ```swift
/// enum Channel: String, BucketKey { case mail, push }
/// struct UserID: RawRepresentable, BucketKey { let rawValue: UUID }
/// extension Version: TextBucketKey {}   // LosslessStringConvertible, Hashable, Sendable
/// ```
///
/// Ranges follow the order of the stored keys, which ``BucketKeyType`` gives. Two strings that
/// differ in normalisation only, such as é as one scalar and as two, are equal in Swift and two
/// keys in a bucket.
///
/// Integers of more than 64 bits are not keys, because SQLite has none: use their digits as text of
/// a fixed length, or their bytes.
public protocol BucketKey: Hashable, Sendable {
    /// How the file stores the keys.
    static var keyType: BucketKeyType { get }

    /// The SQL value that stands for the key, of the class that ``keyType`` has.
    ///
    /// - Throws: `StoreError` `.mismatch` if the file cannot hold the key, such as a date that is
    ///   not a number.
    func storedKey() throws(StoreError) -> Value

    /// The key that an SQL value stands for.
    ///
    /// - Throws: `StoreError` `.mismatch` if the SQL value cannot be converted to this key type.
    init(storedKey: Value) throws(StoreError)
}

/// A key that can be found by its first bytes, see ``KeyRange/prefix(_:)``: a text, or bytes.
public protocol PrefixedBucketKey: BucketKey {}

/// A key that is stored as the text that it converts to.
public protocol TextBucketKey: PrefixedBucketKey, LosslessStringConvertible {}

extension TextBucketKey {
    /// ``BucketKeyType/text``.
    public static var keyType: BucketKeyType { .text }

    /// The description.
    public func storedKey() -> Value { .text(description) }

    /// The key that the text describes; `.mismatch` for another text or storage class.
    public init(storedKey: Value) throws(StoreError) {
        guard case .text(let text) = storedKey, let key = Self(text) else {
            throw .mismatch(storedKey, Self.self)
        }
        self = key
    }
}

extension BucketKey where Self: ValueConvertible {
    /// The SQL value; throws as its type does.
    public func storedKey() throws(StoreError) -> Value { try asValue() }

    /// The key of an SQL value; throws as its type does.
    public init(storedKey: Value) throws(StoreError) { self = try Self(storedKey) }
}

extension BucketKey where Self: RawRepresentable, RawValue: BucketKey {
    /// The type of the raw value.
    public static var keyType: BucketKeyType { RawValue.keyType }

    /// The raw value's SQL value; throws as the raw type does.
    public func storedKey() throws(StoreError) -> Value { try rawValue.storedKey() }

    /// The key with this raw value; `.mismatch` if there is none.
    public init(storedKey: Value) throws(StoreError) {
        guard let key = Self(rawValue: try RawValue(storedKey: storedKey)) else {
            throw .mismatch(storedKey, Self.self)
        }
        self = key
    }
}

// Chosen for a type to which both extensions above apply.
extension BucketKey where Self: ValueConvertible & RawRepresentable, RawValue: BucketKey {
    /// The raw value's SQL value; throws as the raw type does.
    public func storedKey() throws(StoreError) -> Value { try rawValue.storedKey() }

    /// The key with this raw value; `.mismatch` if there is none.
    public init(storedKey: Value) throws(StoreError) {
        guard let key = Self(rawValue: try RawValue(storedKey: storedKey)) else {
            throw .mismatch(storedKey, Self.self)
        }
        self = key
    }
}
