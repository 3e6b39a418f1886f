/// Records which pages have their newest content in the WAL.
///
/// The main file's content of such a page is *stale*: reads take the frame, and the next checkpoint
/// overwrites the page. In a sound store it may therefore be under the old key (a rekey before its
/// checkpoint) or torn (a power loss during a checkpoint). The frame is judged instead.
///
/// Valid only within the transaction that keeps the WAL from restarting. Holds one number for each
/// page in the WAL.
struct WALPages {
    /// The place of a page's newest committed content.
    enum Place: Equatable {
        case mainFile
        /// Frames are counted from 0.
        case log(frame: Int)
        /// The page is beyond the end of the database: the next checkpoint cuts it off.
        case nowhere
    }

    private let log: WALFile
    private let pageByteCount: Int
    /// The last committed frame of each page, by page number.
    private let frames: [Int: Int]
    private let committedFrameCount: Int
    private let movedFrameCount: Int
    /// Pages of the database, as last committed to the WAL.
    let pageCount: Int

    /// Reads the headers of all committed frames in the WAL.
    ///
    /// - Returns: `nil` if the WAL has no index.
    /// - Throws: `.busy` if the index stays inconsistent, or the WAL restarts during all 20 tries;
    ///   `.io` if the index cannot be read.
    init?(_ log: WALFile, pageByteCount: Int) throws(StoreError) {
        for attempt in 0..<WALFile.tryCount {
            if attempt > 0 { sleepBriefly() }
            guard let index = try log.index() else { return nil }
            let moved = try log.movedFrameCount()
            let frames = Self.frames(of: log, index, pageByteCount: pageByteCount)
            // After a restart the WAL has other frames.
            guard try log.index()?.salt == index.salt else { continue }
            self.log = log
            self.pageByteCount = pageByteCount
            self.frames = frames
            committedFrameCount = index.committedFrameCount
            movedFrameCount = moved
            pageCount = index.pageCount
            return
        }
        throw StoreError(
            .busy, "other processes restart the write-ahead log again and again",
            hint: "Try again.")
    }

    private static func frames(
        of log: WALFile, _ index: WALFile.Index, pageByteCount: Int
    ) -> [Int: Int] {
        var frames: [Int: Int] = [:]
        // No more than the WAL has, whatever its index says.
        let slotCount = log.frameSlotCount(pageByteCount: pageByteCount)
        for index in 0..<min(index.committedFrameCount, slotCount) {
            // SQLite finds frames by its index and checks no checksum here, so the header of a
            // damaged frame is all there is. If it is wrong, the MAC of the content shows that.
            let offset = WriteAheadLog.offset(ofFrame: index, pageByteCount: pageByteCount)
            let header = log.bytes(at: offset, count: WriteAheadLog.frameHeaderByteCount)
            if let header { frames[WriteAheadLog.pageNumber(ofFrame: header[...])] = index }
        }
        return frames
    }

    /// The place from which a read takes the newest content of a page, counted from 1.
    func place(of number: Int) -> Place {
        // Checkpointed frames are in the main file as well, and reads take them from there.
        guard committedFrameCount > movedFrameCount else { return .mainFile }
        guard number <= pageCount else { return .nowhere }
        guard let frame = frames[number], frame >= movedFrameCount else { return .mainFile }
        return .log(frame: frame)
    }

    /// Whether the main file's content of the page is stale: the WAL has a newer one, or the page
    /// is beyond the end of the database.
    func isStale(_ number: Int) -> Bool { place(of: number) != .mainFile }

    /// The number of pages whose newest content is not in the main file yet.
    var stalePageCount: Int {
        frames.count { number, frame in number <= pageCount && frame >= movedFrameCount }
    }

    /// The content of the last committed frame of a page, still encrypted, checkpointed or not.
    /// `nil` if the WAL does not have the page or cannot be read.
    func content(of number: Int) -> [UInt8]? {
        guard let frame = frames[number] else { return nil }
        let offset = WriteAheadLog.offset(ofFrame: frame, pageByteCount: pageByteCount)
        return log.bytes(at: offset + WriteAheadLog.frameHeaderByteCount, count: pageByteCount)
    }
}
