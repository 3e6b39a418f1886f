import CSQLCipher

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The file of a keyring, `notes.db.keyring` beside the database `notes.db`: two areas with the
/// same content.
///
/// It is read without a lock and written under one: see `Documentation/design/keyring.md`.
struct KeyringFile: Sendable {
    /// A step of a write, which a test stops or fails.
    enum Step: Sendable, Equatable {
        /// Both areas of a new file, under its temporary name.
        case make
        /// One of the two areas.
        case write(area: Int)
        case sync
        /// The file is open, and its lock will be taken.
        case lock
        /// The new file gets its name.
        case adopt
    }

    static let suffix = ".keyring"
    static let byteCount = 2 * KeyringArea.byteCount

    let database: FileLocation
    let location: FileLocation
    /// Called before each step of a write, with the descriptor that is written to.
    var willStep: @Sendable (Step, _ descriptor: Int32) throws(StoreError) -> Void = {
        _, _ throws(StoreError) in
    }

    init(of database: FileLocation) {
        self.database = database
        location = FileLocation(resolved: database.path + Self.suffix)
    }

    /// A copy of a keyring at another path, with the permissions of its database.
    init(at location: FileLocation, of database: FileLocation) {
        self.database = database
        self.location = location
    }

    /// Whether something has the name of the keyring.
    var exists: Bool {
        var found = stat()
        return lstat(location.path, &found) == 0
    }

    /// Refuses a change of the file's key that its keyring would not learn of: no slot would open
    /// the store any more.
    ///
    /// - Throws: `.misuse` if there is a keyring.
    func requireAbsent() throws(StoreError) {
        guard !exists else {
            throw StoreError(
                .misuse, "the key of \(database.path) comes from its keyring",
                hint: "Change a slot of the keyring instead. For a store with a key of its own, "
                    + "make a copy with that key.")
        }
    }

    // MARK: Reading

    /// Reads both areas, without a lock.
    ///
    /// While another process writes, one of them may be torn. If both are, they are read again.
    ///
    /// - Returns: `nil` if there is no keyring.
    /// - Throws: `.keyringDamaged` if neither area is whole, or the file is not a keyring;
    ///   `.tooCostly` for a cost that no keyring may have; `.needsNewerProgram`; `.io` if it cannot
    ///   be read.
    /// - Complexity: O(1): 32 KiB are read and hashed.
    func areas() throws(StoreError) -> KeyringAreas? {
        for _ in 0..<3 {
            do throws(StoreError) {
                return try readAreas()
            } catch  where error.code == .keyringDamaged {
                sleepBriefly()
            }
        }
        return try readAreas()
    }

    private func readAreas() throws(StoreError) -> KeyringAreas? {
        guard let descriptor = try open(O_RDONLY) else { return nil }
        defer { close(descriptor) }
        return try areas(descriptor)
    }

    /// Opens the file; `nil` if there is none.
    func open(_ access: Int32) throws(StoreError) -> Int32? {
        // Closing any descriptor of a database would end this process's locks on it, so a file
        // that cannot be a keyring is not opened.
        var named = stat()
        if lstat(location.path, &named) == 0, named.st_mode & S_IFMT == S_IFREG,
            named.st_size != Self.byteCount
        {
            throw wrongByteCount(Int(named.st_size))
        }
        // Opening a pipe of that name would block without O_NONBLOCK.
        let descriptor = Self.opened(
            location.path, access | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            let reason = errno
            if reason == ENOENT { return nil }
            if reason == ELOOP { throw notOurs("a link") }
            let text = "cannot open the keyring \(location.path)"
            throw access == O_RDONLY ? .system(reason, text) : .notWritten(text, reason)
        }
        var found = stat()
        guard fstat(descriptor, &found) == 0, found.st_mode & S_IFMT == S_IFREG else {
            close(descriptor)
            throw notOurs("not a regular file")
        }
        guard found.st_size == Self.byteCount else {
            close(descriptor)
            throw wrongByteCount(Int(found.st_size))
        }
        return descriptor
    }

    private func wrongByteCount(_ byteCount: Int) -> StoreError {
        KeyringArea.damaged(
            "\(location.path) has \(byteCount) bytes instead of \(Self.byteCount)")
    }

    /// Reads both areas of the open file.
    func areas(_ descriptor: Int32) throws(StoreError) -> KeyringAreas {
        var bytes = [UInt8](repeating: 0, count: Self.byteCount)
        var count = 0
        while count < bytes.count {
            let more = bytes.withUnsafeMutableBytes { bytes in
                pread(
                    descriptor, bytes.baseAddress.map { $0 + count }, bytes.count - count,
                    off_t(count))
            }
            if more < 0, errno == EINTR { continue }
            guard more >= 0 else {
                throw StoreError.system(errno, "cannot read the keyring \(location.path)")
            }
            if more == 0 { break }
            count += more
        }
        return try KeyringAreas(stored: bytes)
    }

    private func notOurs(_ kind: String) -> StoreError {
        KeyringArea.damaged("\(location.path) is \(kind)")
    }

    // A method named `open` hides the function.
    private static func opened(_ path: String, _ flags: Int32) -> Int32 {
        #if canImport(Darwin)
        Darwin.open(path, flags)
        #elseif canImport(Glibc)
        Glibc.open(path, flags)
        #else
        Musl.open(path, flags)
        #endif
    }

    // MARK: Making

