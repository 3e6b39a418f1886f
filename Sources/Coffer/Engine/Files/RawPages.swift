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

    /// A page that the file does not have (it may have shrunk meanwhile) is no damage; one that
    /// cannot be read, on a bad sector, is as lost as one that was changed.
    ///
    /// Page 1 also has to begin with the key's salt. No MAC covers it, and an open store or a key
    /// of 48 bytes does without it, but no passphrase ever opens the file with another one.
    borrowing func isAuthentic(_ number: Int) throws(StoreError) -> Bool {
        do throws(StoreError) {
            guard let page = try bytes(of: number) else { return true }
            return isSound(page[...], number: number)
        } catch  where error.code == .damaged || error.code == .io {
            return false
        }
    }

    /// Whether what counts of a page is authentic: its frame in the log if the main file's content
    /// is stale.
    ///
    /// - Parameter log: `nil` without WAL.
    borrowing func isAuthentic(_ number: Int, in log: LogPages?) throws(StoreError) -> Bool {
        switch log?.place(of: number) {
        case nil, .mainFile: try isAuthentic(number)
        case .nowhere: true
        case .log: log?.content(of: number).map { isSound($0[...], number: number) } ?? false
        }
    }

    /// Which pages have newer content in the log; `nil` without one, or if its index cannot be
    /// read.
    ///
    /// - Complexity: O(*frames of the log*).
    borrowing func logPages() -> LogPages? {
        let log = LogFile(handle: handle)
        return log.isOpen ? (try? LogPages(log, pageByteCount: byteCount)) ?? nil : nil
    }

    /// Whether the content of a page, from the main file or the log, is what the holder of the key
    /// wrote, with its salt.
    borrowing func isSound(_ page: ArraySlice<UInt8>, number: Int) -> Bool {
        if number == 1, !page.starts(with: salt) { return false }
        return authenticates(page, number: number)
    }

    /// The page as it is in the file, authentic or not; `nil` if the file does not have it.
    ///
    /// - Throws: `.damaged` for a page of zeros on SQLCipher 3; what reading throws.
    borrowing func bytes(of number: Int) throws(StoreError) -> [UInt8]? {
        try handle.rawBytes(at: (number - 1) * byteCount, count: byteCount)
    }

    /// Pages of the file, without a part at its end.
    borrowing func count() throws(StoreError) -> Int { try handle.rawByteCount() / byteCount }

    borrowing func authenticates(_ page: ArraySlice<UInt8>, number: Int) -> Bool {
        page.withUnsafeBytes { authenticator.authenticates($0, number: number) }
    }

    /// How many pages of the database are not under the key in the main file alone, whatever the
    /// log has. Pages of zeros, which `auto_vacuum` may leave, are under no key.
    ///
    /// - Parameter pageCount: Of the database. The file may be longer: nothing reads its rest.
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

    /// Bytes behind the end of the database if they are not pages under the key, which a change
    /// that was cut short may leave there; else 0.
    ///
    /// - Complexity: O(*pages behind the end*).
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

    /// Numbers of the first pages that fail, stale ones left out whose frame in the log is
    /// authentic.
    ///
    /// - Parameters:
    ///   - pageCount: Of the database, if it is known: the file may be longer.
    ///   - logged: Pages whose newest content is known to be in the log.
    /// - Complexity: O(*pages*); if one fails, one number for each page in the log.
    borrowing func damaged(
        countMax: Int, of pageCount: Int = .max, except logged: Set<Int> = []
    ) throws(StoreError) -> [Int] {
        var damaged: [Int] = []
        var log: LogPages?
        var hasLooked = false
        let pageCount = min(pageCount, try count())
        for number in stride(from: 1, through: pageCount, by: 1) where number != lockPage {
            guard !logged.contains(number), try !isAuthentic(number) else { continue }
            if !hasLooked { (log, hasLooked) = (logPages(), true) }
            if try !isAuthentic(number, in: log) { damaged.append(number) }
            if damaged.count == countMax { break }
        }
        // Another process may have been half-way through writing one of them.
        for _ in 0..<3 where !damaged.isEmpty {
            sleepBriefly()
            log = logPages()
            var failing: [Int] = []
            for number in damaged where try !isAuthentic(number, in: log) {
                failing.append(number)
            }
            damaged = failing
        }
        return damaged
    }
}
