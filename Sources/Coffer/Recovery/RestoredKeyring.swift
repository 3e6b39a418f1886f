/// The keyring of a file that a backup restores.
struct RestoredKeyring {
    /// Made next to the restored file; `nil` if the keyring that is there stays, or none is needed.
    let area: KeyringArea?
    /// Whether the keyring that is there goes with the file that is replaced.
    let movesOld: Bool
    /// The keyring that stays; the file that is replaced gets a copy.
    let kept: KeyringArea?
    private let backup: StoreFile
    private let old: KeyringFile

    /// A keyring of the backup's own root stays: its slots are the newer ones, and a credential
    /// that was removed stays out. A keyring of another root, or a damaged one, goes with the file
    /// that it is for.
    ///
    /// - Throws: `.misuse` if there is a keyring, and the backup was opened without keeping its
    ///   root; `.needsNewerProgram`, `.readOnly`, `.io` if the keyring cannot be read.
    init(of backup: StoreFile, at file: FileLocation) throws(StoreError) {
        let old = KeyringFile(of: file)
        (self.backup, self.old) = (backup, old)
        let own = try CopyKey(of: backup).keyring
        guard old.exists else {
            (area, movesOld, kept) = (own, false, nil)
            return
        }
        guard let keyring = backup.keyring else {
            let areas = try? old.areas()
            // The keyring's salt is the backup's: the backup may have been opened by its data key.
            let current = areas?.current.first
            let isItsOwn = current?.content.id == backup.cipher.key.salt
            (area, movesOld, kept) = (nil, !isItsOwn, isItsOwn ? current : nil)
            return
        }
        let areas = try Self.areas(of: old)
        let current = areas?.authentic(under: try keyring.root().key)
        (area, movesOld, kept) = (current == nil ? own : nil, current == nil, current)
    }

    /// Both areas; `nil` for a damaged keyring.
    private static func areas(of file: KeyringFile) throws(StoreError) -> KeyringAreas? {
        do throws(StoreError) {
            return try file.areas()
        } catch  where [.keyringDamaged, .tooCostly].contains(error.code) {
            return nil
        }
    }

    /// Records the epoch of the backup in a keyring that stays: opening would take the restored
    /// file for an older copy. The file that is there now is found again under its higher epoch,
    /// should it stay.
    ///
    /// - Throws: As `KeyringLock`.
    func recordEpoch() throws(StoreError) {
        guard let kept, let keyring = backup.keyring, kept.content.epoch != keyring.epoch else {
            return
        }
        let (epoch, keyID) = (keyring.epoch, backup.cipher.key.id().bytes)
        let lock = try KeyringLock(old, timeout: keyring.timeout)
        try lock.change(under: try keyring.root().key) { content in
            content.epoch = epoch
            content.keyID = keyID
            content.highestEpoch = max(content.highestEpoch, epoch)
        }
    }
}
