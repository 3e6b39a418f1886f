extension StoreKey {
    /// A credential of the store's keyring. If neither file exists, opening makes both.
    ///
    /// ```swift
    /// let store = try await Store(path: "notes.db", key: .keyring(.passphrase(text)))
    /// ```
    ///
    /// - Parameters:
    ///   - credential: Opens a slot of the keyring, or gets the first slot of a new one.
    ///   - acceptsOlderFile: Whether to open a file that is older than its keyring, such as a
    ///     restored copy.
    ///   - keepsRoot: Whether the store keeps the root key in locked memory while it is open. The
    ///     verbs that change slots need it.
    /// - Returns: The key. Opening with it throws `.wrongKey` if no slot is for the credential;
    ///   `.keyringMissing`, `.keyringDamaged`, `.keyringMismatch`, `.olderFile`, `.tooCostly`; and
    ///   `.notFound` if only the keyring exists.
    public static func keyring(
        _ credential: borrowing KeyCredential, acceptsOlderFile: Bool = false,
        keepsRoot: Bool = true
    ) -> StoreKey {
        StoreKey(
            secret: credential.secret.copy(),
            form: .keyring(
                KeyringUse(
                    kind: credential.kind.rawValue, slotID: credential.slotID,
                    acceptsOlderFile: acceptsOlderFile, keepsRoot: keepsRoot)))
    }

    /// The credential of a key that opens a keyring; `nil` for a passphrase or a raw key.
    borrowing func credential() -> KeyCredential? {
        guard let use = keyringUse, let kind = KeyringSlot.Kind(rawValue: use.kind) else {
            return nil
        }
        return KeyCredential(
            kind: kind, secret: withUnsafeBytes { SecretBytes(copying: $0) }, slotID: use.slotID)
    }
}
