import Foundation
import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A new file that gets its name when it is complete, and not before.
final class OutputFile {
    let descriptor: FileDescriptor
    private let path: String
    private let temporaryPath: String
    private var isNamed = false

    /// Makes the file under another name in the same folder, for its owner alone.
    init(_ path: String) throws {
        try NewFile.requireFree(path)
        self.path = path
        let url = URL(filePath: path)
        temporaryPath =
            url.deletingLastPathComponent()
            .appending(path: ".\(url.lastPathComponent).\(UUID().uuidString)").path
        do {
            descriptor = try FileDescriptor.open(
                FilePath(temporaryPath), .writeOnly,
                options: [.create, .exclusiveCreate, .closeOnExec], permissions: .ownerReadWrite)
        } catch {
            throw ToolError(.noSpaceOrIO, "\(path) cannot be made: \(error)")
        }
    }

    deinit {
        try? descriptor.close()
        if !isNamed { unlink(temporaryPath) }
    }

    /// Makes the bytes durable, then gives the file its name, unless somebody else took it.
    func finish() throws {
        guard fsync(descriptor.rawValue) == 0 else { throw failure() }
        // Unlike `rename` it never replaces a file.
        if link(temporaryPath, path) == 0 {
            unlink(temporaryPath)
        } else {
            guard [EPERM, ENOTSUP, ENOSYS].contains(errno) else { throw failure() }
            // A file system without hard links.
            try NewFile.requireFree(path)
            guard rename(temporaryPath, path) == 0 else { throw failure() }
        }
        isNamed = true
        let folder = URL(filePath: path).deletingLastPathComponent().path
        guard let descriptor = try? FileDescriptor.open(FilePath(folder), .readOnly) else { return }
        fsync(descriptor.rawValue)
        try? descriptor.close()
    }

    private func failure() -> ToolError {
        let reason = Errno(rawValue: errno)
        return reason == .fileExists
            ? ToolError(.failure, "\(path) exists already")
            : ToolError(.noSpaceOrIO, "\(path) cannot be written: \(reason)")
    }
}
