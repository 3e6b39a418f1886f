import CSQLCipher

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Predicts the outcome of a change of the key without touching anything: it runs no statement,
/// takes no lock, and creates or writes no file.
///
/// Must not be used for a file that this process has open. It closes a descriptor of the WAL, which
/// is harmless. It reads pages without a lock, so another process may be half-way through writing
/// them.
package struct RekeyRehearsal {
    package let path: String
    package let profile: CipherProfile
    package let journalMode: Configuration.JournalMode
    package let pageCount: Int
    /// Whether the new key already opens the store, and the current one does not.
    package let isChanged: Bool
    /// Pages of the main file that are not under the new key; 0 unless ``isChanged``.
    package let oldPageCount: Int
    /// Bytes that the journal or the WAL would grow to.
    package let neededByteCount: Int
    /// Free bytes on the disk; `nil` if the file system does not report them.
    package let freeByteCount: Int?
    /// Bytes that this process may write to one file; `nil` without a limit (`ulimit -f`).
    package let maximumWritableByteCount: Int?
    /// Bytes of an existing WAL. The change can truncate it, unless another process reads it.
    package let walByteCount: Int
    /// Whether this user may write the file, and may create a journal next to it.
    package let isWritable: Bool
    /// Whether the file has no other name (hard link).
    package let hasOneName: Bool
    /// All pages that fail authentication and have no newer content in the WAL.
    package let damagedPages: [Int]
    /// Whether pages at the end of the file are missing.
    package let isCutShort: Bool
    /// Bytes behind the end of the database, which prevent the engine from changing the key.
    package let surplusByteCount: Int

    /// Examines the file at `path`, and predicts a change of its key from `key` to `newKey`.
    ///
    /// If the file has the new key already, ``isChanged`` is `true`, which is not an error.
    ///
    /// - Parameters:
    ///   - path: The path of the file.
    ///   - key: The current key.
    ///   - newKey: The key to change to.
    ///   - abandonsKeyring: Whether the change would rename a keyring, instead of being refused.
    /// - Throws: `StoreError` `.wrongKey` if neither key opens the file, `.misuse` for an empty
    ///   key, for the same key or for another salt, `.busy` if a journal hides which key is valid,
    ///   `.damaged` if the first page is damaged, `.notFound` if there is no file, `.notAStore`,
    ///   `.notEncrypted`, `.truncated`, `.needsNewerEngine` for a format that needs SQLCipher 4,
    ///   `.io` if the file cannot be read.
    /// - Complexity: O(*pages* + *WAL*) time.
    package init(
        path: String, key: borrowing StoreKey, newKey: borrowing StoreKey,
        abandonsKeyring: Bool = false
    ) throws {
        try key.check()
        try newKey.check()
        let opening = try Opening(
            path: path, mode: .readOnly, configuration: Configuration(), cacheByteCount: 0)
        let file = opening.file
        guard case .file = try file.status() else {
            throw StoreError(.notFound, "there is no file at \(file.path)")
        }
        if !abandonsKeyring { try KeyringFile(of: file).requireAbsent() }
        let key = try Self.plainKey(key, file, isRerun: abandonsKeyring)
        // While a journal exists, page 1 is not final, so its key proves nothing.
        guard !file.hasJournal else { throw Self.journal(beside: file) }
        let handle = try Handle(path: file.path, flags: SQLITE_OPEN_READONLY)
        let log = file.committedWAL()
        let start = try opening.readSalt(handle)
        // A power loss in a checkpoint may have left the main file's first page with any content.
        let salt = log.firstPage.map { Array($0.prefix(RawKey.saltByteCount)) } ?? start
        let profiles = opening.profiles(try Engine.capabilities)
        let newest = NewestFirstPage(
            handle: handle, logged: log.firstPage, salt: salt, profiles: profiles)
        let found: NewestFirstPage.Found
        if let current = try newest.found(by: key) {
            _ = try Rekey.derive(newKey, from: current.key, profile: current.profile)
            (found, isChanged) = (current, false)
        } else if let new = try newest.found(by: newKey) {
            (found, isChanged) = (new, true)
        } else {
            let diagnosis = Diagnosis(
                file: file, handle: handle, salt: salt, derived: DerivedKeys(), profiles: profiles)
            throw try Self.refusal(of: file, diagnosis, key, newKey)
        }
        guard try Engine.capabilities.supports(found.profile) else {
            throw opening.needsNewerEngine(found.profile)
        }
        let (profile, byteCount) = (found.profile, try handle.rawByteCount())
        let filePageCount = byteCount / profile.pageByteCount
        let pageCount = found.page.pageCount > 0 ? found.page.pageCount : filePageCount
        let pages = RawPages(handle, key: found.key, profile: profile)
        oldPageCount =
            isChanged && !log.pages.isEmpty ? try pages.foreignCount(of: pageCount) : 0
        damagedPages = try pages.damaged(maximumCount: .max, of: pageCount, except: log.pages)
        isCutShort = (filePageCount + 1..<max(filePageCount, pageCount) + 1).contains { number in
            number != pages.lockPage && !log.pages.contains(number)
        }
        surplusByteCount =
            log.pages.isEmpty ? try pages.foreignByteCount(behind: pageCount) : 0
        (self.profile, self.pageCount) = (profile, pageCount)
        journalMode = found.page.isWAL ? .wal : .delete
        neededByteCount = Rekey.neededByteCount(pageCount: pageCount, profile: profile)
        self.path = file.path
        freeByteCount = file.freeByteCount()
        maximumWritableByteCount = FileLocation.maximumWritableByteCount
        walByteCount = file.companionByteCount("-wal")
        isWritable = access(file.path, W_OK) == 0 && access(file.folder, W_OK) == 0
        hasOneName = (try? file.nameCount()) == 1
    }

    /// The key of the pages, which a credential gets from the keyring. Tries no epoch but the
    /// keyring's.
    ///
    /// - Parameter isRerun: Whether an earlier run may have changed the key and renamed the
    ///   keyring. Without a keyring, or a slot, the result is a key that opens nothing.
    /// - Throws: `.keyringMissing` and other errors of reading the keyring; `.wrongKey` if no slot
    ///   is for the credential.
    private static func plainKey(
        _ key: borrowing StoreKey, _ file: FileLocation, isRerun: Bool
    ) throws(StoreError) -> StoreKey {
        guard let credential = key.credential() else { return key.copy() }
        let keyring = KeyringFile(of: file)
        let memoryMax = Configuration().maximumKeyMemoryByteCount
        do throws(StoreError) {
            guard let unlocked = try keyring.unlocked(by: credential, memoryMax: memoryMax) else {
                throw StoreError.noKeyring(keyring)
            }
            let content = unlocked.area.content
            return unlocked.root.dataKey(epoch: content.epoch, id: content.id).storeKey()
        } catch {
            guard isRerun, [.keyringMissing, .wrongKey].contains(error.code) else { throw error }
            return .random()
        }
    }

    private static func journal(beside file: FileLocation) -> StoreError {
        StoreError(
            .busy, "a journal is next to \(file.path), so it is not known which key opens the file",
            hint: "Wait for the program that writes. If none does, a crash has left the journal, "
                + "and any verb that reads the store plays it back, such as status with the key.")
    }

    /// The error that says why neither key opens the file: `.wrongKey`, unless the diagnosis of one
    /// key finds another reason.
    ///
    /// - Throws: Errors of the diagnosis itself.
    private static func refusal(
        of file: FileLocation, _ diagnosis: Diagnosis, _ key: borrowing StoreKey,
        _ newKey: borrowing StoreKey
    ) throws(StoreError) -> StoreError {
        for error in [try diagnosis.error(key: key), try diagnosis.error(key: newKey)]
        where error.code != .wrongKey {
            return error
        }
        return StoreError(
            .wrongKey, "neither the current nor the new key opens \(file.path)",
            hint: "Check both keys. A file that is not a store looks the same.")
    }

    /// Whether the disk has room for the journal or the WAL; `true` if its free bytes are unknown.
    ///
    /// - Parameter isLogKept: Whether the change appends to the existing WAL. Otherwise the bytes
    ///   of that WAL count as free.
    package func hasRoom(isLogKept: Bool) -> Bool {
        freeByteCount.map { $0 + (isLogKept ? 0 : walByteCount) >= neededByteCount } ?? true
    }

    /// Whether this process may write a journal or WAL of the size that it would have; `true`
    /// without a limit.
    ///
    /// - Parameter isLogKept: Whether the change appends to the existing WAL, so that the sizes add
    ///   up.
    package func maySize(isLogKept: Bool) -> Bool {
        maximumWritableByteCount.map { $0 >= neededByteCount + (isLogKept ? walByteCount : 0) }
            ?? true
    }
}

