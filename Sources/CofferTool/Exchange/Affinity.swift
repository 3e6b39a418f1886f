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
    func value(of field: UnsafeBufferPointer<UInt8>) -> BorrowedValue? {
        switch self {
        case .text, .blob: .text(field)
        case .integer: CanonicalNumber.integer(field).map(BorrowedValue.integer)
        case .real: CanonicalNumber.real(field).map(BorrowedValue.real)
        case .numeric: numericValue(of: field)
        }
    }

    private func numericValue(of field: UnsafeBufferPointer<UInt8>) -> BorrowedValue? {
        if let integer = CanonicalNumber.integer(field) { return .integer(integer) }
        // For example, a date in a column DATE. A text that the column turns into a number is bound
        // as a number, so that the stored value is known.
        guard CanonicalNumber.looksNumeric(field) else { return .text(field) }
        return CanonicalNumber.hasPoint(field)
            ? CanonicalNumber.real(field).map(BorrowedValue.real) : nil
    }

    /// Whether such a column stores the value unchanged.
    ///
    /// An integer may become the equal real in a column of reals.
    ///
    /// - Parameter isStrict: Whether a real must stay a real. Otherwise it may become the equal
    ///   integer, as 5.0 becomes 5 in a column of integers.
    func keeps(_ value: BorrowedValue, isStrict: Bool) -> Bool {
        switch (self, value) {
        case (_, .null), (_, .blob), (.blob, _), (.text, .text): true
        case (.text, _): false
        case (_, .text(let text)): !CanonicalNumber.looksNumeric(text)
        case (.real, .integer(let integer)): Double(exactly: integer) != nil
        case (.real, .real), (_, .integer): true
        // The engine stores a real with an integral value as an integer.
        case (_, .real(let real)): !isStrict || Int64(exactly: real) == nil
        }
    }
}

/// Converts text in UTF-8 to numbers if nothing is lost.
enum CanonicalNumber {
    typealias Bytes = UnsafeBufferPointer<UInt8>

    /// The integer whose decimal text is exactly this one: not `007`, not `+5`.
    static func integer(_ text: Bytes) -> Int64? {
        let isNegative = text.first == 0x2d
        let digits = text[(isNegative ? 1 : 0)...]
        guard let first = digits.first, digits.count <= 19,
            first != 0x30 || digits.count == 1 && !isNegative
        else { return nil }
        // Negative, because the smallest number has no positive counterpart.
        var number: Int64 = 0
        for byte in digits {
            guard isDigit(byte) else { return nil }
            let (product, overflow) = number.multipliedReportingOverflow(by: 10)
            let (difference, underflow) = product.subtractingReportingOverflow(Int64(byte - 0x30))
            guard !overflow, !underflow else { return nil }
            number = difference
        }
        if isNegative { return number }
        return number == .min ? nil : -number
    }

    /// The number that the text spells in JSON's form (not `007`, `+5` or `.5`); `nil` if the
    /// double next to it, in its shortest form, is another number.
    static func real(_ text: Bytes) -> Double? {
        guard isDecimal(text), isPlain(text) else { return nil }
        let string = String(decoding: text, as: UTF8.self)
        guard let real = Double(string), real.isFinite else { return nil }
        // A double keeps every decimal number of 15 digits: DBL_DIG in C.
        if text.count <= 15, abs(real) >= 1e-300 || real == 0 && isZero(text) { return real }
        return DecimalNumber(text) == DecimalNumber(real) ? real : nil
    }

    private static func isZero(_ text: Bytes) -> Bool {
        DecimalNumber(text).digits.isEmpty
    }

    private static func isDigit(_ byte: UInt8) -> Bool { byte &- 0x30 < 10 }

    private static func isPlain(_ text: Bytes) -> Bool {
        let digits = text.drop { $0 == 0x2d }
        guard let first = digits.first, isDigit(first),
            digits.count > 1 || first != 0x30 || text.count == 1
        else { return false }
        let second = digits.dropFirst().first ?? 0x2e
        return (first != 0x30 || !isDigit(second)) && text.last != 0x2e
    }

    static func hasPoint(_ text: Bytes) -> Bool {
        text.contains { $0 == 0x2e || $0 | 0x20 == 0x65 }
    }

    /// Whether SQLite converts the text to a number, which it also does with spaces around it.
    static func looksNumeric(_ text: Bytes) -> Bool {
        let isSpace: (UInt8) -> Bool = { $0 == 0x20 || 0x09...0x0d ~= $0 }
        guard let start = text.firstIndex(where: { !isSpace($0) }),
            let last = text.lastIndex(where: { !isSpace($0) })
        else { return false }
        let trimmed = Bytes(rebasing: text[start...last])
        return isDecimal(trimmed) && Double(String(decoding: trimmed, as: UTF8.self)) != nil
    }

    /// Whether the text has only characters of decimal numbers: not `inf`, `nan` or `0x1p3`.
    private static func isDecimal(_ text: Bytes) -> Bool {
        !text.isEmpty
            && text.allSatisfy {
                isDigit($0) || $0 == 0x2b || $0 == 0x2d || $0 == 0x2e || $0 | 0x20 == 0x65
            }
    }
}

/// A decimal number, comparable in any of its forms: 1.50, 1.5 and 15e-1 are equal.
private struct DecimalNumber: Equatable {
    private let isNegative: Bool
    /// Without zeros at either end; none for 0.
    let digits: [UInt8]
    /// The power of ten of the last digit.
    private let exponent: Int

    /// - Parameter text: Must be a number.
    init(_ text: some Sequence<UInt8>) {
        var digits: [UInt8] = []
        var (exponent, written, sign) = (0, 0, 1)
        var (isNegative, isFraction, isExponent) = (false, false, false)
        for byte in text {
            switch byte {
            case 0x2d where isExponent: sign = -1
            case 0x2d: isNegative = true
            case 0x2e: isFraction = true
            case 0x45, 0x65: isExponent = true
            case 0x30...0x39 where isExponent:
                written = min(written * 10 + Int(byte - 0x30), 99_999)
            case 0x30...0x39:
                if isFraction { exponent -= 1 }
                if byte != 0x30 || !digits.isEmpty { digits.append(byte) }
            default: break
            }
        }
        exponent += sign * written
        while digits.last == 0x30 {
            digits.removeLast()
            exponent += 1
        }
        self.isNegative = isNegative && !digits.isEmpty
        self.digits = digits
        self.exponent = digits.isEmpty ? 0 : exponent
    }

    init(_ real: Double) {
        self.init("\(real)".utf8)
    }
}
