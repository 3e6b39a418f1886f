extension StoreKey {
    /// The bytes of the key as a credential of a keyring.
    ///
    /// - Parameters:
    ///   - kind: How the bytes are read: a recovery key and a recipient's identity are letters.
    ///   - slot: The slot of an external secret.
    /// - Throws: `.misuse` for letters with a slip, or of another kind.
    package borrowing func credential(
        of kind: KeySlot.Kind, slot: KeySlot.ID? = nil
    ) throws(StoreError) -> KeyCredential {
        try withUnsafeBytes { (bytes) throws(StoreError) -> KeyCredential in
            switch kind {
            case .passphrase: .passphrase(bytes)
            case .keyFile: .keyFile(bytes)
            case .recoveryKey: try .recoveryKey(bytes)
            case .recipient: try .identity(letters: bytes)
            default: KeyCredential(kind: .external, secret: SecretBytes(bytes), slotID: slot)
            }
        }
    }
}
