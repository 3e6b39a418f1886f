import Coffer

/// Values as people read them on a terminal: nothing in them moves the cursor.
enum VisibleText {
    static func of(_ value: Value, null: String) -> String {
        switch value {
        case .null: null
        case .integer(let integer): String(integer)
        case .real(let real): real.description
        case .text(let text): of(text)
        case .blob(let data):
            "x'" + data.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() + "'"
        }
    }

    /// A terminal obeys control characters, and a newline would break the line.
    static func of(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control })
        else { return text }
        return text.unicodeScalars.reduce(into: "") { visible, scalar in
            if scalar.properties.generalCategory == .control {
                visible += scalar.escaped(asASCII: true)
            } else {
                visible.unicodeScalars.append(scalar)
            }
        }
    }
}
