import CSQLCipher

/// Checks the committed frames of the write-ahead log; runs while the write lock is held.
struct LogCheck: ~Copyable {
    let open: Connection.OpenState
    let pages: RawPages

    init(open: Connection.OpenState, pages: consuming RawPages) {
        self.open = open
        self.pages = pages
    }

    borrowing func run(_ report: inout VerificationReport) throws(StoreError) {
        let committed = committedFrameCount()
        guard committed > 0 else { return }
        guard let header = read(at: 0, count: WriteAheadLog.headerByteCount),
            var log = WriteAheadLog(header: header), log.pageByteCount == pages.byteCount
        else {
            // The index says that there are frames, but the log cannot be read.
            report.damagedFramePages.append(0)
            return
        }
        for index in 0..<committed {
            let frame = read(at: log.offset(ofFrame: index), count: log.frameByteCount)
            guard let frame, let page = log.page(ofNextFrame: frame) else {
                // The checksum runs on from frame to frame: nothing behind can be told.
                report.damagedFramePages.append(frame.map(Self.pageNumber) ?? 0)
                return
            }
            if !pages.authenticates(page.content, number: page.number) {
                report.damagedFramePages.append(page.number)
            }
            report.frameCount += 1
        }
    }

    /// `mxFrame` of the WAL index: frames behind it were never committed, whatever they look like.
    ///
    /// "16: mxFrame: Number of valid and committed frames in the WAL file", in the byte order of
    /// the machine: <https://www.sqlite.org/walformat.html#the_wal_index_header>
    private borrowing func committedFrameCount() -> Int {
        var header = [UInt8](repeating: 0, count: 48)
        guard coffer_read_log_index(open.handle.db, &header) == SQLITE_OK else { return 0 }
        let count = header.withUnsafeBytes {
            $0.loadUnaligned(fromByteOffset: 16, as: UInt32.self)
        }
        return Int(count)
    }

    private borrowing func read(at offset: Int, count: Int) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        let code = coffer_read_log(open.handle.db, &bytes, Int32(count), Int64(offset))
        return code == SQLITE_OK ? bytes : nil
    }

    private static func pageNumber(_ frame: [UInt8]) -> Int {
        frame.prefix(4).reduce(0) { $0 << 8 | Int($1) }
    }
}
