/// The two numbers in a database's header that belong to the program that uses it.
extension Connection {
    /// The number that a program gives its schema, 0 until it is set.
    ///
    /// - Throws: `StoreError` `.misuse` before the key is set, `.closed`, `.busy`, `.io`.
    /// - Note: The corresponding SQL is `PRAGMA user_version`.
    public var userVersion: Int32 {
        get throws { try headerNumber("user_version") }
    }

    /// Sets the number that a program gives its schema, as part of the open transaction; outside
    /// one it is committed at once.
    ///
    /// - Throws: `StoreError` `.readOnly` if the connection may only read, `.busy` if another
    ///   connection holds the lock, `.full`, `.io`; `.misuse` before the key is set, `.closed`.
    /// - Note: The corresponding SQL is `PRAGMA user_version`.
    public func setUserVersion(_ version: Int32) throws {
        try perform(SQL(text: "PRAGMA user_version = \(version)"))
    }

    /// The number that identifies the program that the file belongs to, 0 until it is set.
    ///
    /// In an encrypted file only a holder of the key can read it.
    ///
    /// - Throws: `StoreError` `.misuse` before the key is set, `.closed`, `.busy`, `.io`.
    /// - Note: The corresponding SQL is `PRAGMA application_id`.
    public var applicationID: UInt32 {
        // SQLite shows the bit pattern as a signed number.
        get throws { UInt32(bitPattern: try headerNumber("application_id")) }
    }

    /// Sets the number that identifies the program that the file belongs to, as part of the open
    /// transaction; outside one it is committed at once.
    ///
    /// - Throws: As `setUserVersion(_:)`.
    /// - Note: The corresponding SQL is `PRAGMA application_id`.
    public func setApplicationID(_ id: UInt32) throws {
        try perform(SQL(text: "PRAGMA application_id = \(Int32(bitPattern: id))"))
    }

    private func headerNumber(_ pragma: String) throws(StoreError) -> Int32 {
        guard let row = try firstRow(SQL(text: "PRAGMA \(pragma)"), isReadOnly: true) else {
            return 0
        }
        return try Int32(row.values[0])
    }
}

/// Four characters that identify the program that something belongs to, such as `acrn`, as one
/// number.
public struct FourCharacterCode: Sendable, Hashable, CustomStringConvertible {
    /// The characters' ASCII codes, the first one in the highest byte.
    public let number: UInt32

    /// Makes a code of any number, such as one that a file has. `text` is `nil` unless all four
    /// bytes are printable ASCII characters.
    public init(number: UInt32) {
        self.number = number
    }

    /// Makes a code of four characters.
    ///
    /// - Throws: `StoreError` `.misuse` unless the text is four printable ASCII characters.
    public init(_ text: String) throws {
        guard text.utf8.count == 4, text.utf8.allSatisfy({ (0x20...0x7e).contains($0) }) else {
            throw StoreError(.misuse, "a code must be four printable ASCII characters")
        }
        number = text.utf8.reduce(0) { $0 << 8 | UInt32($1) }
    }

    /// The four characters; `nil` if the number has no such form.
    public var text: String? {
        let bytes = [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> $0) }
        guard bytes.allSatisfy({ (0x20...0x7e).contains($0) }) else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The four characters, or the number in decimal digits.
    public var description: String { text ?? String(number) }
}
