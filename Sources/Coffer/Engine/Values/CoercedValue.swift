import CSQLCipher

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A value read as another type by SQLite's own conversion rules, which never fail.
///
/// A value that does not fit silently becomes 0, `nil` or a part of itself. FMDB and the C API
/// read this way; use it for code that comes from there. `Row.get(_:as:)` is exact.
/// See <https://www.sqlite.org/c3ref/column_blob.html>.
public struct CoercedValue: Sendable {
    /// The value as it is stored.
    public let value: Value

    /// Whether it is NULL.
    public var isNull: Bool { value == .null }

    /// The integer, a real without its fraction, or the integer that a text or blob begins with;
    /// otherwise 0. A number beyond 64 bits becomes the least or the greatest integer.
    /// The corresponding C function is `sqlite3_column_int64`.
    public var int: Int {
        switch value {
        case .null: 0
        case .integer(let integer): Int(integer)
        case .real(let real): Self.truncated(real)
        case .text(let text): NumberPrefix(text.utf8).integer
        case .blob(let data): NumberPrefix(data).integer
        }
    }

    /// The number, or the one that a text or blob begins with; otherwise 0.
    /// The corresponding C function is `sqlite3_column_double`.
    public var double: Double {
        switch value {
        case .null: 0
        case .integer(let integer): Double(integer)
        case .real(let real): real
        case .text(let text): NumberPrefix(text.utf8).real
        case .blob(let data): NumberPrefix(data).real
        }
    }

    /// Whether `int` is not 0. So 0.5 and "yes" are false.
    public var bool: Bool { int != 0 }

    /// The text, a number as SQLite writes it, or the UTF-8 bytes of a blob. `nil` for NULL and
    /// for a blob that is not UTF-8.
    /// The corresponding C function is `sqlite3_column_text`.
    public var string: String? {
        switch value {
        case .null: nil
        case .integer(let integer): String(integer)
        case .real(let real): Self.text(of: real)
        case .text(let text): text
        case .blob(let data):
            data.withUnsafeBytes { bytes in
                bytes.withMemoryRebound(to: UInt8.self) { String(exactly: $0) }
            }
        }
    }

    /// The bytes of a blob; for other values those of `string`. Empty stays empty, `nil` for NULL.
    /// The corresponding C function is `sqlite3_column_blob`.
    public var data: Data? {
        if case .blob(let data) = value { return data }
        return string.map { Data($0.utf8) }
    }

    /// The date of `double` seconds since 1970; `nil` for NULL.
    public var date: Date? {
        isNull ? nil : Date(timeIntervalSince1970: double)
    }

    /// See `sqlite3VdbeIntValue`: a real beyond 64 bits becomes the nearest 64-bit integer.
    private static func truncated(_ real: Double) -> Int {
        Int(exactly: real.rounded(.towardZero)) ?? (real < 0 ? .min : .max)
    }

    private static func text(of real: Double) -> String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { buffer in
            coffer_real_text(real, buffer.baseAddress, Int32(buffer.count))
            return buffer.baseAddress.map { String(cString: $0) } ?? ""
        }
    }
}

extension Value {
    /// The value under SQLite's conversion rules, which never fail.
    public var coerced: CoercedValue { CoercedValue(value: self) }
}

extension Row {
    /// The values under SQLite's conversion rules, which never fail: for code that comes from FMDB.
    ///
    /// ```swift
    /// let age = row.coerced["age"].int        // 0 for NULL, and for a column that is not there
    /// ```
    public var coerced: CoercedRow { CoercedRow(row: self) }
}

/// A row that converts its values by SQLite's rules; a missing column is NULL.
public struct CoercedRow: Sendable {
    let row: Row

    /// The value in a column by position.
    public subscript(index: Int) -> CoercedValue { CoercedValue(value: row[index] ?? .null) }

    /// The value in a column by name.
    public subscript(name: String) -> CoercedValue { CoercedValue(value: row[name] ?? .null) }
}

/// The number at the beginning of a text, as SQLite reads it: spaces, sign, digits, fraction,
/// exponent. The rest of the text is ignored.
private struct NumberPrefix {
    private var isNegative = false
    private var digits: [UInt8] = []
    private var fraction: [UInt8] = []
    private var exponent = ""

    init(_ bytes: some Collection<UInt8>) {
        var rest = bytes.drop { $0 == 0x20 || 0x09...0x0d ~= $0 }[...]
        func takeSign() -> Bool? {
            guard let first = rest.first, first == 0x2b || first == 0x2d else { return nil }
            rest.removeFirst()
            return first == 0x2d
        }
        func takeDigits() -> [UInt8] {
            let found = Array(rest.prefix { 0x30...0x39 ~= $0 })
            rest = rest.dropFirst(found.count)
            return found
        }
        isNegative = takeSign() ?? false
        digits = takeDigits()
        if rest.first == 0x2e {
            rest.removeFirst()
            fraction = takeDigits()
        }
        guard !digits.isEmpty || !fraction.isEmpty, rest.first == 0x65 || rest.first == 0x45
        else { return }
        rest.removeFirst()
        let sign = takeSign() == true ? "-" : ""
        let power = takeDigits()
        if !power.isEmpty { exponent = "e" + sign + Self.text(power) }
    }

    private static func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

    var integer: Int {
        let text = (isNegative ? "-" : "") + (digits.isEmpty ? "0" : Self.text(digits))
        return Int(text) ?? (isNegative ? .min : .max)
    }

    var real: Double {
        let whole = (isNegative ? "-0" : "0") + Self.text(digits)
        return Double(whole + "." + Self.text(fraction) + "0" + exponent) ?? 0
    }
}
