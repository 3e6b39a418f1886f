import Coffer

/// The forms in which programs print 32 bytes, in locked memory only.
enum SecretDigits {
    /// An alphabet, and how many bits each of its digits has.
    private struct Base {
        let digits: [UInt8]
        let bitCount: Int

        static let hex = Base(digits: Array("0123456789abcdef".utf8), bitCount: 4)
        static let base32 = Base(
            digits: Array("abcdefghijklmnopqrstuvwxyz234567".utf8), bitCount: 5)
        static let base64 = Base(
            digits: Array(
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8),
            bitCount: 6)
    }

    /// Whether everybody who reads the text knows half of the secret: it is there as it is, or as
    /// hexadecimal, base32 or base64 digits. Spaces, ends of lines and offsets may be between them.
    ///
    /// - Parameter secret: 32 bytes.
    static func areShown(of secret: UnsafeRawBufferPointer, in text: [UInt8]) -> Bool {
        let first = UnsafeRawBufferPointer(rebasing: secret.prefix(16))
        let second = UnsafeRawBufferPointer(rebasing: secret.suffix(16))
        if contains(text, first) || contains(text, second) { return true }
        return isShown(first, in: text, .hex) || isShown(second, in: text, .hex)
            || isShown(first, in: text, .base32) || isShown(first, in: text, .base64)
    }

    /// Whether the digits of the part are in the text, apart from the last one, which depends on
    /// what comes behind.
    private static func isShown(
        _ part: UnsafeRawBufferPointer, in text: [UInt8], _ base: Base
    ) -> Bool {
        let digits = StoreKey(isPassphrase: true, maximumByteCount: 64) { digits in
            write(part, to: digits, base)
        }
        let own = StoreKey(isPassphrase: true, maximumByteCount: text.count + 1) { own in
            var count = 0
            for byte in text {
                guard let digit = digit(byte, base) else { continue }
                own[count] = digit
                count += 1
            }
            return count
        }
        return digits.withBytes { digits in
            own.withBytes { contains($0, digits) }
        }
    }

    /// The byte as a digit of the base; `nil` for a byte between digits.
    private static func digit(_ byte: UInt8, _ base: Base) -> UInt8? {
        let isUpper = (0x41...0x5a).contains(byte)
        let digit: UInt8 =
            switch byte {
            case UInt8(ascii: "-") where base.bitCount == 6: UInt8(ascii: "+")
            case UInt8(ascii: "_") where base.bitCount == 6: UInt8(ascii: "/")
            default: isUpper && base.bitCount < 6 ? byte | 0x20 : byte
            }
        return base.digits.contains(digit) ? digit : nil
    }

    /// - Returns: The number of digits.
    private static func write(
        _ part: UnsafeRawBufferPointer, to digits: UnsafeMutableRawBufferPointer, _ base: Base
    ) -> Int {
        var (bits, bitCount, count) = (0, 0, 0)
        for byte in part {
            bits = (bits << 8 | Int(byte)) & 0xffff
            bitCount += 8
            while bitCount >= base.bitCount {
                bitCount -= base.bitCount
                digits[count] = base.digits[bits >> bitCount & (1 << base.bitCount - 1)]
                count += 1
            }
        }
        return count
    }

    private static func contains(
        _ text: some RandomAccessCollection<UInt8>, _ part: UnsafeRawBufferPointer
    ) -> Bool {
        guard !part.isEmpty, text.count >= part.count else { return false }
        return (0...text.count - part.count).contains { start in
            text.dropFirst(start).starts(with: part)
        }
    }
}
