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
    /// The slots are those of the keyring's file. If it is missing, damaged or another root's, or
    /// the root is not kept, they are those that the store has authenticated last.
    ///
    /// - Throws: `.tooManyFiles`, `.needsNewerProgram` if the keyring cannot be read; `.misuse` if
    ///   the file was opened in another epoch than its keyring's, and the root is not kept.
    init(of file: StoreFile) throws(StoreError) {
        cipher = file.cipher
        guard let open = file.keyring else {
            keyring = nil
            return
        }
        let area = try open.newest()
        guard area.content.epoch != open.epoch else {
            keyring = area
            return
        }
        let root = try open.root()
        // The file was opened in another epoch than its keyring says, and so is the copy.
        var content = area.content
        content.epoch = open.epoch
        content.highestEpoch = max(content.highestEpoch, open.epoch)
        content.keyID = cipher.key.id().bytes
        keyring = try KeyringArea(content, under: root.key)
    }
}
