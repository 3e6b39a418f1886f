#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The copies of page 1 that a store may have: each shows by its MAC which key it is under.
///
/// After a crash they may be under different keys, and the engine alone knows which of them counts.
struct KeyEvidence {
    /// The newest committed one in the WAL, that in the journal, and that of the main file: those
    /// which exist.
    let pages: [[UInt8]]

    /// - Parameter main: The first page of the main file; `nil` if it is shorter.
    init(of file: FileLocation, main: [UInt8]?, profile: CipherProfile) {
        let byteCount = profile.pageByteCount
        pages = [
            Self.logged(file.path + "-wal", byteCount),
            Self.journaled(file.path + "-journal", byteCount), main,
        ].compactMap { $0 }
    }

    /// The epochs under whose keys the copies are, in the order of the copies; a copy that is under
    /// none of the candidates is left out.
    ///
    /// - Complexity: O(*candidates*), about 30 microseconds for each.
    func epochs(
        of candidates: EpochCandidates, under root: borrowing RootKey, id: [UInt8],
        profile: CipherProfile
    ) -> [UInt32] {
        var open = pages.filter { $0.starts(with: id) }
        let order = open
        var found: [[UInt8]: UInt32] = [:]
        for epoch in candidates where !open.isEmpty {
            let authenticator = PageAuthenticator(
                key: root.dataKey(epoch: epoch, id: id), profile: profile)
            for page in open
            where page.withUnsafeBytes({ authenticator.authenticates($0, number: 1) }) {
                found[page] = epoch
            }
            open.removeAll { found[$0] != nil }
        }
        return order.compactMap { found[$0] }
    }

    /// Whether a page is under a key of one of the candidates.
    static func isAuthentic(
        _ page: [UInt8]?, number: Int, in candidates: EpochCandidates,
        under root: borrowing RootKey, id: [UInt8], _ profile: CipherProfile
    ) -> Bool {
        guard let page else { return false }
        for epoch in candidates {
            let authenticator = PageAuthenticator(
                key: root.dataKey(epoch: epoch, id: id), profile: profile)
            if page.withUnsafeBytes({ authenticator.authenticates($0, number: number) }) {
                return true
            }
        }
        return false
    }

    /// The page 1 that the last commit in the WAL left, if the WAL has one.
    ///
    /// - Complexity: O(*bytes of the WAL*).
    private static func logged(_ path: String, _ pageByteCount: Int) -> [UInt8]? {
        let reader = FileReader(path)
        guard let header = reader?.bytes(at: 0, WriteAheadLog.headerByteCount),
            var log = WriteAheadLog(header: header), log.pageByteCount == pageByteCount
        else { return nil }
        var committed: [UInt8]?
        var pending: [UInt8]?
        var index = 0
        while let frame = reader?.bytes(at: log.offset(ofFrame: index), log.frameByteCount),
            let page = log.page(ofNextFrame: frame)
        {
            if page.number == 1 { pending = Array(page.content) }
            if WriteAheadLog.FrameHeader(frame[...]).isCommit, let page = pending {
                committed = page
                pending = nil
            }
            index += 1
        }
        return committed
    }

    /// The page 1 that a rollback would restore.
    ///
    /// > "8 4 The "Page Count" … 20 4 sector size … 24 4 Size of pages in this journal", and each
    /// > record: "0 4 Page number … 4 N Original content of the page … N+4 4 Checksum"
    /// > <https://www.sqlite.org/fileformat2.html#the_rollback_journal>
    private static func journaled(_ path: String, _ pageByteCount: Int) -> [UInt8]? {
        let magic: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]
        guard let reader = FileReader(path), let header = reader.bytes(at: 0, 28),
            header.starts(with: magic), UInt32(bigEndianAt: 24, of: header) == pageByteCount
        else { return nil }
        var offset = Int(UInt32(bigEndianAt: 20, of: header))
        guard offset >= 512, offset <= 65_536 else { return nil }
        while let number = reader.bytes(at: offset, 4) {
            if UInt32(bigEndianAt: 0, of: number) == 1 {
                return reader.bytes(at: offset + 4, pageByteCount)
            }
            offset += pageByteCount + 8
        }
        return nil
    }
}

/// Reads a WAL or journal, on which SQLite holds no locks.
private struct FileReader: ~Copyable {
    private let descriptor: Int32

    init?(_ path: String) {
        descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
    }

    deinit { close(descriptor) }

    /// `nil` beyond the end of the file.
    borrowing func bytes(at offset: Int, _ count: Int) -> [UInt8]? {
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            filled = max(0, pread(descriptor, buffer.baseAddress, count, off_t(offset)))
        }
        return bytes.count == count ? bytes : nil
    }
}
