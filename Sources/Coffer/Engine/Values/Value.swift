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
    /// Whether both are of one storage class and the same to SQLite: texts byte for byte, so that
    /// é as one scalar and é as two are different values.
    ///
    /// Not named `==`: one more operator makes the compiler give up on long conditions.
    @_implements(Equatable,==(_:_:))
    public static func isEqual(_ left: Value, _ right: Value) -> Bool {
        switch (left, right) {
        case (.null, .null): true
        case (.integer(let left), .integer(let right)): left == right
        case (.real(let left), .real(let right)): left == right
        case (.text(let left), .text(let right)): SQLText(left) == SQLText(right)
        case (.blob(let left), .blob(let right)): left == right
        default: false
        }
    }

    /// Feeds what `==` compares.
    public func hash(into hasher: inout Hasher) {
        switch self {
        case .null: hasher.combine(0)
        case .integer(let integer): hasher.combine(integer)
        case .real(let real): hasher.combine(real)
        case .text(let text): SQLText(text).hash(into: &hasher)
        case .blob(let data): hasher.combine(data)
        }
    }

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
