import Crypto
import CryptoExtras

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A secret that opens a keyring: a passphrase, a key file, a recovery key, a secret that a service
/// has unwrapped, or the private key of a recipient.
///
/// ```swift
/// let store = try await Store(path: "notes.db", key: .keyring(.passphrase(text)))
/// ```
///
/// The credential has one owner and is never printed. Its bytes live in locked memory and are
/// zeroed when it ends. The `String`, `Data` or array that it was made from belongs to the caller
/// and is not wiped. A secret of a wrong size throws `.misuse` where it is used.
public struct KeyCredential: ~Copyable, Sendable {
    /// Which slots it opens.
    let kind: KeyringSlot.Kind
    /// The bytes of the secret: a passphrase has any number, every other kind has 32. A recipient's
    /// secret is its private key.
    let secret: SecretBytes
    /// The slot that an external secret is for.
    let slotID: UInt16?

    /// Bytes of every secret but a passphrase.
    static let secretByteCount = 32

    init(kind: KeyringSlot.Kind, secret: consuming SecretBytes, slotID: UInt16? = nil) {
        self.kind = kind
        self.secret = secret
        self.slotID = slotID
    }

    /// A passphrase that a person types.
    ///
    /// - Parameter text: Its UTF-8 bytes are used as they are, without Unicode normalisation.
    public static func passphrase(_ text: String) -> KeyCredential { passphrase(text.utf8) }

    /// The bytes of a passphrase, in any encoding.
    ///
    /// - Parameter bytes: Must not be empty. NULs are significant, also at the end.
    public static func passphrase(_ bytes: some Collection<UInt8>) -> KeyCredential {
        KeyCredential(kind: .passphrase, secret: SecretBytes(bytes))
    }

    /// The 32 bytes of a key file.
    public static func keyFile(_ bytes: some Collection<UInt8>) -> KeyCredential {
        KeyCredential(kind: .keyFile, secret: SecretBytes(bytes))
    }

    /// A recovery key as a person types it: in either case, with or without spaces and dashes.
    ///
    /// - Throws: `StoreError` `.misuse` for a slip, which the last letters show, and for a root
    ///   backup.
    public static func recoveryKey(_ text: String) throws(StoreError) -> KeyCredential {
        try recoveryKey(text.utf8)
    }

    /// The letters and digits of a recovery key, as bytes that the caller can wipe.
    ///
    /// - Throws: As the other form.
    public static func recoveryKey(
        _ text: some Collection<UInt8>
    ) throws(StoreError) -> KeyCredential {
        let letters = SecretBytes(text)
        let secret = try letters.withUnsafeBytes { (bytes) throws(StoreError) in
            try KeyLetters.recoveryKey.secret(bytes)
        }
        return KeyCredential(kind: .recoveryKey, secret: secret)
    }

    /// The 32 bytes that a service has unwrapped from the blob of a slot.
    ///
    /// - Parameters:
    ///   - bytes: The 32 bytes.
    ///   - slot: The number of that slot.
    public static func external(_ bytes: some Collection<UInt8>, slot: UInt16) -> KeyCredential {
        KeyCredential(kind: .external, secret: SecretBytes(bytes), slotID: slot)
    }

    /// The 32 bytes of the private key of a recipient, of X25519
    /// ([RFC 7748](https://www.rfc-editor.org/rfc/rfc7748)).
    public static func identity(_ privateKey: some Collection<UInt8>) -> KeyCredential {
        KeyCredential(kind: .recipient, secret: SecretBytes(privateKey))
    }

    /// Returns a second credential with the same bytes, in locked memory of its own.
    public borrowing func copy() -> KeyCredential {
        KeyCredential(kind: kind, secret: secret.copy(), slotID: slotID)
    }

    /// Checks the number of bytes.
    ///
    /// - Throws: `.misuse`, with the number of the bytes and none of them.
    borrowing func check() throws(StoreError) {
        let byteCount = secret.byteCount
        guard kind == .passphrase ? byteCount > 0 : byteCount == Self.secretByteCount else {
            throw Self.wrongByteCount(kind, byteCount)
        }
    }

