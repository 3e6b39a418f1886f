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
/// Each store gets a line before its run and one after it. A store whose run has begun and has no
/// good end in the file is opened by the next run, whatever the age of its key: that run says how
/// the earlier one ended.
final class RotationReportFile: Sendable {
    /// A run that has begun and whose end is not in the file.
    struct Begun: Equatable {
        /// The keys that the store had before it.
        var epoch: Int
        var keyID: String?
        var rootID: String?
    }

    /// A store, as the file names it. Another store may get its path.
    private struct Store: Hashable {
        /// The bytes of the absolute path: two texts that are equal may name different files.
        let path: [UInt8]
        let id: String
    }

    private let unfinished: [Store: Begun]
    let path: String
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
        NewFile.syncFolder(of: path)
    }

    deinit { try? descriptor.close() }

    /// What is left of an earlier run for a store; `nil` if nothing is.
    func begun(_ path: String, storeID: String) -> Begun? {
        unfinished[Store(path: Array(ReportedPath(path).absolute.utf8), id: storeID)]
    }

    private struct Line: Decodable {
        let event: RotationState
        let path: String
        let storeID: String?
        let oldEpoch: Int?
        let oldKeyID: String?
        let oldRootID: String?
        let epoch: Int?
        let keyID: String?
        let rootID: String?
        let exitCode: Int32?

        /// What the line says about the runs for its store.
        func apply(to unfinished: inout [Store: Begun]) {
            guard let storeID else { return }
            let store = Store(path: Array(path.utf8), id: storeID)
            switch event {
            case .started:
                // The oldest one counts, until it is known how it ended.
                guard unfinished[store] == nil, let oldEpoch else { return }
                unfinished[store] = Begun(epoch: oldEpoch, keyID: oldKeyID, rootID: oldRootID)
            case .rotated, .foundRotated, .current:
                unfinished[store] =
                    exitCode == ExitStatus.unfinished.rawValue
                    ? epoch.map { Begun(epoch: $0, keyID: keyID, rootID: rootID) } : nil
            case .failed, .interrupted, .notStarted, .wouldRotate: break
            }
        }
    }

    /// - Throws: `ToolError` `.badInput` for the file of something else; `Errno`.
    private static func read(
        _ descriptor: FileDescriptor, _ path: String
    ) throws -> (unfinished: [Store: Begun], isTorn: Bool) {
        var unfinished: [Store: Begun] = [:]
        var rest: [UInt8] = []
        let decoder = JSONDecoder()
        // The first line may be torn, and the next run has ended it.
        var (lineCount, isReport) = (0, false)
        var offset: Int64 = 0
        while true {
            let bytes = try [UInt8](unsafeUninitializedCapacity: 1 << 20) { buffer, count in
                count = try descriptor.read(
                    fromAbsoluteOffset: offset, into: UnsafeMutableRawBufferPointer(buffer))
            }
            if bytes.isEmpty { break }
            offset += Int64(bytes.count)
            rest += bytes
            guard let end = rest.lastIndex(of: UInt8(ascii: "\n")) else {
                if rest.count > 16 << 20 { break }
                continue
            }
            for line in rest[..<end].split(separator: UInt8(ascii: "\n")) {
                lineCount += 1
                guard let line = try? decoder.decode(Line.self, from: Data(line)) else { continue }
                isReport = isReport || lineCount <= 2
                line.apply(to: &unfinished)
            }
            rest.removeSubrange(...end)
            guard isReport || lineCount < 2 else { break }
        }
        guard isReport || offset == 0 || (lineCount == 0 && isBeginning(of: rest)) else {
            throw ToolError(
                .badInput, "\(path) is not a report of coffer rotate",
                hint: "Nothing was written to it. Name a new file, or an earlier report.")
        }
        return (unfinished, !rest.isEmpty)
    }

    /// Whether bytes may be the beginning of a line that was not written to its end.
    private static func isBeginning(of bytes: [UInt8]) -> Bool {
        guard bytes.starts(with: "{\"".utf8), String(validating: bytes, as: UTF8.self) != nil else {
            return bytes == Array("{".utf8)
        }
        return (try? JSONSerialization.jsonObject(with: Data(bytes))) == nil
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