/// The last committed version of page 1. The key that it is authentic under opens the store.
private struct NewestFirstPage {
    final class Found {
        let key: RawKey
        let profile: CipherProfile
        let page: FirstPage

        init(key: consuming RawKey, profile: CipherProfile, page: FirstPage) {
            self.key = key
            self.profile = profile
            self.page = page
        }
    }

    let handle: Handle
    /// The newest page 1 in the WAL; `nil` if the main file's page is the newest.
    let logged: [UInt8]?
    let salt: [UInt8]
    let profiles: [CipherProfile]

    /// Looks for cipher settings under which the last committed page 1 passes authentication with
    /// `key`.
    ///
    /// - Returns: The key, the settings and the decrypted page; `nil` if `key` does not open the
    ///   store.
    /// - Throws: Errors of reading the page or deriving the key.
    func found(by key: borrowing StoreKey) throws(StoreError) -> Found? {
        let derived = DerivedKeys()
        let resized = profiles.flatMap { family in
            CipherProfile.pageByteCounts.compactMap(family.resized)
        }
        // The usual page sizes come first, because a raw key also fits another family with resized
        // pages.
        for profile in profiles + resized {
            let rawKey = try derived.rawKey(from: key, salt: salt, profile: profile)
            guard let page = try page(profile.pageByteCount),
                let first = authentic(page, key: rawKey, profile: profile)
            else { continue }
            return Found(key: rawKey.copy(), profile: profile, page: first)
        }
        return nil
    }

