/// Which pages have their newest content in the write-ahead log.
///
/// What the main file holds of such a page is *stale*: reads take the frame, and the next
/// checkpoint overwrites the page. So it may be under the old key (a rekey before its checkpoint)
/// or torn (power was lost in a checkpoint) in a sound store. The frame is judged instead.
///
/// Lives in the transaction that keeps the log. Holds one number for each page that is in it.
struct LogPages {
    /// Where the newest committed content of a page stands.
    enum Place: Equatable {
        case mainFile
        /// Frames are counted from 0.
        case log(frame: Int)
        /// The page is behind the end of the database: the next checkpoint cuts it off.
        case nowhere
    }

    private let log: LogFile
    private let pageByteCount: Int
    /// Committed frames, the last one of each page.
    private let frames: [Int: Int]
    private let committedFrameCount: Int
    private let movedFrameCount: Int
    /// Pages of the database, as last committed to the log.
    let pageCount: Int

    /// - Returns: `nil` if the log has no index.
    /// - Throws: `.busy`, `.io` if the index cannot be read.
    init?(_ log: LogFile, pageByteCount: Int) throws(StoreError) {
        for attempt in 0..<LogFile.tryCount {
            if attempt > 0 { sleepBriefly() }
            guard let index = try log.index() else { return nil }
            let moved = try log.movedFrameCount()
            let frames = Self.frames(of: log, index, pageByteCount: pageByteCount)
            // A log that was started anew meanwhile has other frames.
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
            .busy, "the write-ahead log is started anew all the time", hint: "Try again.")
    }

    private static func frames(
        of log: LogFile, _ index: LogFile.Index, pageByteCount: Int
    ) -> [Int: Int] {
        var frames: [Int: Int] = [:]
        // No more than the log has, whatever its index says.
        let slotCount = log.frameSlotCount(pageByteCount: pageByteCount)
        for index in 0..<min(index.committedFrameCount, slotCount) {
            // SQLite finds frames by its index and looks at no checksum here: what the header of
            // a damaged frame says is all there is. The MAC of the content tells if it is wrong.
            let offset = WriteAheadLog.offset(ofFrame: index, pageByteCount: pageByteCount)
            let header = log.bytes(at: offset, count: WriteAheadLog.frameHeaderByteCount)
            if let header { frames[WriteAheadLog.pageNumber(ofFrame: header[...])] = index }
        }
        return frames
    }

    /// Where what counts of a page stands.
    func place(of number: Int) -> Place {
        // Moved frames are in the main file as well, where reads take them from.
        guard committedFrameCount > movedFrameCount else { return .mainFile }
        guard number <= pageCount else { return .nowhere }
        guard let frame = frames[number], frame >= movedFrameCount else { return .mainFile }
        return .log(frame: frame)
    }

    /// Whether what the main file holds of the page counts for nothing.
    func isStale(_ number: Int) -> Bool { place(of: number) != .mainFile }

    /// Pages whose newest content the main file does not have yet.
    var stalePageCount: Int {
        frames.count { number, frame in number <= pageCount && frame >= movedFrameCount }
    }

    /// What the last frame of a page holds, moved or not; `nil` if the log does not have the page.
    func content(of number: Int) -> [UInt8]? {
        guard let frame = frames[number] else { return nil }
        let offset = WriteAheadLog.offset(ofFrame: frame, pageByteCount: pageByteCount)
        return log.bytes(at: offset + WriteAheadLog.frameHeaderByteCount, count: pageByteCount)
    }
}
