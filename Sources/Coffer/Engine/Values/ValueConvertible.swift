#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A Swift type that is stored as one SQL value.
///
/// Conversions are exact in both directions: a value that does not fit is `.mismatch`, never
/// clipped, wrapped or defaulted.
public protocol ValueConvertible: Sendable {
    /// The SQL value of this Swift value.
    ///
    /// - Throws: `StoreError` `.mismatch` if no SQL value can hold it, such as NaN.
    func asValue() throws(StoreError) -> Value

    /// Makes the Swift value from an SQL value.
    ///
    /// - Throws: `StoreError` `.mismatch` if the storage class or the range does not fit.
    init(_ value: Value) throws(StoreError)
}

extension StoreError {
    /// The `.mismatch` error for a value that does not fit a Swift type. The message names the type
    /// and the storage class, never the value.
    static func mismatch(_ value: Value, _ type: Any.Type) -> StoreError {
        StoreError(.mismatch, "expected a value for \(type), found \(value.storageClass)")
    }

    static func outOfRange(_ type: Any.Type) -> StoreError {
        StoreError(.mismatch, "the integer is out of the range of \(type)")
    }
}

extension Value: ValueConvertible {
    /// The value itself.
    public func asValue() -> Value { self }
    /// The value itself.
    public init(_ value: Value) { self = value }
}

extension ValueConvertible where Self: FixedWidthInteger {
    /// The integer; `.mismatch` above `Int64.max`.
    public func asValue() throws(StoreError) -> Value {
        guard let integer = Int64(exactly: self) else { throw .outOfRange(Int64.self) }
        return .integer(integer)
    }

    /// The integer; `.mismatch` for another storage class, or if it is out of range.
    public init(_ value: Value) throws(StoreError) {
        guard case .integer(let integer) = value else { throw .mismatch(value, Self.self) }
        guard let exact = Self(exactly: integer) else { throw .outOfRange(Self.self) }
        self = exact
    }
}

extension Int: ValueConvertible {}
extension Int8: ValueConvertible {}
extension Int16: ValueConvertible {}
extension Int32: ValueConvertible {}
extension Int64: ValueConvertible {}
extension UInt: ValueConvertible {}
extension UInt8: ValueConvertible {}
extension UInt16: ValueConvertible {}
extension UInt32: ValueConvertible {}
extension UInt64: ValueConvertible {}

extension Bool: ValueConvertible {
    /// The integer 1 or 0.
    public func asValue() -> Value { .integer(self ? 1 : 0) }

    /// True for 1, false for 0; `.mismatch` for anything else.
    public init(_ value: Value) throws(StoreError) {
        switch value {
        case .integer(0): self = false
        case .integer(1): self = true
        case .integer: throw .outOfRange(Bool.self)
        default: throw .mismatch(value, Bool.self)
        }
    }
}

extension Double: ValueConvertible {
    /// The real; `.mismatch` for NaN, which SQLite would store as NULL. SQLite keeps -0.0 as 0.0.
    public func asValue() throws(StoreError) -> Value {
        guard !isNaN else {
            throw StoreError(.mismatch, "NaN cannot be stored: SQLite makes it NULL")
        }
        return .real(self)
    }

    /// The number; `.mismatch` for an integer that `Double` cannot hold exactly, and for a text, a
    /// blob and NULL.
    public init(_ value: Value) throws(StoreError) {
        switch value {
        case .real(let real): self = real
        case .integer(let integer):
            guard let exact = Double(exactly: integer) else { throw .mismatch(value, Double.self) }
            self = exact
        default: throw .mismatch(value, Double.self)
        }
    }
}

extension Float: ValueConvertible {
    /// The real; `.mismatch` for NaN.
    public func asValue() throws(StoreError) -> Value { try Double(self).asValue() }

    /// The number, rounded to 32 bits; `.mismatch` if it is too large for them, and where `Double`
    /// does not take the value.
    public init(_ value: Value) throws(StoreError) {
        guard let double = try? Double(value) else { throw .mismatch(value, Float.self) }
        self = Float(double)
        guard isInfinite == double.isInfinite else { throw .mismatch(value, Float.self) }
    }
}

extension String: ValueConvertible {
    /// The text, whatever it contains.
    public func asValue() -> Value { .text(self) }

    /// The text; `.mismatch` for every other storage class: a number is not converted.
    public init(_ value: Value) throws(StoreError) {
        guard case .text(let text) = value else { throw .mismatch(value, String.self) }
        self = text
    }
}

extension Data: ValueConvertible {
    /// The blob; empty stays empty.
    public func asValue() -> Value { .blob(self) }

    /// The bytes of a blob; `.mismatch` for every other storage class.
    public init(_ value: Value) throws(StoreError) {
        guard case .blob(let data) = value else { throw .mismatch(value, Data.self) }
        self = data
    }
}

