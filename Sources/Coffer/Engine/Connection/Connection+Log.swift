import CSQLCipher

extension Connection {
    /// Counts the log's frames after each commit, in place of SQLite's own checkpoints, which
    /// would hold up the commit.
    func watchLog() throws(StoreError) {
        try set("log") { handle throws(StoreError) in
            sqlite3_wal_hook(
                handle.db,
                { context, _, _, frameCount in
                    guard let context else { return SQLITE_OK }
                    let handle = Unmanaged<Handle>.fromOpaque(context).takeUnretainedValue()
                    handle.logFrameCount = Int(frameCount)
                    return SQLITE_OK
                }, Unmanaged.passUnretained(handle).toOpaque())
        }
    }

    /// Frames in the write-ahead log after the last commit of this connection; 0 without a log.
    var logFrameCount: Int { handle?.logFrameCount ?? 0 }
}
