#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The committed pages of a WAL that no connection has open, as far as their MACs fit.
///
/// The engine stops at the first frame whose checksum is wrong. Here the MAC of each frame decides,
/// so that the commits behind a damaged frame count as well.
///
/// Opening and closing the WAL is harmless: SQLite holds no locks on it.
final class DamagedWAL {
    /// The frame, counted from 0, with the newest content of each page.
    private(set) var frames: [Int: Int] = [:]
    /// Pages whose newest committed content is in a damaged frame. What the main file has of them
    /// is out of date.
    private(set) var lostPages: Set<Int> = []
    /// Damaged frames that do not even name a page of the database.
    private(set) var namelessCount = 0
    /// Pages of the database after the last commit; `nil` if the WAL has no commit.
    private(set) var pageCount: Int?
    /// Committed frames, with the damaged ones.
    private(set) var frameCount = 0

    private let descriptor: Int32
    private let pageByteCount: Int

    /// Reads the WAL next to a file.
    ///
    /// - Parameters:
    ///   - path: The path of the WAL.
    ///   - pages: Authenticates a frame's content.
    /// - Returns: `nil` if there is none, or if no frame of it belongs to the file.
    /// - Complexity: O(*frames*) time and memory.
    init?(path: String, pages: borrowing RawPages) {
        descriptor = open(path, O_RDONLY | O_CLOEXEC)
        pageByteCount = pages.byteCount
        guard descriptor >= 0 else { return nil }
        guard let salt = salt(pages) else { return nil }
        read(salt, pages)
        guard !frames.isEmpty else { return nil }
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    /// The content of the page's newest committed frame, still encrypted.
    func content(of number: Int) -> [UInt8]? {
        frames[number].flatMap { bytes(of: $0) }.map { Array($0.dropFirst(headerByteCount)) }
    }

    private let headerByteCount = WriteAheadLog.frameHeaderByteCount

    /// The salt of the frames: that of the header, or if the header is damaged, that of the first
    /// frame.
    private func salt(_ pages: borrowing RawPages) -> [UInt8]? {
        var header = [UInt8](repeating: 0, count: WriteAheadLog.headerByteCount)
        if pread(descriptor, &header, header.count, 0) == header.count,
            let log = WriteAheadLog(header: header), log.pageByteCount == pageByteCount
        {
            return Array(log.salt)
        }
        guard let frame = bytes(of: 0), isSound(frame, pages) else { return nil }
        return Array(WriteAheadLog.FrameHeader(frame[...]).salt)
    }

    /// Finds the last commit first. What follows it is a rest of a rolled-back transaction.
    private func read(_ salt: [UInt8], _ pages: borrowing RawPages) {
        var commit: Int?
        var index = 0
        while let frame = bytes(of: index) {
            let header = WriteAheadLog.FrameHeader(frame[...])
            if header.isCommit, header.salt.elementsEqual(salt), isSound(frame, pages) {
                commit = index
                pageCount = header.pageCount
            }
            index += 1
        }
        guard let commit else { return }
        frameCount = commit + 1
        for index in 0...commit {
            guard let frame = bytes(of: index) else { continue }
            let number = WriteAheadLog.pageNumber(ofFrame: frame[...])
            if isSound(frame, pages) {
                frames[number] = index
                lostPages.remove(number)
            } else if (1...max(pageCount ?? 0, 1)).contains(number) {
                frames[number] = nil
                lostPages.insert(number)
            } else {
                namelessCount += 1
            }
        }
    }

    private func isSound(_ frame: [UInt8], _ pages: borrowing RawPages) -> Bool {
        let number = WriteAheadLog.pageNumber(ofFrame: frame[...])
        return pages.authenticates(frame[headerByteCount...], number: number)
    }

    private func bytes(of frame: Int) -> [UInt8]? {
        let offset = WriteAheadLog.offset(ofFrame: frame, pageByteCount: pageByteCount)
        var bytes = [UInt8](repeating: 0, count: headerByteCount + pageByteCount)
        let count = pread(descriptor, &bytes, bytes.count, off_t(offset))
        return count == bytes.count ? bytes : nil
    }
}
