/// The root key of a keyring, and copies of the keyring.
// A caller in asynchronous code gets the asynchronous form of two that look alike.
// swift-format-ignore: AmbiguousTrailingClosureOverload
extension StoreKeys {
    /// Wipes the root key. The store goes on; the verbs that change slots throw `.misuse`.
    ///
    /// - Throws: `StoreError` `.misuse` for a store without a keyring.
    public func lock() throws { try open().forgetRoot() }

    /// Keeps the root key again, until ``lock()``.
    ///
    /// - Throws: `StoreError` `.wrongKey` if no slot is for the credential; `.keyringMismatch` if
    ///   the keyring is another store's by now; `.keyringMissing`, `.keyringDamaged`, `.tooCostly`;
    ///   `.misuse` for a store without a keyring.
    /// - Complexity: For a passphrase one derivation.
    public func unlock(_ credential: borrowing KeyCredential) throws {
        try open().unlock(credential)
    }

    /// Keeps the root key again, until ``lock()``.
    ///
    /// - Throws: As the synchronous form.
    public func unlock(_ credential: borrowing KeyCredential) async throws {
        let credential = KeyBox(credential.copy())
        try await Store.offPool { try unlock(credential.key) }
    }

    /// Lends the root key as text for paper: `ROOT-`, then 56 letters and digits in groups of four.
    ///
    /// `Keyring.rebuild` makes a lost keyring from it. The text gives access to every epoch of the
    /// store, and to every copy with the same root. The keyring counts each call before `show`
    /// runs.
    ///
    /// - Returns: What `show` returns.
    /// - Throws: As `add`; errors of `show`, after the call was counted.
    /// - Complexity: Two writes of 16 KiB, each synced.
    public func withRootBackup<T>(
        show: (_ letters: UnsafeRawBufferPointer) throws -> T
    ) throws -> T {
        try countRootBackup()
        return try KeyLetters.rootBackup.withText(of: open().root().key.bytes, show)
    }

    /// Lends the root key as text for paper.
    ///
    /// - Returns: What `show` returns.
    /// - Throws: As the synchronous form.
    public func withRootBackup<T>(
        show: (_ letters: UnsafeRawBufferPointer) async throws -> T
    ) async throws -> T {
        try await Store.offPool { try countRootBackup() }
        let root = try open().root()
        return try await KeyLetters.rootBackup.withText(of: root.key.bytes, waiting: show)
    }

    private func countRootBackup() throws {
        let now = now
        let count = try changeable().change { (content, _) throws(StoreError) in
            content.rootBackupCount = max(content.rootBackupCount, content.rootBackupCount &+ 1)
            content.lastRootBackup = now
            return content.rootBackupCount
        }
        core.pool.events.rootBackupBegins(count: Int(count))
    }

    /// Writes a copy of the keyring to a new file. The content comes from memory if the store
    /// cannot read or authenticate its keyring.
    ///
    /// - Throws: `StoreError` `.alreadyExists` if something exists at the path; `.full`, `.io`,
    ///   `.readOnly`; `.misuse` for a store without a keyring.
    /// - Complexity: O(1): 32 KiB are written and synced.
    public func backUp(to path: String) throws {
        let keyring = try open()
        let file = KeyringFile(at: try FileLocation(path), of: keyring.file.database)
        try file.makeNew(keyring.newest())
    }

    /// Writes a copy of the keyring to a new file.
    ///
    /// - Throws: As the synchronous form.
    public func backUp(to path: String) async throws {
        try await Store.offPool { try backUp(to: path) }
    }
}