    /// Makes the file, complete or not at all. It gets the permissions, the group and, if this
    /// process may set them, the owner of the database.
    ///
    /// - Parameter permissions: Those that the database will have; for one that does not exist yet.
    /// - Returns: `false` if another keyring has the name: it stays.
    /// - Throws: `.io`, `.full`, `.readOnly` if it cannot be written; `.io` if it cannot be given
    ///   to the owner of the database, who could not open the store.
    func make(
        _ area: KeyringArea, permissions: mode_t = 0o600
    ) throws(StoreError) -> Bool {
        let new = try NewFile(at: location)
        let descriptor = try write(area, to: new, permissions: permissions)
        defer { close(descriptor) }
        try willStep(.adopt, descriptor)
        return try new.adopt()
    }

    /// Writes both areas to a new file that has no name yet.
    ///
    /// - Returns: Its descriptor, which the caller closes.
    private func write(
        _ area: KeyringArea, to new: borrowing NewFile, permissions: mode_t
    ) throws(StoreError) -> Int32 {
        try new.temporary.createPrivate()
        let descriptor = Self.opened(new.temporary.path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else { throw StoreError.notCreated(location.path, errno) }
        do throws(StoreError) {
            try willStep(.make, descriptor)
            for index in 0..<2 { try write(area, index, to: descriptor) }
            try sync(descriptor)
            if case .file = try database.status() {
                try new.temporary.setOwner(of: database)
                try new.temporary.setPermissions(try database.permissions())
            } else {
                try new.temporary.setPermissions(permissions)
            }
        } catch {
            close(descriptor)
            throw error
        }
        return descriptor
    }

    /// Makes the file, where there must be none.
    ///
    /// - Throws: `.alreadyExists` if something has the name; it stays. Otherwise as `make`.
    func makeNew(_ area: KeyringArea, permissions: mode_t = 0o600) throws(StoreError) {
        guard try make(area, permissions: permissions) else {
            throw StoreError(
                .alreadyExists, "something exists at \(location.path) already; it was left alone",
                hint: "Choose another path, or move what exists there.")
        }
    }

    // MARK: Replacing

    /// Gives the name to a new file, in one step. The file that had it gets another name before.
    ///
    /// - Parameters:
    ///   - timeout: How long to wait for another process that changes the keyring.
    ///   - permissions: As in `make`.
    /// - Returns: The other name, the path with `.old-` and a number; `nil` if there was no
    ///   keyring.
    /// - Throws: `.busy` after `timeout`; as `make`.
    func replace(
        with area: KeyringArea, timeout: Duration, permissions: mode_t = 0o600
    ) throws(StoreError) -> String? {
        let lock = try lockIfWhole(timeout)
        defer { withExtendedLifetime(lock) {} }
        let new = try NewFile(beside: location)
        let descriptor = try write(area, to: new, permissions: permissions)
        defer { close(descriptor) }
        let old = try linkAside()
        try willStep(.adopt, descriptor)
        guard rename(new.temporary.path, location.path) == 0 else {
            let reason = errno
            // The name was free, or it still leads to the same file.
            if let old, (try? location.adopt(old)) != true { unlink(old) }
            throw StoreError.notWritten(
                "cannot give the keyring its name \(location.path)", reason)
        }
        location.syncFolder()
        return old
    }

    /// Takes the lock of the keyring; `nil` if nobody can be changing it, because it is missing or
    /// damaged.
    private func lockIfWhole(_ timeout: Duration) throws(StoreError) -> KeyringLock? {
        do throws(StoreError) {
            return try KeyringLock(self, timeout: timeout)
        } catch  where [.keyringMissing, .keyringDamaged].contains(error.code) {
            return nil
        }
    }

    /// Gives the file a second name; `nil` if there is none.
    private func linkAside() throws(StoreError) -> String? {
        for number in 1...10_000 {
            let other = "\(location.path).old-\(number)"
            if link(location.path, other) == 0 { return other }
            if errno == ENOENT { return nil }
            // Without hard links the name is free until the new file gets it.
            if errno != EEXIST, try FileLocation(resolved: other).adopt(location.path) {
                return other
            }
        }
        throw StoreError(.alreadyExists, "\(location.path).old-1 and more exist")
    }

    /// Gives the file another name: its path, `.old-` and a number.
    ///
    /// - Returns: That name.
    /// - Throws: `.io`, `.readOnly` if it cannot be renamed; `.alreadyExists` after 10 000 numbers.
    func setAside() throws(StoreError) -> String {
        for number in 1...10_000 {
            let other = "\(location.path).old-\(number)"
            if try FileLocation(resolved: other).adopt(location.path) { return other }
        }
        throw StoreError(.alreadyExists, "\(location.path).old-1 and more exist")
    }

    // MARK: Writing

    /// Writes one area, without syncing it.
    func write(
        _ area: KeyringArea, _ index: Int, to descriptor: Int32
    ) throws(StoreError) {
        var count = 0
        while count < area.bytes.count {
            let more = area.bytes.withUnsafeBytes { bytes in
                pwrite(
                    descriptor, bytes.baseAddress.map { $0 + count }, bytes.count - count,
                    off_t(index * KeyringArea.byteCount + count))
            }
            if more < 0, errno == EINTR { continue }
            guard more > 0 else {
                throw StoreError.notWritten(
                    "cannot write the keyring \(location.path)", more < 0 ? errno : EIO)
            }
            count += more
        }
    }

    func sync(_ descriptor: Int32) throws(StoreError) {
        try willStep(.sync, descriptor)
        guard fsync(descriptor) == 0 else {
            throw StoreError.notWritten("cannot sync the keyring \(location.path)", errno)
        }
    }
}
