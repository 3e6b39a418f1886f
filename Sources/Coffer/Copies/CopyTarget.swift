import CSQLCipher

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The new file that a copy is written to; it gets its name after it is checked.
struct CopyTarget: ~Copyable {
    private let new: NewFile

    /// The location of the file while it is written.
    var temporary: FileLocation { new.temporary }
    /// `nil` for a plaintext database.
    private var cipher: FileCipher?
    /// The keyring of the copy; `nil` for a copy without one.
    private var keyring: KeyringArea?
    private let configuration: Configuration

    /// The permissions of the named file: those of the source; 0600 for a plaintext copy or a
    /// source without a file.
    private let permissions: mode_t

    init(
        at file: FileLocation, of source: FileLocation?, key: CopyKey?,
        configuration: Configuration
    ) throws(StoreError) {
        // A database without a file was private to its owner.
        let permissions = key == nil ? 0o600 : try source?.permissions() ?? 0o600
        new = try NewFile(at: file)
        self.permissions = permissions
        cipher = key?.cipher
        keyring = key?.keyring
        self.configuration = configuration
    }

    /// Makes the target of a copy that takes the place of an existing file.
    init(
        replacing file: FileLocation, key: CopyKey, _ configuration: Configuration
    ) throws(StoreError) {
        let permissions = try file.permissions()
        new = try NewFile(beside: file)
        self.permissions = permissions
        cipher = key.cipher
        keyring = key.keyring
        self.configuration = configuration
    }

    /// Gives the file another key than it was begun with: one whose pages it has by now.
    mutating func use(_ key: CopyKey) {
        (cipher, keyring) = (key.cipher, key.keyring)
    }

    /// Refuses a path where something exists, a store or its keyring, before any work is done.
    ///
    /// - Throws: `.alreadyExists`; `.notFound` if the folder is missing; `.misuse`.
    static func location(_ path: String) throws(StoreError) -> FileLocation {
        let file = try FileLocation(path)
        do throws(StoreError) {
            if case .missing = try file.status() {
                let keyring = KeyringFile(of: file)
                guard !keyring.exists else { throw StoreError.alreadyExists(keyring.location) }
                return file
            }
        } catch  where error.code == .notAStore {
            // A folder or a device.
        }
        throw StoreError.alreadyExists(file)
    }

    /// Opens the file to be filled in one transaction.
    ///
    /// It has no journal, because the file is removed after any failure. COMMIT syncs it. Until it
    /// has its name only its owner may read it, because it may be plaintext.
    ///
    /// - Parameter canUndo: Whether a statement that fails is undone, and the transaction goes on.
    borrowing func openEmpty(canUndo: Bool = false) throws(StoreError) -> Handle {
        try new.temporary.createPrivate()
        let handle = try Handle(
            path: new.temporary.path, flags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
            vfs: configuration.vfs)
        if let cipher { try physical(cipher).unlock(handle, key: cipher.key) }
        // Without a journal, a statement that fails half-way leaves its half.
        try handle.run("PRAGMA journal_mode = \(canUndo ? "MEMORY" : "OFF")")
        try handle.run("PRAGMA synchronous = FULL")
        try handle.run("PRAGMA temp_store = MEMORY")
        try handle.setCacheByteCount(Self.cacheByteCount)
        try JSONFunction.install(on: handle)
        return handle
    }

    /// Checks the copy over a connection that has not seen it before.
    ///
    /// - Parameters:
    ///   - content: The expected content; `nil` if the pages were copied unchanged.
    ///   - authenticatesAllPages: `false` if the caller authenticates every page itself, before
    ///     the copy gets its name.
    ///   - stopsAtOnce: Whether a cancellation ends a statement too. Nothing else may use it then.
    /// - Throws: `.damaged` if the copy is not sound, or differs from `content`; `.cancelled`.
    borrowing func check(
        against content: DatabaseCopy.Content?, _ monitor: CopyMonitor,
        authenticatesAllPages: Bool = true, stopsAtOnce: Bool = false
    ) throws(StoreError) -> CopyCheck.Result {
        let handle = try openWhole()
        defer { handle.close() }
        if stopsAtOnce, let cancellation = monitor.cancellation {
            let interrupt = InterruptHandle()
            interrupt.aim(at: handle)
            cancellation.aim(at: interrupt)
        }
        defer { if stopsAtOnce { monitor.cancellation?.release() } }
        return try CopyCheck(
            handle: handle, cipher: cipher, monitor: monitor,
            authenticatesAllPages: authenticatesAllPages
        ).run(content)
    }

