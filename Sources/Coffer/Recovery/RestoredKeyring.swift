/// Decides which keyring a restored store gets.
struct RestoredKeyring {
    /// The keyring to make; `nil` if the existing one stays, or the backup has none.
    let area: KeyringArea?
    /// Whether the existing keyring goes with the replaced file.
    let movesOld: Bool
    /// The existing keyring, if it stays. The replaced file gets a copy of it.
    let kept: KeyringArea?
    private let backup: StoreFile
    private let old: KeyringFile

    /// A keyring with the root of the backup stays. Its slots are newer, so a removed credential
    /// stays out. A damaged keyring, or one with another root, goes with the replaced file.
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
            let areas = try Self.areas(of: old)
            // The backup may have been opened with the data key that the keyring names. Any other
            // key of the same salt may be of a time before the keyring.
            let current = areas?.current.first
            let isItsOwn =
                current?.content.id == backup.cipher.key.salt
                && current?.content.keyID == backup.cipher.key.id().bytes
            (area, movesOld, kept) = (nil, !isItsOwn, isItsOwn ? current : nil)
            return
        }
        let areas = try Self.areas(of: old)
        var current = areas?.authentic(under: try keyring.root().key)
        // A backup that is still under the former root needs a keyring that has it.
        if current?.content.rootID != keyring.rootID { current = nil }
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

    /// Records the epoch of the backup in a keyring that stays, because opening would refuse the
    /// restored file as an older copy. If the restore fails, opening finds the epoch of the present
    /// file again.
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
