import Crypto

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Encrypts chunks that spill to a disk, under a random key that is never written.
///
/// AES-256-GCM, with the chunk's number as its nonce. Each value has its own key, so a number that
/// is used once is a nonce that is used once. A changed or exchanged chunk does not open.
struct ChunkSealer: ~Copyable, Sendable {
    /// Bytes that sealing adds to a chunk: the tag.
    static let overhead = 16

    private let key = SecretBytes.random(byteCount: 32)

    /// Encrypts a chunk.
    ///
    /// - Parameter number: The chunk's number. It must never be reused for another chunk.
    /// - Returns: Ciphertext and tag.
    borrowing func seal(_ chunk: Data, number: UInt64) throws(StoreError) -> Data {
        do {
            let box = try AES.GCM.seal(chunk, using: symmetricKey, nonce: Self.nonce(number))
            return box.ciphertext + box.tag
        } catch {
            throw StoreError(.engine, "a chunk could not be encrypted", cause: error)
        }
    }

    /// The chunk with this number; `nil` if `sealed` is not the sealed form of that chunk.
    borrowing func open(_ sealed: Data, number: UInt64) -> Data? {
        guard sealed.count >= Self.overhead else { return nil }
        return try? AES.GCM.open(
            AES.GCM.SealedBox(
                nonce: Self.nonce(number), ciphertext: sealed.dropLast(Self.overhead),
                tag: sealed.suffix(Self.overhead)),
            using: symmetricKey)
    }

    private var symmetricKey: SymmetricKey { key.withUnsafeBytes { SymmetricKey(data: $0) } }

    private static func nonce(_ number: UInt64) throws -> AES.GCM.Nonce {
        try AES.GCM.Nonce(
            data: [0, 0, 0, 0] + withUnsafeBytes(of: number.bigEndian) { Array($0) })
    }
}
