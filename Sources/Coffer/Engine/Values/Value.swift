#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// One SQL value, in one of SQLite's five storage classes.
///
/// See <https://www.sqlite.org/datatype3.html>. An empty blob is not `null`.
public enum Value: Sendable, Hashable {
    /// SQL NULL.
    case null
    /// A signed integer of 64 bits.
    case integer(Int64)
    /// A floating-point number; never NaN, which SQLite would store as NULL.
    case real(Double)
    /// Text, in UTF-8, of any content including NUL.
    case text(String)
    /// Bytes.
    case blob(Data)

    /// The storage class.
    public var storageClass: StorageClass {
        switch self {
        case .null: .null
        case .integer: .integer
        case .real: .real
        case .text: .text
        case .blob: .blob
        }
    }
}

extension Value {
    /// The bytes of its content: 8 for a number, 0 for NULL.
    var byteCount: Int {
        switch self {
        case .null: 0
        case .integer, .real: 8
        case .text(let text): text.utf8.count
        case .blob(let data): data.count
        }
    }
}

/// How SQLite stores a value. See <https://www.sqlite.org/datatype3.html>.
public enum StorageClass: String, Sendable, CustomStringConvertible {
    /// SQL NULL.
    case null = "NULL"
    /// A signed integer of up to 64 bits.
    case integer = "INTEGER"
    /// A floating-point number of 64 bits.
    case real = "REAL"
    /// Text.
    case text = "TEXT"
    /// Bytes.
    case blob = "BLOB"

    /// The name in SQL.
    public var description: String { rawValue }
}

extension Value: ExpressibleByNilLiteral, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
    ExpressibleByStringLiteral, ExpressibleByBooleanLiteral
{
    /// Makes `null`.
    public init(nilLiteral: ()) { self = .null }
    /// Makes an integer.
    public init(integerLiteral value: Int64) { self = .integer(value) }
    /// Makes a real.
    public init(floatLiteral value: Double) { self = .real(value) }
    /// Makes a text.
    public init(stringLiteral value: String) { self = .text(value) }
    /// Makes the integer 1 or 0.
    public init(booleanLiteral value: Bool) { self = .integer(value ? 1 : 0) }
}
