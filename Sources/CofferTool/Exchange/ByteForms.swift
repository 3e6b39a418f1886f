/// Forms of values in bytes, appended without a `String` for each.
extension [UInt8] {
    /// Appends an integer in decimal.
    mutating func append(decimal integer: Int64) {
        var rest = integer.magnitude
        // A sign and the 19 digits of the largest magnitude.
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { digits in
            var start = digits.count
            repeat {
                let (quotient, digit) = rest.quotientAndRemainder(dividingBy: 10)
                start -= 1
                digits[start] = 0x30 + UInt8(truncatingIfNeeded: digit)
                rest = quotient
            } while rest > 0
            if integer < 0 {
                start -= 1
                digits[start] = 0x2d
            }
            append(contentsOf: UnsafeBufferPointer(rebasing: digits[start...]))
        }
    }

    /// Appends the shortest decimal that reads back as the same finite number.
    mutating func append(shortest real: Double) {
        var text = real.description
        text.withUTF8 { append(contentsOf: $0) }
    }

    /// Appends bytes, each `quote` among them twice.
    mutating func append(doubling quote: UInt8, in bytes: UnsafeBufferPointer<UInt8>) {
        var start = 0
        for index in bytes.indices where bytes[index] == quote {
            append(contentsOf: UnsafeBufferPointer(rebasing: bytes[start...index]))
            // The next run begins with the quote's second copy.
            start = index
        }
        append(contentsOf: UnsafeBufferPointer(rebasing: bytes[start...]))
    }

    /// Appends two digits for each byte, in lower case.
    mutating func append(hex bytes: UnsafeRawBufferPointer) {
        let digit = { (nibble: UInt8) in nibble < 10 ? 0x30 + nibble : 0x57 + nibble }
        reserveCapacity(count + 2 * bytes.count)
        for byte in bytes {
            append(digit(byte >> 4))
            append(digit(byte & 15))
        }
    }
}
