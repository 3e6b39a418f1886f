import Foundation
import Testing

@testable import Coffer

@Suite struct CryptoResidueTests {
    @Test func `the value and the error of the body come back`() {
        #expect(CryptoResidue.wiped { 7 } == 7)
        let error = #expect(throws: StoreError.self) {
            try CryptoResidue.wiped { () throws(StoreError) in throw StoreError(.io, "stopped") }
        }
        #expect(error?.code == .io)
    }

    /// swift-crypto's PBKDF2 leaves the derived key in a freed block: it was seen in a core image.
    @Test(arguments: [32, 40, 64, 96, 128, 160, 256])
    func `what the body freed is overwritten`(byteCount: Int) throws {
        let freed = try CryptoResidue.wiped {
            let block = try #require(malloc(byteCount))
            memset(block, 0xa5, byteCount)
            free(block)
            return UInt(bitPattern: block)
        }
        // The allocator may return another block; then there is nothing to see.
        let again = try #require(malloc(byteCount))
        defer { free(again) }
        guard UInt(bitPattern: again) == freed else { return }
        let bytes = UnsafeRawBufferPointer(start: again, count: byteCount)
        #expect(!bytes.contains(0xa5))
    }
}
