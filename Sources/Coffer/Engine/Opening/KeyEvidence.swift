/// The copies of page 1 that a store may have: each shows by its MAC which key it is under.
///
/// After a crash they may be under different keys, and only the engine knows which of them counts.
struct KeyEvidence {
    /// The newest committed copy in the WAL, the one in the journal, and the one in the main file:
    /// those that exist.
    let pages: [[UInt8]]
    private let content: KeyringContent
    private let candidates: EpochCandidates

    /// - Parameters:
    ///   - main: The first page of the main file; `nil` if the file is shorter.
    ///   - content: The keyring's.
    ///   - seconds: The time, in seconds since 1970.
    ///   - searchesAll: Whether epochs are tried that only a wrong clock makes: a minute.
    init(
        of file: FileLocation, main: [UInt8]?, _ content: KeyringContent, seconds: Int64,
        searchesAll: Bool = false
    ) {
        let byteCount = content.profile.pageByteCount
        pages = [
            Self.committed(file.path + "-wal", byteCount),
            Self.journaled(file.path + "-journal", byteCount), main,
        ].compactMap { $0 }
        self.content = content
        candidates = EpochCandidates(
            of: content, hour: EpochCandidates.hour(of: seconds), isWhole: searchesAll)
    }

    /// The epochs under whose keys the copies are, in the order of the copies. A copy that no
    /// candidate fits is left out.
    ///
    /// - Complexity: O(*candidates*), about 30 microseconds for each.
    func epochs(under root: borrowing RootKey) -> [UInt32] {
        epochs(of: pages.filter { $0.starts(with: content.id) }, number: 1, under: root)
    }

    /// Whether a page is under the key of any candidate.
    func isAuthentic(_ page: [UInt8]?, number: Int, under root: borrowing RootKey) -> Bool {
        guard let page else { return false }
        return !epochs(of: [page], number: number, under: root).isEmpty
    }

    private func epochs(
        of pages: [[UInt8]], number: Int, under root: borrowing RootKey
    ) -> [UInt32] {
        var open = pages
        var found: [[UInt8]: UInt32] = [:]
        guard !open.isEmpty else { return [] }
        for epoch in candidates {
            let authenticator = PageAuthenticator(
                key: root.dataKey(epoch: epoch, id: content.id), profile: content.profile)
            for page in open
            where page.withUnsafeBytes({ authenticator.authenticates($0, number: number) }) {
                found[page] = epoch
            }
            open.removeAll { found[$0] != nil }
            if open.isEmpty { break }
        }
        return pages.compactMap { found[$0] }
    }

    /// The page 1 of the last commit in the WAL, if the WAL has one.
    ///
    /// - Complexity: O(*bytes of the WAL*).
    private static func committed(_ path: String, _ pageByteCount: Int) -> [UInt8]? {
        guard let reader = FileReader(path),
            let header = reader.bytes(at: 0, WriteAheadLog.headerByteCount),
            var wal = WriteAheadLog(header: header), wal.pageByteCount == pageByteCount
        else { return nil }
        var committed: [UInt8]?
        var pending: [UInt8]?
        var index = 0
        while let frame = reader.bytes(at: wal.offset(ofFrame: index), wal.frameByteCount),
            let page = wal.page(ofNextFrame: frame)
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
    /// - Complexity: O(*pages of the journal*).
    private static func journaled(_ path: String, _ pageByteCount: Int) -> [UInt8]? {
        guard let reader = FileReader(path),
            let header = reader.bytes(at: 0, RollbackJournal.headerByteCount),
            let journal = RollbackJournal(header: header), journal.pageByteCount == pageByteCount,
            (512...65_536).contains(journal.sectorByteCount)
        else { return nil }
        var offset = journal.sectorByteCount
        let numberByteCount = RollbackJournal.pageNumberByteCount
        while let number = reader.bytes(at: offset, numberByteCount) {
            if UInt32(bigEndianAt: 0, of: number) == 1 {
                return reader.bytes(at: offset + numberByteCount, pageByteCount)
            }
            offset += journal.recordByteCount
        }
        return nil
    }
}