extension [UInt8]: ValueConvertible {
    /// The blob; empty stays empty.
    public func asValue() -> Value { .blob(Data(self)) }

    /// The bytes of a blob; `.mismatch` for every other storage class.
    public init(_ value: Value) throws(StoreError) {
        guard case .blob(let data) = value else { throw .mismatch(value, [UInt8].self) }
        self = Array(data)
    }
}

extension Date: ValueConvertible {
    /// Seconds since 1970 as a real, so that SQL's own date functions read them. Exact to the
    /// microsecond: `Date` itself counts from 2001, and the sum is rounded. `.mismatch` for NaN.
    /// A record's columns hold the count from 2001: see `DateEncoding.secondsSince2001`.
    public func asValue() throws(StoreError) -> Value { try timeIntervalSince1970.asValue() }

    /// The date of a number of seconds since 1970; `.mismatch` for a text, a blob and NULL.
    public init(_ value: Value) throws(StoreError) {
        guard let seconds = try? Double(value) else { throw .mismatch(value, Date.self) }
        self.init(timeIntervalSince1970: seconds)
    }
}

extension UUID: ValueConvertible {
    /// The 16 bytes as a blob, which sorts as UUIDs do.
    public func asValue() -> Value { .blob(withUnsafeBytes(of: uuid) { Data($0) }) }

    /// The UUID of a blob of 16 bytes; `.mismatch` for anything else, also for a UUID as text.
    public init(_ value: Value) throws(StoreError) {
        guard case .blob(let data) = value, data.count == 16 else {
            throw .mismatch(value, UUID.self)
        }
        var uuid = UUID_NULL
        withUnsafeMutableBytes(of: &uuid) { $0.copyBytes(from: data) }
        self.init(uuid: uuid)
    }
}

private let UUID_NULL: uuid_t = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)

extension URL: ValueConvertible {
    /// The absolute string as text.
    public func asValue() -> Value { .text(absoluteString) }

    /// The URL that a text spells; `.mismatch` if the text is no URL, or for another storage class.
    public init(_ value: Value) throws(StoreError) {
        guard case .text(let text) = value, let url = URL(string: text) else {
            throw .mismatch(value, URL.self)
        }
        self = url
    }
}

extension Decimal: ValueConvertible {
    /// The exact decimal digits as text; `.mismatch` for NaN.
    public func asValue() throws(StoreError) -> Value {
        guard !isNaN else {
            throw StoreError(.mismatch, "a Decimal that is not a number cannot be stored")
        }
        return .text(description)
    }

    /// The decimal that a text spells, such as `-12.5e3`; `.mismatch` for a text with anything
    /// before or after the number, and for another storage class.
    public init(_ value: Value) throws(StoreError) {
        // Decimal(string:) stops at the first character that it does not know: "12abc" is 12.
        guard case .text(let text) = value, text.isDecimalNumber,
            let decimal = Decimal(string: text)
        else { throw .mismatch(value, Decimal.self) }
        self = decimal
    }
}

extension Optional: ValueConvertible where Wrapped: ValueConvertible {
    /// NULL for `nil`; otherwise the SQL value of the wrapped value. Throws as its type does.
    public func asValue() throws(StoreError) -> Value {
        guard let self else { return .null }
        return try self.asValue()
    }

    /// `nil` for NULL; otherwise the wrapped value. Throws as its type does.
    public init(_ value: Value) throws(StoreError) {
        self = value == .null ? nil : try Wrapped(value)
    }
}

extension ValueConvertible where Self: RawRepresentable, RawValue: ValueConvertible {
    /// The raw value's SQL value. Throws as the raw type does.
    public func asValue() throws(StoreError) -> Value { try rawValue.asValue() }

    /// The case with this raw value; `.mismatch` if there is none, or if the value does not fit the
    /// raw type.
    public init(_ value: Value) throws(StoreError) {
        guard let found = Self(rawValue: try RawValue(value)) else {
            throw .mismatch(value, Self.self)
        }
        self = found
    }
}

extension String {
    /// Sign, digits with at most one point, exponent: `-12.5e3`.
    fileprivate var isDecimalNumber: Bool {
        var rest = Substring(self).utf8[...]
        func takeSign() {
            if let first = rest.first, first == 0x2b || first == 0x2d { rest.removeFirst() }
        }
        func takeDigits() -> Int {
            let digits = rest.prefix { $0 >= 0x30 && $0 <= 0x39 }
            rest = rest.dropFirst(digits.count)
            return digits.count
        }
        takeSign()
        var digitCount = takeDigits()
        if rest.first == 0x2e {
            rest.removeFirst()
            digitCount += takeDigits()
        }
        guard digitCount > 0 else { return false }
        guard let exponent = rest.first else { return true }
        guard exponent == 0x65 || exponent == 0x45 else { return false }
        rest.removeFirst()
        takeSign()
        return takeDigits() > 0 && rest.isEmpty
    }
}
