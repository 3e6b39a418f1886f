/// Reads numbers from a page with arbitrary content; a number that does not fit is `nil`.
struct PageBytes {
    let bytes: [UInt8]

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// An unsigned big-endian integer of 1 to 4 bytes; `nil` beyond the end.
    func integer(at offset: Int, byteCount: Int) -> Int? {
        guard offset >= 0, byteCount <= bytes.count, offset <= bytes.count - byteCount else {
            return nil
        }
        return bytes[offset..<offset + byteCount].reduce(0) { $0 << 8 | Int($1) }
    }

    /// Reads a varint and advances `offset` past it; `nil` beyond the end, or if it is negative.
    func varint(at offset: inout Int) -> Int? {
        signedVarint(at: &offset).flatMap { $0 >= 0 ? Int(exactly: $0) : nil }
    }

    /// Reads a varint and advances `offset` past it; `nil` beyond the end.
    ///
    /// > "A varint consists of either zero or more bytes which have the high-order bit set followed
    /// > by a single byte with the high-order bit clear, or nine bytes, whichever is shorter."
    /// > <https://www.sqlite.org/fileformat2.html#varint>
    func signedVarint(at offset: inout Int) -> Int64? {
        var value: UInt64 = 0
        for count in 1...9 {
            guard bytes.indices.contains(offset) else { return nil }
            let byte = bytes[offset]
            offset += 1
            if count == 9 {
                // "and all 8 bits of the ninth byte"
                value = value << 8 | UInt64(byte)
                break
            }
            value = value << 7 | UInt64(byte & 0x7f)
            if byte < 0x80 { break }
        }
        return Int64(bitPattern: value)
    }
}
