import CSQLCipher

/// The write-ahead log of an open connection, read through the engine's own descriptor.
struct LogFile {
    let open: Connection.OpenState

    /// `mxFrame` of the WAL index: frames behind it were never committed, whatever they look like.
    ///
    /// "16: mxFrame: Number of valid and committed frames in the WAL file", in the byte order of
    /// the machine: <https://www.sqlite.org/walformat.html#the_wal_index_header>
    func committedFrameCount() -> Int {
        var header = [UInt8](repeating: 0, count: 48)
        guard coffer_read_log_index(open.handle.db, &header) == SQLITE_OK else { return 0 }
        let count = header.withUnsafeBytes {
            $0.loadUnaligned(fromByteOffset: 16, as: UInt32.self)
        }
        return Int(count)
    }

    /// `nil` beyond the end, or if it cannot be read.
    func bytes(at offset: Int, count: Int) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        let code = coffer_read_log(open.handle.db, &bytes, Int32(count), Int64(offset))
        return code == SQLITE_OK ? bytes : nil
    }
}
