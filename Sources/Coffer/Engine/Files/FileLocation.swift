import CSQLCipher

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A path, made absolute and checked without opening the file.
///
/// The file itself is never opened here: closing a second descriptor of a database file drops the
/// locks that SQLite holds on it for this process. See
/// <https://www.sqlite.org/howtocorrupt.html>, section 2.2.
struct FileLocation: Sendable {
    /// The device and the inode number: the same for every path to one file.
    struct Identity: Hashable, Sendable {
        let device: UInt64
        let inode: UInt64
    }

    enum Status {
        case missing
        case file(byteCount: Int, identity: Identity)
    }

    /// The absolute path, so that a later change of the working folder does not matter.
    let path: String

    /// Makes a path absolute, with links resolved. The file need not exist, but its folder must.
    ///
    /// - Throws: `.misuse` for an empty path, for one with NUL, or for one that leads to a name
    ///   that is not UTF-8; `.unsupported` for `:memory:`; `.notFound` if the folder is missing.
    init(_ given: String) throws(StoreError) {
        guard !given.isEmpty, !given.utf8.contains(0) else {
            throw StoreError(.misuse, "a path must not be empty or contain NUL")
        }
        guard given != ":memory:" else {
            throw StoreError(
                .unsupported, "a store lives in a file",
                hint: "Store(.memory) and Connection(.memory) need none.")
        }
        if let resolved = try Self.resolve(given) {
            path = resolved
            return
        }
        let parts = given.split(separator: "/", omittingEmptySubsequences: true)
        guard let name = parts.last, name != "..", name != "." else {
            throw StoreError(.notFound, "there is no file at \(given)")
        }
        let folder = given.dropLast(given.hasSuffix("/") ? name.count + 1 : name.count)
        guard let base = try Self.resolve(folder.isEmpty ? "." : String(folder)) else {
            throw StoreError(
                .notFound, "the folder of \(given) does not exist", hint: "Create the folder first."
            )
        }
        path = base == "/" ? "/\(name)" : "\(base)/\(name)"
    }

    /// Takes the engine's name for a database without a file, `:memory:` or empty. Checks nothing.
    init(engineName: String) {
        path = engineName
    }

    /// Takes a path that is absolute already. Checks nothing.
    init(resolved path: String) {
        self.path = path
    }

    /// The byte count and identity of the regular file at the path now; `.missing` if there is
    /// none.
    ///
    /// - Throws: `.notAStore` for a folder or a device; `.io` if `stat` fails for another reason
    ///   than a missing file.
    func status() throws(StoreError) -> Status {
        guard let found = try Self.information(path) else { return .missing }
        guard found.st_mode & S_IFMT == S_IFREG else {
            let kind = found.st_mode & S_IFMT == S_IFDIR ? "a folder" : "not a regular file"
            throw StoreError(.notAStore, "\(path) is \(kind)")
        }
        return .file(
            byteCount: Int(found.st_size),
            identity: Identity(device: UInt64(found.st_dev), inode: UInt64(found.st_ino)))
    }

    /// Byte count of the file with this suffix next to the file, such as `-wal`; 0 if there is none
    /// or the system does not answer.
    func companionByteCount(_ suffix: String) -> Int {
        guard let found = try? Self.information(path + suffix) else { return 0 }
        return Int(found.st_size)
    }

    /// Whether a non-empty WAL or journal exists next to the file: the main file alone is then
    /// incomplete.
    var hasPendingChanges: Bool {
        companionByteCount("-wal") > 0 || companionByteCount("-journal") > 0
    }

    /// The page size in bytes that the header of the journal or else of the WAL names. `nil` if
    /// neither exists or can be read, or its header does not say.
    ///
    /// This may open and close the journals freely: SQLite holds no locks on them.
    func pendingPageByteCount() -> Int? {
        let start = companionStart("-journal", count: RollbackJournal.headerByteCount)
        if let journal = start.flatMap({ RollbackJournal(header: $0) }) {
            // A header that a power loss cut short says nothing.
            return journal.pageByteCount > 0 ? journal.pageByteCount : nil
        }
        // "0: Magic number. 0x377f0682 or 0x377f0683 … 8: Database page size."
        // https://www.sqlite.org/fileformat2.html#the_wal_file_format
        if let wal = companionStart("-wal", count: 12), wal.starts(with: [0x37, 0x7f, 0x06]) {
            return Int(UInt32(bigEndianAt: 8, of: wal))
        }
        return nil
    }

    /// The first 16 bytes of the newest page 1 in the WAL, which are the salt. `nil` if there is no
    /// WAL, or no page 1 in it. After a power loss during a checkpoint the main file may have a
    /// different salt, or none.
    ///
    /// - Complexity: O(*frames in the WAL*).
    func pendingSalt() -> [UInt8]? {
        guard let reader = FileReader(path + "-wal"),
            let header = reader.bytes(at: 0, WriteAheadLog.headerByteCount),
            let wal = WriteAheadLog(header: header)
        else { return nil }
        let headerByteCount = WriteAheadLog.frameHeaderByteCount
        var salt: [UInt8]?
        var index = 0
        while let frame = reader.bytes(
            at: wal.offset(ofFrame: index), headerByteCount + RawKey.saltByteCount),
            wal.hasSalt(frame[...])
        {
            if WriteAheadLog.pageNumber(ofFrame: frame[...]) == 1 {
                salt = Array(frame[headerByteCount...])
            }
            index += 1
        }
        return salt
    }

