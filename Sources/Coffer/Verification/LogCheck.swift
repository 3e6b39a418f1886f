/// Checks the frames of the write-ahead log.
///
/// While the write lock is held nobody appends to the log or starts it anew. A store that is open
/// for reading only cannot take it: then the log may change under the check, and what fails is
/// looked at again.
struct LogCheck {
    let log: LogFile
    /// For tests: called between reading the index and the log.
    var didReadIndex: () -> Void = {}

    /// What was found.
    struct Result {
        /// Committed frames that were checked.
        var frameCount = 0
        /// The pages whose frames fail, 0 where that is unknown.
        var damagedPages: [Int] = []
        /// The damaged frame, from 0, behind which commits may have been cut off.
        var cutOffFrame: Int?

        var isGood: Bool { damagedPages.isEmpty && cutOffFrame == nil }
    }

    /// A frame that is being written is whole long before so many tries are over.
    private static let cutOffTryCount = 5

    /// - Parameter isLocked: Whether the write lock is held.
    /// - Throws: `.busy`, `.io` if the log's index cannot be read.
    func run(
        _ pages: borrowing RawPages, isLocked: Bool
    ) throws(StoreError) -> Result {
        var result = Result()
        var unchangedCount = 0
        for attempt in 0..<LogFile.tryCount {
            if attempt > 0 { sleepBriefly() }
            guard let before = try log.index() else { return Result() }
            didReadIndex()
            result = check(
                pages, committed: before.committedFrameCount, pageCount: before.pageCount)
            if isLocked || result.isGood { break }
            // Before a log is started anew its index gets other salts, so committed frames of an
            // index that stayed the same were not overwritten. Those behind may just be written.
            guard try log.index() == before else { continue }
            unchangedCount += 1
            if result.cutOffFrame == nil || unchangedCount == Self.cutOffTryCount { break }
        }
        return result
    }

    /// - Parameter pageCount: Of the database, as last committed.
    private func check(
        _ pages: borrowing RawPages, committed: Int, pageCount: Int
    ) -> Result {
        var result = Result()
        let slotCount = log.frameSlotCount(pageByteCount: pages.byteCount)
        let header = log.bytes(at: 0, count: WriteAheadLog.headerByteCount)
        guard var state = header.flatMap(WriteAheadLog.init),
            state.pageByteCount == pages.byteCount
        else {
            // If the index says that there are frames, they cannot be read. If it does not, then
            // recovery passed over the whole log, because its header is no header.
            if committed > 0 {
                result.damagedPages = [0]
            } else if slotCount > 0, let salt = frameHeader(0, pages)?.salt,
                hasCommit(pages, 0..<slotCount, salt: salt)
            {
                result.damagedPages = [0]
                result.cutOffFrame = 0
            }
            return result
        }
        var newest = NewestFrames(pageCount: pageCount)
        for index in 0..<committed {
            let frame = log.bytes(
                at: state.offset(ofFrame: index), count: state.frameByteCount)
            guard let frame, let page = state.page(ofNextFrame: frame) else {
                // The checksum runs on from frame to frame: nothing behind can be told.
                let number = frame.map { WriteAheadLog.pageNumber(ofFrame: $0[...]) } ?? 0
                result.damagedPages = newest.failing + [number]
                return result
            }
            newest.add(
                index, page.number, isSound: pages.isSound(page.content, number: page.number))
            result.frameCount += 1
        }
        result.damagedPages = newest.failing
        checkBehind(committed, slotCount, state, pages, &result)
        return result
    }

    /// The frames that count: the last one of each page of the database.
    ///
    /// Another frame may be under the key before a rekey. The chain of checksums shows that it
    /// is as it was written, and nobody reads it any more.
    private struct NewestFrames {
        let pageCount: Int
        private var newest: [Int: Int] = [:]
        private var failed: [(frame: Int, page: Int)] = []

        init(pageCount: Int) {
            self.pageCount = pageCount
        }

        mutating func add(_ frame: Int, _ page: Int, isSound: Bool) {
            newest[page] = frame
            if !isSound { failed.append((frame, page)) }
        }

