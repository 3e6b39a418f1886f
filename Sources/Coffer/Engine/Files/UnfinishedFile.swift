#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A new file that does not have its final name yet: `notes.db.new-` and 16 hexadecimal digits.
///
/// Next to it are the files that SQLite creates, and a file that its maker keeps locked while it
/// lives:
///
///     notes.db.new-0123456789abcdef
///     notes.db.new-0123456789abcdef-journal
///     notes.db.new-0123456789abcdef-lock
///
/// If nobody holds the lock, a killed process left the file behind. A file that is still being made
/// is never removed: see `Documentation/design/opening.md`.
package struct UnfinishedFile: Sendable, Equatable {
    /// Whether a process is making the file.
    package enum State: String, Sendable, Encodable {
        /// A process is making it.
        case held
        /// Its maker has ended.
        case left
        /// There is no lock file, or the file system has no locks.
        case unknown
    }

    /// The absolute path.
    package let path: String

    private static let marker = ".new-"
    private static let digitCount = 16
    /// The order of removal: the files that SQLite creates go before the file itself.
    private static let companions = ["-wal", "-shm", "-journal", ""]

    private init(path: String) {
        self.path = path
    }

    /// A random name for a new file, which no other file has had or will have.
    init(for file: FileLocation) {
        let number = UInt64.random(in: .min ... .max)
        let digits = String(number, radix: 16)
        let zeros = String(repeating: "0", count: Self.digitCount - digits.count)
        path = file.path + Self.marker + zeros + digits
    }

    var lockPath: String { path + "-lock" }

    // MARK: Existing files

    /// The unfinished files in a folder, in the order of their names; empty if the folder cannot be
    /// read.
    ///
    /// - Complexity: O(*names in the folder*).
    package static func all(inFolder folder: String) -> [UnfinishedFile] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        let base = folder.hasSuffix("/") ? folder : folder + "/"
        return Set(names.compactMap(stem)).sorted().map { UnfinishedFile(path: base + $0) }
    }

    /// The unfinished files that would have become this file, whether their makers live or not.
    static func all(of file: FileLocation) -> [UnfinishedFile] {
        let start = Array((file.path + marker).utf8)
        return all(inFolder: file.folder).filter {
            $0.path.utf8.dropLast(digitCount).elementsEqual(start)
        }
    }

    /// The name up to and including the digits; `nil` for a name of another form.
    private static func stem(_ name: String) -> String? {
        for companion in companions + ["-lock"] where name.hasSuffix(companion) {
            let stem = name.dropLast(companion.count)
            let digits = stem.suffix(digitCount)
            let isDigits = digits.utf8.allSatisfy {
                (0x30...0x39).contains($0) || (0x61...0x66).contains($0)
            }
            let name = stem.dropLast(digitCount)
            guard digits.count == digitCount, isDigits, name.hasSuffix(marker),
                name.count > marker.count
            else { continue }
            return String(stem)
        }
        return nil
    }

    /// Byte count of the file and the files that SQLite created next to it.
    package var byteCount: Int {
        Self.companions.reduce(0) { sum, companion in
            var found = stat()
            return lstat(path + companion, &found) == 0 ? sum + Int(found.st_size) : sum
        }
    }

    package var state: State {
        switch MakerLock.taking(lockPath) {
        case .success(let lock):
            lock.release()
            return .left
        case .failure(let obstacle): return obstacle == .held ? .held : .unknown
        }
    }

    /// Removes the file and the files next to it, if its maker has ended.
    ///
    /// - Returns: Whether the file is gone. `false`, and nothing is removed, if its maker lives,
    ///   there is no lock file, or the file system has no locks.
    @discardableResult
    package func removeIfLeft() -> Bool {
        guard case .success(let lock) = MakerLock.taking(lockPath) else { return false }
        return remove(holding: lock)
    }

    /// Removes the file, the files that SQLite created next to it, and then the lock file.
    ///
    /// - Returns: Whether the file is gone. If not, the lock file stays.
    @discardableResult
    func remove(holding lock: MakerLock) -> Bool {
        for companion in Self.companions { unlinkIfPresent(path + companion) }
        var found = stat()
        guard lstat(path, &found) != 0 else { return false }
        // Last: while the lock file exists, a file next to it can be recognized as left behind.
        lock.remove()
        return true
    }
}

/// The lock of a file that is being made, held on a separate file next to it.
///
/// This is an `flock`, which belongs to the descriptor: two holders in one process exclude each
/// other, and the kernel releases it when the process ends. It does not interfere with SQLite's
/// POSIX locks, which the process would lose if it closed a second descriptor of a database file.
final class MakerLock: Sendable {
    /// The reason why a lock cannot be taken.
    enum Obstacle: Error {
        case held
        /// There is no such file, or the file system has no locks.
        case unavailable
    }

    private let descriptor: Int32
    private let path: String

    /// Makes an object that can lock a file; `take()` locks it.
    ///
    /// - Parameters:
    ///   - descriptor: The file, open and not locked yet. This object closes it at the end of its
    ///     lifetime.
    ///   - path: The path of that file.
    init(descriptor: Int32, path: String) {
        self.descriptor = descriptor
        self.path = path
    }

    deinit {
        // A child process that is being started has the descriptor until it runs its program.
        release()
        close(descriptor)
    }

    /// Creates the lock file and locks it. On a file system without locks, removes the file again
    /// and returns an object that locks nothing.
    ///
    /// - Returns: `nil` if another process took the file for one left behind and was faster: choose
    ///   another name.
    /// - Parameter name: The path that the new file will have, for the error.
    /// - Throws: As `StoreError.notCreated`.
    static func making(_ path: String, for name: String) throws(StoreError) -> MakerLock? {
        let descriptor = open(path, O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw StoreError.notCreated(name, errno)
        }
        let lock = MakerLock(descriptor: descriptor, path: path)
        switch lock.take() {
        case nil: return lock
        case .held:
            lock.remove()
            return nil
        case .unavailable:
            // Without locks a file left behind cannot be recognized, and nobody removes it.
            lock.remove()
            return lock
        }
    }

    /// Locks an existing lock file, without waiting.
    ///
    /// - Returns: The lock. `.held` if someone else has it or the file was replaced; `.unavailable`
    ///   if the file cannot be opened or the file system has no locks.
    static func taking(_ path: String) -> Result<MakerLock, Obstacle> {
        // Opening a pipe of that name would block without O_NONBLOCK.
        let descriptor = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { return .failure(.unavailable) }
        let lock = MakerLock(descriptor: descriptor, path: path)
        if let obstacle = lock.take() { return .failure(obstacle) }
        return .success(lock)
    }

    /// Takes the lock, without waiting.
    ///
    /// - Returns: `nil` if the lock was taken. `.held` if someone else has it, or the path no
    ///   longer leads to the locked file; `.unavailable` if the file system has no locks.
    func take() -> Obstacle? {
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            return errno == EWOULDBLOCK ? .held : .unavailable
        }
        // The file may have been removed between opening and locking: the lock then protects
        // nothing.
        var (own, named) = (stat(), stat())
        guard fstat(descriptor, &own) == 0, own.st_mode & S_IFMT == S_IFREG,
            lstat(path, &named) == 0, named.st_dev == own.st_dev, named.st_ino == own.st_ino
        else { return .held }
        return nil
    }

    /// Releases the lock; the end of this object's lifetime does so too.
    func release() {
        flock(descriptor, LOCK_UN)
    }

    /// Removes the locked file.
    func remove() {
        unlinkIfPresent(path)
    }
}
