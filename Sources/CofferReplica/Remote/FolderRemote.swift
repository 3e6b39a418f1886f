import Coffer

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A folder as a remote: another disk, or one that several machines mount.
///
/// ```swift
/// let remote = try FolderRemote("/mnt/backups/notes")
/// ```
///
/// Name a folder inside the mounted disk, and not the mount point: an empty one is there while the
/// disk is not mounted.
///
/// Objects are files that only their owner may read. Each is written under another name, synced,
/// and gets its name by a hard link, which succeeds for one of several creators. A folder that a
/// cloud service copies between machines is several folders: two machines may both create an object
/// there.
public struct FolderRemote: Remote {
    private let path: String
    /// Which folder it was at the beginning: another one is there while a disk is not mounted.
    private let identity: Identity

    /// Names an existing folder. A missing one is not made: its disk may not be mounted.
    ///
    /// - Throws: `StoreError` `.notFound` if the path leads to no folder; `.io`.
    public init(_ path: String) throws(StoreError) {
        var status = stat()
        guard stat(path, &status) == 0 else {
            let number = errno
            guard number == ENOENT || number == ENOTDIR else {
                throw StoreError.system(number, "cannot use the folder \(path)")
            }
            throw StoreError(
                .notFound, "there is no folder \(path)",
                hint: "Make it, or mount the disk that it is on.")
        }
        guard status.st_mode & S_IFMT == S_IFDIR else {
            throw StoreError(.notFound, "\(path) is not a folder")
        }
        self.path = path
        identity = Identity(status)
    }

    private struct Identity: Equatable {
        let device: UInt64
        let number: UInt64

        init(_ status: stat) {
            (device, number) = (UInt64(truncatingIfNeeded: status.st_dev), UInt64(status.st_ino))
        }
    }

    /// - Throws: `.remoteUnavailable` if the folder is gone, or is another one.
    private func requireSame() throws(StoreError) {
        var status = stat()
        guard stat(path, &status) == 0, Identity(status) == identity else {
            throw StoreError(
                .remoteUnavailable, "the folder \(path) is not the one that it was",
                hint: "Mount its disk again. After a new disk, start the program again.")
        }
    }

    /// The path of the folder.
    public var place: String { path }

    /// Creates a file, unless there is one of that name, and syncs it.
    ///
    /// - Throws: `StoreError` `.remoteUnavailable` if the folder is gone, or is another one;
    ///   `.remoteDenied` without the right to write; `.remoteUnfit` on a file system without hard
    ///   links; `.misuse` for a name that no object has; `.full`, `.io`.
    public func create(
        _ name: String, _ bytes: [UInt8]
    ) async throws -> RemoteAnswer<RemoteCreation> {
        try await blockingWork { try self.createNow(name, bytes) }
    }

    /// The bytes of a file, or a part of them; `nil` if the file does not exist.
    ///
    /// - Throws: As `create(_:_:)`.
    public func read(
        _ name: String, _ range: Range<Int>?
    ) async throws -> RemoteAnswer<[UInt8]?> {
        try await blockingWork {
            RemoteAnswer(try self.readNow(name, range), time: nil)
        }
    }

    /// Names that begin with a prefix, in the order of their bytes: at most 1 000, those after
    /// another name.
    ///
    /// - Throws: As `create(_:_:)`.
    /// - Complexity: O(*files*) below the folder of the prefix.
    public func names(withPrefix prefix: String, after name: String) async throws -> [String] {
        try await blockingWork {
            try self.requireSame()
            let all = try self.allNames(below: Self.folder(of: prefix))
            return Array(all.filter { $0.hasPrefix(prefix) && $0 > name }.sorted().prefix(1000))
        }
    }

    /// Deletes a file, if it exists, and its folder if that is empty then.
    ///
    /// - Throws: As `create(_:_:)`.
    public func delete(_ name: String) async throws {
        try await blockingWork {
            let path = try self.path(of: name)
            try self.requireSame()
            guard unlink(path) == 0 else {
                // Somebody else has deleted it, and perhaps its folder.
                if errno == ENOENT { return }
                throw Self.failure(errno, "cannot delete \(path)")
            }
            var folder = Self.folder(of: path)
            do {
                try Self.sync(folder)
            } catch {
                // Somebody else has removed it meanwhile.
                guard access(folder, F_OK) != 0, errno == ENOENT else { throw error }
                return
            }
            // They stay if they have other objects. A creator that just looked for one tries again.
            while folder != self.path, Self.folder(of: folder) != self.path, rmdir(folder) == 0 {
                folder = Self.folder(of: folder)
            }
        }
    }

    // MARK: Files

    private func createNow(
        _ name: String, _ bytes: [UInt8]
    ) throws(StoreError) -> RemoteAnswer<RemoteCreation> {
        let path = try path(of: name)
        let folder = Self.folder(of: path)
        try requireSame()
        try makeFolder(folder)
        let temporary = folder + "/" + Self.temporaryPrefix + String(UInt64.random(in: 0 ... .max))
        defer { unlink(temporary) }
        let time = try Self.write(bytes, to: temporary, for: path)
        var creation = RemoteCreation.created
        if link(temporary, path) != 0 {
            let number = errno
            // A network file system may report an error of a link that it has made.
            var (new, old) = (stat(), stat())
            let isMade =
                lstat(temporary, &new) == 0 && lstat(path, &old) == 0
                && Identity(new) == Identity(old)
            guard isMade || number == EEXIST else { throw Self.notLinked(number, path) }
            if !isMade { creation = .exists }
        }
        // Also if it exists: the one that made it may have lost its power before.
        try syncFolders(from: folder)
        try requireSame()
        return RemoteAnswer(creation, time: time)
    }

