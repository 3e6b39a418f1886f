import CSQLCipher

/// Creates a new encrypted file that appears under its name complete or not at all.
///
/// The file is made under a temporary name, proven to be encrypted, and then given its own name. So
/// nobody ever sees an empty or half-written store, and a crash leaves no file that could be
/// mistaken for one. Of two processes that create at once, one wins and both open the same file.
/// (On SQLCipher 3 two creators of one file choose different salts, and one of them never gets in.)
struct Creation {
    let file: FileLocation
    let profile: CipherProfile
    let configuration: Configuration
    let derived: DerivedKeys

    /// Creates the file with an empty encrypted database. If another creator was faster, returns
    /// without an error, and the other's file stays.
    ///
    /// - Throws: `.damaged` if a WAL or journal without its file exists at the path; `.engine` if
    ///   the engine did not encrypt; `.full`, `.io` if the file cannot be written.
    func run(key: borrowing StoreKey) throws(StoreError) {
        let new = try NewFile(at: file)
        let salt = key.salt ?? KeyDerivation.randomSalt()
        let rawKey = try derived.rawKey(from: key, salt: salt, profile: profile)
        try write(new.temporary, key: rawKey)
        // If another creator was faster, its file is opened like any other.
        _ = try new.adopt()
    }

    private func write(_ temporary: FileLocation, key: borrowing RawKey) throws(StoreError) {
        let physical = PhysicalOpen(
            file: temporary, profile: profile, configuration: configuration, role: .writer,
            cacheByteCount: 0)
        try temporary.createPrivate()
        let handle = try Handle(
            path: temporary.path, flags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
            vfs: configuration.vfs)
        try physical.unlock(handle, key: key)
        try handle.run("PRAGMA synchronous = FULL")
        // Accepted only before page 1 exists.
        if configuration.incrementalVacuum { try handle.run("PRAGMA auto_vacuum = INCREMENTAL") }
        // Any write of the header creates page 1.
        try handle.run("BEGIN IMMEDIATE; PRAGMA user_version = 0; COMMIT")
        try JournalModeChange(handle: handle, file: temporary).set(configuration)
        try proveEncrypted(handle, key: key)
    }

    private func proveEncrypted(_ handle: Handle, key: borrowing RawKey) throws(StoreError) {
        try handle.run("PRAGMA wal_checkpoint(TRUNCATE)")
        guard let page = try handle.rawBytes(at: 0, count: profile.pageByteCount) else {
            throw StoreError(.io, "the new file \(file.path) could not be read back")
        }
        let authenticator = PageAuthenticator(key: key, profile: profile)
        guard page.withUnsafeBytes({ authenticator.authenticates($0, number: 1) }) else {
            throw StoreError(
                .engine, "the engine did not encrypt the new file \(file.path); it was removed",
                hint: "The linked library is not a working SQLCipher.")
        }
    }
}
