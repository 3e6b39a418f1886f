import Crypto

/// The copies of page 1 that a store may have: each shows by its MAC which key it is under.
///
/// After a crash they may be under different keys, and only the engine knows which of them counts.
struct KeyEvidence {
    /// The newest committed copy in the WAL, the one in the journal, and the one in the main file:
    /// those that exist.
    let pages: [[UInt8]]
    private let content: KeyringContent
    private let candidates: EpochCandidates
    private let searchesAll: Bool

    /// - Parameters:
    ///   - main: The first page of the main file; `nil` if the file is shorter.
    ///   - content: The keyring's.
    ///   - seconds: The time, in seconds since 1970.
    ///   - searchesAll: Whether epochs are tried that only a wrong clock makes: some seconds.
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
        self.searchesAll = searchesAll
    }

    /// How many candidates are likely.
    private static let likelyCount = 4096

    /// The result of a search through the candidates.
    struct Found {
        /// The epochs under whose keys the copies are, in the order of the copies. A copy that no
        /// candidate fits is left out.
        let epochs: [UInt32]
        /// Whether no copy has an epoch, but page 2 is under the key of a candidate.
        let fitsSecond: Bool
    }

    /// Tries the candidates until each copy has its epoch. If no copy has one, tries page 2.
    ///
    /// Once the first copy has its epoch, only the likely candidates are tried for the others:
    /// another process may be writing one of them. A search of all epochs does not try page 2,
    /// because each of its trials needs a MAC: a search without it comes first.
    ///
    /// - Parameters:
    ///   - second: Page 2 of the main file; `nil` if there is none, or its key does not matter.
    ///   - isShort: Whether only the likely candidates are tried in any case.
    ///   - tried: Called with the number of candidates that were tried, after each 4 096.
    /// - Complexity: O(*candidates*): about 20 microseconds for each with page 2, less without.
    func search(
        _ second: [UInt8]? = nil, under root: borrowing RootKey, isShort: Bool = false,
        tried: ((Int) -> Void)? = nil
    ) -> Found {
        let own = pages.filter { $0.starts(with: content.id) }
        var open = own
        var found: [[UInt8]: UInt32] = [:]
        let keys = root.trialKeys(for: content.id)
        for (count, epoch) in candidates.enumerated() {
            if open.isEmpty { break }
            let isFirstFound = own.first.map { found[$0] != nil } ?? false
            if count >= Self.likelyCount, isShort || isFirstFound { break }
            let key = keys.key(ofEpoch: epoch)
            let likely = open.filter { content.profile.startsADatabase($0, under: key) }
            if !likely.isEmpty {
                let authenticator = authenticator(key)
                for page in likely where Self.fits(page, 1, authenticator) { found[page] = epoch }
                open.removeAll { found[$0] != nil }
            }
            if count & 0xfff == 0xfff { tried?(count + 1) }
        }
        return Found(
            epochs: own.compactMap { found[$0] },
            fitsSecond: found.isEmpty && !searchesAll
                && second.map { hasEpoch($0, 2, keys, isShort: isShort) } ?? false)
    }

    /// Whether a page is under the key of a candidate.
    private func hasEpoch(
        _ page: [UInt8], _ number: Int, _ keys: RootKey.TrialKeys, isShort: Bool
    ) -> Bool {
        for (count, epoch) in candidates.enumerated() {
            if isShort, count >= Self.likelyCount { return false }
            if Self.fits(page, number, authenticator(keys.key(ofEpoch: epoch))) { return true }
        }
        return false
    }

    private func authenticator(_ key: SymmetricKey) -> PageAuthenticator {
        PageAuthenticator(key: key, salt: content.id, profile: content.profile)
    }

    private static func fits(
        _ page: [UInt8], _ number: Int, _ authenticator: borrowing PageAuthenticator
    ) -> Bool {
        page.withUnsafeBytes { authenticator.authenticates($0, number: number) }
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
