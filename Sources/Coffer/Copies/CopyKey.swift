/// The key of a copy, and the keyring that is made beside it.
struct CopyKey {
    let cipher: FileCipher
    /// `nil` for a key of its own.
    let keyring: KeyringArea?

    init(_ cipher: FileCipher, _ keyring: KeyringArea?) {
        self.cipher = cipher
        self.keyring = keyring
    }

    /// A new key. A credential of a keyring gets a new root, in which it has the only slot.
    ///
    /// - Throws: `.misuse` for an empty key, an external secret, or a secret of a wrong size;
    ///   `.tooCostly`.
    init(
        new key: borrowing StoreKey, profile: CipherProfile, _ configuration: Configuration
    ) throws(StoreError) {
        try key.check()
        guard let credential = key.credential() else {
            cipher = try FileCipher(new: key, profile: profile)
            keyring = nil
            return
        }
        let unlocked = try UnlockedKeyring.new(
            for: credential, profile: profile, state: .isInUse, configuration)
        let content = unlocked.area.content
        cipher = FileCipher(
            key: unlocked.root.dataKey(epoch: content.epoch, id: content.id), profile: profile)
        keyring = unlocked.area
    }

    /// The key of an open store, with every slot of its keyring.
    ///
    /// The slots are read again, if the store keeps the root; otherwise they are those that it has
    /// authenticated last.
    init(of file: StoreFile) {
        cipher = file.cipher
        keyring = file.keyring.map { (try? $0.current()) ?? $0.known }
    }
}
