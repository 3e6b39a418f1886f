import CSQLCipher

/// A damaged store, read page by page: the engine reads none of it.
///
/// An exclusive lock keeps every other connection out until the source is closed. Of a file that
/// this process may not write it is a shared one, which `isExclusive` tells.
final class SalvageSource {
    let file: FileLocation
    let cipher: FileCipher
    /// Pages of the database as page 1 says. Without page 1, those of the last commit in the WAL
    /// or else of the file, but no more than there are.
    let pageCount: Int
    /// Bytes of a page that SQLite uses.
    let usableByteCount: Int
    /// The decrypted header of the database; `nil` if page 1 is damaged.
    let header: PageBytes?
    let log: DamagedWAL?
    /// Whether there is a WAL of which no frame belongs to the file.
    let hasForeignWAL: Bool
    /// Whether nobody can have changed the file meanwhile.
    let isExclusive: Bool

    private let handle: Handle
    private let pages: RawPages
    private let monitor: CopyMonitor

    /// - Throws: `.busy` if another connection has the file open; `.wrongKey` if no page opens with
    ///   the key; as `Opening.readSalt`; `.io`, `.cancelled`.
    init(
        _ file: FileLocation, key: borrowing StoreKey, _ configuration: Configuration,
        _ monitor: CopyMonitor
    ) throws(StoreError) {
        self.file = file
        self.monitor = monitor
        let lock = try Self.locked(file, configuration)
        handle = lock.handle
        isExclusive = lock.isExclusive
        cipher = try Self.cipher(of: handle, file, key: key, configuration, monitor)
        pages = RawPages(handle, key: cipher.key, profile: cipher.profile)
        log = DamagedWAL(path: file.path + "-wal", pages: pages)
        hasForeignWAL = log == nil && file.companionByteCount("-wal") > 0
        let first = try Self.plaintext(1, log, pages, cipher)
        header = first.map { PageBytes($0) }
        let fileCount = max(try pages.count(), log?.frames.keys.max() ?? 0)
        let logged = min(log?.pageCount ?? 0, fileCount)
        // A file that is cut off ends before its database does, and only page 1 can tell: its MAC
        // was compared.
        let told = first.flatMap(Self.pageCount) ?? (logged > 0 ? logged : fileCount)
        pageCount = max(min(max(told, logged), Int(UInt32.max)), 1)
        if let first {
            usableByteCount = PageOwners.usableByteCount(first)
        } else {
            usableByteCount = try Self.usableByteCount(fileCount, log, pages, cipher)
        }
    }

    func close() { handle.close() }

    /// The page at 2^30 is never written, and is not content.
    var lockPage: Int { pages.lockPage }

    /// The newest content of a page, decrypted, without the bytes that the cipher reserves.
    ///
    /// - Returns: `nil` if the page is damaged or does not exist.
    /// - Throws: `.cancelled`.
    func page(_ number: Int) throws(StoreError) -> [UInt8]? {
        try monitor.requireNotCancelled()
        guard number >= 1, number <= pageCount, number != lockPage else { return nil }
        guard let page = try Self.plaintext(number, log, pages, cipher) else { return nil }
        return page.count > usableByteCount ? Array(page.prefix(usableByteCount)) : page
    }

    private static func plaintext(
        _ number: Int, _ log: DamagedWAL?, _ pages: borrowing RawPages, _ cipher: FileCipher
    ) throws(StoreError) -> [UInt8]? {
        guard log?.lostPages.contains(number) != true else { return nil }
        var found = log?.content(of: number)
        if found == nil {
            do throws(StoreError) {
                found = try pages.bytes(of: number)
            } catch  where error.code == .damaged || error.code == .io {
                // A bad sector is a damaged page.
                return nil
            }
        }
        guard let page = found, pages.authenticates(page[...], number: number) else { return nil }
        return page.withUnsafeBytes {
            cipher.profile.decrypt($0, number: number, key: cipher.key)
        }
    }

    // MARK: Opening

    private static func locked(
        _ file: FileLocation, _ configuration: Configuration
    ) throws(StoreError) -> ExclusiveLock {
        guard case .file(_, let identity) = try file.status() else {
            throw StoreError(.notFound, "there is no file at \(file.path)")
        }
        try OpenFiles.require(identity, isFreeAt: file.path)
        guard !file.hasJournal else {
            throw StoreError(
                .busy,
                "the -journal next to \(file.path) holds what an interrupted change replaced",
                hint: "Open the store once, such as with `coffer status` and its key: that plays "
                    + "it back. If that fails, move the journal away; pages that the change had "
                    + "begun to write are then of two times.")
        }
        return try ExclusiveLock(on: file, orShared: true, configuration)
    }

    // MARK: Key and profile

    /// Finds the profile in which any page is authentic.
    private static func cipher(
        of handle: Handle, _ file: FileLocation, key: borrowing StoreKey,
        _ configuration: Configuration, _ monitor: CopyMonitor
    ) throws(StoreError) -> FileCipher {
        let opening = Opening(source: file, configuration: configuration, cacheByteCount: 1 << 20)
        if let credential = key.credential() {
            return try cipher(of: handle, file, credential: credential, configuration, monitor)
        }
        // Also of a key with a salt: it names what is not a store.
        let stored = try opening.readSalt(handle)
        let salt = key.salt ?? stored
        let derived = DerivedKeys()
        var profiles = try opening.profiles(Engine.capabilities)
        if let profile = configuration.profile { profiles = [profile] }
        for isWhole in [false, true] {
            for profile in profiles {
                let rawKey = try derived.rawKey(from: key, salt: salt, profile: profile)
                let sizes = isWhole ? [profile] : Diagnosis.resized(profile)
                for sized in sizes {
                    let pages = RawPages(handle, key: rawKey, profile: sized)
                    if try hasAuthenticPage(pages, isWhole: isWhole, monitor) {
                        return FileCipher(key: rawKey, profile: sized)
                    }
                }
            }
        }
        throw StoreError(
            .wrongKey, "the key opens none of the pages of \(file.path)",
            hint: "Check the key. If the first 16 bytes of the file are lost, no passphrase opens "
                + "it: a raw key of 96 hex digits, as `coffer shell-key` prints it, has them.")
    }

