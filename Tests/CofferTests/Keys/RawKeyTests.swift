import Testing

@testable import Coffer

@Suite struct RawKeyTests {
    @Test func `the key text is 99 bytes of hex between quotes`() throws {
        let hex = "000102030405060708090a0b0c0d0e0f7f80818283848586f0f1f2f3f4f5f6ff"
        let salt = "ffeeddccbbaa99887766554433221100"
        let key = try KeyVectors.rawKey(hex: hex, salt: salt)
        let text = key.withKeyText { String(decoding: $0, as: UTF8.self) }
        #expect(text == "x'\(hex)\(salt)'")
        #expect(text.utf8.count == 99)
    }

    @Test func `every byte has its two digits`() throws {
        for byte in UInt8.min...UInt8.max {
            let bytes = SecretBytes(byteCount: 32) { $0[31] = byte }
            let key = RawKey(bytes: bytes, salt: [UInt8](repeating: byte, count: 16))
            let digits = (byte < 16 ? "0" : "") + String(byte, radix: 16)
            let text = key.withKeyText { String(decoding: $0, as: UTF8.self) }
            #expect(text.hasSuffix(String(repeating: digits, count: 17) + "'"))
        }
    }

    // From Python: hmac.digest(b"\1" * 32, b"coffer1 key id" + bytes(range(16)) + b"\1", "sha256")
    @Test func `the id is what HKDF-Expand gives, and depends on key and salt`() {
        func id(_ byte: UInt8, salt: [UInt8]) -> KeyID {
            let bytes = SecretBytes(byteCount: 32) { bytes in
                for index in bytes.indices { bytes[index] = byte }
            }
            return RawKey(bytes: bytes, salt: salt).id()
        }
        let salt = [UInt8](0..<16)
        #expect(id(1, salt: salt).description == "dc3422c8708c072d")
        #expect(id(1, salt: salt) == id(1, salt: salt))
        #expect(id(2, salt: salt) != id(1, salt: salt))
        #expect(id(1, salt: salt.reversed()) != id(1, salt: salt))
    }

    @Test func `an error passes through the key text`() throws {
        let key = RawKey(bytes: SecretBytes(byteCount: 32) { _ in }, salt: [])
        let error = #expect(throws: StoreError.self) {
            try key.withKeyText { _ throws(StoreError) in throw StoreError(.busy, "locked") }
        }
        #expect(error?.code == .busy)
    }

    @Test func `keys are compared without their salts`() {
        let key = RawKey(bytes: SecretBytes(byteCount: 32) { $0[5] = 1 }, salt: [1])
        let sameBytes = RawKey(bytes: SecretBytes(byteCount: 32) { $0[5] = 1 }, salt: [2])
        let other = RawKey(bytes: SecretBytes(byteCount: 32) { $0[5] = 2 }, salt: [1])
        let copy = key.copy()
        // Compared outside of #expect, which would copy its operands.
        let results = [
            key.isEqual(to: sameBytes), key.isEqual(to: copy), key.isEqual(to: other),
        ]
        #expect(results == [true, true, false])
        let salt = copy.salt
        #expect(salt == [1])
    }
}
