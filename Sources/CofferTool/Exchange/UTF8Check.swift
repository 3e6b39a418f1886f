/// Whether bytes are UTF-8, without a copy of a long text.
enum UTF8Check {
    /// Bytes that are checked at once.
    private static let pieceByteCount = 1 << 16

    static func isValid(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            var piece = rest.prefix(pieceByteCount)
            // A character must not be cut: its later bytes begin with 10.
            if piece.count < rest.count {
                for _ in 0..<3 where rest[piece.endIndex] & 0xc0 == 0x80 { piece.removeLast() }
            }
            if !isASCII(piece), String(validating: piece, as: UTF8.self) == nil { return false }
            rest = rest[piece.endIndex...]
        }
        return true
    }

    private static func isASCII(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
        var bits: UInt8 = 0
        for byte in bytes { bits |= byte }
        return bits < 0x80
    }
}
