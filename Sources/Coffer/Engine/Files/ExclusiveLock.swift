import CSQLCipher

/// The engine's exclusive lock on a main file, on a connection that reads nothing through SQL.
///
/// In WAL mode it excludes every other connection, and without WAL every one that is reading or
/// writing. The lock ends when the handle is closed.
struct ExclusiveLock {
    /// Has seen no key. Only raw reads are allowed on it.
    let handle: Handle
    /// `false` if the lock is a shared one, which a connection in WAL mode does not exclude.
    let isExclusive: Bool

    /// Takes the lock, and waits for it as long as the configured busy timeout.
    ///
    /// - Parameter orShared: Whether a shared lock will do if this process may not write the file:
    ///   the system gives it no other.
    /// - Throws: `.busy` if another connection has the file open, or other files take its path
    ///   again and again; `.readOnly` if there is only a shared lock; `.notFound`, `.io`.
    init(
        on file: FileLocation, orShared: Bool = false, _ configuration: Configuration
    ) throws(StoreError) {
        isExclusive = file.isWritable
        var handle = try Self.opened(file, isExclusive, orShared, configuration)
        for _ in 1..<StoreError.replacementTryCount {
            // Somebody may have replaced the file while this waited for the lock.
            guard handle.hasMoved else { break }
            handle.close()
            handle = try Self.opened(file, isExclusive, orShared, configuration)
        }
        guard !handle.hasMoved else {
            handle.close()
            throw StoreError.replaced(file)
        }
        self.handle = handle
    }

    private static func opened(
        _ file: FileLocation, _ isExclusive: Bool, _ orShared: Bool,
        _ configuration: Configuration
    ) throws(StoreError) -> Handle {
        guard case .file = try file.status() else {
            throw StoreError(.notFound, "there is no file at \(file.path)")
        }
        try file.requireReadable()
        guard isExclusive || orShared else {
            throw StoreError(
                .readOnly,
                "\(file.path) cannot be written, so a program that has it open would go unnoticed",
                hint: "Allow this user to write the file and its folder.")
        }
        let flags = isExclusive ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY
        let handle = try Handle(path: file.path, flags: flags, vfs: configuration.vfs)
        let deadline = ContinuousClock.now + configuration.busyTimeout
        var code = SQLITE_BUSY
        while true {
            code = coffer_lock_main_file(handle.db, SQLITE_LOCK_SHARED)
            if code == SQLITE_OK, isExclusive {
                code = coffer_lock_main_file(handle.db, SQLITE_LOCK_EXCLUSIVE)
            }
            guard code == SQLITE_BUSY, ContinuousClock.now < deadline else { break }
            sleepBriefly()
        }
        guard code != SQLITE_OK else { return handle }
        handle.close()
        guard code == SQLITE_BUSY else { throw StoreError.of(nil, code: code, sql: nil) }
        throw StoreError(
            .busy, "another connection has \(file.path) open",
            hint: "Stop the programs that use the file, and try again.")
    }
}
