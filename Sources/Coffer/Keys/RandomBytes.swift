// Bytes of the system's secure generator.

extension UnsafeMutableRawBufferPointer {
    /// Fills the memory with random bytes.
    func fillRandomly() {
        var generator = SystemRandomNumberGenerator()
        for index in indices { self[index] = generator.next() }
    }
}

extension SecretBytes {
    /// Random bytes in locked memory.
    static func random(byteCount: Int) -> SecretBytes {
        SecretBytes(byteCount: byteCount) { $0.fillRandomly() }
    }
}

extension [UInt8] {
    /// Random bytes that are not secret, such as a salt or a nonce.
    package static func random(byteCount: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: byteCount) { buffer, count in
            UnsafeMutableRawBufferPointer(buffer).fillRandomly()
            count = byteCount
        }
    }
}
