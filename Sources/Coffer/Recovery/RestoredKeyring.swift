/// The keyring of a file that a backup restores.
struct RestoredKeyring {
    /// Made beside the restored file; `nil` if the keyring that is there stays, or none is needed.
    let area: KeyringArea?
    /// Whether the keyring that is there goes with the file that is replaced.
    let movesOld: Bool
    /// The keyring that stays; the file that is replaced gets a copy.
    let kept: KeyringArea?

    /// A keyring of the backup's own root stays: its slots are the newer ones, and a credential
    /// that was removed stays out. A keyring of another root goes with the file that it is for.
    ///
    /// - Throws: `.busy` if another process changes the keyring; `.io`, `.full`, `.readOnly`.
    init(of backup: StoreFile, at file: FileLocation) throws(StoreError) {
        let own = CopyKey(of: backup).keyring
        let old = KeyringFile(of: file)
        guard old.exists else {
            (area, movesOld, kept) = (own, false, nil)
            return
        }
        let areas = try? old.areas()
        guard let keyring = backup.keyring, let own else {
            // A keyring that gives this very key may have been opened around.
            let isItsOwn = areas?.current.first?.content.id == backup.cipher.key.salt
            (area, movesOld, kept) = (nil, !isItsOwn, isItsOwn ? areas?.current.first : nil)
            return
        }
        guard let root = try? keyring.root(), let current = areas?.authentic(under: root.key) else {
            (area, movesOld, kept) = (own, true, nil)
            return
        }
        (area, movesOld, kept) = (nil, false, current)
        guard current.content.epoch != own.content.epoch else { return }
        // Otherwise the restored file would be taken for an older copy. The file that is there now
        // is found again under a higher epoch, should it stay.
        _ = try KeyringLock(old, timeout: keyring.timeout).change(under: root.key) { content in
            content.epoch = own.content.epoch
            content.keyID = own.content.keyID
            content.highestEpoch = max(content.highestEpoch, own.content.highestEpoch)
        }
    }
}
