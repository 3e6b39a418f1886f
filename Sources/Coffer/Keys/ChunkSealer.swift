import Crypto

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Encrypts chunks under a random key that is never written, for what is put aside on a disk.
///
/// AES-256-GCM, the chunk's number being its nonce. The key is of this value alone, so a nonce is
/// used once if a number is. A chunk that was changed, or stands in another's place, does not open.
struct ChunkSealer: ~Copyable, Sendable {
    /// How many bytes a sealed chunk has more.
    static let overhead = 16

    private let key = SecretBytes(byteCount: 32) { bytes in
        var generator = SystemRandomNumberGenerator()
        for index in bytes.indices { bytes[index] = generator.next() }
    }

    /// Encrypts a chunk: ciphertext and tag.
    ///
    /// - Parameter number: Never that of another chunk.
    borrowing func seal(_ chunk: Data, number: UInt64) throws(StoreError) -> Data {
        do {
            let box = try AES.GCM.seal(chunk, using: symmetricKey, nonce: Self.nonce(number))
            return box.ciphertext + box.tag
        } catch {
            throw StoreError(.engine, "a chunk could not be encrypted", cause: error)
        }
    }

    /// The chunk with this number; `nil` if these are not the bytes that it was sealed to.
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
