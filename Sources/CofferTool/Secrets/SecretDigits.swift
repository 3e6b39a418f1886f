/// The two forms in which programs most often print bytes, without a copy of the secret elsewhere.
enum SecretDigits {
    private static let hex = Array("0123456789abcdef".utf8)
    private static let base64 = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    /// Writes 32 bytes as 64 hexadecimal digits, and then as 42 base64 digits, which are those of
    /// whole groups of six bits.
    ///
    /// - Returns: The number of digits.
    static func write(
        _ secret: UnsafeRawBufferPointer, to digits: UnsafeMutableRawBufferPointer
    ) -> Int {
        var count = 0
        func add(_ digit: UInt8) {
            digits[count] = digit
            count += 1
        }
        for byte in secret {
            add(hex[Int(byte >> 4)])
            add(hex[Int(byte & 15)])
        }
        var (bits, bitCount) = (0, 0)
        for byte in secret {
            bits = (bits << 8 | Int(byte)) & 0xffff
            bitCount += 8
            while bitCount >= 6 {
                bitCount -= 6
                add(base64[bits >> bitCount & 63])
            }
        }
        return count
    }
}
