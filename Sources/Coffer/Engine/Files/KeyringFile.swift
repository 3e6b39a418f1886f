import CSQLCipher

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The file of a keyring, `notes.db.keyring` next to the database `notes.db`. It has two areas with
/// the same content.
///
/// Reading takes no lock, and writing takes one: see `Documentation/design/keyring.md`.
struct KeyringFile: Sendable {
    /// A step of a write. A test can make it fail.
    enum Step: Sendable, Equatable {
        /// Writing both areas of a new file, under its temporary name.
        case make
        /// Writing one of the two areas.
        case write(area: Int)
        case sync
        /// Taking the lock of the open file.
        case lock
        /// Giving the new file its name.
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

    /// A copy of a keyring at another path. It gets the permissions of its database.
    init(at location: FileLocation, of database: FileLocation) {
        self.database = database
        self.location = location
    }

    /// Whether something has the name of the keyring.
    var exists: Bool {
        var found = stat()
        return lstat(location.path, &found) == 0
    }

    /// Refuses to change the key of a file that has a keyring, because no slot would open the store
    /// afterwards.
    ///
    /// - Throws: `.misuse` if there is a keyring.
    func requireAbsent() throws(StoreError) {
        guard !exists else {
            throw StoreError(
                .misuse, "the key of \(database.path) comes from its keyring",
                hint: "Change a slot of the keyring instead. To give the file a key of its own, "
                    + "pass abandonsKeyring, or make a copy with that key.")
        }
    }

    /// Gives the keyring another name, after the key of the file has become one of its own.
    ///
    /// - Returns: The other name; `nil` if the file has no keyring.
    /// - Throws: As `setAside`.
    func abandon() throws(StoreError) -> String? {
        exists ? try setAside() : nil
    }

    // MARK: Reading

    /// Reads both areas, without a lock.
    ///
    /// While another process writes, one area may be torn. If both are, reads them again.
    ///
    /// - Returns: Both areas; `nil` if the store has no keyring file.
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

    /// Reads the file, and unwraps the root by a credential.
    ///
    /// - Returns: `nil` if the store has no keyring.
    /// - Throws: As `areas()` and `KeyringArea.unlocked`.
    func unlocked(
        by credential: borrowing KeyCredential, memoryMax: Int
    ) throws(StoreError) -> UnlockedKeyring? {
        try areas()?.unlocked(by: credential, memoryMax: memoryMax)
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
        let count = bytes.withUnsafeMutableBytes { bytes in
            PositionedIO.read(into: bytes, from: descriptor, at: 0)
        }
        guard count != nil else {
            throw StoreError.system(errno, "cannot read the keyring \(location.path)")
        }
        return try KeyringAreas(stored: bytes)
    }

    private func notOurs(_ kind: String) -> StoreError {
        KeyringArea.damaged("\(location.path) is \(kind)")
    }

    // Calls the system's function, which the method of the same name hides.
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

    /// Makes the file in one step, with the permissions, the group and the owner of the database. A
    /// process that may not set the owner keeps its own.
    ///
    /// - Parameter permissions: Used if the database does not exist yet.
    /// - Returns: `false` if another keyring has the name. That keyring is left alone.
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
        let descriptor = try new.temporary.openPrivate()
        do throws(StoreError) {
            try willStep(.make, descriptor)
            for index in 0..<2 { try write(area, index, to: descriptor) }
            try sync(descriptor)
            if case .file = try database.status() {
                try new.temporary.setOwner(of: database, descriptor)
                try new.temporary.setPermissions(try database.permissions(), descriptor)
            } else {
                try new.temporary.setPermissions(permissions, descriptor)
            }
        } catch {
            close(descriptor)
            throw error
        }
        return descriptor
    }

    /// Makes the file as `make` does.
    ///
    /// - Throws: `.alreadyExists` if something has the name; otherwise as `make`.
    func makeNew(_ area: KeyringArea, permissions: mode_t = 0o600) throws(StoreError) {
        guard try make(area, permissions: permissions) else {
            throw StoreError.alreadyExists(location)
        }
    }

    // MARK: Replacing

