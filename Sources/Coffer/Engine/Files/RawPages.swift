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

    /// The page at 2^30 holds SQLite's lock bytes and is never written.
    /// See <https://www.sqlite.org/fileformat2.html#the_lock_byte_page>.
    var lockPage: Int { (1 << 30) / byteCount + 1 }

    /// Whether the MAC of a page in the main file fits; pages count from 1.
    ///
    /// `true` for a page beyond the end of the file, which may have shrunk in the meantime. `false`
    /// for a page that cannot be read, as on a bad sector. Throws other errors of reading, such as
    /// `.busy`.
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

    /// Whether the first page in the main file is there and authentic.
    ///
    /// - Throws: `.io` if it cannot be read: that says nothing about the key.
    borrowing func opensAlone() throws(StoreError) -> Bool {
        do throws(StoreError) {
            return try bytes(of: 1).map { isSound($0[...], number: 1) } ?? false
        } catch  where error.code == .damaged {
            return false
        }
    }

    /// Whether the page is authentic: its frame in the WAL if the main file's content is stale,
    /// otherwise the main file's content.
    ///
    /// - Parameter log: `nil` without WAL.
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

    /// Whether the content of a page, from the main file or the WAL, was written by a holder of the
    /// key, with the key's salt.
    borrowing func isSound(_ page: ArraySlice<UInt8>, number: Int) -> Bool {
        if number == 1, !page.starts(with: salt) { return false }
        return authenticates(page, number: number)
    }

    /// The page as it is in the file, authentic or not; `nil` beyond the end of the file.
    ///
    /// - Throws: `.damaged` for a page of zeros on SQLCipher 3; errors of the read itself.
    borrowing func bytes(of number: Int) throws(StoreError) -> [UInt8]? {
        try handle.rawBytes(at: (number - 1) * byteCount, count: byteCount)
    }

    /// The number of whole pages in the file; a partial page at its end does not count.
    borrowing func count() throws(StoreError) -> Int { try handle.rawByteCount() / byteCount }

    borrowing func authenticates(_ page: ArraySlice<UInt8>, number: Int) -> Bool {
        page.withUnsafeBytes { authenticator.authenticates($0, number: number) }
    }

    /// The number of pages of the main file whose MAC does not fit under the key, whatever the WAL
    /// contains. Damaged pages count too. Pages of zeros, which `auto_vacuum` may leave, and pages
    /// beyond the end of the file do not.
    ///
    /// - Parameter pageCount: The database's pages. The file may be longer: nothing reads the rest.
    /// - Throws: Errors of asking for the file's length.
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

    /// The number of bytes beyond the end of the database if not all of them are pages under the
    /// key, otherwise 0. An interrupted change may leave such bytes.
    ///
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

    /// The numbers of the first pages that fail authentication. A stale page does not count if its
    /// frame in the WAL is authentic.
    ///
    /// - Parameters:
    ///   - maximumCount: The most pages to report.
    ///   - pageCount: The database's pages, if the number is known: the file may be longer.
    ///   - logged: Pages whose newest content is known to be in the WAL.
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
