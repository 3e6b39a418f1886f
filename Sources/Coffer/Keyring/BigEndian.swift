extension FixedWidthInteger {
    /// The bytes of the number, the most significant first.
    var bigEndianBytes: [UInt8] { withUnsafeBytes(of: bigEndian) { [UInt8]($0) } }

    /// The number whose bytes begin at an offset, the most significant first.
    ///
    /// - Precondition: The bytes are there.
    init(bigEndianAt offset: Int, of bytes: [UInt8]) {
        self = bytes[offset..<offset + Self.bitWidth / 8].reduce(0) { number, byte in
            number << 8 | Self(truncatingIfNeeded: byte)
        }
    }
}

extension [UInt8] {
    /// Replaces the bytes from an offset on.
    ///
    /// - Precondition: There are as many.
    mutating func replace(from offset: Int, with bytes: [UInt8]) {
        replaceSubrange(offset..<offset + bytes.count, with: bytes)
    }
}