    /// Makes the keyring, and then gives the checked file its name.
    ///
    /// The order matters after a crash: a copy without its keyring would look complete. A keyring
    /// without its file reports the missing file.
    ///
    /// - Parameter movesKeyring: Whether an existing keyring gets another name.
    /// - Throws: `.alreadyExists` if something has taken a name in the meantime; otherwise as
    ///   `KeyringFile.make`. Every file then has the name that it had.
    borrowing func adopt(movesKeyring: Bool = false) throws(StoreError) {
        try new.temporary.setPermissions(permissions)
        let file = KeyringFile(of: new.file)
        var old: String?
        if let keyring, movesKeyring {
            old = try file.replace(
                timeout: configuration.waitTimeout, permissions: permissions
            ) { keyring }
        } else if let keyring {
            try file.makeNew(keyring, permissions: permissions)
        }
        do throws(StoreError) {
            guard try new.adopt() else { throw StoreError.alreadyExists(new.file) }
        } catch {
            guard let keyring else { throw error }
            throw Self.putBack(old, over: keyring, of: file, after: error)
        }
        guard movesKeyring, keyring == nil else { return }
        do throws(StoreError) {
            _ = try file.setAside()
        } catch {
            throw error.with(
                hint: "The file is restored. Move the keyring away: it is another file's.")
        }
    }

    /// Removes the new keyring, and gives the old one its name again. Leaves a keyring alone that
    /// another process has made in the meantime.
    private static func putBack(
        _ old: String?, over made: KeyringArea, of file: KeyringFile, after error: StoreError
    ) -> StoreError {
        guard let areas = try? file.areas(), areas.stored == [made, made] else { return error }
        guard let old else {
            unlinkIfPresent(file.location.path)
            return error
        }
        if rename(old, file.location.path) == 0 { return error }
        return error.adding("the keyring is now \(old) and could not be moved back")
    }

    /// Gives the checked file the name of the existing one.
    ///
    /// - Parameter movesKeyring: Whether the keyring goes with the file that had the name.
    /// - Returns: The other name of the file that had it.
    /// - Throws: As `FileLocation.replace`.
    borrowing func replace(
        movesKeyring: Bool, _ willRename: () throws(StoreError) -> Void
    ) throws(StoreError) -> String {
        try new.temporary.setPermissions(permissions)
        try new.temporary.setOwner(of: new.file)
        return try new.file.replace(
            with: new.temporary.path, movesKeyring: movesKeyring, keyring: keyring,
            willRename)
    }

    /// Opens an encrypted copy in the configured journal mode; a plaintext copy never uses WAL.
    private borrowing func openWhole() throws(StoreError) -> Handle {
        guard let cipher else {
            let handle = try Handle(
                path: new.temporary.path, flags: SQLITE_OPEN_READWRITE, vfs: configuration.vfs)
            try PlaintextFile.configure(handle, configuration)
            return handle
        }
        let handle = try physical(cipher).open(key: cipher.key)
        try handle.run("PRAGMA wal_checkpoint(TRUNCATE)")
        return handle
    }

    private borrowing func physical(_ cipher: FileCipher) -> PhysicalOpen {
        PhysicalOpen(
            file: new.temporary, profile: cipher.profile, configuration: configuration,
            role: .writer, cacheByteCount: Self.cacheByteCount)
    }

    /// Holds the interior pages of any table, because rows arrive in order.
    static let cacheByteCount = 32 << 20
}
