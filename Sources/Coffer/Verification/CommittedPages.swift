/// The newest committed content of each page, decrypted. It comes from the WAL if that has the
/// page, and otherwise from the main file.
///
/// Must be used in the transaction that keeps both unchanged.
final class CommittedPages {
    private let open: OpenFile
    private let pages: RawPages
    private let log: WALPages?
    private let cancellation: Cancellation?

    /// Reads the pages of this open file.
    ///
    /// - Parameters:
    ///   - log: The pages of the WAL; `nil` without WAL.
    ///   - cancellation: Looked at before each page is read; ends the reading.
    init(open: OpenFile, log: WALPages?, cancellation: Cancellation?) {
        self.open = open
        self.log = log
        self.cancellation = cancellation
        pages = RawPages(open.handle, key: open.key, profile: open.profile)
    }

    /// Finds out what the given damaged pages hold, from the pages that are not damaged.
    ///
    /// - Parameter numbers: Numbers of pages, from 1; empty for an empty result.
    /// - Returns: The content of each page; `.unknown` if the other pages do not reveal it.
    /// - Throws: `.cancelled` after a cancellation; errors of reading, apart from
    ///   `.damaged` and `.io` for a page.
    func contents(of numbers: Set<Int>) throws(StoreError) -> [Int: PageContent] {
        guard !numbers.isEmpty else { return [:] }
        let pageCount = max(try pages.count(), log?.pageCount ?? 0)
        return try PageOwners.contents(of: numbers, pageCount: pageCount) {
            (number) throws(StoreError) in try self.plaintext(of: number)
        }
    }

    /// The decrypted page; `nil` if it is damaged, cannot be read or does not exist.
    ///
    /// - Throws: `.cancelled` after a cancellation.
    private func plaintext(of number: Int) throws(StoreError) -> [UInt8]? {
        guard cancellation?.isCancelled != true else { throw Verification.cancelled }
        guard let page = try newest(number),
            pages.authenticates(page[...], number: number)
        else { return nil }
        return page.withUnsafeBytes {
            open.profile.decrypt($0, number: number, key: open.key)
        }
    }

    private func newest(_ number: Int) throws(StoreError) -> [UInt8]? {
        if let content = log?.content(of: number) { return content }
        do throws(StoreError) {
            return try pages.bytes(of: number)
        } catch  where error.code == .damaged || error.code == .io {
            return nil
        }
    }
}
