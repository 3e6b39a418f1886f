import Coffer
import Foundation

/// The change that a column makes to values stored in it, according to its declared type.
/// See <https://www.sqlite.org/datatype3.html#determination_of_column_affinity>.
enum Affinity {
    case integer, real, numeric, text, blob

    init(declared type: String) {
        let type = type.uppercased()
        self =
            if type.contains("INT") {
                .integer
            } else if ["CHAR", "CLOB", "TEXT"].contains(where: type.contains) {
                .text
            } else if type.isEmpty || type.contains("BLOB") {
                .blob
            } else if ["REAL", "FLOA", "DOUB"].contains(where: type.contains) {
                .real
            } else {
                .numeric
            }
    }

    /// The value of a CSV field in such a column; `nil` if the column would change it, as `007`
    /// becomes 7 in a column of integers.
    func value(of field: String) -> Value? {
        switch self {
        case .text, .blob: .text(field)
        case .integer: CanonicalNumber.integer(field).map(Value.integer)
        case .real: CanonicalNumber.real(field).map(Value.real)
        case .numeric: numericValue(of: field)
        }
    }

    private func numericValue(of field: String) -> Value? {
        if let integer = CanonicalNumber.integer(field) { return .integer(integer) }
        // For example, a date in a column DATE. A text that the column turns into a number is bound
        // as a number, so that the stored value is known.
        guard CanonicalNumber.looksNumeric(field) else { return .text(field) }
        return CanonicalNumber.hasPoint(field) ? CanonicalNumber.real(field).map(Value.real) : nil
    }

    /// Whether such a column stores the value unchanged.
    ///
    /// - Parameter isStrict: Whether the storage class must stay the same too. Otherwise a number
    ///   may become the equal number of the other class, as 5 becomes 5.0 in a column of reals.
    func keeps(_ value: Value, isStrict: Bool) -> Bool {
        switch (self, value) {
        case (_, .null), (_, .blob), (.blob, _), (.text, .text): true
        case (.text, _): false
        case (_, .text(let text)): !CanonicalNumber.looksNumeric(text)
        case (.real, .integer(let integer)): !isStrict && Double(exactly: integer) != nil
        case (.real, .real), (_, .integer): true
        // The engine stores a real with an integral value as an integer.
        case (_, .real(let real)): !isStrict || Int64(exactly: real) == nil
        }
    }
}

/// Converts text to numbers if nothing is lost.
enum CanonicalNumber {
    /// The integer whose decimal text is exactly this one: not `007`, not `+5`.
    static func integer(_ text: String) -> Int64? {
        guard let integer = Int64(text), String(integer) == text else { return nil }
        return integer
    }

    /// The finite number that the text spells in JSON's form (not `007`, `+5` or `.5`); `nil` for
    /// an integer that no double holds.
    static func real(_ text: String) -> Double? {
        guard isDecimal(text), isPlain(text), let real = Double(text), real.isFinite else {
            return nil
        }
        if hasPoint(text) || abs(real) < 9_007_199_254_740_992 { return real }
        return String(format: "%.0f", abs(real)) == text.drop { $0 == "-" } ? real : nil
    }

    private static func isPlain(_ text: String) -> Bool {
        let isDigit: (UInt8) -> Bool = { $0 >= 0x30 && $0 <= 0x39 }
        let digits = text.utf8.drop { $0 == 0x2d }
        guard let first = digits.first, isDigit(first), text != "-0" else { return false }
        let second = digits.dropFirst().first ?? 0x2e
        return (first != 0x30 || !isDigit(second)) && text.utf8.last != 0x2e
    }

    static func hasPoint(_ text: String) -> Bool {
        text.utf8.contains { $0 == 0x2e || $0 | 0x20 == 0x65 }
    }

    /// Whether SQLite converts the text to a number, which it also does with spaces around it.
    static func looksNumeric(_ text: String) -> Bool {
        let trimmed = text.drop { $0.isASCII && $0.isWhitespace }
            .reversed().drop { $0.isASCII && $0.isWhitespace }.reversed()
        return isDecimal(String(trimmed)) && Double(String(trimmed)) != nil
    }

    /// Whether the text has only characters of decimal numbers: not `inf`, `nan` or `0x1p3`.
    private static func isDecimal(_ text: String) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy {
                $0 >= 0x30 && $0 <= 0x39 || $0 == 0x2b || $0 == 0x2d || $0 == 0x2e
                    || $0 | 0x20 == 0x65
            }
    }
}
