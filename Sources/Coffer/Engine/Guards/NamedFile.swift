import CSQLCipher

/// Keeps a connection from working on a file that no longer has its path.
///
/// SQLite opens the WAL by its name, the file's path and `-wal`, when it first reads. If
/// `Store.restore` has given the path to another file since the connection opened, that WAL belongs
/// to the other file: commits would be lost in it, and the last connection to close would move it
/// into the wrong file. So the lock comes first, then the check, and only then the engine reads.
/// From then on `restore` cannot get the exclusive lock that it needs before it renames anything.
extension Handle {
    /// Takes the engine's shared lock on the main file, and requires that the path still leads to
    /// that file. The engine gives the lock back after its next read, or keeps it with a WAL.
    ///
    /// The check is one `stat` by the engine, on no second descriptor. A VFS that does not know the
    /// question passes it.
    ///
    /// - Parameters:
    ///   - file: The path, for the error.
    ///   - patience: How long to wait for the lock at most.
    /// - Throws: `.busy` if another connection holds the exclusive lock; `StoreError.replaced`,
    ///   also `.busy`, if the path leads elsewhere; the error of the lock itself, such as `.io`.
    func lockNamedFile(_ file: FileLocation, patience: Duration) throws(StoreError) {
        let deadline = ContinuousClock.now + patience
        var code = coffer_lock_main_file(db, SQLITE_LOCK_SHARED)
        while code & 0xff == SQLITE_BUSY, ContinuousClock.now < deadline {
            sleepBriefly()
            code = coffer_lock_main_file(db, SQLITE_LOCK_SHARED)
        }
        // The connection does not know of this lock: its last message is about something else.
        guard code == SQLITE_OK else { throw StoreError.of(nil, code: code, sql: nil) }
        guard !hasMoved else { throw StoreError.replaced(file) }
    }

    /// Whether the path of the main file leads elsewhere by now.
    var hasMoved: Bool { coffer_has_moved(db) }
}

extension StoreError {
    /// The error for a file that lost its path while it was opened.
    static func replaced(_ file: FileLocation) -> StoreError {
        StoreError(
            .busy, "\(file.path) was replaced while it was opened", hint: "Open it again.",
            resultCode: coffer_readonly_moved)
    }

    /// Whether the file lost its path while it was opened: another try opens the file that has the
    /// path now.
    var isAboutReplacement: Bool { resultCode == coffer_readonly_moved }

    /// How often a file is opened that is replaced each time.
    static let replacementTryCount = 10
}