    private func page(_ byteCount: Int) throws(StoreError) -> [UInt8]? {
        if let logged { return logged }
        return try handle.rawPage(1, byteCount: byteCount)
    }

    private func authentic(
        _ page: [UInt8], key: borrowing RawKey, profile: CipherProfile
    ) -> FirstPage? {
        let authenticator = PageAuthenticator(key: key, profile: profile)
        return page.withUnsafeBytes { bytes in
            guard authenticator.authenticates(bytes, number: 1) else { return nil }
            return FirstPage(decrypting: bytes, key: key, profile: profile)
        }
    }
}

/// The committed pages of a WAL, according to its checksums.
private struct CommittedWAL {
    /// The newest page 1.
    var firstPage: [UInt8]?
    var pages: Set<Int> = []
}

extension FileLocation {
    /// Reads the committed pages of the WAL, up to the first frame whose checksum is wrong. Empty
    /// if there is no WAL, or if it cannot be read.
    ///
    /// - Complexity: O(*WAL*).
    fileprivate func committedWAL() -> CommittedWAL {
        var committed = CommittedWAL()
        let descriptor = open(path + "-wal", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return committed }
        defer { close(descriptor) }
        func next(_ count: Int) -> [UInt8]? {
            var bytes = [UInt8](repeating: 0, count: count)
            return read(descriptor, &bytes, count) == count ? bytes : nil
        }
        guard let header = next(WriteAheadLog.headerByteCount),
            var log = WriteAheadLog(header: header),
            CipherProfile.pageByteCounts.contains(log.pageByteCount)
        else { return committed }
        var written: (firstPage: [UInt8]?, pages: [Int]) = (nil, [])
        while let frame = next(log.frameByteCount), let page = log.page(ofNextFrame: frame) {
            written.pages.append(page.number)
            if page.number == 1 { written.firstPage = Array(page.content) }
            guard WriteAheadLog.FrameHeader(frame[...]).isCommit else { continue }
            committed.firstPage = written.firstPage
            committed.pages.formUnion(written.pages)
            written.pages.removeAll()
        }
        return committed
    }
}
