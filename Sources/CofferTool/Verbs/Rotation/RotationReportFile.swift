import Foundation
import Synchronization
import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The file that `--report` names: one JSON object a line, which is only ever appended to.
///
/// Each store gets a line before its run and one after it. A store whose last line is of the
/// beginning belongs to a run that was killed: the next run says how that ended.
final class RotationReportFile: Sendable {
    /// The epochs that stores had when a run for them began and was not reported to its end, by the
    /// bytes of their absolute paths.
    let unfinished: [[UInt8]: Int]
    private let path: String
    private let descriptor: FileDescriptor
    private let isWriting = Mutex(())

    /// - Throws: `ToolError` `.busy` while another run has the file; `.io` if it cannot be read or
    ///   written.
    init(_ path: String) throws {
        self.path = path
        do {
            descriptor = try FileDescriptor.open(
                FilePath(path), .readWrite, options: [.append, .create, .closeOnExec],
                permissions: .ownerReadWrite)
        } catch {
            throw ToolError(.io, "\(path) cannot be opened: \(error)")
        }
        do {
            var facts = stat()
            guard fstat(descriptor.rawValue, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG else {
                throw ToolError(
                    .io, "\(path) is not a file",
                    hint: "The report is read as well: what a killed run has left is in it.")
            }
            // Ends with the process.
            guard flock(descriptor.rawValue, LOCK_EX | LOCK_NB) == 0 else {
                throw ToolError(
                    .busy, "another run of coffer writes to \(path)",
                    hint: "Wait for its end, or name another report.")
            }
            let (unfinished, isTorn) = try Self.read(descriptor, path)
            self.unfinished = unfinished
            // A run that was killed, or a full disk, may have left a part of a line.
            if isTorn { _ = try descriptor.writeAll(CollectionOfOne(UInt8(ascii: "\n"))) }
        } catch {
            try? descriptor.close()
            throw error is ToolError
                ? error : ToolError(.io, "\(path) cannot be read and written: \(error)")
        }
        syncFolder(of: path)
    }

    deinit { try? descriptor.close() }

    private struct Line: Decodable {
        let event: RotationState
        let path: String
        let oldEpoch: Int?
    }

    private static func read(
        _ descriptor: FileDescriptor, _ path: String
    ) throws -> (unfinished: [[UInt8]: Int], isTorn: Bool) {
        var unfinished: [[UInt8]: Int] = [:]
        var rest: [UInt8] = []
        let decoder = JSONDecoder()
        var offset: Int64 = 0
        while true {
            let bytes = try [UInt8](unsafeUninitializedCapacity: 1 << 20) { buffer, count in
                count = try descriptor.read(
                    fromAbsoluteOffset: offset, into: UnsafeMutableRawBufferPointer(buffer))
            }
            if bytes.isEmpty { break }
            offset += Int64(bytes.count)
            rest += bytes
            guard let end = rest.lastIndex(of: UInt8(ascii: "\n")) else { continue }
            for line in rest[..<end].split(separator: UInt8(ascii: "\n")) {
                guard let line = try? decoder.decode(Line.self, from: Data(line)) else { continue }
                unfinished[Array(line.path.utf8)] = line.event == .started ? line.oldEpoch : nil
            }
            rest.removeSubrange(...end)
        }
        return (unfinished, !rest.isEmpty)
    }

    /// Appends a line, which is durable on return.
    ///
    /// - Throws: `ToolError` `.io`.
    func append(_ event: RotationEvent) throws {
        try isWriting.withLock { _ in
            do {
                _ = try descriptor.writeAll((JSON.object(event) + "\n").utf8)
            } catch {
                throw ToolError(.io, "\(path) cannot be written: \(error)")
            }
        }
        guard fsync(descriptor.rawValue) == 0 else {
            throw ToolError(.io, "\(path) cannot be synced: \(Errno(rawValue: errno))")
        }
    }
}

/// Makes the names in the folder of a file durable, as far as the file system does that.
func syncFolder(of path: String) {
    let folder = FilePath(URL(filePath: path).deletingLastPathComponent().path)
    guard let descriptor = try? FileDescriptor.open(folder, .readOnly) else { return }
    fsync(descriptor.rawValue)
    try? descriptor.close()
}