    /// Replaces the keyring with a new file, in one step. Gives the old file another name before.
    ///
    /// - Parameters:
    ///   - timeout: How long to wait for another process that changes the keyring.
    ///   - permissions: As in `make`.
    ///   - makeArea: Makes the content of the new file, while nobody can change the old one.
    /// - Returns: The other name, the path with `.old-` and a number; `nil` if there was no
    ///   keyring.
    /// - Throws: `.busy` after `timeout`; as `make`.
    func replace(
        timeout: Duration, permissions: mode_t = 0o600,
        with makeArea: () throws(StoreError) -> KeyringArea
    ) throws(StoreError) -> String? {
        let lock = try lockIfWhole(timeout)
        defer { withExtendedLifetime(lock) {} }
        let area = try makeArea()
        let new = try NewFile(beside: location)
        let descriptor = try write(area, to: new, permissions: permissions)
        defer { close(descriptor) }
        let old = try linkAside()
        // The other name is on the disk before the new file takes the first one.
        location.syncFolder()
        do throws(StoreError) {
            try willStep(.adopt, descriptor)
            guard rename(new.temporary.path, location.path) == 0 else {
                throw StoreError.notWritten(
                    "cannot give the keyring its name \(location.path)", errno)
            }
        } catch {
            throw putBack(old, after: error)
        }
        location.syncFolder()
        return old?.path
    }

    /// The other name of a keyring that is replaced.
    private struct Aside {
        let path: String
        /// Whether the keyring still has its first name too.
        let isLinked: Bool
    }

    /// Takes the other name away again. If it is the only one, gives the keyring its first name.
    ///
    /// - Returns: The error. If that fails, the error also says where the keyring is.
    private func putBack(_ old: Aside?, after error: StoreError) -> StoreError {
        guard let old else { return error }
        if old.isLinked {
            unlink(old.path)
            return error
        }
        if (try? location.adopt(old.path)) == true { return error }
        return error.adding("the keyring is now \(old.path) and could not be moved back")
    }

    /// Takes the lock of the keyring. Returns `nil` for a keyring that no process can be changing,
    /// because it is missing or damaged.
    private func lockIfWhole(_ timeout: Duration) throws(StoreError) -> KeyringLock? {
        do throws(StoreError) {
            return try KeyringLock(self, timeout: timeout)
        } catch  where [.keyringMissing, .keyringDamaged].contains(error.code) {
            return nil
        }
    }

    /// Gives the file a second name; `nil` if it does not exist. On a file system without hard
    /// links, gives it another name.
    private func linkAside() throws(StoreError) -> Aside? {
        for other in otherPaths {
            if link(location.path, other) == 0 { return Aside(path: other, isLinked: true) }
            if errno == ENOENT { return nil }
            guard errno == EEXIST else { return Aside(path: try setAside(), isLinked: false) }
        }
        throw tooManyOthers
    }

    /// Gives the file another name: its path, `.old-` and a number.
    ///
    /// - Returns: That name.
    /// - Throws: `.io`, `.readOnly` if it cannot be renamed; `.alreadyExists` after 10 000 numbers.
    func setAside() throws(StoreError) -> String {
        for other in otherPaths where try FileLocation(resolved: other).adopt(location.path) {
            return other
        }
        throw tooManyOthers
    }

    private var otherPaths: some Sequence<String> {
        (1...10_000).lazy.map { [path = location.path] in "\(path).old-\($0)" }
    }

    private var tooManyOthers: StoreError {
        StoreError(
            .alreadyExists, "\(location.path).old-1 to \(location.path).old-10000 exist",
            hint: "Move away those that you do not need.")
    }

    // MARK: Writing

    /// Writes one area, without syncing it.
    func write(
        _ area: KeyringArea, _ index: Int, to descriptor: Int32
    ) throws(StoreError) {
        let isWritten = area.bytes.withUnsafeBytes { bytes in
            PositionedIO.write(
                bytes, to: descriptor, at: off_t(index * KeyringArea.byteCount))
        }
        guard isWritten else {
            throw StoreError.notWritten("cannot write the keyring \(location.path)", errno)
        }
    }

    func sync(_ descriptor: Int32) throws(StoreError) {
        try willStep(.sync, descriptor)
        guard fsync(descriptor) == 0 else {
            throw StoreError.notWritten("cannot sync the keyring \(location.path)", errno)
        }
    }
}

extension StoreError {
    static func noKeyring(_ file: KeyringFile) -> StoreError {
        if let status = try? StoreFileStatus(file.database), status.format == .keyring {
            return isKeyring(file.database)
        }
        return StoreError(
            .keyringMissing, "there is no keyring at \(file.location.path)",
            hint: "Put it back from a backup, or rebuild it from a root backup.")
    }

    /// The error for a path that names a keyring instead of a store.
    static func isKeyring(_ file: FileLocation) -> StoreError {
        StoreError(
            .notAStore, "\(file.path) is a keyring, or a copy of one, and not a store",
            hint: "Pass the path of the store, which has the same name without .keyring.")
    }

    static func otherRoot(_ file: KeyringFile) -> StoreError {
        StoreError(
            .keyringMismatch,
            "the keyring \(file.location.path) has another root than expected",
            hint: "Another process has replaced it: close the store and open it again.")
    }
}
