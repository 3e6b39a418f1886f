import Foundation
import Testing

@testable import Coffer

@Suite struct SecretBytesTests {
    @Test(arguments: [0, 1, 16, 4095, 4096, 4097, 100_000])
    func `a secret of any size is lent as it was written`(byteCount: Int) {
        let expected = (0..<byteCount).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        let secret = SecretBytes(byteCount: byteCount) { $0.copyBytes(from: expected) }
        #expect(plainBytes(secret) == expected)
        let count = secret.byteCount
        #expect(count == byteCount)
    }

    @Test func `the bytes are zero before they are written`() {
        let secret = SecretBytes(byteCount: 5000) { $0[0] = 1 }
        #expect(plainBytes(secret) == [1] + [UInt8](repeating: 0, count: 4999))
    }

    @Test func `an initialiser that throws gives its error and no secret`() {
        let error = #expect(throws: StoreError.self) {
            _ = try SecretBytes(byteCount: 32) { bytes throws(StoreError) in
                bytes[0] = 1
                throw StoreError(.io, "stopped")
            }
        }
        #expect(error?.code == .io)
    }

    @Test func `a copy outlives its original`() {
        func copied() -> SecretBytes {
            let original = SecretBytes(byteCount: 3) { $0.copyBytes(from: [1, 2, 3]) }
            return original.copy()
        }
        #expect(plainBytes(copied()) == [1, 2, 3])
    }

    @Test func `every difference of one bit is seen, and a difference of length`() {
        let secret = SecretBytes(byteCount: 32) { $0[31] = 0xa5 }
        for bit in 0..<256 {
            let other = SecretBytes(byteCount: 32) {
                $0[31] = 0xa5
                $0[bit / 8] ^= 1 << UInt8(bit % 8)
            }
            // Compared outside of #expect, which would copy its operands.
            let isEqual = secret.isEqual(to: other)
            #expect(!isEqual)
        }
        let same = secret.copy()
        let shorter = SecretBytes(byteCount: 31) { _ in }
        let results = [secret.isEqual(to: same), secret.isEqual(to: shorter)]
        #expect(results == [true, false])
    }

    @Test func `wiping zeroes every byte and nothing next to them`() {
        var bytes = [UInt8](repeating: 0xff, count: 64)
        bytes.withUnsafeMutableBytes { UnsafeMutableRawBufferPointer(rebasing: $0[8..<56]).wipe() }
        let edge = [UInt8](repeating: 0xff, count: 8)
        #expect(bytes == edge + [UInt8](repeating: 0, count: 48) + edge)
        UnsafeMutableRawBufferPointer(start: nil, count: 0).wipe()
    }

    #if os(Linux)
    @Test func `the pages that a secret gives back hold nothing of it`() throws {
        // Reads memory that belongs to nobody, which a pointer must not.
        let memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC)
        try #require(memory >= 0)
        defer { close(memory) }
        func byte(_ index: Int) -> UInt8 { UInt8(truncatingIfNeeded: index &* 31 &+ index >> 8) }
        var seenCount = 0
        for _ in 0..<20 {
            let secret = SecretBytes(byteCount: 65_536) { bytes in
                for index in bytes.indices { bytes[index] = byte(index) }
            }
            let address = secret.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) }
            // Allocated first, because nothing that is allocated later may lie in the pages. The
            // second secret keeps them from being given back to the system.
            var left = [UInt8](repeating: 0, count: secret.byteCount)
            let above = SecretBytes(byteCount: 1) { $0[0] = 1 }
            _ = consume secret
            let readCount = pread(memory, &left, left.count, off_t(address))
            _ = consume above
            guard readCount == left.count else { continue }
            seenCount += 1
            let sameCount = left.indices.count { left[$0] == byte($0) }
            // One byte of 256 is the same by chance.
            #expect(sameCount < left.count / 16)
        }
        #expect(seenCount > 0, "no page could be looked at")
    }
    #endif

    @Test func `a secret can be read from many tasks`() async {
        let key = RawKey(bytes: SecretBytes(byteCount: 32) { $0[0] = 9 }, salt: [])
        let owner = Owner(key)
        await withTaskGroup(of: UInt8.self) { group in
            for _ in 0..<8 { group.addTask { owner.key.bytes.withUnsafeBytes { $0[0] } } }
            for await byte in group { #expect(byte == 9) }
        }
    }

    /// Shares one secret, as a pool of connections does.
    private final class Owner: Sendable {
        let key: RawKey
        init(_ key: consuming RawKey) { self.key = key }
    }
}
