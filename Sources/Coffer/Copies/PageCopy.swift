import CSQLCipher

/// Copies all pages of a database into an empty one of the same profile, each under the key of its
/// own connection. The corresponding C functions are `sqlite3_backup_*`.
///
/// The source stands in a read transaction: its snapshot cannot change, so commits of others do
/// not start the copy anew, as they would for ever beside a busy writer. Both sides must be
/// encrypted: to plaintext SQLCipher 3 writes plaintext, and from plaintext a file that nobody
/// can read.
struct PageCopy {
    let source: Handle
    let target: Handle
    let monitor: CopyMonitor

    /// - Throws: `.damaged` if the source is; `.full`, `.io`, `.cancelled`.
    func run() throws(StoreError) {
        // The cipher of an empty file is set up when the file is looked at first.
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