    /// The public key of an identity.
    ///
    /// - Throws: `.misuse` for a private key of a wrong size.
    borrowing func publicKey() throws(StoreError) -> [UInt8] {
        try check()
        return [UInt8](try identity().publicKey.rawRepresentation)
    }

    fileprivate borrowing func identity() throws(StoreError) -> Curve25519.KeyAgreement.PrivateKey {
        do {
            return try secret.withUnsafeBytes { try .init(rawRepresentation: $0) }
        } catch {
            throw StoreError(
                .misuse, "an identity has 32 bytes",
                hint: "Pass the bytes of an X25519 private key, decoded.", cause: error)
        }
    }

    static func wrongByteCount(_ kind: KeyringSlot.Kind, _ byteCount: Int) -> StoreError {
        guard kind != .passphrase else {
            return
                StoreError(.misuse, "the passphrase is empty", hint: "Pass at least one character.")
        }
        let name =
            switch kind {
            case .passphrase: "a passphrase"
            case .keyFile: "a key file"
            case .recoveryKey: "a recovery key"
            case .external: "an external secret"
            case .recipient: "a key of a recipient"
            }
        return StoreError(
            .misuse, "\(name) has \(secretByteCount) bytes, and this one has \(byteCount)",
            hint: "Decode letters or hex digits to bytes first.")
    }
}

/// The root key of a keyring, the number of the slot that was opened, and the slot's secret.
struct UnlockedKeyring: ~Copyable {
    let area: KeyringArea
    let root: RootKey
    let slotID: UInt16
    let secret: SlotSecret
}

extension KeyringAreas {
    /// Unwraps the root of the current area, as `KeyringArea.unlocked`. Of two areas of one
    /// generation the first one that opens counts.
    func unlocked(
        by credential: borrowing KeyCredential, memoryMax: Int
    ) throws(StoreError) -> UnlockedKeyring {
        for area in current.dropLast() {
            do throws(StoreError) {
                return try area.unlocked(by: credential, memoryMax: memoryMax)
            } catch {
                // The other area may open.
                continue
            }
        }
        return try current[current.count - 1].unlocked(by: credential, memoryMax: memoryMax)
    }
}

extension KeyringArea {
    /// Unwraps the root by a credential, and authenticates the whole area with it.
    ///
    /// - Parameters:
    ///   - credential: A passphrase is derived once per salt and cost, however many slots have
    ///     them.
    ///   - memoryMax: The most memory that a derivation may take, in bytes.
    /// - Throws: `.wrongKey` if no slot is for the credential; `.keyringDamaged` if a slot is and
    ///   something was changed; `.tooCostly`, before anything is derived.
    func unlocked(
        by credential: borrowing KeyCredential, memoryMax: Int
    ) throws(StoreError) -> UnlockedKeyring {
        try credential.check()
        return try authenticated(try unwrapped(by: credential, memoryMax))
    }

    /// Authenticates the whole area with the root of an opened slot.
    ///
    /// - Throws: `.keyringDamaged` if something was changed without the root.
    func authenticated(
        _ found: consuming UnlockedKeyring
    ) throws(StoreError) -> UnlockedKeyring {
        guard isAuthentic(under: found.root) else {
            throw Self.damaged("somebody without its root key has changed it")
        }
        try requireOwnNames(found.root)
        return found
    }

    /// Compares the stored ids of root and data key with the keys.
    ///
    /// Otherwise a stranger could wrap another root for a recipient, and store the id of the right
    /// root with it.
    private func requireOwnNames(_ root: borrowing RootKey) throws(StoreError) {
        let dataKey = root.dataKey(epoch: content.epoch, id: content.id)
        guard content.rootID == root.id(for: content.id), content.keyID == dataKey.id().bytes else {
            throw Self.damaged("the ids of its keys belong to other keys")
        }
    }

