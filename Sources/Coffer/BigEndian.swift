extension FixedWidthInteger {
    /// The bytes of the number, the most significant first.
    package var bigEndianBytes: [UInt8] { withUnsafeBytes(of: bigEndian) { [UInt8]($0) } }

    /// The number that has these bytes, the most significant first; at most as many as its size.
    package init(bigEndianBytes bytes: some Sequence<UInt8>) {
        self = bytes.reduce(0) { $0 << 8 | Self(truncatingIfNeeded: $1) }
    }

    /// The number whose bytes begin at an offset, the most significant first.
    ///
    /// - Precondition: The bytes are there.
    package init(bigEndianAt offset: Int, of bytes: [UInt8]) {
        self.init(bigEndianBytes: bytes[offset..<offset + Self.bitWidth / 8])
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