        /// Pages whose last frame fails, in the order of the log.
        var failing: [Int] {
            failed.filter { $0.page <= pageCount && newest[$0.page] == $0.frame }.map(\.page)
        }
    }

    // MARK: Behind the committed frames

    /// Looks for commits that damage cut off.
    ///
    /// The first connection after a crash counts the frames anew, as far as the chain of checksums
    /// holds, and the rest is overwritten or deleted: a damaged frame takes all commits behind it
    /// along. So behind `mxFrame` a frame that is damaged, and then a commit mark of this log
    /// (its salts) on an authentic page, mean that commits may be lost.
    ///
    /// What else leaves frames with this log's salts behind `mxFrame`:
    ///
    /// 1. A transaction that was rolled back, or whose process was killed: its chain holds, or it
    ///    has no commit mark. Later transactions overwrite it from its start, so that its rest
    ///    stands behind a chain that does not lead there.
    /// 2. The same with a commit mark: a process was killed, or the sync failed, after the mark was
    ///    written and before the index told of it, while others had the store open.
    /// 3. A large transaction changed a page again that it had spilled: the frame is overwritten in
    ///    place, and the checksums are put right after the commit mark is written.
    ///
    /// In all of them the first frame off the chain is whole: it has the salts, and its page is
    /// authentic. Only the chain does not lead to it. So this is not taken for damage, unless the
    /// chain goes on behind it as if it did: then it is the stored checksum that is damaged. (A
    /// damaged commit mark alone looks like case 1 and is not found.)
    ///
    /// What remains is a frame that was half overwritten when its writer was killed, upon case 2;
    /// and power lost before the log was synced, where commits are in fact gone, unless nobody was
    /// told of them. A last commit that is torn was never made, or nothing behind it tells.
    private func checkBehind(
        _ committed: Int, _ slotCount: Int, _ chain: WriteAheadLog, _ pages: borrowing RawPages,
        _ result: inout Result
    ) {
        var chain = chain
        var first = committed
        var frame: [UInt8]?
        while true {
            guard first < slotCount else { return }
            frame = log.bytes(at: chain.offset(ofFrame: first), count: chain.frameByteCount)
            guard let whole = frame, chain.page(ofNextFrame: whole) != nil else { break }
            first += 1
        }
        var number = 0
        if let frame, chain.hasSalt(frame[...]) {
            number = WriteAheadLog.pageNumber(ofFrame: frame[...])
            let content = frame[WriteAheadLog.frameHeaderByteCount...]
            if pages.authenticates(content, number: number) {
                let next = log.bytes(
                    at: chain.offset(ofFrame: first + 1), count: chain.frameByteCount)
                guard let next, chain.page(ofNextFrame: next) != nil else { return }
            }
        }
        guard hasCommit(pages, first + 1..<max(first + 1, slotCount), salt: chain.salt) else {
            return
        }
        result.damagedPages.append(number)
        result.cutOffFrame = first
    }

    /// Whether one of the frames is a commit of the log with these salts.
    private func hasCommit(
        _ pages: borrowing RawPages, _ frames: Range<Int>, salt: ArraySlice<UInt8>
    ) -> Bool {
        for index in frames {
            guard let header = frameHeader(index, pages), header.salt.elementsEqual(salt),
                header.isCommit
            else { continue }
            let offset = WriteAheadLog.offset(ofFrame: index, pageByteCount: pages.byteCount)
            let content = log.bytes(
                at: offset + WriteAheadLog.frameHeaderByteCount, count: pages.byteCount)
            if let content, pages.authenticates(content[...], number: header.pageNumber) {
                return true
            }
        }
        return false
    }

    private func frameHeader(
        _ index: Int, _ pages: borrowing RawPages
    ) -> WriteAheadLog.FrameHeader? {
        let offset = WriteAheadLog.offset(ofFrame: index, pageByteCount: pages.byteCount)
        return log.bytes(at: offset, count: WriteAheadLog.frameHeaderByteCount)
            .map { WriteAheadLog.FrameHeader($0[...]) }
    }
}
