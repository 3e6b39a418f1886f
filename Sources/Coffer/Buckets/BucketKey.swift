#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A type that can be the key of a bucket: a string, an integer, a UUID or `Data`.
///
/// Ranges follow the order of the stored keys: integers by value; texts, UUIDs and `Data` byte by
/// byte.
public protocol BucketKey: ValueConvertible, Hashable {
    /// The declared type of the key column: `TEXT`, `INTEGER` or `BLOB`.
    static var columnType: String { get }
}

/// A key that can be found by its first bytes.
public protocol PrefixedBucketKey: BucketKey {
    /// Whether the key's bytes begin with those of `prefix`; `true` for an empty prefix.
    func hasBytePrefix(_ prefix: Self) -> Bool
}

extension String: PrefixedBucketKey {
    /// Text.
    public static var columnType: String { "TEXT" }

    /// Whether the text's UTF-8 bytes begin with those of `prefix`. Nothing is normalised: an
    /// accent as one scalar differs from an accent as two.
    public func hasBytePrefix(_ prefix: String) -> Bool { utf8.starts(with: prefix.utf8) }
}

extension Data: PrefixedBucketKey {
    /// Bytes.
    public static var columnType: String { "BLOB" }

    /// Whether the bytes begin with those of `prefix`.
    public func hasBytePrefix(_ prefix: Data) -> Bool { starts(with: prefix) }
}

extension UUID: BucketKey {
    /// The 16 bytes.
    public static var columnType: String { "BLOB" }
}

extension Int: BucketKey {
    /// An integer.
    public static var columnType: String { "INTEGER" }
}

extension Int32: BucketKey {
    /// An integer.
    public static var columnType: String { "INTEGER" }
}

extension Int64: BucketKey {
    /// An integer.
    public static var columnType: String { "INTEGER" }
}

extension UInt32: BucketKey {
    /// An integer.
    public static var columnType: String { "INTEGER" }
}
