import CSQLCipher

/// The engine's exclusive lock on a main file, on a connection that reads nothing through SQL.
///
/// In WAL mode it excludes every other connection, and without WAL every one that is reading or
/// writing. The lock ends when the handle is closed. Of a file that this process may not write it
/// is only a shared lock.
struct ExclusiveLock {
    /// Has seen no key. Only raw reads are allowed on it.
    let handle: Handle

    /// Takes the lock, and waits for it as long as the configured busy timeout.
    ///
    /// - Throws: `.busy` if another connection has the file open; `.notFound`, `.io`.
    init(on file: FileLocation, _ configuration: Configuration) throws(StoreError) {
        guard case .file = try file.status() else {
            throw StoreError(.notFound, "there is no file at \(file.path)")
        }
        try file.requireReadable()
        let isWritable = file.isWritable
        let flags = isWritable ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY
        handle = try Handle(path: file.path, flags: flags, vfs: configuration.vfs)
        let deadline = ContinuousClock.now + configuration.busyTimeout
        var code = SQLITE_BUSY
        while true {
            code = coffer_lock_main_file(handle.db, SQLITE_LOCK_SHARED)
            if code == SQLITE_OK, isWritable {
                code = coffer_lock_main_file(handle.db, SQLITE_LOCK_EXCLUSIVE)
            }
            guard code == SQLITE_BUSY, ContinuousClock.now < deadline else { break }
            sleepBriefly()
        }
        guard code != SQLITE_OK else { return }
        handle.close()
        guard code == SQLITE_BUSY else { throw StoreError.of(nil, code: code, sql: nil) }
        throw StoreError(
            .busy, "another connection has \(file.path) open",
            hint: "Stop the programs that use the file, and try again.")
    }
}
