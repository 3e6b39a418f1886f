import Foundation

/// Where the files are: unfinished ones under the ids of their downloads, the others by name.
struct DownloadFolder: Sendable {
    let url: URL

    /// Makes the folders on the first start.
    init(_ url: URL) throws {
        self.url = url
        for folder in [url, url.appending(path: "partial"), url.appending(path: "files")] {
            try FileManager.default.createDirectory(
                at: folder, withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700])
        }
    }

    func partial(_ id: UUID) -> URL { url.appending(path: "partial/\(id.uuidString)") }

    func file(_ download: Download) -> URL { url.appending(path: "files/\(download.name)") }

    /// Gives a finished file its name. Repeating it changes nothing.
    func settle(_ download: Download) throws {
        let (partial, file) = (partial(download.id), file(download))
        if rename(partial.path, file.path) != 0, errno != ENOENT { throw SystemError("rename") }
        try Self.sync(url.appending(path: "files"))
    }

    /// Deletes what there is of a download.
    func delete(_ download: Download) throws {
        for file in [partial(download.id), file(download)]
        where unlink(file.path) != 0 && errno != ENOENT { throw SystemError("unlink") }
    }

    /// Makes the folder agree with the store after a kill between a commit and a change here.
    func recover(_ downloads: [Download]) throws {
        for download in downloads
        where download.state == .done
            && FileManager.default.fileExists(atPath: partial(download.id).path)
        {
            try settle(download)
        }
        for download in downloads where download.state == .cancelled { try delete(download) }
        let known = Set(downloads.map(\.id.uuidString))
        let names = try FileManager.default.contentsOfDirectory(
            atPath: url.appending(path: "partial").path)
        for name in names where !known.contains(name) {
            try FileManager.default.removeItem(at: url.appending(path: "partial/\(name)"))
        }
    }

    /// Makes the names in a folder survive a power loss.
    static func sync(_ folder: URL) throws {
        let descriptor = open(folder.path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw SystemError("open") }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw SystemError("fsync") }
    }
}

/// Keeps a second manager off a folder, also one of another process. A kill ends it, too.
final class FolderLock: Sendable {
    private let descriptor: Int32

    /// - Throws: `SystemError` if a manager has the folder.
    init(_ folder: DownloadFolder) throws {
        descriptor = open(
            folder.url.appending(path: "lock").path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw SystemError("open") }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            throw SystemError("lock of \(folder.url.path)")
        }
    }

    deinit { close(descriptor) }
}

/// A file of which the first bytes have arrived.
final class PartialFile: Sendable {
    /// The number of bytes that are kept from before.
    let keptCount: Int
    private let descriptor: Int32

    /// Opens a file, or makes it, and cuts off the bytes after the breakpoint, because they may not
    /// have reached the disk.
    ///
    /// A file that is shorter than the breakpoint, because somebody deleted it, begins again.
    init(_ url: URL, breakpoint: Int) throws {
        descriptor = open(url.path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw SystemError("open") }
        var status = stat()
        let isLongEnough = fstat(descriptor, &status) == 0 && Int(status.st_size) >= breakpoint
        keptCount = isLongEnough ? breakpoint : 0
        // From here on `deinit` closes it, also after an error.
        guard ftruncate(descriptor, off_t(keptCount)) == 0 else { throw SystemError("ftruncate") }
        if status.st_size == 0 { try DownloadFolder.sync(url.deletingLastPathComponent()) }
    }

    deinit { close(descriptor) }

    func clear() throws {
        guard ftruncate(descriptor, 0) == 0 else { throw SystemError("ftruncate") }
    }

    func write(_ data: Data, at offset: Int) throws {
        var data = data
        var offset = offset
        while !data.isEmpty {
            let count = data.withUnsafeBytes {
                pwrite(descriptor, $0.baseAddress, $0.count, off_t(offset))
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw SystemError("write") }
            data = data.dropFirst(count)
            offset += count
        }
    }

    /// Waits until the disk has the bytes, on a thread that may wait: tasks have few of them.
    func sync() async throws {
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async { [self] in
                #if canImport(Darwin)
                // There `fsync` leaves the bytes in the disk's own memory.
                let code = fcntl(descriptor, F_FULLFSYNC)
                #else
                let code = fsync(descriptor)
                #endif
                continuation.resume(
                    with: code == 0 ? .success(()) : .failure(SystemError("fsync")))
            }
        }
    }
}

/// A call of the system that failed.
struct SystemError: Error, CustomStringConvertible {
    let description: String

    init(_ call: String) { description = "\(call): \(String(cString: strerror(errno)))" }
}
