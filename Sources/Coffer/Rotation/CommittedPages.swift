/// The newest committed content of each page, in the clear: from the log if it has the page, from
/// the main file otherwise.
///
/// Lives in the transaction that keeps both as they are. Holds one number for each page that is in
/// the log.
final class CommittedPages {
    private let open: Connection.FileState
    private let pages: RawPages
    private let log: LogFile?
    /// Frames by page, the last one of each.
    private var frames: [Int: Int] = [:]
    private let isCancelled: () -> Bool

    /// - Parameter log: `nil` without WAL.
    /// - Throws: `.busy`, `.io` if the log's index cannot be read.
    init(
        open: Connection.FileState, log: LogFile?, isCancelled: @escaping () -> Bool
    ) throws(StoreError) {
        self.open = open
        self.log = log
        self.isCancelled = isCancelled
        pages = RawPages(open.handle, key: open.key, profile: open.profile)
        guard let log, let index = try log.index() else { return }
        // No more than the log has, whatever its index says.
        let slotCount = log.frameSlotCount(pageByteCount: pages.byteCount)
        for index in 0..<min(index.committedFrameCount, slotCount) {
            // SQLite finds frames by its index and looks at no checksum here: what the header of
            // a damaged frame says is all there is. The MAC of the content tells if it is wrong.
            let offset = WriteAheadLog.offset(ofFrame: index, pageByteCount: pages.byteCount)
            let header = log.bytes(at: offset, count: WriteAheadLog.frameHeaderByteCount)
            if let header { frames[WriteAheadLog.pageNumber(ofFrame: header[...])] = index }
        }
    }

    /// What the damaged pages hold.
    ///
    /// - Throws: `.cancelled`; what reading throws.
    func contents(of numbers: Set<Int>) throws(StoreError) -> [Int: PageContent] {
        guard !numbers.isEmpty else { return [:] }
        let pageCount = try pages.count()
        return try PageOwners.contents(of: numbers, pageCount: pageCount) {
            (number) throws(StoreError) in try self.plaintext(of: number)
        }
    }

    /// `nil` if the page is damaged or not there.
    private func plaintext(of number: Int) throws(StoreError) -> [UInt8]? {
        guard !isCancelled() else { throw Verification.cancelled }
        guard let page = try newest(number),
            pages.authenticates(page[...], number: number)
        else { return nil }
        return page.withUnsafeBytes {
            open.profile.decrypt($0, number: number, key: open.key)
        }
    }

    private func newest(_ number: Int) throws(StoreError) -> [UInt8]? {
        if let log, let frame = frames[number] {
            let offset = WriteAheadLog.offset(ofFrame: frame, pageByteCount: pages.byteCount)
            return log.bytes(
                at: offset + WriteAheadLog.frameHeaderByteCount, count: pages.byteCount)
        }
        do throws(StoreError) {
            return try pages.bytes(of: number)
        } catch  where error.code == .damaged || error.code == .io {
            return nil
        }
    }
}
