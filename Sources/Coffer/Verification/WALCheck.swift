/// Checks the frames of the WAL.
///
/// While the check holds the write lock, nobody appends to the WAL or restarts it. A store that is
/// open for reading only cannot take the lock. Then the WAL may change during the check, and
/// failing frames are checked again.
struct WALCheck {
    let log: WALFile
    /// For tests: called between reading the index and the WAL.
    var didReadIndex: () -> Void = {}

    /// The result of the check.
    struct Result {
        /// Committed frames that were checked.
        var frameCount = 0
        /// The pages whose frames fail; 0 if a page is unknown.
        var damagedPages: [Int] = []
        /// The damaged frame, counted from 0, that may have cut off the commits after it.
        var cutOffFrame: Int?

        var isGood: Bool { damagedPages.isEmpty && cutOffFrame == nil }
    }

    /// A frame that is being written is complete long before the last of these attempts.
    private static let cutOffTryCount = 5

    /// Checks the committed frames of the WAL, and looks for commits that damage cut off.
    ///
    /// - Parameters:
    ///   - pages: The pages of the main file, for their size and key.
    ///   - isLocked: Whether the write lock is held. Otherwise a check that finds damage is
    ///     repeated, because the WAL may have changed.
    /// - Returns: The findings; none if there is no WAL index.
    /// - Throws: `.busy` or `.io` if the WAL index cannot be read.
    func run(
        _ pages: borrowing RawPages, isLocked: Bool
    ) throws(StoreError) -> Result {
        var result = Result()
        var unchangedCount = 0
        for attempt in 0..<WALFile.tryCount {
            if attempt > 0 { sleepBriefly() }
            guard let before = try log.index() else { return Result() }
            didReadIndex()
            result = check(
                pages, committed: before.committedFrameCount, pageCount: before.pageCount)
            if isLocked || result.isGood { break }
            // The index gets new salts before the WAL restarts. So an unchanged index means that no
            // committed frame was overwritten. Frames after them may be in the middle of a write.
            guard try log.index() == before else { continue }
            unchangedCount += 1
            if result.cutOffFrame == nil || unchangedCount == Self.cutOffTryCount { break }
        }
        return result
    }

    /// Checks the WAL once.
    ///
    /// If a committed frame does not follow the checksum chain, the check ends there, because the
    /// checksum is cumulative.
    ///
    /// - Parameters:
    ///   - committed: The committed frames, according to the WAL index.
    ///   - pageCount: Pages of the database, as last committed.
    private func check(
        _ pages: borrowing RawPages, committed: Int, pageCount: Int
    ) -> Result {
        var result = Result()
        let slotCount = log.frameSlotCount(pageByteCount: pages.byteCount)
        let header = log.bytes(at: 0, count: WriteAheadLog.headerByteCount)
        guard var state = header.flatMap(WriteAheadLog.init),
            state.pageByteCount == pages.byteCount
        else {
            // If the index counts frames, they cannot be read. If it counts none, recovery skipped
            // the whole WAL because its header is invalid.
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
                // The checksum is cumulative, so no later frame can be checked.
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

    /// The frames that readers use: the last one of each page of the database.
    ///
    /// An older frame may be under the key from before a rekey. The checksum chain shows that it is
    /// unchanged, and no reader uses it.
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

        /// Pages whose last frame fails, in the order of the WAL.
        var failing: [Int] {
            failed.filter { $0.page <= pageCount && newest[$0.page] == $0.frame }.map(\.page)
        }
    }

    // MARK: Behind the committed frames

    /// Looks for commits that damage cut off, behind the committed frames. If there may be some,
    /// sets `cutOffFrame`, and adds that page to `damagedPages`; 0 if the page is unknown.
    ///
    /// After a crash, the first connection counts the committed frames again, as far as the
    /// checksum chain holds. Later frames are overwritten or deleted, so a damaged frame loses all
    /// commits after it. So commits may be lost if two things come after `mxFrame`: a damaged
    /// frame, and then a commit mark of this WAL (its salts) on an authentic page.
    ///
    /// Frames with this WAL's salts can be after `mxFrame` for other reasons too:
    ///
    /// 1. A transaction was rolled back, or its process was killed. Its chain holds, or it has no
    ///    commit mark. Later transactions overwrite it from its start, so that its remaining frames
    ///    follow a chain that does not lead to them.
    /// 2. The same with a commit mark: a process was killed, or the sync failed, after the mark was
    ///    written and before the index was updated, while others had the store open.
    /// 3. A large transaction spilled a page and changed it again. SQLite overwrites the frame in
    ///    place, and corrects the checksums after it has written the commit mark.
    ///
    /// In all three cases the first frame off the chain is whole: it has the salts, and its page is
    /// authentic. Only the chain does not lead to it. So it is not reported as damage, unless the
    /// chain continues after it as if it had held: then the frame's stored checksum is damaged. (A
    /// damaged commit mark alone looks like case 1 and is not found.)
    ///
    /// Two other causes are reported like damage. One is a writer that was killed while it
    /// overwrote a frame of case 2. The other is a power loss before the WAL was synced; it really
    /// loses commits, unless they were never reported. A torn last commit is not reported: it
    /// never happened, or nothing after it shows that it did.
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

    /// Whether one of `frames` (from 0) has these salts and a commit mark, on a page that passes
    /// authentication.
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
