import CSQLCipher

/// Copies all pages of a database into an empty one of the same profile. Each connection encrypts
/// them with its own key. The corresponding C functions are `sqlite3_backup_*`.
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
        guard let backup = sqlite3_backup_init(target.db, "main", source.db, "main") else {
            throw target.error(sqlite3_errcode(target.db))
        }
        do throws(StoreError) {
            try copy(backup)
        } catch {
            sqlite3_backup_finish(backup)
            throw source.probeFailure() ?? error
        }
        let code = sqlite3_backup_finish(backup)
        guard code == SQLITE_OK else { throw target.error(code) }
        if let failure = source.probeFailure() { throw failure }
    }

    private func copy(_ backup: OpaquePointer) throws(StoreError) {
        while true {
            let code = sqlite3_backup_step(backup, Int32(CopyMonitor.interval))
            let pageCount = Int(sqlite3_backup_pagecount(backup))
            let done = pageCount - Int(sqlite3_backup_remaining(backup))
            switch code {
            case SQLITE_OK: try monitor.report(.copyingPages, done, of: pageCount)
            case SQLITE_DONE: return try monitor.report(.copyingPages, done, of: pageCount)
            case SQLITE_ERROR:
                throw StoreError(
                    .damaged, "a page of the source failed authentication",
                    hint: "Restore the source from a backup.", resultCode: code)
            default: throw StoreError.of(nil, code: code, sql: nil)
            }
        }
    }
}
