#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension String: PrefixedBucketKey {
    /// ``BucketKeyType/text``.
    public static var keyType: BucketKeyType { .text }
}

extension Data: PrefixedBucketKey {
    /// ``BucketKeyType/bytes``.
    public static var keyType: BucketKeyType { .bytes }
}

extension UUID: BucketKey {
    /// ``BucketKeyType/uuid``.
    public static var keyType: BucketKeyType { .uuid }
}

extension Bool: BucketKey {
    /// ``BucketKeyType/bool``.
    public static var keyType: BucketKeyType { .bool }
}

extension Date: BucketKey {
    /// ``BucketKeyType/date``.
    public static var keyType: BucketKeyType { .date }

    /// The seconds since 2001, which give the date back to the bit; `.mismatch` for NaN.
    public func storedKey() throws(StoreError) -> Value {
        try timeIntervalSinceReferenceDate.asValue()
    }

    /// The date of a number of seconds since 2001; `.mismatch` for a text, a blob and NULL.
    public init(storedKey: Value) throws(StoreError) {
        guard let seconds = try? Double(storedKey) else { throw .mismatch(storedKey, Date.self) }
        self.init(timeIntervalSinceReferenceDate: seconds)
    }
}

// MARK: Integers

extension Int: BucketKey {
    /// ``BucketKeyType/integer``.
    public static var keyType: BucketKeyType { .integer }
}

extension Int8: BucketKey {
    /// ``BucketKeyType/integer``.
    public static var keyType: BucketKeyType { .integer }
}

extension Int16: BucketKey {
    /// ``BucketKeyType/integer``.
    public static var keyType: BucketKeyType { .integer }
}

extension Int32: BucketKey {
    /// ``BucketKeyType/integer``.
    public static var keyType: BucketKeyType { .integer }
}

extension Int64: BucketKey {
    /// ``BucketKeyType/integer``.
    public static var keyType: BucketKeyType { .integer }
}

extension UInt8: BucketKey {
    /// ``BucketKeyType/integer``.
    public static var keyType: BucketKeyType { .integer }
}

extension UInt16: BucketKey {
    /// ``BucketKeyType/integer``.
    public static var keyType: BucketKeyType { .integer }
}

extension UInt32: BucketKey {
    /// ``BucketKeyType/integer``.
    public static var keyType: BucketKeyType { .integer }
}

extension UInt64: BucketKey {
    /// ``BucketKeyType/unsigned``.
    public static var keyType: BucketKeyType { .unsigned }

    /// Eight bytes, the highest first.
    public func storedKey() -> Value { .blob(Data(bigEndianBytes)) }

    /// The integer of eight bytes; `.mismatch` for anything else.
    public init(storedKey: Value) throws(StoreError) {
        guard case .blob(let data) = storedKey, data.count == 8 else {
            throw .mismatch(storedKey, UInt64.self)
        }
        self.init(bigEndianBytes: data)
    }
}

extension UInt: BucketKey {
    /// ``BucketKeyType/unsigned``.
    public static var keyType: BucketKeyType { .unsigned }

    /// Eight bytes, the highest first.
    public func storedKey() -> Value { UInt64(self).storedKey() }

    /// The integer of eight bytes; `.mismatch` for anything else, or if it is out of range.
    public init(storedKey: Value) throws(StoreError) {
        guard let integer = UInt(exactly: try UInt64(storedKey: storedKey)) else {
            throw .outOfRange(UInt.self)
        }
        self = integer
    }
}
