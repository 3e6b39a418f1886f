import Coffer
import Crypto

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The keys of a replica, all derived from the data key of the file, or from the root of its
/// keyring: nothing else opens it.
///
/// Each object has a key of its own, derived from its name and a random seed. Owners that race for
/// a slot seal different bytes for it, and the remote sees those of the loser too, so neither a key
/// nor a nonce may follow from the slot alone.
final class ReplicaKeys: Sendable {
    private let secret: SecretBytes
    /// The replica's random number.
    let replica: [UInt8]
    /// The public name of the key in this replica: 8 bytes.
    let id: [UInt8]
    /// An HMAC state with the key of the digest and no data; copied for each page.
    private let digest: HMAC<SHA256>
    /// The hint of the error for a record under another key.
    let otherKeyHint: String

    /// - Parameters:
    ///   - secret: The subkey of the file's data key, or of the root.
    ///   - replica: The replica's random number: 16 bytes.
    ///   - otherKeyHint: The hint of the error for a record under another key.
    init(
        _ secret: consuming SecretBytes, replica: [UInt8],
        otherKeyHint: String = "Check the passphrase or the raw key. If the store got another key "
            + "since, this replica needs the former one."
    ) {
        self.otherKeyHint = otherKeyHint
        id = secret.expanded(Array("key id".utf8) + replica, byteCount: 8).withUnsafeBytes(
            Array.init)
        digest = HMAC<SHA256>(
            key: secret.expanded(Array("digest".utf8) + replica).symmetricKey())
        self.secret = secret
        self.replica = replica
    }

    // MARK: Objects

    /// A seed that is new for each content: a cloned machine, whose random numbers repeat, does not
    /// repeat a key for another content.
    func newSeed(for content: ReplicaRecord.Content) -> [UInt8] {
        let key = secret.expanded(Array("seed".utf8) + replica).symmetricKey()
        var code = HMAC<SHA256>(key: key)
        code.update(data: [UInt8].random(byteCount: 32))
        var hash = SHA256()
        hash.update(data: content.summary)
        hash.update(data: content.body)
        code.update(data: hash.finalize().withUnsafeBytes(Array.init))
        return Array(code.finalize())
    }

    /// A part of an object that is encrypted by itself, with a key of its own.
    enum Part: String {
        case summary
        case body
    }

    /// Encrypts a part of an object, and adds ciphertext and tag to it.
    ///
    /// The nonce is zero: each key seals one content.
    ///
    /// - Parameters:
    ///   - object: All bytes of the object before the part, which are authenticated too.
    ///   - seed: New for this content.
    func seal(
        _ content: [UInt8], _ part: Part, of name: String, behind object: inout [UInt8],
        seed: [UInt8]
    ) throws(StoreError) {
        do {
            let box = try AES.GCM.seal(
                content, using: key(part, name, seed), nonce: Self.nonce(),
                authenticating: Array(name.utf8) + object)
            object.reserveCapacity(object.count + content.count + Self.overhead)
            object += box.ciphertext
            object += box.tag
        } catch {
            throw StoreError(.engine, "a record could not be encrypted", cause: error)
        }
    }

    /// A part of an object; `nil` if the bytes are not what a holder of the key wrote there.
    func open(
        _ sealed: ArraySlice<UInt8>, _ part: Part, of name: String, after before: [UInt8],
        seed: [UInt8]
    ) -> [UInt8]? {
        guard sealed.count >= Self.overhead else { return nil }
        let content = try? AES.GCM.open(
            AES.GCM.SealedBox(
                nonce: Self.nonce(), ciphertext: sealed.dropLast(Self.overhead),
                tag: sealed.suffix(Self.overhead)),
            using: key(part, name, seed), authenticating: Array(name.utf8) + before)
        return content.map(Array.init)
    }

    /// Bytes that sealing adds: the tag.
    static let overhead = 16

    private func key(_ part: Part, _ name: String, _ seed: [UInt8]) -> SymmetricKey {
        secret.expanded(Array(part.rawValue.utf8) + replica + seed + Array(name.utf8))
            .symmetricKey()
    }

    private static func nonce() throws -> AES.GCM.Nonce {
        try AES.GCM.Nonce(data: [UInt8](repeating: 0, count: 12))
    }

    // MARK: Pages

    /// The part of a page in the digest of the file.
    ///
    /// - Parameter tag: The first 16 bytes of the page's MAC, which names the content: each write
    ///   of a page encrypts it with a new random vector. Zeros for a page without a MAC.
    func digest(ofPage number: Int, tag: ArraySlice<UInt8>) -> UInt128 {
        var code = digest
        withUnsafeBytes(of: UInt32(truncatingIfNeeded: number).bigEndian) {
            code.update(data: $0)
        }
        tag.withUnsafeBytes { code.update(data: $0) }
        // A generic initializer of another module would take three times as long as the HMAC.
        return code.finalize().withUnsafeBytes {
            UInt128(bigEndian: $0.loadUnaligned(as: UInt128.self))
        }
    }
}
