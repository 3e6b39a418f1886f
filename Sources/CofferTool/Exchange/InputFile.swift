import Foundation
import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A file that is read sequentially, or standard input (`-`).
final class InputFile {
    /// The file's name in messages.
    let name: String
    /// The size of a regular file; `nil` for pipes.
    let byteCount: Int?
    private(set) var readCount = 0
    private let descriptor: FileDescriptor

    /// - Parameter store: Path of the store that will be open at the same time. It is refused as
    ///   input, because closing a second descriptor of its file would drop SQLite's locks.
    init(_ path: String, apartFrom store: String) throws {
        guard path != "-" else {
            name = "standard input"
            descriptor = .standardInput
            byteCount = nil
            return
        }
        name = path
        guard !Self.isSame(path, store) else {
            throw ToolError(.usage, "\(path) is the store itself")
        }
        do {
            descriptor = try FileDescriptor.open(FilePath(path), .readOnly, options: .closeOnExec)
        } catch {
            let isMissing = error as? Errno == .noSuchFileOrDirectory
            throw ToolError(
                isMissing ? .notFound : .io, "\(path) cannot be opened: \(error)")
        }
        var facts = stat()
        let isFile =
            fstat(descriptor.rawValue, &facts) == 0 && facts.st_mode & S_IFMT == S_IFREG
        byteCount = isFile ? Int(facts.st_size) : nil
    }

    deinit {
        if descriptor != .standardInput { try? descriptor.close() }
    }

    private static func isSame(_ path: String, _ other: String) -> Bool {
        var first = stat()
        var second = stat()
        guard stat(path, &first) == 0, stat(other, &second) == 0 else { return false }
        return first.st_dev == second.st_dev && first.st_ino == second.st_ino
    }

    /// Appends the next bytes, at most `maximumCount`; returns `false` at the end.
    ///
    /// - Throws: `CancellationError`, even while no bytes arrive.
    func read(_ maximumCount: Int, into bytes: inout [UInt8]) throws -> Bool {
        // Not in place, because growing an array by that many zeros is slow in a debug build.
        let chunk = try [UInt8](unsafeUninitializedCapacity: maximumCount) { buffer, initialized in
            initialized = try fill(UnsafeMutableRawBufferPointer(buffer))
        }
        bytes += chunk
        return !chunk.isEmpty
    }

    /// Fills the memory with the next bytes. There are fewer only at the end.
    ///
    /// - Returns: The number of bytes.
    /// - Throws: `CancellationError`, even while no bytes arrive.
    func fill(_ room: UnsafeMutableRawBufferPointer) throws -> Int {
        var filled = 0
        while filled < room.count {
            try waitForBytes()
            let rest = UnsafeMutableRawBufferPointer(rebasing: room[filled...])
            let count = try read(into: rest)
            if count == 0 { break }
            filled += count
        }
        readCount += filled
        return filled
    }

    private func read(into room: UnsafeMutableRawBufferPointer) throws -> Int {
        do {
            return try descriptor.read(into: room)
        } catch {
            throw ToolError(.io, "\(name) cannot be read: \(error)")
        }
    }

    /// Reads the whole input.
    func readAll(maximumCount: Int) throws -> [UInt8] {
        var bytes: [UInt8] = []
        if let byteCount { bytes.reserveCapacity(min(byteCount, maximumCount) + 2) }
        while try read(1 << 20, into: &bytes) {
            guard bytes.count <= maximumCount else {
                throw ToolError(.badInput, "\(name) has more than \(maximumCount) bytes")
            }
        }
        return bytes
    }

    /// A pipe may be silent for a long time, and a blocked read would not notice cancellation.
    private func waitForBytes() throws {
        while true {
            try Task.checkCancellation()
            guard byteCount == nil else { return }
            var wanted = pollfd(fd: descriptor.rawValue, events: Int16(POLLIN), revents: 0)
            if poll(&wanted, 1, 200) != 0 { return }
        }
    }
}
