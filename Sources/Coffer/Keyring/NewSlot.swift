import Crypto

/// A credential that gets a slot of a keyring. A `KeyCredential` opens the slot later.
///
/// ```swift
/// try store.keys.add(.passphrase(text), label: "ops")
/// try store.keys.add(.recipient(publicKey), label: "billing")
/// ```
///
/// The bytes live in locked memory and are zeroed when the value ends. A secret of a wrong size
/// throws `.misuse` where it is used.
public struct NewSlot: ~Copyable, Sendable {
    /// Wraps the secret of an external slot, and returns the wrapped form. Only the service can
    /// unwrap it.
    public typealias Wrap = @Sendable (_ secret: UnsafeRawBufferPointer) throws -> [UInt8]

    let kind: KeyringSlot.Kind
    /// A passphrase, or 32 bytes: random ones for an external slot, none for a recipient.
    let secret: SecretBytes
    /// Empty unless the slot is for a recipient.
    let publicKey: [UInt8]
    /// `nil` unless the slot is external.
    let wrap: Wrap?

    init(
        _ kind: KeyringSlot.Kind, _ secret: consuming SecretBytes, publicKey: [UInt8] = [],
        wrap: Wrap? = nil
    ) {
        self.kind = kind
        self.secret = secret
        self.publicKey = publicKey
        self.wrap = wrap
    }

    /// A slot for a passphrase that a person types.
    ///
    /// - Parameter text: Must not be empty. Its UTF-8 bytes are used as they are.
    public static func passphrase(_ text: String) -> NewSlot { passphrase(text.utf8) }

    /// A slot for the bytes of a passphrase, in any encoding.
    ///
    /// - Parameter bytes: Must not be empty. Copied once; wipe the source afterwards.
    public static func passphrase(_ bytes: some Collection<UInt8>) -> NewSlot {
        NewSlot(.passphrase, SecretBytes(bytes))
    }

    /// A slot for the bytes of a key file.
    ///
    /// - Parameter bytes: 32 random bytes. Copied once; wipe the source afterwards.
    public static func keyFile(_ bytes: some Collection<UInt8>) -> NewSlot {
        NewSlot(.keyFile, SecretBytes(bytes))
    }

    /// A slot for a recipient. Adding it needs only the public key.
    ///
    /// - Parameter publicKey: The 32 bytes of an X25519 public key
    ///   ([RFC 7748](https://www.rfc-editor.org/rfc/rfc7748)).
    public static func recipient(_ publicKey: some Collection<UInt8>) -> NewSlot {
        NewSlot(.recipient, SecretBytes([]), publicKey: Array(publicKey))
    }

    /// A slot for a secret that a service wraps, such as a KMS, a Vault or a TPM.
    ///
    /// - Parameter wrap: Gets 32 random bytes, which it must not keep. Returns the wrapped form, at
    ///   most 702 bytes.
    public static func external(_ wrap: @escaping Wrap) -> NewSlot {
        NewSlot(.external, .random(byteCount: KeyCredential.secretByteCount), wrap: wrap)
    }

    /// Returns a second value with the same secret, in locked memory of its own.
    public borrowing func copy() -> NewSlot {
        NewSlot(kind, secret.copy(), publicKey: publicKey, wrap: wrap)
    }

    /// A slot for a new recovery key.
    static func recoveryKey() -> NewSlot {
        NewSlot(.recoveryKey, .random(byteCount: KeyCredential.secretByteCount))
    }

    /// A slot for the credential itself, for the first slot of a new keyring.
    ///
    /// - Throws: `.misuse` for an external secret, because its wrapped form is not known here.
    package init(for credential: borrowing KeyCredential) throws(StoreError) {
        switch credential.kind {
        case .passphrase, .keyFile, .recoveryKey:
            self.init(credential.kind, credential.secret.copy())
        case .recipient:
            self.init(
                .recipient, SecretBytes([]), publicKey: try credential.publicKey())
        case .external:
            throw StoreError(
                .misuse, "an external secret opens no keyring that does not exist yet",
                hint: "Make the keyring with another credential, and add an external slot to it.")
        }
    }
}

extension NewSlot {
    /// Checks the numbers of bytes.
    borrowing func check() throws(StoreError) {
        let byteCount = kind == .recipient ? publicKey.count : secret.byteCount
        guard kind == .passphrase ? byteCount > 0 : byteCount == KeyCredential.secretByteCount
        else { throw KeyCredential.wrongByteCount(kind, byteCount) }
        if kind == .recipient { try requireSecrecy() }
    }

    /// Refuses a public key with which everybody shares the same secret.
    ///
    /// > "For X25519 and X448, public keys and Diffie-Hellman outputs MUST be validated … In
    /// > particular, recipients MUST check whether the Diffie-Hellman shared secret is the all-zero
    /// > value and abort if so." <https://www.rfc-editor.org/rfc/rfc9180#section-7.1.4>
    ///
    /// The crypto library does not check it, neither for the sender nor for the recipient.
    private borrowing func requireSecrecy() throws(StoreError) {
        let isShared: Bool
        do {
            let key = try Curve25519.KeyAgreement.PublicKey(rawRepresentation: publicKey)
            let secret = try Curve25519.KeyAgreement.PrivateKey()
                .sharedSecretFromKeyAgreement(with: key)
            isShared = secret.withUnsafeBytes { bytes in bytes.allSatisfy { $0 == 0 } }
        } catch {
            throw StoreError(
                .misuse, "the public key is not one of X25519",
                hint: "Pass the 32 bytes of the recipient's X25519 public key.", cause: error)
        }
        guard !isShared else {
            throw StoreError(
                .misuse, "the public key is a point of low order: everybody could open the slot",
                hint: "Ask the recipient for another key, and where this one came from.")
        }
    }

    /// The wrapped form of an external secret.
    borrowing func wrapped() throws(StoreError) -> [UInt8] {
        let blob: [UInt8]
        do {
            let wrap = wrap
            blob = try secret.withUnsafeBytes { bytes in try wrap?(bytes) ?? [] }
        } catch {
            throw StoreError(
                .io, "the external secret could not be wrapped",
                hint: "The cause has the error of the service. Nothing was written.", cause: error)
        }
        guard blob.count <= KeyringSlot.maximumExtensionByteCount else {
            throw StoreError(
                .misuse,
                "a wrapped secret has at most \(KeyringSlot.maximumExtensionByteCount) bytes, "
                    + "and this one has \(blob.count)",
                hint: "Wrap the secret alone, without a certificate or a policy.")
        }
        return blob
    }
}
