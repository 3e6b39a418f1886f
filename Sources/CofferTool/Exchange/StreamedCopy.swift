import Foundation
import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A place for a copy that goes to standard output.
///
/// The copy is made as a file first, because all of it is verified before its first byte is
/// written. The file is in a folder that only this user can open, in `TMPDIR` or else `/tmp`.
final class StreamedCopy: Sendable {
    private let folder = PrivateFolder()

    /// Makes nothing yet.
    ///
    /// - Throws: `ToolError` `.usage` if standard output is a terminal.
    init() throws {
        guard isatty(STDOUT_FILENO) == 0 else {
            throw ToolError(
                .usage, "standard output is a terminal, which cannot show a store",
                hint: "Send it to a file or a program: coffer backup STORE - | ssh …")
        }
    }

    /// Makes the folder. Must be called once, when all secrets are read.
    ///
    /// - Returns: The path for the copy.
    /// - Throws: As `PrivateFolder.make()`.
    func makePath() throws -> String { Self.path(in: try folder.make()) }

    private static func path(in folder: String) -> String { "\(folder)/copy.db" }

    func remove() { folder.remove() }

    /// Writes the copy to standard output.
    ///
    /// - Parameter advance: Called with the number of bytes that have been written, and of all.
    /// - Returns: The number of bytes.
    /// - Throws: `CancellationError`; `ToolError` `.io` if standard output takes no more.
    func write(advance: (Int, Int) -> Void) throws -> Int {
        guard let folder = folder.path else { throw CancellationError() }
        let path = Self.path(in: folder)
        let file = try FileDescriptor.open(FilePath(path), .readOnly, options: .closeOnExec)
        defer { try? file.close() }
        let total = try Int(file.seek(offset: 0, from: .end))
        try file.seek(offset: 0, from: .start)
        // A pipe that is ready takes that many bytes without blocking:
        // https://man7.org/linux/man-pages/man7/pipe.7.html
        var bytes = [UInt8](repeating: 0, count: Int(PIPE_BUF))
        var written = 0
        while true {
            let count = try bytes.withUnsafeMutableBytes { try file.read(into: $0) }
            guard count > 0 else { break }
            try waitUntilReady()
            do {
                try FileDescriptor.standardOutput.writeAll(bytes[..<count])
            } catch {
                throw ToolError(
                    .io, "standard output cannot be written: \(error)",
                    hint: "What was written is not a whole copy: \(written) of \(total) bytes.")
            }
            written += count
            advance(written, total)
        }
        // A disk that is full may say so only now.
        guard fsync(STDOUT_FILENO) == 0 || errno == EINVAL || errno == EROFS else {
            throw ToolError(
                .io, "standard output cannot be written: \(Errno(rawValue: errno))")
        }
        return written
    }

    /// Waits for a reader, and for Ctrl-C.
    private func waitUntilReady() throws {
        var place = pollfd(fd: STDOUT_FILENO, events: Int16(POLLOUT), revents: 0)
        repeat {
            try Task.checkCancellation()
        } while poll(&place, 1, 100) == 0
    }
}
