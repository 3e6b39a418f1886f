import Foundation
import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Writes a file in one step, in the place of the one from an earlier run. A program that reads it
/// at the same time gets all of the old content, or all of the new content.
struct ReplacedFile {
    let path: String
    /// The first bytes of every file that an earlier run has written. Any other file is not
    /// replaced.
    private let beginning: [UInt8]

    /// Checks before anything is done that the file can be written at the end.
    ///
    /// - Throws: As `write(_:)`.
    init(_ path: String, beginning: String) throws {
        self.path = path
        self.beginning = Array(beginning.utf8)
        try requireOwn()
        let folder = URL(filePath: path).deletingLastPathComponent().path
        guard access(folder, W_OK) == 0 else {
            throw ToolError(
                .io, "\(path) cannot be written: its folder: \(Errno(rawValue: errno))")
        }
    }

    /// Refuses to replace the file of something else.
    private func requireOwn() throws {
        var facts = stat()
        guard lstat(path, &facts) == 0 else { return }
        // Not blocked by a pipe without a writer.
        guard facts.st_mode & S_IFMT == S_IFREG,
            let file = try? FileDescriptor.open(
                FilePath(path), .readOnly, options: [.noFollow, .nonBlocking, .closeOnExec])
        else {
            throw ToolError(
                .alreadyExists, "\(path) is not a file that can be replaced",
                hint: "Name a new file.")
        }
        defer { try? file.close() }
        let bytes = [UInt8](unsafeUninitializedCapacity: beginning.count) { buffer, count in
            count = (try? file.read(into: UnsafeMutableRawBufferPointer(buffer))) ?? 0
        }
        guard bytes == beginning else {
            throw ToolError(
                .alreadyExists, "\(path) has other content, and is not replaced",
                hint: "Name a new file, or one that an earlier run has written.")
        }
    }

    /// Writes the file beside the former one, syncs it, and puts it in its place. Everybody may
    /// read it.
    ///
    /// - Throws: `ToolError` `.io`; `.alreadyExists` if the path has something else.
    func write(_ text: String) throws {
        let temporary = "\(path).\(String(UInt64.random(in: 0 ... .max), radix: 16)).tmp"
        let file: FileDescriptor
        do {
            file = try FileDescriptor.open(
                FilePath(temporary), .writeOnly,
                options: [.create, .exclusiveCreate, .noFollow, .closeOnExec],
                permissions: .ownerReadWrite)
        } catch {
            throw ToolError(.io, "\(path) cannot be written: \(error)")
        }
        do {
            try file.closeAfter {
                _ = try file.writeAll(text.utf8)
                // Whatever the umask is.
                guard fchmod(file.rawValue, 0o644) == 0, fsync(file.rawValue) == 0 else {
                    throw Errno(rawValue: errno)
                }
            }
            try requireOwn()
            guard rename(temporary, path) == 0 else { throw Errno(rawValue: errno) }
        } catch {
            unlink(temporary)
            throw error is ToolError ? error : ToolError(.io, "\(path) cannot be written: \(error)")
        }
        NewFile.syncFolder(of: path)
    }
}