    /// Finds the epoch of the keyring in which any page is authentic.
    private static func cipher(
        of handle: Handle, _ file: FileLocation, credential: borrowing KeyCredential,
        _ configuration: Configuration, _ monitor: CopyMonitor
    ) throws(StoreError) -> FileCipher {
        let keyring = KeyringFile(of: file)
        let memoryMax = configuration.maximumKeyMemoryByteCount
        guard let unlocked = try keyring.unlocked(by: credential, memoryMax: memoryMax) else {
            throw StoreError.noKeyring(keyring)
        }
        let content = unlocked.area.content
        if try !hasNewRoot(handle, file, content, unlocked.root, configuration),
            let former = try? content.formerRoot(under: unlocked.root),
            let found = try cipher(
                of: handle, file, content.underFormerRoot, former, configuration, monitor)
        {
            return found
        }
        if let found = try cipher(
            of: handle, file, content, unlocked.root, configuration, monitor)
        {
            return found
        }
        throw StoreError(
            .keyringMismatch, "the keyring opens none of the pages of \(file.path)",
            hint: "Put the file and the keyring back that belong together.")
    }

    /// Whether a copy of page 1 is under the new root. Then the change is committed, and pages
    /// under the former root are old.
    private static func hasNewRoot(
        _ handle: Handle, _ file: FileLocation, _ content: KeyringContent,
        _ root: borrowing RootKey, _ configuration: Configuration
    ) throws(StoreError) -> Bool {
        guard content.hasFormerRoot else { return true }
        // A journal has the page of before, and the engine rolls back to it.
        guard !file.hasJournal else { return false }
        let main = try? handle.rawBytes(at: 0, count: content.profile.pageByteCount)
        let evidence = KeyEvidence(
            of: file, main: main, content, seconds: configuration.secondsSince1970)
        return !evidence.search(under: root, isShort: true).epochs.isEmpty
    }

    /// Finds the epoch of a root in which any page is authentic; `nil` if there is none.
    private static func cipher(
        of handle: Handle, _ file: FileLocation, _ content: KeyringContent,
        _ root: borrowing RootKey, _ configuration: Configuration, _ monitor: CopyMonitor
    ) throws(StoreError) -> FileCipher? {
        let profile = content.profile
        let evidence = KeyEvidence(
            of: file, main: try? handle.rawBytes(at: 0, count: profile.pageByteCount), content,
            seconds: configuration.secondsSince1970)
        let epochs =
            [content.epoch] + evidence.search(under: root).epochs + [content.highestEpoch + 1]
        for isWhole in [false, true] {
            for epoch in epochs {
                let key = root.dataKey(epoch: epoch, id: content.id)
                let pages = RawPages(handle, key: key, profile: profile)
                if try hasAuthenticPage(pages, isWhole: isWhole, monitor) {
                    return FileCipher(key: key.copy(), profile: profile)
                }
            }
        }
        return nil
    }

    /// - Parameter isWhole: Whether all pages are tried, or some from all parts of the file.
    private static func hasAuthenticPage(
        _ pages: borrowing RawPages, isWhole: Bool, _ monitor: CopyMonitor
    ) throws(StoreError) -> Bool {
        let count = try pages.count()
        let step = isWhole ? 1 : max(count / sampleCount, 1)
        for number in stride(from: 1, through: count, by: step) where number != pages.lockPage {
            try monitor.requireNotCancelled()
            let page: [UInt8]?
            do throws(StoreError) {
                page = try pages.bytes(of: number)
            } catch  where error.code == .damaged || error.code == .io {
                continue
            }
            if let page, pages.authenticates(page[...], number: number) { return true }
        }
        return false
    }

    private static let sampleCount = 64

    // MARK: Sizes

    /// "The in-header database size is only considered to be valid if it is non-zero and if the
    /// 4-byte change counter at offset 24 exactly matches the 4-byte version-valid-for number at
    /// offset 92." <https://www.sqlite.org/fileformat2.html#in_header_database_size>
    private static func pageCount(_ first: [UInt8]) -> Int? {
        let header = PageBytes(first)
        guard header.integer(at: 24, byteCount: 4) == header.integer(at: 92, byteCount: 4),
            let count = header.integer(at: 28, byteCount: 4), count > 0
        else { return nil }
        return count
    }

    /// The usable size of a file whose page 1 is damaged. SQLCipher 4 may reserve 80 bytes where
    /// the profile needs 48; a cell that ends in those bytes shows that it did not.
    private static func usableByteCount(
        _ count: Int, _ log: DamagedWAL?, _ pages: borrowing RawPages, _ cipher: FileCipher
    ) throws(StoreError) -> Int {
        let widest = cipher.profile.pageByteCount - cipher.profile.reserveByteCount
        let narrow = cipher.profile.pageByteCount - 80
        guard narrow < widest, narrow >= 480 else { return widest }
        for number in stride(from: 2, through: count, by: 1) {
            guard let bytes = try plaintext(number, log, pages, cipher),
                let page = BTreePage(bytes, number: number)
            else { continue }
            if page.endOfCells > narrow { return widest }
        }
        return narrow
    }
}
