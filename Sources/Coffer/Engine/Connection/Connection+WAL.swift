import CSQLCipher

extension Connection {
    /// Makes each later commit of this connection set `walFrameCount`. This replaces SQLite's
    /// automatic checkpoints, which would delay the commit.
    ///
    /// - Throws: Nothing: the engine reports no failure here.
    func watchWAL() throws(StoreError) {
        try set("log") { handle throws(StoreError) in
            sqlite3_wal_hook(
                handle.db,
                { context, _, _, frameCount in
                    guard let context else { return SQLITE_OK }
                    let handle = Unmanaged<Handle>.fromOpaque(context).takeUnretainedValue()
                    handle.walFrameCount = Int(frameCount)
                    return SQLITE_OK
                }, Unmanaged.passUnretained(handle).toOpaque())
        }
    }

    /// Frames in the WAL after this connection's last commit; 0 without a WAL.
    var walFrameCount: Int { handle?.walFrameCount ?? 0 }
}
