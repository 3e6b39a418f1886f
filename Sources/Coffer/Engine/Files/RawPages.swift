/// The pages of a main file as they are on disk, read through the engine's own descriptor.
struct RawPages: ~Copyable {
    private let handle: Handle
    private let authenticator: PageAuthenticator
    let byteCount: Int
    private let salt: [UInt8]

    init(_ handle: Handle, key: borrowing RawKey, profile: CipherProfile) {
        self.handle = handle
        byteCount = profile.pageByteCount
        salt = key.salt
        authenticator = PageAuthenticator(key: key, profile: profile)
    }

    /// The page that is never written: see `lockPage(pageByteCount:)`.
    var lockPage: Int { Self.lockPage(pageByteCount: byteCount) }

    /// The page at 2^30 holds SQLite's lock bytes and is never written.
    /// See <https://www.sqlite.org/fileformat2.html#the_lock_byte_page>.
    static func lockPage(pageByteCount: Int) -> Int { (1 << 30) / pageByteCount + 1 }

    /// Whether the MAC of a page in the main file fits. Pages are counted from 1.
    ///
    /// `true` for a page beyond the end of the file, as the file may have shrunk in the meantime.
    /// `false` for a page that cannot be read, as on a bad sector: `.damaged` and `.io` are not
    /// thrown.
    ///
    /// Page 1 must also begin with the key's salt. No MAC covers the salt. An open store or a key
    /// of 48 bytes does not need it, but with another salt in the file no passphrase opens it.
    borrowing func isAuthentic(_ number: Int) throws(StoreError) -> Bool {
        do throws(StoreError) {
            guard let page = try bytes(of: number) else { return true }
            return isSound(page[...], number: number)
        } catch  where error.code == .damaged || error.code == .io {
            return false
        }
    }

    /// Whether the main file has a page 1 that begins with the key's salt and whose MAC fits.
    ///
    /// - Throws: `.io` if page 1 cannot be read: that says nothing about the key.
    borrowing func opensAlone() throws(StoreError) -> Bool {
        do throws(StoreError) {
            return try bytes(of: 1).map { isSound($0[...], number: 1) } ?? false
        } catch  where error.code == .damaged {
            return false
        }
    }

    /// Whether the MAC of a page's newest content fits: that of its frame if the WAL has a newer
    /// one, otherwise that of the main file's content.
    ///
    /// `true` for a page beyond the end of the database, `false` for a page or frame that cannot be
    /// read: `.damaged` and `.io` are not thrown.
    ///
    /// - Parameters:
    ///   - number: The page, counted from 1.
    ///   - log: The pages in the WAL; `nil` without WAL.
    borrowing func isAuthentic(_ number: Int, in log: WALPages?) throws(StoreError) -> Bool {
        switch log?.place(of: number) {
        case nil, .mainFile: try isAuthentic(number)
        case .nowhere: true
        case .log: log?.content(of: number).map { isSound($0[...], number: number) } ?? false
        }
    }

    /// The pages with newer content in the WAL; `nil` without a WAL, or if its index cannot be
    /// read.
    ///
    /// - Complexity: O(*frames in the WAL*).
    borrowing func walPages() -> WALPages? {
        let log = WALFile(handle: handle)
        return log.isOpen ? (try? WALPages(log, pageByteCount: byteCount)) ?? nil : nil
    }

    /// Whether the MAC of a page's content fits, from the main file or the WAL. Page 1 must also
    /// begin with the key's salt.
    borrowing func isSound(_ page: ArraySlice<UInt8>, number: Int) -> Bool {
        page.withUnsafeBytes { authenticator.isSound($0, number: number, salt: salt) }
    }

    /// The page, counted from 1, as it is in the main file, still encrypted. `nil` beyond the end
    /// of the file. Does not check the MAC.
    ///
    /// - Throws: `.damaged` for a page of zeros on SQLCipher 3; errors of the read itself.
    borrowing func bytes(of number: Int) throws(StoreError) -> [UInt8]? {
        try handle.rawBytes(at: (number - 1) * byteCount, count: byteCount)
    }

