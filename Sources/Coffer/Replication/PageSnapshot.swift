import CSQLCipher

/// All pages of a store as one read transaction sees them, still encrypted.
///
/// The newest content of a page is in the WAL or in the main file. The transaction keeps the engine
/// from overwriting what it sees, in one of two ways:
///
/// - It reads from the WAL up to some frame. Then the WAL does not restart, and a checkpoint moves
///   no later frame into the main file.
/// - All frames had been moved when it began. Then no checkpoint runs, and the WAL may restart: its
///   frames are not needed.
package struct PageSnapshot: ~Copyable {
    /// Pages of the file.
    package let pageCount: Int
    /// `nil` if nothing but the pages themselves tells whether they have changed.
    package let version: PageVersion?
    /// The number of the key that the pages are under; `nil` for a file without a keyring.
    package let epoch: UInt32?

    private let transaction: TransactionAccess
    private let handle: Handle
    private let pages: RawPages
    private let profile: CipherProfile
    /// `nil` without WAL.
    private let log: WALFile?
    let index: WALFile.Index?
    /// The last frame of each page, among those that the transaction sees.
    private let frames: [Int: Int]

    package var pageByteCount: Int { profile.pageByteCount }

    /// - Parameters:
    ///   - open: The connection's file, in a read transaction that has read something.
    ///   - index: That of the WAL when the transaction began; `nil` without WAL.
    ///   - version: As `version(of:_:_:)` has returned it in this transaction.
    ///   - epoch: Of the connection's key; `nil` for a file without a keyring.
    ///   - transaction: The transaction.
    init(
        _ open: OpenFile, _ index: WALFile.Index?, _ version: PageVersion?, epoch: UInt32?,
        in transaction: TransactionAccess
    ) throws(StoreError) {
        guard open.profile.pageMAC != .none, let pageCount = open.handle.databasePageCount else {
            throw StoreError(.unsupported, "the pages of \(open.file.path) cannot be told apart")
        }
        let log = index == nil ? nil : WALFile(handle: open.handle)
        self.transaction = transaction
        handle = open.handle
        profile = open.profile
        pages = RawPages(open.handle, key: open.key, profile: open.profile)
        (self.pageCount, self.version, self.epoch) = (pageCount, version, epoch)
        (self.log, self.index) = (log, index)
        frames = index.map { Self.frames(of: $0, log, open.profile) } ?? [:]
    }

    /// The version of the pages that a transaction sees. It may be asked for before the pages: in a
    /// transaction that needs no frame, nothing moves into the main file.
    ///
    /// - Parameter stamp: That of a file, if it is old.
    static func version(
        of open: OpenFile, _ index: WALFile.Index?, _ stamp: (FileLocation) -> FileStamp?
    ) throws(StoreError) -> PageVersion? {
        guard let index else {
            return .firstPage(tag: try tag(in: open.handle, at: open.profile.macOffset, of: 1))
        }
        if index.committedFrameCount > 0 { return .log(index) }
        // The stamp is that of the path, which may lead to another file by now.
        guard !open.handle.hasMoved else { return nil }
        return stamp(open.file).map(PageVersion.file)
    }

    private static func frames(
        of index: WALFile.Index, _ log: WALFile?, _ profile: CipherProfile
    ) -> [Int: Int] {
        guard let log else { return [:] }
        var frames: [Int: Int] = [:]
        for frame in 0..<index.committedFrameCount {
            let offset = WriteAheadLog.offset(ofFrame: frame, pageByteCount: profile.pageByteCount)
            let header = log.bytes(at: offset, count: WriteAheadLog.frameHeaderByteCount)
            // Another salt: the WAL has restarted, and nothing of it is needed.
            guard let header, WriteAheadLog.FrameHeader(header[...]).salt.elementsEqual(index.salt)
            else { return [:] }
            frames[WriteAheadLog.pageNumber(ofFrame: header[...])] = frame
        }
        return (try? log.index())?.salt == index.salt ? frames : [:]
    }

    /// Ends the transaction if it has to make way, or if the task was cancelled.
    ///
    /// - Throws: `.suspended`, `.snapshotExpired`, `.cancelled`.
    package borrowing func requireGoing() throws(StoreError) {
        _ = try transaction.scope.connection(level: transaction.level)
    }

    // MARK: Pages

    /// The first 16 bytes of a page's MAC, which name its content: each write of a page encrypts it
    /// with a new random vector. Zeros for a page that has none.
    ///
    /// - Throws: `.damaged` if the file ends before the page; `.io`.
    package borrowing func tag(ofPage number: Int) throws(StoreError) -> [UInt8] {
        let empty = [UInt8](repeating: 0, count: Self.tagByteCount)
        guard number != pages.lockPage else { return empty }
        let (offset, count) = (profile.macOffset, Self.tagByteCount)
        if let tag = try logged(number, at: offset, count) { return tag }
        return try Self.tag(in: handle, at: (number - 1) * pageByteCount + offset, of: number)
    }

    /// Bytes of a tag.
    package static let tagByteCount = 16

    private static func tag(
        in handle: Handle, at offset: Int, of page: Int
    ) throws(StoreError) -> [UInt8] {
        guard let tag = try handle.rawBytes(at: offset, count: tagByteCount) else {
            throw missing(page)
        }
        return tag
    }

    /// A page, authenticated.
    ///
    /// - Throws: `.damaged` for a page whose MAC does not fit, or that is missing; `.io`.
    package borrowing func page(_ number: Int) throws(StoreError) -> [UInt8] {
        guard number != pages.lockPage else {
            return [UInt8](repeating: 0, count: pageByteCount)
        }
        var page = try logged(number, at: 0, pageByteCount)
        if page == nil { page = try pages.bytes(of: number) }
        guard let page else { throw Self.missing(number) }
        // SQLite leaves pages of zeros where `auto_vacuum` has moved the others.
        guard pages.isSound(page[...], number: number) || page.allSatisfy({ $0 == 0 }) else {
            throw StoreError(
                .damaged, "page \(number) failed authentication",
                hint: "Restore the file from a backup.", pages: [number])
        }
        return page
    }

    private static func missing(_ number: Int) -> StoreError {
        StoreError(
            .damaged, "the file ends before page \(number)",
            hint: "Restore the file from a backup.", pages: [number])
    }

    /// Bytes of a page in the WAL; `nil` if the main file has the content of the page.
    private borrowing func logged(
        _ number: Int, at offset: Int, _ count: Int
    ) throws(StoreError) -> [UInt8]? {
        guard let log, let index, let frame = frames[number] else { return nil }
        let start =
            WriteAheadLog.offset(ofFrame: frame, pageByteCount: pageByteCount)
            + WriteAheadLog.frameHeaderByteCount
        let bytes = log.bytes(at: start + offset, count: count)
        // A process that restarts the WAL writes the new salts into the index first.
        guard try log.index()?.salt == index.salt else { return nil }
        guard let bytes else {
            throw StoreError(.io, "the write-ahead log cannot be read", pages: [number])
        }
        return bytes
    }
}
