import CSQLCipher

/// The header of a WAL's index in the memory that all connections of all processes share.
///
/// Each commit changes the header before it returns, so an unchanged header says that nobody has
/// committed. SQLite decides by the same comparison whether its own page cache is still valid
/// (`walIndexTryHdr` in <https://www.sqlite.org/src/file/src/wal.c>).
struct SharedWALIndex: @unchecked Sendable {
    // @unchecked: `region` is memory that processes share. Its words are read atomically.

    private let region: UnsafeRawPointer
    /// The header when `isUnchanged()` was last asked.
    private var header: coffer_wal_index_header

    /// Finds the header. It stays where it is until the handle closes.
    ///
    /// - Parameter handle: In a read transaction. Otherwise the engine may not have mapped the
    ///   memory.
    /// - Returns: `nil` without a WAL, and for a file at rest, which is read without locks.
    init?(of handle: Handle) {
        guard handle.rest == nil, (try? handle.journalMode()) == .wal else { return nil }
        var file: UnsafeMutablePointer<sqlite3_file>?
        var region: UnsafeMutableRawPointer?
        guard coffer_map_wal_index(handle.db, &file, &region) == SQLITE_OK, let region else {
            return nil
        }
        self.region = UnsafeRawPointer(region)
        header = coffer_wal_index_copy(region)
    }

    /// Whether nobody has committed since the last call.
    mutating func isUnchanged() -> Bool {
        if coffer_wal_index_is(region, &header) { return true }
        header = coffer_wal_index_copy(region)
        return false
    }
}
