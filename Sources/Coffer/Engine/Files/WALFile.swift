import CSQLCipher

/// The WAL of an open connection, read through the engine's own descriptor.
struct WALFile {
    let handle: Handle
    /// A checkpoint of another process writes a page in far less time than all tries take.
    static let tryCount = 20

    /// The header of the WAL index: it identifies the WAL and says how much of it is committed.
    struct Index: Equatable {
        static let byteCount = 48

        private let bytes: [UInt8]

        /// Reads the header from its two copies, which follow each other. `nil` if they differ or
        /// the checksum is wrong.
        ///
        /// "40: aCksum: Checksum over all prior fields", computed as in the WAL itself, in the byte
        /// order of the machine: <https://www.sqlite.org/walformat.html#the_wal_index_header>
        init?(copies: [UInt8]) {
            let (first, second) = (copies[..<Self.byteCount], copies[Self.byteCount...])
            guard first.elementsEqual(second) else { return nil }
            bytes = Array(first)
            var sum = WALChecksum(isBigEndian: Self.isBigEndian)
            sum.add(bytes[..<40])
            guard sum.words == (word(at: 40), word(at: 44)) else { return nil }
        }

        /// `mxFrame`: frames after it were never committed, whatever they look like, unless damage
        /// made recovery stop before them.
        ///
        /// "16: mxFrame: Number of valid and committed frames in the WAL file"
        var committedFrameCount: Int { Int(word(at: 16)) }

        /// `nPage`: pages of the database after the last commit in the WAL.
        ///
        /// "20: nPage: Size of the database in pages."
        var pageCount: Int { Int(word(at: 20)) }

        /// Changes at each restart of the WAL: the connection that restarts it writes the new
        /// values here first.
        ///
        /// "32: aSalt: Two 32-bit salt values copied from the WAL header."
        var salt: [UInt8] { Array(bytes[32..<40]) }

        private func word(at offset: Int) -> UInt32 {
            bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: UInt32.self) }
        }

        private static var isBigEndian: Bool { UInt32(bigEndian: 1) == 1 }
    }

    /// The index as it is now; `nil` if there is none.
    ///
    /// A writer changes one copy of the header after the other, so both are read until they agree.
    ///
    /// - Throws: `.busy` if they do not agree in 20 tries, 10 ms apart; `.io` if the index cannot
    ///   be read.
    func index() throws(StoreError) -> Index? {
        for attempt in 0..<Self.tryCount {
            if attempt > 0 { sleepBriefly() }
            var copies = [UInt8](repeating: 0, count: 2 * Index.byteCount)
            let code = coffer_read_wal_index(handle.db, &copies)
            if code == SQLITE_NOTFOUND { return nil }
            guard code == SQLITE_OK else { throw StoreError.of(nil, code: code, sql: nil) }
            if let index = Index(copies: copies) { return index }
        }
        throw StoreError(
            .busy, "the index of the write-ahead log is inconsistent",
            hint: "A process that wrote to the store may have been killed just now: try again.")
    }

    /// `nBackfill`: the number of frames that checkpoints have copied to the main file. They are
    /// synced there only if a checkpoint reached the end of the WAL. Reads that begin later take
    /// none of these frames from the WAL. 0 without an index; throws `.io` if it cannot be read.
    func movedFrameCount() throws(StoreError) -> Int {
        var count: UInt32 = 0
        let code = coffer_read_moved_frame_count(handle.db, &count)
        if code == SQLITE_NOTFOUND { return 0 }
        guard code == SQLITE_OK else { throw StoreError.of(nil, code: code, sql: nil) }
        return Int(count)
    }

    /// Whether the engine has a WAL open. Asking for an index that does not exist would create one.
    var isOpen: Bool { bytes(at: 0, count: 4).map { $0.starts(with: [0x37, 0x7f, 6]) } ?? false }

    /// The number of whole frames that fit into the WAL file, committed or not; 0 if it cannot be
    /// read.
    func frameSlotCount(pageByteCount: Int) -> Int {
        var byteCount: Int64 = 0
        guard coffer_wal_byte_count(handle.db, &byteCount) == SQLITE_OK else { return 0 }
        let frames = Int(byteCount) - WriteAheadLog.headerByteCount
        return max(0, frames) / (WriteAheadLog.frameHeaderByteCount + pageByteCount)
    }

    /// Exactly `count` bytes of the WAL, from an offset counted from 0; `nil` if the WAL ends
    /// before that or cannot be read.
    func bytes(at offset: Int, count: Int) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        let code = coffer_read_wal(handle.db, &bytes, Int32(count), Int64(offset))
        return code == SQLITE_OK ? bytes : nil
    }
}
