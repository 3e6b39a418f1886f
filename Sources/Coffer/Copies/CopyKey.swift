/// The key of a copy, and the keyring that the copy gets.
struct CopyKey {
    let cipher: FileCipher
    /// `nil` for a copy without a keyring.
    let keyring: KeyringArea?

    init(_ cipher: FileCipher, _ keyring: KeyringArea?) {
        self.cipher = cipher
        self.keyring = keyring
    }

    /// Makes a new key. For a credential, makes a keyring with a new root and one slot.
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

    /// Takes the key of an open store, with every slot of its keyring.
    ///
    /// The slots come from the keyring's file. If the store cannot read or authenticate the file,
    /// they are the slots that it authenticated last.
    ///
    /// - Throws: `.tooManyFiles`, `.needsNewerProgram` if the keyring cannot be read; `.busy` if
    ///   another process has replaced the root, which this store has not met yet; `.misuse` if
    ///   the file was opened in another epoch than its keyring's, and the root is not kept.
    init(of file: StoreFile) throws(StoreError) {
        // Another process may rotate the key meanwhile.
        let (cipher, open) = file.keyOfKeyring
        self.cipher = cipher
        guard let open else {
            keyring = nil
            return
        }
        let area = try open.newest()
        let isOfRoot = area.content.rootID == open.rootID
        guard isOfRoot || area.content.formerEpoch == open.epoch else {
            throw StoreError(
                .busy, "another process is replacing the root key of \(file.location.path)",
                hint: "Try again.")
        }
        guard isOfRoot, area.content.epoch != open.epoch else {
            // A keyring with the former root opens a copy that is under it.
            keyring = area
            return
        }
        let root = try open.root()
        // The copy has the epoch that the file was opened in, which its keyring does not say.
        var content = area.content
        content.epoch = open.epoch
        content.highestEpoch = max(content.highestEpoch, open.epoch)
        content.keyID = cipher.key.id().bytes
        keyring = try KeyringArea(content, under: root.key)
    }
}
