#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// What the crypto library leaves behind of a key in memory that it has given back.
///
/// swift-crypto 4.5.2 zeroes its `SymmetricKey` and its hash states. It zeroes neither the `Data`
/// that PBKDF2 fills ("This should be SecureBytes, but we can't use that here", in
/// `PBKDF2_boring.swift`), nor the padded copies of the key in `HMAC.init(key:)`, nor the AES key
/// schedule on the stack. <https://github.com/apple/swift-crypto/tree/4.5.2/Sources>
enum CryptoResidue {
    /// Sizes in bytes of the blocks that hold such bytes: 32 of a key up to a 128-byte HMAC
    /// block, plus the header of an array.
    private static let blockByteCounts = stride(from: 24, through: 264, by: 16)
    /// glibc keeps seven free blocks of a size per thread, and hands out the last one first.
    private static let blockCount = 7
    /// Chunks of 1024 bytes: 16 KiB are more than the frames of one call into the library.
    private static let stackChunkCount = 16

    /// Runs `body`, then overwrites the freed blocks and stack that it may have written to.
    ///
    /// This is the best that can be done from outside, not a proof: an allocator hands out again
    /// what the same thread freed last, and that is zeroed here. What the dynamic linker or a
    /// signal saves of the processor's registers stays out of reach.
    ///
    /// - Complexity: O(1); about 2 µs.
    static func wiped<R: ~Copyable, E: Error>(after body: () throws(E) -> R) throws(E) -> R {
        defer {
            wipeFreedBlocks()
            wipeFreedStack(chunkCount: stackChunkCount)
        }
        return try isolated(body)
    }

    /// Starts the frames of `body` where those of `wipeFreedStack(chunkCount:)` will start.
    @inline(never)
    private static func isolated<R: ~Copyable, E: Error>(_ body: () throws(E) -> R) throws(E) -> R {
        try body()
    }

    @inline(never)
    private static func wipeFreedBlocks() {
        withUnsafeTemporaryAllocation(of: UnsafeMutableRawPointer?.self, capacity: blockCount) {
            blocks in
            for byteCount in blockByteCounts {
                for index in blocks.indices {
                    blocks.initializeElement(at: index, to: malloc(byteCount))
                    UnsafeMutableRawBufferPointer(
                        start: blocks[index], count: blocks[index] == nil ? 0 : byteCount
                    ).wipe()
                }
                for block in blocks { free(block) }
            }
        }
    }

    /// Recurs, because only allocations of up to 1024 bytes are sure to stand on the stack.
    @inline(never)
    private static func wipeFreedStack(chunkCount: Int) {
        withUnsafeTemporaryAllocation(byteCount: 1024, alignment: 16) { chunk in
            chunk.wipe()
            if chunkCount > 1 { wipeFreedStack(chunkCount: chunkCount - 1) }
        }
    }
}
