import Crypto

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// The root of a keyring, wrapped by a secret or for a public key.
extension KeyringSlot {
    /// Wraps the root by a secret of 32 bytes, and records how to recognise the secret.
    ///
    /// - Parameters:
    ///   - id: The keyring's.
    ///   - nonce: 12 random bytes, never used twice for a secret and a slot salt.
    /// - Throws: `.engine` if the crypto library fails.
    mutating func wrap(
        _ root: borrowing RootKey, by secret: borrowing SecretBytes, id: [UInt8],
        nonce: [UInt8] = .random(byteCount: 12)
    ) throws(StoreError) {
        let keys = WrapKeys(secret, self)
        commitment = keys.commitment
        do {
            wrapped = try root.bytes.withUnsafeBytes { bytes in
                [UInt8](
                    try ChaChaPoly.seal(
                        bytes, using: keys.key, nonce: ChaChaPoly.Nonce(data: nonce),
                        authenticating: KeyringArea.bound(to: self, id: id)
                    ).combined)
            }
        } catch {
            throw StoreError(.engine, "the root key could not be wrapped", cause: error)
        }
    }

    /// The root, if the secret is the slot's; `nil` for another secret.
    ///
    /// - Throws: `.keyringDamaged` if the secret fits and the wrapped root does not.
    func root(by secret: borrowing SecretBytes, id: [UInt8]) throws(StoreError) -> RootKey? {
        let keys = WrapKeys(secret, self)
        guard keys.hasCommitment(commitment) else { return nil }
        return try opened { () throws in
            try ChaChaPoly.open(
                ChaChaPoly.SealedBox(combined: wrapped), using: keys.key,
                authenticating: KeyringArea.bound(to: self, id: id))
        }
    }

    /// Wraps the root for the public key of a recipient.
    ///
    /// - Throws: `.misuse` for bytes that are not a public key; `.engine` if the crypto library
    ///   fails.
    mutating func wrap(_ root: borrowing RootKey, id: [UInt8]) throws(StoreError) {
        do {
            var sender = try HPKE.Sender(
                recipientKey: Curve25519.KeyAgreement.PublicKey(rawRepresentation: blob),
                ciphersuite: .Curve25519_SHA256_ChachaPoly, info: Self.information(id))
            let sealed = try root.bytes.withUnsafeBytes { bytes in
                try sender.seal(
                    bytes.bindMemory(to: UInt8.self),
                    authenticating: KeyringArea.bound(to: self, id: id))
            }
            wrapped = [UInt8](sender.encapsulatedKey + sealed)
        } catch {
            throw StoreError(
                .misuse, "the root key could not be wrapped for this public key", cause: error)
        }
    }

    /// The root, for the identity of the recipient.
    ///
    /// - Throws: `.keyringDamaged` if the wrapped root does not open.
    func root(
        by identity: Curve25519.KeyAgreement.PrivateKey, id: [UInt8]
    ) throws(StoreError) -> RootKey {
        try opened { () throws in
            var recipient = try HPKE.Recipient(
                privateKey: identity, ciphersuite: .Curve25519_SHA256_ChachaPoly,
                info: Self.information(id), encapsulatedKey: Data(wrapped[..<32]))
            return try recipient.open(
                wrapped[32...], authenticating: KeyringArea.bound(to: self, id: id))
        }
    }

    private static func information(_ id: [UInt8]) -> Data {
        Data(Array("coffer1 recipient".utf8) + id)
    }

    /// The opened root in locked memory; the bytes of `open` are wiped.
    private func opened(_ open: () throws -> Data) throws(StoreError) -> RootKey {
        guard var bytes = try? open(), bytes.count == RootKey.byteCount else {
            throw KeyringArea.damaged("slot \(id) does not open, and its credential is right")
        }
        defer { bytes.withUnsafeMutableBytes { $0.wipe() } }
        return RootKey(bytes: SecretBytes(copying: bytes, byteCount: bytes.count))
    }

    /// 16 hex digits that name a public key or the blob of a service; `nil` for other kinds.
    var fingerprint: String? {
        kind == .recipient || kind == .external ? Self.fingerprint(of: blob) : nil
    }

    /// 16 hex digits that name the public key of a recipient, or the blob of a service.
    static func fingerprint(of blob: [UInt8]) -> String {
        KeyID(bytes: Array(SHA256.hash(data: blob).prefix(KeyID.byteCount))).description
    }
}

/// Two keys of one slot, derived from its secret: one wraps the root, the other is the slot's
/// commitment, by which the slot recognises the secret.
private struct WrapKeys: ~Copyable {
    private let wrapping: SecretBytes
    private let committing: SecretBytes

    init(_ secret: borrowing SecretBytes, _ slot: KeyringSlot) {
        let extracted = SecretBytes(
            copying: HKDF<SHA256>.extract(
                inputKeyMaterial: secret.symmetricKey(), salt: slot.slotSalt),
            byteCount: SHA256.byteCount)
        wrapping = extracted.expanded(Array("coffer1 wrap".utf8) + [slot.kind.rawValue])
        committing = extracted.expanded(Array("coffer1 commit".utf8) + [slot.kind.rawValue])
    }

    var key: SymmetricKey { wrapping.symmetricKey() }

    var commitment: [UInt8] { committing.withUnsafeBytes { [UInt8]($0) } }

    /// Compares in constant time.
    func hasCommitment(_ stored: [UInt8]) -> Bool {
        committing.isEqual(to: SecretBytes(copying: stored, byteCount: stored.count))
    }
}
