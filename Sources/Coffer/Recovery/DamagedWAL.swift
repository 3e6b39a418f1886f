/// The committed pages of a WAL that no connection has open, as far as their MACs fit.
///
/// The engine stops at the first frame whose checksum is wrong. Here the MAC of each frame decides,
/// so that the commits behind a damaged frame count as well.
final class DamagedWAL {
    /// The frame, counted from 0, with the newest content of each page.
    private(set) var frames: [Int: Int] = [:]
    /// Pages whose newest committed content is in a damaged frame. What the main file has of them
    /// is out of date.
    private(set) var lostPages: Set<Int> = []
    /// Damaged frames that do not even name a page of the database.
    private(set) var namelessCount = 0
    /// Pages of the database after the last commit, as its frame says; `nil` if the WAL has no
    /// commit, or if the checksum of that frame is wrong: no MAC covers the number.
    private(set) var pageCount: Int?
    /// What follows the last commit that can be read.
    private(set) var rest = Rest()

    struct Rest {
        /// Frames of this WAL, and not of an earlier one in the same file.
        var frameCount = 0
        /// Whether one of them says that it commits.
        var hasCommit = false
    }

    private let reader: FileReader
    private let pageByteCount: Int
    private var hasSoundFrame = false

    /// Reads the WAL next to a file.
    ///
    /// - Parameters:
    ///   - path: The path of the WAL.
    ///   - pages: Authenticates a frame's content.
    /// - Returns: `nil` if there is none, or if the content of no frame belongs to the file.
    /// - Complexity: O(*frames*) time and memory.
    init?(path: String, pages: borrowing RawPages) {
        guard let reader = FileReader(path) else { return nil }
        self.reader = reader
        pageByteCount = pages.byteCount
        guard let salt = salt(pages) else { return nil }
        read(salt, pages)
        guard hasSoundFrame else { return nil }
    }

    /// The content of the page's newest committed frame, still encrypted.
    func content(of number: Int) -> [UInt8]? {
        frames[number].flatMap { bytes(of: $0) }.map { Array($0.dropFirst(headerByteCount)) }
    }

    private let headerByteCount = WriteAheadLog.frameHeaderByteCount

    /// The salt of the frames: that of the header, or if the header is damaged, that of the first
    /// frame.
    private func salt(_ pages: borrowing RawPages) -> [UInt8]? {
        if let header = reader.bytes(at: 0, WriteAheadLog.headerByteCount),
            let wal = WriteAheadLog(header: header), wal.pageByteCount == pageByteCount
        {
            return Array(wal.salt)
        }
        guard let frame = bytes(of: 0), isSound(frame, pages) else { return nil }
        return Array(WriteAheadLog.FrameHeader(frame[...]).salt)
    }

    /// Finds the last commit first. Frames after it may be what a transaction left that was rolled
    /// back, or commits that are lost.
    private func read(_ salt: [UInt8], _ pages: borrowing RawPages) {
        var commit: Int?
        var index = 0
        // The stored checksum before the frame; `nil` after a frame of an earlier WAL.
        var checksum = reader.bytes(at: 24, 8)
        while let frame = bytes(of: index) {
            let header = WriteAheadLog.FrameHeader(frame[...])
            // Nothing authenticates the salt either.
            let isNext = checksum.map { follows($0, frame) } ?? false
            index += 1
            guard isNext || header.salt.elementsEqual(salt) else {
                checksum = nil
                continue
            }
            checksum = Array(frame[16..<24])
            if header.isCommit || !hasSoundFrame, isSound(frame, pages) {
                hasSoundFrame = true
                if header.isCommit {
                    commit = index - 1
                    pageCount = isNext ? header.pageCount : nil
                    rest = Rest()
                    continue
                }
            }
            rest.frameCount += 1
            if header.isCommit { rest.hasCommit = true }
        }
        if let cut = header(of: index), cut.salt.elementsEqual(salt) {
            rest.frameCount += 1
            if cut.isCommit { rest.hasCommit = true }
        }
        if let commit { readFrames(through: commit, of: index, pages) }
    }

    private func readFrames(
        through commit: Int, of frameCount: Int, _ pages: borrowing RawPages
    ) {
        // Each frame can have added one page.
        let maximumPage = ((try? pages.count()) ?? 0) + frameCount
        for index in 0...commit {
            guard let frame = bytes(of: index) else { continue }
            let number = WriteAheadLog.pageNumber(ofFrame: frame[...])
            if isSound(frame, pages) {
                frames[number] = index
                lostPages.remove(number)
            } else if number >= 1, number <= maximumPage {
                frames[number] = nil
                lostPages.insert(number)
            } else {
                namelessCount += 1
            }
        }
    }

    /// Whether the checksum of a frame is right, which goes on from that of the frame before, or
    /// of the header. It covers page number and size, and not the salt.
    private func follows(_ checksum: [UInt8], _ frame: [UInt8]) -> Bool {
        // The header says which order it is, and may be damaged.
        [false, true].contains { isBigEndian in
            var sum = WALChecksum(isBigEndian: isBigEndian, after: checksum[...])
            sum.add(frame[0..<8])
            sum.add(frame[headerByteCount...])
            return sum == WALChecksum(isBigEndian: isBigEndian, after: frame[16..<24])
        }
    }

    private func isSound(_ frame: [UInt8], _ pages: borrowing RawPages) -> Bool {
        let number = WriteAheadLog.pageNumber(ofFrame: frame[...])
        return pages.authenticates(frame[headerByteCount...], number: number)
    }

    private func bytes(of frame: Int) -> [UInt8]? {
        let offset = WriteAheadLog.offset(ofFrame: frame, pageByteCount: pageByteCount)
        return reader.bytes(at: offset, headerByteCount + pageByteCount)
    }

    /// The header of a frame that may be cut off behind it.
    private func header(of frame: Int) -> WriteAheadLog.FrameHeader? {
        let offset = WriteAheadLog.offset(ofFrame: frame, pageByteCount: pageByteCount)
        return reader.bytes(at: offset, headerByteCount).map { WriteAheadLog.FrameHeader($0[...]) }
    }
}