    private static func notLinked(_ number: Int32, _ path: String) -> StoreError {
        guard [EPERM, ENOTSUP, EOPNOTSUPP, ENOSYS, EMLINK].contains(number) else {
            return failure(number, "cannot make \(path)")
        }
        return StoreError(
            .remoteUnfit, "the file system of \(path) has no hard links",
            hint: "Choose a folder on another file system.")
    }

    /// Makes a new file and syncs it.
    ///
    /// - Parameter object: The path that it will get, and that errors name.
    /// - Returns: When the file was changed, by the clock of its file system.
    private static func write(
        _ bytes: [UInt8], to path: String, for object: String
    ) throws(StoreError) -> Date {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw failure(errno, "cannot make \(object)") }
        defer { close(descriptor) }
        var status = stat()
        guard bytes.withUnsafeBytes({ PositionedIO.write($0, to: descriptor, at: 0) }),
            flush(descriptor), fstat(descriptor, &status) == 0
        else { throw failure(errno, "cannot write \(object)") }
        #if canImport(Darwin)
        let time = status.st_mtimespec
        #else
        let time = status.st_mtim
        #endif
        return Date(timeIntervalSince1970: Double(time.tv_sec) + Double(time.tv_nsec) / 1e9)
    }

    private func readNow(_ name: String, _ range: Range<Int>?) throws(StoreError) -> [UInt8]? {
        let path = try path(of: name)
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else {
            guard errno == ENOENT || errno == ENOTDIR else {
                throw Self.failure(errno, "cannot read \(path)")
            }
            // The folder may be gone, which does not mean that it never had the object.
            try requireSame()
            return nil
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw StoreError(.remoteUnfit, "\(path) is not a plain file")
        }
        let part = (range ?? 0..<Int(status.st_size)).clamped(to: 0..<Int(status.st_size))
        let bytes = PositionedIO.bytes(
            count: part.count, from: descriptor, at: off_t(part.lowerBound))
        guard let bytes, bytes.count == part.count else {
            throw Self.failure(bytes == nil ? errno : EIO, "cannot read \(path)")
        }
        return bytes
    }

    private static let temporaryPrefix = ".new-"

    private func allNames(below folder: String) throws(StoreError) -> [String] {
        let path = folder.isEmpty ? path : self.path + "/" + folder
        guard let stream = opendir(path) else {
            if errno == ENOENT, !folder.isEmpty { return [] }
            throw Self.failure(errno, "cannot list \(path)")
        }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: Int(NAME_MAX) + 1) {
                    String(cString: $0)
                }
            }
            guard !name.hasPrefix(".") else { continue }
            let whole = folder.isEmpty ? name : folder + "/" + name
            var status = stat()
            guard lstat(self.path + "/" + whole, &status) == 0 else { continue }
            switch status.st_mode & S_IFMT {
            case S_IFDIR: names += try allNames(below: whole)
            case S_IFREG: names.append(whole)
            default: continue
            }
        }
        return names
    }

    /// Makes a folder and those above it, but not the remote's own.
    private func makeFolder(_ folder: String) throws(StoreError) {
        var status = stat()
        guard stat(folder, &status) != 0 else { return }
        if folder.utf8.count > path.utf8.count { try makeFolder(Self.folder(of: folder)) }
        guard folder != path, mkdir(folder, 0o700) == 0 || errno == EEXIST else {
            throw Self.failure(errno, "cannot make the folder \(folder)")
        }
    }

    /// Syncs a folder and those above it, up to the remote's own: another process may have made
    /// them, and may have been killed before it synced them.
    private func syncFolders(from folder: String) throws(StoreError) {
        var folder = folder
        try Self.sync(folder)
        while folder.utf8.count > path.utf8.count {
            folder = Self.folder(of: folder)
            try Self.sync(folder)
        }
    }

    private static func sync(_ folder: String) throws(StoreError) {
        let descriptor = open(folder, O_RDONLY | O_CLOEXEC | O_DIRECTORY)
        guard descriptor >= 0 else { throw failure(errno, "cannot sync \(folder)") }
        defer { close(descriptor) }
        guard flush(descriptor) else { throw failure(errno, "cannot sync \(folder)") }
    }

    /// Syncs a file or a folder, also past the cache of the disk.
    private static func flush(_ descriptor: Int32) -> Bool {
        #if canImport(Darwin)
        if fcntl(descriptor, F_FULLFSYNC) == 0 { return true }
        #endif
        return fsync(descriptor) == 0
    }

    /// The error of a call of the system.
    private static func failure(_ number: Int32, _ text: String) -> StoreError {
        guard [EACCES, EPERM, EROFS].contains(number) else {
            return StoreError.system(number, text)
        }
        return StoreError(
            .remoteDenied, "\(text): \(StoreError.system(number, "").message.dropFirst(2))",
            hint: "Run as the user that replicates, or mount the folder for writing.")
    }

    private func path(of name: String) throws(StoreError) -> String {
        try RemoteName.require(name)
        return path + "/" + name
    }

    /// The part before the last slash; empty without a slash.
    private static func folder(of path: String) -> String {
        path.lastIndex(of: "/").map { String(path[..<$0]) } ?? ""
    }
}
