import CSQLCipher

/// Copies all pages of a database into an empty one of the same profile. Each connection encrypts
/// them with its own key.
///
/// The source is in a read transaction, so its snapshot cannot change. Otherwise commits of other
/// connections would restart the copy, next to a busy writer indefinitely. Both sides must be
/// encrypted: with a plaintext target SQLCipher 3 writes plaintext, and with a plaintext source it
/// writes a file that nobody can read.
struct PageCopy {
    let source: Handle
    let target: Handle
    let monitor: CopyMonitor

    /// - Throws: `.damaged` if the source is; `.full`, `.io`, `.cancelled`.
    func run() throws(StoreError) {
        // SQLCipher sets up the cipher of an empty file on the first access.
        _ = try target.firstText("SELECT count(*) FROM sqlite_master")
        let backup = try PageBackup(from: source, to: target)
        do throws(StoreError) {
            var isDone = false
            repeat {
                isDone = try backup.step(pageCount: CopyMonitor.interval)
                try monitor.report(.copyingPages, backup.doneCount, of: backup.pageCount)
            } while !isDone
        } catch {
            try? backup.finish()
            throw source.probeFailure() ?? error
        }
        try backup.finish()
        if let failure = source.probeFailure() { throw failure }
    }
}

/// The engine's copy of the pages of one open database into another. The corresponding C functions
/// are `sqlite3_backup_*`.
final class PageBackup {
    private var raw: OpaquePointer?
    private let target: Handle

    /// Prepares the copy, and reads and writes nothing yet.
    ///
    /// - Parameter target: In no transaction. Until `finish()` nothing else may use it.
    /// - Throws: The engine's error if the target is in use.
    init(from source: Handle, to target: Handle) throws(StoreError) {
        guard let raw = sqlite3_backup_init(target.db, "main", source.db, "main") else {
            throw target.error(sqlite3_errcode(target.db))
        }
        (self.raw, self.target) = (raw, target)
    }

    deinit { sqlite3_backup_finish(raw) }

    /// Copies so many pages. The first step locks the target against writers until `finish()`. The
    /// step that copies the last page commits.
    ///
    /// - Parameter pageCount: With 0, a step only locks the target. The source must not be empty
    ///   then, because the engine would commit an empty database.
    /// - Returns: Whether all pages are copied and committed.
    /// - Throws: `.damaged` for a page of the source whose MAC does not fit; `.busy`, `.full`,
    ///   `.io`. The target is as it was after `finish()`.
    func step(pageCount: Int) throws(StoreError) -> Bool {
        let code = sqlite3_backup_step(raw, Int32(pageCount))
        switch code {
        case SQLITE_OK: return false
        case SQLITE_DONE: return true
        case SQLITE_ERROR:
            throw StoreError(
                .damaged, "a page of the source failed authentication",
                hint: "Restore the source from a backup.", resultCode: code)
        default: throw StoreError.of(nil, code: code, sql: nil)
        }
    }

    /// Pages of the source, as the last step saw them.
    var pageCount: Int { Int(sqlite3_backup_pagecount(raw)) }

    /// Pages that are not copied yet.
    var remainingCount: Int { Int(sqlite3_backup_remaining(raw)) }

    var doneCount: Int { pageCount - remainingCount }

    /// Ends the copy. Unless a step has returned `true`, the target is as it was before. Must come
    /// before either connection closes.
    ///
    /// - Throws: The error of the last step.
    func finish() throws(StoreError) {
        let code = sqlite3_backup_finish(raw)
        raw = nil
        guard code == SQLITE_OK else { throw target.error(code) }
    }
}
