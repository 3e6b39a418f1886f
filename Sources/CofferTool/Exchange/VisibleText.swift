import Coffer

/// Formats values for people on a terminal: no character in them moves the cursor.
enum VisibleText {
    static func of(_ value: Value, null: String) -> String {
        switch value {
        case .null: null
        case .integer(let integer): String(integer)
        case .real(let real): real.description
        case .text(let text): of(text)
        case .blob(let data): "x'\(hexDigits(of: data))'"
        }
    }

    /// Two digits for each byte, in lower case.
    static func hexDigits(of bytes: some Sequence<UInt8>) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    /// Escapes characters that a terminal interprets. Control characters are such, and a newline
    /// would break the line. Format characters reverse the direction of text or hide in it, so that
    /// one name reads as another.
    ///
    /// - Parameter kept: Characters to leave unchanged, such as newlines in a text of several
    ///   lines.
    static func of(_ text: String, keeping kept: Set<Unicode.Scalar> = []) -> String {
        func isShown(_ scalar: Unicode.Scalar) -> Bool {
            isHarmless(scalar) || kept.contains(scalar)
        }
        guard !text.unicodeScalars.allSatisfy(isShown) else { return text }
        return text.unicodeScalars.reduce(into: "") { visible, scalar in
            if isShown(scalar) {
                visible.unicodeScalars.append(scalar)
            } else {
                visible += scalar.escaped(asASCII: true)
            }
        }
    }

    /// Whether a terminal shows the character without interpreting it.
    static func isHarmless(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.isASCII { return scalar.value >= 0x20 && scalar.value != 0x7f }
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: return false
        default: return true
        }
    }
}
