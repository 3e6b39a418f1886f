import Crypto

/// The text forms of a recipient's two keys, which `coffer key make-identity` writes.
extension KeyCredential {
    /// Whether a text is the letters of a recovery key, a root backup or an identity, without a
    /// slip.
    package static func areLetters(_ text: UnsafeRawBufferPointer) -> Bool {
        [KeyLetters.recoveryKey, .rootBackup, .identity].contains { kind in
            let secret = try? KeyBox(kind.secret(text))
            return secret != nil
        }
    }

    /// The private key of a recipient in letters: `IDENTITY-`, then 56 letters and digits.
    ///
    /// ```swift
    /// let letters = try Data(contentsOf: URL(filePath: "/run/secrets/billing.identity"))
    /// let store = try await Store(path: "notes.db", key: .keyring(.identity(letters: letters)))
    /// ```
    ///
    /// - Parameter letters: In either case, with or without dashes and one newline at the end.
    /// - Throws: `StoreError` `.misuse` for a slip, or for letters of another kind.
    public static func identity(
        letters: some Collection<UInt8>
    ) throws(StoreError) -> KeyCredential {
        KeyCredential(kind: .recipient, secret: try KeyLetters.identity.secret(line: letters))
    }

    /// A new private key of the system's secure generator.
    package static func newIdentity() -> KeyCredential {
        KeyCredential(kind: .recipient, secret: .random(byteCount: secretByteCount))
    }

    /// Lends the letters of an identity.
    package borrowing func withIdentityLetters<R>(
        _ body: (UnsafeRawBufferPointer) throws -> R
    ) rethrows -> R {
        try KeyLetters.identity.withText(of: secret, body)
    }

    /// The public key of an identity in letters, which is not secret.
    ///
    /// - Throws: `.misuse` for a private key of a wrong size.
    package borrowing func recipientText() throws(StoreError) -> String {
        let key = SecretBytes(try publicKey())
        return KeyLetters.recipient.withText(of: key) { String(decoding: $0, as: UTF8.self) }
    }

    /// The fingerprint of the public key of an identity, as the slot of it has.
    ///
    /// - Throws: `.misuse` for a private key of a wrong size.
    package borrowing func recipientFingerprint() throws(StoreError) -> String {
        KeyringSlot.fingerprint(of: try publicKey())
    }
}

extension NewSlot {
    /// A slot for a recipient whose public key is given in letters: `RECIPIENT-`, then 56 letters
    /// and digits.
    ///
    /// - Parameter letters: In either case, with or without dashes and one newline at the end.
    /// - Throws: `StoreError` `.misuse` for a slip, or for letters of another kind. A private key
    ///   is refused, because the keyring shows the public key to everybody.
    public static func recipient(letters: some Collection<UInt8>) throws(StoreError) -> NewSlot {
        let key = try KeyLetters.recipient.secret(line: letters)
        return .recipient(key.withUnsafeBytes { [UInt8]($0) })
    }
}

extension KeyLetters {
    /// The secret of letters with at most one newline after them.
    fileprivate func secret(line: some Collection<UInt8>) throws(StoreError) -> SecretBytes {
        let text = SecretBytes(line)
        return try text.withUnsafeBytes { (bytes) throws(StoreError) -> SecretBytes in
            var end = bytes.count
            if end > 0, bytes[end - 1] == UInt8(ascii: "\n") { end -= 1 }
            if end > 0, bytes[end - 1] == UInt8(ascii: "\r") { end -= 1 }
            return try secret(UnsafeRawBufferPointer(rebasing: bytes[..<end]))
        }
    }
}
