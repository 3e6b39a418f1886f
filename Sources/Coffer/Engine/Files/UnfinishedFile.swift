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

/// A new file that has not got its own name yet: `notes.db.new-` and 16 hexadecimal digits.
///
/// Beside it stand what SQLite makes, and a file that its maker holds locked as long as it lives:
///
///     notes.db.new-0123456789abcdef
///     notes.db.new-0123456789abcdef-journal
///     notes.db.new-0123456789abcdef-lock
///
/// A file whose lock nobody holds was left by a process that was killed. No file that is being made
/// is removed: see `Documentation/design/opening.md`.
package struct UnfinishedFile: Sendable, Equatable {
    /// Whether somebody is making the file.
    package enum State: String, Sendable, Encodable {
        /// A process is.
        case held
        /// Its maker has ended.
        case left
        /// There is no lock that could be asked.
        case unknown
    }

    /// The absolute path.
    package let path: String

    private static let marker = ".new-"
    private static let digitCount = 16
    /// What SQLite makes beside a file goes before the file.
    private static let companions = ["-wal", "-shm", "-journal", ""]

    private init(path: String) {
        self.path = path
    }

    /// A name for a new file: nobody has had it before, and nobody will.
    init(for file: FileLocation) {
        let number = UInt64.random(in: .min ... .max)
        let digits = String(number, radix: 16)
        let zeros = String(repeating: "0", count: Self.digitCount - digits.count)
        path = file.path + Self.marker + zeros + digits
    }

    var lockPath: String { path + "-lock" }

    // MARK: Those that are there

    /// Those in a folder, in the order of their names; none if it cannot be read.
    ///
    /// - Complexity: O(*names in the folder*).
    package static func all(inFolder folder: String) -> [UnfinishedFile] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        let base = folder.hasSuffix("/") ? folder : folder + "/"
        return Set(names.compactMap(stem)).sorted().map { UnfinishedFile(path: base + $0) }
    }

    /// Those that would have become this file.
    static func all(of file: FileLocation) -> [UnfinishedFile] {
        let start = Array((file.path + marker).utf8)
        return all(inFolder: file.folder).filter {
            $0.path.utf8.dropLast(digitCount).elementsEqual(start)
        }
    }

    /// The name without what follows the digits; `nil` for a name of another form.
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

    /// Bytes of the file with what stands beside it.
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

    /// Removes the file with what stands beside it, if its maker has ended.
    ///
    /// - Returns: Whether it is gone.
    @discardableResult
    package func removeIfLeft() -> Bool {
        guard case .success(let lock) = MakerLock.taking(lockPath) else { return false }
        return remove(holding: lock)
    }

    /// - Returns: Whether the file is gone.
    @discardableResult
    func remove(holding lock: MakerLock) -> Bool {
        for companion in Self.companions { unlinkIfPresent(path + companion) }
        var found = stat()
        guard lstat(path, &found) != 0 else { return false }
        // Last: as long as the lock is there, a file beside it can be told to be a left one.
        lock.remove()
        return true
    }
}

/// The lock of a file that is being made, on a file beside it.
///
/// `flock`, which belongs to the descriptor: two holders in one process exclude each other, the
/// kernel releases it when the process ends, and it is not one of the POSIX locks of SQLite, which
/// the process would lose if a second descriptor of a database file were closed.
final class MakerLock: Sendable {
    /// Why a lock cannot be had.
    enum Obstacle: Error {
        case held
        /// There is no such file, or the file system has no locks.
        case unavailable
    }

    private let descriptor: Int32
    private let path: String

    /// - Parameter descriptor: The file, open and not locked yet. Closed with this value.
    init(descriptor: Int32, path: String) {
        self.descriptor = descriptor
        self.path = path
    }

    deinit { close(descriptor) }

    /// Makes the file and locks it.
    ///
    /// - Returns: `nil` if somebody who takes it for a left one was faster: draw another name.
    /// - Throws: `.io` if the file cannot be made.
    static func making(_ path: String) throws(StoreError) -> MakerLock? {
        let descriptor = open(path, O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw StoreError(.io, "cannot create \(path): \(systemErrorText(errno))")
        }
        let lock = MakerLock(descriptor: descriptor, path: path)
        switch lock.take() {
        case nil: return lock
        case .held:
            lock.remove()
            return nil
        case .unavailable:
            // Without locks nobody can tell a left file, and nobody removes one.
            lock.remove()
            return lock
        }
    }

    /// Locks a file that is there.
    static func taking(_ path: String) -> Result<MakerLock, Obstacle> {
        // A pipe of that name would keep us waiting.
        let descriptor = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { return .failure(.unavailable) }
        let lock = MakerLock(descriptor: descriptor, path: path)
        if let obstacle = lock.take() { return .failure(obstacle) }
        return .success(lock)
    }

    /// - Returns: `nil` if this has the lock.
    func take() -> Obstacle? {
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            return errno == EWOULDBLOCK ? .held : .unavailable
        }
        // Between opening and locking the file may have been removed: then this locks nothing.
        var (own, named) = (stat(), stat())
        guard fstat(descriptor, &own) == 0, own.st_mode & S_IFMT == S_IFREG,
            lstat(path, &named) == 0, named.st_dev == own.st_dev, named.st_ino == own.st_ino
        else { return .held }
        return nil
    }

    /// Lets others have the lock; so does the end of this value.
    func release() {
        flock(descriptor, LOCK_UN)
    }

    /// Removes the file that is locked.
    func remove() {
        unlinkIfPresent(path)
    }
}