    /// The first `count` bytes of the file with this suffix next to the file; `nil` if it has fewer
    /// or cannot be read.
    func companionStart(_ suffix: String, count: Int) -> [UInt8]? {
        FileReader(path + suffix)?.bytes(at: 0, count)
    }

    /// The file's name in its folder.
    var name: String {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return path }
        return String(path[path.utf8.index(after: slash)...])
    }

    /// The folder that holds the file.
    var folder: String {
        let end = path.utf8.lastIndex(of: UInt8(ascii: "/")) ?? path.startIndex
        return end == path.startIndex ? "/" : String(path[..<end])
    }

    /// The number of bytes that this user can still write on the file's file system; `nil` if there
    /// is no file or the system does not answer.
    func freeByteCount() -> Int? {
        var found = statvfs()
        guard statvfs(path, &found) == 0 else { return nil }
        return Int(found.f_bavail) * Int(found.f_frsize)
    }

    /// The most bytes that this process may write to one file; `nil` without a limit.
    static var maximumWritableByteCount: Int? {
        let limit = coffer_file_size_limit()
        return limit < 0 ? nil : Int(limit)
    }

    /// Syncs the folder, so that a name given in it survives a power loss. Ignores failures, as
    /// SQLite does: some file systems refuse it.
    ///
    /// - Returns: Whether the folder is synced, or its file system refuses that.
    @discardableResult
    func syncFolder() -> Bool {
        let descriptor = open(folder, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        return fsync(descriptor) == 0 || [EINVAL, ENOTSUP, EROFS].contains(errno)
    }

    // MARK: New files

    /// Creates an empty file with mode 0600, which only its owner may read and write.
    ///
    /// - Throws: As `StoreError.notCreated`.
    func createPrivate() throws(StoreError) {
        close(try openPrivate())
    }

    /// Creates an empty file as `createPrivate` does, and keeps it open: another user of the
    /// folder may put another file in its place.
    ///
    /// - Returns: The descriptor, for writing. The caller closes it.
    /// - Throws: As `StoreError.notCreated`.
    func openPrivate() throws(StoreError) -> Int32 {
        let descriptor = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw StoreError.notCreated(path, errno)
        }
        // The umask may have left fewer permissions.
        fchmod(descriptor, 0o600)
        return descriptor
    }

    /// The file's permission bits for owner, group and others.
    ///
    /// - Throws: `.notFound` if there is no file, `.io` if the system does not answer.
    func permissions() throws(StoreError) -> mode_t {
        guard let found = try Self.information(path) else {
            throw StoreError(.notFound, "there is no file at \(path)")
        }
        return found.st_mode & 0o777
    }

    /// Sets the permissions of the file, and of no other file that somebody has put a link to in
    /// its place.
    ///
    /// - Parameter descriptor: The open file, if this process has it open.
    func setPermissions(
        _ permissions: mode_t, _ descriptor: Int32? = nil
    ) throws(StoreError) {
        let result =
            descriptor.map { fchmod($0, permissions) }
            ?? fchmodat(AT_FDCWD, path, permissions, AT_SYMLINK_NOFOLLOW)
        guard result == 0 else {
            throw StoreError(
                .io, "cannot set the permissions of \(path): \(systemErrorText(errno))")
        }
    }

    /// Gives the file at `temporary` this path if the path is free, and syncs the folder.
    ///
    /// - Returns: `false` if the path is taken: then nothing has changed.
    /// - Throws: `.io` if the file cannot be renamed.
    func adopt(_ temporary: String) throws(StoreError) -> Bool {
        if coffer_rename_exclusively(temporary, path) == 0 {
            syncFolder()
            return true
        }
        if errno == EEXIST { return false }
        // For systems without that call: between the two steps the file has two names.
        if link(temporary, path) == 0 {
            unlink(temporary)
            syncFolder()
            return true
        }
        let reason = errno
        if reason == EEXIST { return false }
        // On a file system without hard links: `rename` would replace a file that was created in
        // the meantime.
        if case .missing = try status(), rename(temporary, path) == 0 {
            syncFolder()
            return true
        }
        throw StoreError.notCreated(path, reason)
    }

    /// The absolute path without links; `nil` if nothing exists at the path.
    ///
    /// - Throws: `.misuse` for a name that is not UTF-8: the repaired name would be another file's.
    private static func resolve(_ path: String) throws(StoreError) -> String? {
        guard let resolved = realpath(path, nil) else { return nil }
        defer { free(resolved) }
        guard let text = String(validatingCString: resolved) else {
            throw StoreError(
                .misuse, "\(path) leads to a file or folder whose name is not UTF-8",
                hint: "Rename that file or folder, or use another path to the file.")
        }
        return text
    }

    static func information(_ path: String) throws(StoreError) -> stat? {
        var found = stat()
        if stat(path, &found) == 0 { return found }
        if errno == ENOENT || errno == ENOTDIR { return nil }
        throw StoreError.system(errno, "cannot look at \(path)")
    }
}

/// The system's own words for an error number.
func systemErrorText(_ number: Int32) -> String {
    String(cString: strerror(number))
}

/// Blocks the thread, before something is tried again.
func sleepBriefly(_ duration: Duration = .milliseconds(10)) {
    usleep(UInt32(duration / .microseconds(1)))
}

/// Removes a file that Coffer made. Ignores every failure, such as a file that does not exist.
func unlinkIfPresent(_ path: String) {
    unlink(path)
}
