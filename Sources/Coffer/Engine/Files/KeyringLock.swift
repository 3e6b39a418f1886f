import CSQLCipher

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A lock on one byte of a keyring's file.
///
/// Each operation opens its own descriptor, so two operations of one process exclude each other.
/// The lock ends with the value, or with the process.
struct KeyringByteLock: ~Copyable {
    /// The two bytes that are locked, each for one kind of work.
    enum Byte: Int64 {
        case writesKeyring = 0
        case rotates = 1
    }

    let descriptor: Int32

    /// Opens the keyring and takes the lock. If another file has taken the name meanwhile, opens
    /// that file instead.
    ///
    /// - Parameter timeout: How long to try.
    /// - Throws: `.busy` if another process holds the lock for longer than `timeout`;
    ///   `.keyringMissing` if the file does not exist; `.readOnly` if this user may not write it;
    ///   `.keyringDamaged` if it is not a regular file of 32 KiB.
    init(_ file: KeyringFile, _ byte: Byte, timeout: Duration) throws(StoreError) {
        let deadline = ContinuousClock.now + timeout
        while true {
            guard let descriptor = try file.open(O_RDWR) else { throw StoreError.noKeyring(file) }
            do throws(StoreError) {
                if byte == .writesKeyring { try file.willStep(.lock, descriptor) }
            } catch {
                close(descriptor)
                throw error
            }
            let error = coffer_lock_byte(descriptor, byte.rawValue)
            if error == 0, Self.isNamed(file, descriptor) {
                self.descriptor = descriptor
                return
            }
            close(descriptor)
            guard error == 0 || error == EAGAIN else {
                throw StoreError.notWritten("cannot lock the keyring \(file.location.path)", error)
            }
            guard ContinuousClock.now < deadline else { throw Self.busy(file, byte) }
            sleepBriefly()
        }
    }

    deinit { close(descriptor) }

    /// Gives the lock back.
    consuming func release() {}

    private static func busy(_ file: KeyringFile, _ byte: Byte) -> StoreError {
        switch byte {
        case .writesKeyring:
            StoreError(
                .busy, "another process is changing the keyring \(file.location.path)",
                hint: "Try again. Nothing was changed.")
        case .rotates:
            StoreError(
                .busy, "another process is rotating the key of \(file.database.path)",
                hint: "Try again when it has ended. Nothing was changed.")
        }
    }

    /// Whether the open file still has the name. Another process may have replaced it.
    private static func isNamed(_ file: KeyringFile, _ descriptor: Int32) -> Bool {
        var (own, named) = (stat(), stat())
        return fstat(descriptor, &own) == 0 && lstat(file.location.path, &named) == 0
            && (own.st_dev, own.st_ino) == (named.st_dev, named.st_ino)
    }

    /// Whether somebody holds the lock; `false` also for a keyring that cannot be opened.
    ///
    /// - Complexity: O(1): two calls of the system more than the question itself, to open and close
    ///   the file.
    static func isHeld(_ byte: Byte, of file: KeyringFile) -> Bool {
        guard let descriptor = try? file.open(O_RDONLY) else { return false }
        defer { close(descriptor) }
        return coffer_is_byte_locked(descriptor, byte.rawValue) != 0
    }
}

/// The lock under which a keyring is written.
struct KeyringLock: ~Copyable {
    private let file: KeyringFile
    private let lock: KeyringByteLock

    /// Opens the keyring and takes the lock.
    ///
    /// - Parameter timeout: How long to try.
    /// - Throws: As `KeyringByteLock`.
    init(_ file: KeyringFile, timeout: Duration) throws(StoreError) {
        self.file = file
        lock = try KeyringByteLock(file, .writesKeyring, timeout: timeout)
    }

    var descriptor: Int32 { lock.descriptor }

    /// Changes the content of the keyring.
    ///
    /// Writes the stale area, syncs it and reads it back. Only then writes the other area, which
    /// holds the old content. So a crash leaves the old content or the new one.
    ///
    /// Areas that differ were left by a change that did not end. The newer one may be in memory
    /// alone, so both are made equal on the disk before the change, and also if it is refused.
    ///
    /// - Parameter change: Changes the content; an error leaves the file as it was.
    /// - Returns: The new area, and what `change` returns.
    /// - Throws: What `change` throws; `.keyringMismatch` if the root is not this keyring's;
    ///   `.needsNewerProgram` if a later version wrote it; `.io`, `.full` if it cannot be written:
    ///   the keyring then has the old content or the new one.
    @discardableResult
    borrowing func change<T>(
        under root: borrowing RootKey, _ change: (inout KeyringContent) throws(StoreError) -> T
    ) throws(StoreError) -> (area: KeyringArea, result: T) {
        try self.change(from: root, to: root, change)
    }

    /// Changes the content of the keyring, and writes it under another root.
    ///
    /// - Throws: As the other form.
    borrowing func change<T>(
        from old: borrowing RootKey, to new: borrowing RootKey,
        _ change: (inout KeyringContent) throws(StoreError) -> T
    ) throws(StoreError) -> (area: KeyringArea, result: T) {
        let areas = try file.areas(descriptor)
        guard let current = areas.authentic(under: old) else {
            throw StoreError.otherRoot(file)
        }
        try level(areas, to: current)
        var content = current.content
        let result = try change(&content)
        content.generation = areas.generation + 1
        let area = try KeyringArea(content, under: new)
        let first = areas.staleIndex
        try write(area, first)
        guard try file.areas(descriptor).stored[first] == area else {
            throw StoreError(
                .io, "the keyring \(file.location.path) does not read as it was written",
                hint: "The disk is failing: make a backup of the keyring elsewhere.")
        }
        try write(area, 1 - first)
        return (area, result)
    }

    /// Writes the current area again, which syncs it, and then the other one.
    private borrowing func level(
        _ areas: KeyringAreas, to current: KeyringArea
    ) throws(StoreError) {
        guard !areas.areEqual, current.content.minorVersion == 0 else { return }
        let index = areas.stored[0] == current ? 0 : 1
        try write(current, index)
        try write(current, 1 - index)
    }

    private borrowing func write(_ area: KeyringArea, _ index: Int) throws(StoreError) {
        try file.willStep(.write(area: index), descriptor)
        try file.write(area, index, to: descriptor)
        try file.sync(descriptor)
    }
}
