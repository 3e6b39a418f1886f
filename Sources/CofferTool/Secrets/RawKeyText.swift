import Coffer

/// Reads a raw key: bytes, or hex digits, with at most one newline after them.
enum RawKeyText {
    /// Turns hex digits into bytes, in place, and returns how many bytes the key has.
    ///
    /// - Throws: `ToolError` `.secretSource`, with the number of bytes but none of the bytes.
    static func decode(
        _ bytes: UnsafeMutableRawBufferPointer, count: Int, source: SecretSource
    ) throws -> Int {
        if [32, 48].contains(count) { return count }
        let stripped = SecretReader.withoutNewline(bytes, count: count)
        if [32, 48].contains(stripped) { return stripped }
        guard [64, 96].contains(stripped), decodeHex(bytes, digitCount: stripped) else {
            throw ToolError(
                .secretSource,
                "the input from \(source.description) is not a \(source.secretName): it has "
                    + "\(count) bytes",
                hint: source.form == .keyFile
                    ? "A key file has 32 bytes, or 64 hex digits."
                    : "Give 32 bytes, or 48 with the salt, or twice as many hex digits.")
        }
        return stripped / 2
    }

    /// Lends the hex digits of a new key, and a newline.
    static func withRandomDigits(_ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        let digits = Array("0123456789abcdef".utf8)
        // A key has its bytes in locked memory, which is wiped.
        let text = StoreKey(isPassphrase: true, maximumByteCount: 65) { bytes in
            var random = SystemRandomNumberGenerator()
            for index in 0..<64 { bytes[index] = digits[Int(random.next(upperBound: UInt8(16)))] }
            bytes[64] = UInt8(ascii: "\n")
            return 65
        }
        try text.withBytes(body)
    }

    private static func decodeHex(_ bytes: UnsafeMutableRawBufferPointer, digitCount: Int) -> Bool {
        for index in 0..<digitCount / 2 {
            guard let high = nibble(bytes[2 * index]), let low = nibble(bytes[2 * index + 1]) else {
                return false
            }
            bytes[index] = high << 4 | low
        }
        return true
    }

    private static func nibble(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
