/// The 32 bytes that encrypt the pages, with the 16 salt bytes of the file.
///
/// The key bytes live in locked memory and are zeroed when the value ends. The salt is the first
/// 16 bytes of the file, in the clear.
struct RawKey: ~Copyable, Sendable {
    /// Bytes of an AES-256 key.
    static let byteCount = 32
    /// Bytes of the salt at the start of every file.
    static let saltByteCount = 16

    /// The key, 32 bytes.
    let bytes: SecretBytes
    /// The salt, 16 bytes. Not secret.
    let salt: [UInt8]

    /// Returns a second key with the same bytes and salt and its own lifetime.
    borrowing func copy() -> RawKey {
        RawKey(bytes: bytes.copy(), salt: salt)
    }

    /// Whether the 32 key bytes are the same, compared in constant time. The salts may differ.
    borrowing func isEqual(to other: borrowing RawKey) -> Bool {
        bytes.isEqual(to: other.bytes)
    }

    /// Lends the key in the form that SQLCipher uses without deriving anything.
    ///
    /// > "if the raw key data is formated as x'hex' and there are exactly enough hex chars to fill
    /// > the key and the salt ... then it will be unpacked as the key followed by the salt"
    /// > <https://github.com/sqlcipher/sqlcipher/blob/v4.6.1/src/sqlcipher.c#L1277>
    ///
    /// - Parameter body: Gets `x'`, 64 hex digits of the key, 32 of the salt and `'`: 99 bytes,
    ///   for `sqlite3_key_v2`. The bytes are zeroed when it returns or throws.
    borrowing func withKeyText<R: ~Copyable, E: Error>(
        _ body: (UnsafeRawBufferPointer) throws(E) -> R
    ) throws(E) -> R {
        let byteCount = 2 + 2 * (bytes.byteCount + salt.count) + 1
        let text = SecretBytes(byteCount: byteCount) { text in
            text[0] = UInt8(ascii: "x")
            text[1] = UInt8(ascii: "'")
            bytes.withUnsafeBytes { Self.writeHex($0, to: text, at: 2) }
            salt.withUnsafeBytes { Self.writeHex($0, to: text, at: 2 + 2 * bytes.byteCount) }
            text[byteCount - 1] = UInt8(ascii: "'")
        }
        return try text.withUnsafeBytes(body)
    }

    /// Writes two lower-case digits per byte, from offset `start`.
    private static func writeHex(
        _ bytes: UnsafeRawBufferPointer, to text: UnsafeMutableRawBufferPointer, at start: Int
    ) {
        for (index, byte) in bytes.enumerated() {
            text[start + 2 * index] = hexDigit(byte >> 4)
            text[start + 2 * index + 1] = hexDigit(byte & 15)
        }
    }

    /// Returns the ASCII digit of a number from 0 to 15.
    private static func hexDigit(_ nibble: UInt8) -> UInt8 {
        nibble < 10 ? UInt8(ascii: "0") + nibble : UInt8(ascii: "a") + nibble - 10
    }
}

extension RawKey {
    /// The key with its salt, as a program would give it.
    borrowing func storeKey() -> StoreKey {
        let secret = SecretBytes(byteCount: bytes.byteCount + salt.count) { target in
            bytes.withUnsafeBytes { target.copyMemory(from: $0) }
            UnsafeMutableRawBufferPointer(rebasing: target[bytes.byteCount...]).copyBytes(
                from: salt)
        }
        return StoreKey(secret: secret, form: .raw)
    }
}