    /// Pages that follow each other, as `bytes(of:)` reads one; `nil` beyond the end of the file.
    ///
    /// - Throws: Errors of the read itself.
    borrowing func bytes(from first: Int, count: Int) throws(StoreError) -> [UInt8]? {
        try handle.rawBytes(at: (first - 1) * byteCount, count: count * byteCount)
    }

    /// The number of whole pages in the file; a partial page at its end does not count. Throws
    /// `.io` if the size of the file cannot be read.
    borrowing func count() throws(StoreError) -> Int { try handle.rawByteCount() / byteCount }

    borrowing func authenticates(_ page: ArraySlice<UInt8>, number: Int) -> Bool {
        page.withUnsafeBytes { authenticator.authenticates($0, number: number) }
    }

    /// The number of database pages whose MAC in the main file does not fit, whatever the WAL
    /// contains. Pages of zeros, which `auto_vacuum` may leave, do not count.
    ///
    /// - Parameter pageCount: The database's pages. The file may be longer: nothing reads the rest.
    /// - Throws: `.io` if the size of the file cannot be read.
    /// - Complexity: O(*pages*).
    borrowing func foreignCount(of pageCount: Int) throws(StoreError) -> Int {
        var foreignCount = 0
        let pageCount = min(pageCount, try count())
        for number in stride(from: 1, through: pageCount, by: 1) where number != lockPage {
            guard try !isAuthentic(number) else { continue }
            let isEmpty = (try? bytes(of: number))?.allSatisfy { $0 == 0 } ?? false
            if !isEmpty { foreignCount += 1 }
        }
        return foreignCount
    }

    /// The number of bytes beyond the end of the database, if they are not all whole pages whose
    /// MACs fit; otherwise 0. An interrupted change may leave such bytes.
    ///
    /// - Parameter pageCount: The database's pages.
    /// - Throws: `.io` if the size of the file cannot be read.
    /// - Complexity: O(*pages beyond the end*).
    borrowing func foreignByteCount(behind pageCount: Int) throws(StoreError) -> Int {
        let surplus = try handle.rawByteCount() - pageCount * byteCount
        guard surplus > 0 else { return 0 }
        var isForeign = surplus % byteCount != 0
        for number in stride(from: pageCount + 1, through: try count(), by: 1)
        where !isForeign && number != lockPage {
            isForeign = try !isAuthentic(number)
        }
        return isForeign ? surplus : 0
    }

    /// The numbers of the first pages whose MAC does not fit, ascending, counted from 1. Empty if
    /// all fit. A page whose frame in the WAL is newer counts only if the frame's MAC does not fit.
    ///
    /// A page that fails is read again three times, 10 ms apart, and does not count if it then
    /// fits.
    ///
    /// - Parameters:
    ///   - maximumCount: The most pages to report.
    ///   - pageCount: The database's pages, if the number is known: the file may be longer.
    ///   - logged: Pages whose newest content is known to be in the WAL: they are passed over.
    /// - Throws: `.io` if the size of the file cannot be read.
    /// - Complexity: O(*pages*); if a page fails, memory for one number per page in the WAL.
    borrowing func damaged(
        maximumCount: Int, of pageCount: Int = .max, except logged: Set<Int> = []
    ) throws(StoreError) -> [Int] {
        var damaged: [Int] = []
        var log: WALPages?
        var hasLooked = false
        let pageCount = min(pageCount, try count())
        for number in stride(from: 1, through: pageCount, by: 1) where number != lockPage {
            guard !logged.contains(number), try !isAuthentic(number) else { continue }
            if !hasLooked { (log, hasLooked) = (walPages(), true) }
            if try !isAuthentic(number, in: log) { damaged.append(number) }
            if damaged.count == maximumCount { break }
        }
        // Another process may have been in the middle of writing one of them.
        for _ in 0..<3 where !damaged.isEmpty {
            sleepBriefly()
            log = walPages()
            var failing: [Int] = []
            for number in damaged where try !isAuthentic(number, in: log) {
                failing.append(number)
            }
            damaged = failing
        }
        return damaged
    }
}