    private func unwrapped(
        by credential: borrowing KeyCredential, _ memoryMax: Int
    ) throws(StoreError) -> UnlockedKeyring {
        switch credential.kind {
        case .passphrase: return try unwrapped(byPassphrase: credential.secret, memoryMax)
        case .recipient: return try unwrapped(byIdentity: credential)
        case .keyFile, .recoveryKey, .external:
            for slot in content.slots
            where slot.kind == credential.kind && [slot.id, nil].contains(credential.slotID) {
                if let root = try slot.root(by: credential.secret, id: content.id) {
                    return UnlockedKeyring(
                        area: self, root: root, slotID: slot.id,
                        secret: SlotSecret(slot.kind, of: slot.id, credential.secret.copy()))
                }
            }
            throw noSlot
        }
    }

    private func unwrapped(
        byPassphrase text: borrowing SecretBytes, _ memoryMax: Int
    ) throws(StoreError) -> UnlockedKeyring {
        let slots = content.slots.filter { $0.kind == .passphrase }
        for slot in slots { try slot.cost?.check(memoryMax: memoryMax) }
        var tried: [Derivation] = []
        for slot in slots {
            guard let derivation = Derivation(of: slot), !tried.contains(derivation) else {
                continue
            }
            tried.append(derivation)
            let secret = try derivation.secret(of: text)
            for slot in slots where Derivation(of: slot) == derivation {
                if let root = try slot.root(by: secret, id: content.id) {
                    return UnlockedKeyring(
                        area: self, root: root, slotID: slot.id,
                        secret: SlotSecret(.passphrase, of: slot.id, secret.copy()))
                }
            }
        }
        throw noSlot
    }

    private func unwrapped(
        byIdentity credential: borrowing KeyCredential
    ) throws(StoreError) -> UnlockedKeyring {
        let identity = try credential.identity()
        let publicKey = [UInt8](identity.publicKey.rawRepresentation)
        guard
            let slot = content.slots.first(where: { $0.kind == .recipient && $0.blob == publicKey })
        else { throw noSlot }
        return UnlockedKeyring(
            area: self, root: try slot.root(by: identity, id: content.id), slotID: slot.id,
            secret: SlotSecret(.recipient, of: slot.id, credential.secret.copy()))
    }

    var noSlot: StoreError {
        StoreError(
            .wrongKey, "no slot of the keyring is for this credential",
            hint: "The keyring's list of slots tells which kinds of credentials open it.")
    }
}

/// The salt and the cost of a passphrase's derivation, which slots share.
struct Derivation: Hashable {
    let salt: [UInt8]
    let cost: KeyCost

    init(salt: [UInt8], cost: KeyCost) {
        self.salt = salt
        self.cost = cost
    }

    /// `nil` for a slot without a passphrase.
    init?(of slot: KeyringSlot) {
        guard let cost = slot.cost else { return nil }
        self.init(salt: slot.derivationSalt, cost: cost)
    }

    /// The secret that the slots of a passphrase wrap the root by.
    ///
    /// The passphrase is hashed first, because scrypt takes two texts for equal that differ only in
    /// NULs at their end. `check(memoryMax:)` of the cost must have passed.
    ///
    /// - Throws: `.engine` if the crypto library fails.
    /// - Complexity: As the cost tells; it blocks the thread.
    func secret(of passphrase: borrowing SecretBytes) throws(StoreError) -> SecretBytes {
        let hashed = SecretBytes(byteCount: SHA256.byteCount) { bytes in
            var hash = SHA256()
            hash.update(data: Array("coffer1 pass".utf8))
            passphrase.withUnsafeBytes { hash.update(bufferPointer: $0) }
            hash.finalize().withUnsafeBytes { bytes.copyMemory(from: $0) }
        }
        do {
            let byteCount = KeyCredential.secretByteCount
            let derived = try hashed.withUnsafeBytes { bytes in
                try KDF.Scrypt.deriveKey(
                    from: bytes.bindMemory(to: UInt8.self), salt: salt, outputByteCount: byteCount,
                    rounds: 1 << Int(cost.log2N), blockSize: Int(KeyCost.blockSize),
                    parallelism: Int(cost.parallelism))
            }
            return SecretBytes(copying: derived, byteCount: byteCount)
        } catch {
            throw StoreError(.engine, "the passphrase could not be derived", cause: error)
        }
    }
}
