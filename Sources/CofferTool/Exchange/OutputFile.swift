import CSQLCipher
import Coffer
import Foundation
import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A new file that gets its name only when it is complete.
///
/// Where the system supports it, the file has no name until then. However the process ends, nothing
/// is left. Elsewhere it is written under the name of an unfinished file, with the lock of such a
/// file.
final class OutputFile {
    let descriptor: FileDescriptor
    private let path: String
    /// The file under its unfinished name; `nil` for a file without a name.
    private let named: Named?

    private final class Named {
        let file: Coffer.NewFile

        init(_ path: String) throws {
            file = try Coffer.NewFile(at: path)
        }
    }

    /// Creates the file in the folder of the path, accessible only to its owner.
    init(_ path: String) throws {
        try NewFile.requireFree(path)
        self.path = path
        let unnamed = coffer_open_unnamed(Self.folder(of: path))
        guard unnamed < 0 else {
            (descriptor, named) = (FileDescriptor(rawValue: unnamed), nil)
            return
        }
        let named = try Named(path)
        do {
            descriptor = try FileDescriptor.open(
                FilePath(named.file.temporaryPath), .writeOnly,
                options: [.create, .exclusiveCreate, .closeOnExec], permissions: .ownerReadWrite)
        } catch {
            throw ToolError(.io, "\(path) cannot be created: \(error)")
        }
        self.named = named
    }

    deinit { try? descriptor.close() }

    /// Makes the bytes durable, then gives the file its name, unless the name is already taken.
    func finish() throws {
        guard fsync(descriptor.rawValue) == 0 else { throw failure(Errno(rawValue: errno)) }
        if let named {
            guard try named.file.adopt() else { throw failure(.fileExists) }
            return
        }
        guard coffer_name_unnamed(descriptor.rawValue, path) == 0 else {
            throw failure(Errno(rawValue: errno))
        }
        NewFile.syncFolder(of: path)
    }

    /// Writes a path a line, and finishes. Without a path, makes no file.
    func finish(paths: [ReportedPath]) throws {
        guard !paths.isEmpty else { return }
        do {
            for path in paths { _ = try descriptor.writeAll((path.absolute + "\n").utf8) }
        } catch {
            throw ToolError(.io, "\(self.path) cannot be written: \(error)")
        }
        try finish()
    }

    private static func folder(of path: String) -> String {
        URL(filePath: path).deletingLastPathComponent().path
    }

    private func failure(_ reason: Errno) -> ToolError {
        reason == .fileExists
            ? ToolError(.alreadyExists, "\(path) exists already")
            : ToolError(.io, "\(path) cannot be written: \(reason)")
    }
}
