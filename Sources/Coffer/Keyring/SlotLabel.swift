/// The name that a person gives a slot: text of at most 118 bytes that a terminal shows as it is.
struct SlotLabel: Hashable, Sendable {
    static let maximumByteCount = 118

    let text: String

    /// - Throws: `.misuse` for a text that is too long, or has a character that is not shown.
    init(_ text: String) throws(StoreError) {
        guard text.utf8.count <= Self.maximumByteCount else {
            throw StoreError(
                .misuse,
                "a label has at most \(Self.maximumByteCount) bytes, and this one has "
                    + "\(text.utf8.count)")
        }
        guard text.unicodeScalars.allSatisfy({ Self.isShown($0) }) else {
            throw StoreError(
                .misuse, "a label has a character that a terminal would not show as one",
                hint: "Use letters, digits, spaces and signs; no line ends or format characters.")
        }
        self.text = text
    }

    /// Reads a label from a keyring. `nil` if its bytes are not such a text.
    ///
    /// A character that this system does not know is kept: another system may have known it.
    init?(stored bytes: ArraySlice<UInt8>) {
        guard bytes.count <= Self.maximumByteCount,
            let text = String(validating: bytes, as: UTF8.self),
            text.unicodeScalars.allSatisfy({
                Self.isShown($0) || $0.properties.generalCategory == .unassigned
            })
        else { return nil }
        self.text = text
    }

    /// Whether the scalar is neither a control nor a format character, a separator of lines or
    /// paragraphs, of private use, a surrogate or unassigned.
    private static func isShown(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .surrogate,
            .unassigned:
            false
        default: true
        }
    }
}
