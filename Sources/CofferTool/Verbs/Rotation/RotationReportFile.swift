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
    struct Begun {
        /// The keys that the store had before it.
        let epoch: Int
        let keyID: String?
        let rootID: String?
    }

    /// A store, as the file names it. Another store may get its path.
    private struct Store: Hashable {
        /// The bytes of the absolute path: two texts that are equal may name different files.
        let path: [UInt8]
        let id: String
    }

    /// The facts about stores that the lines of the file add up to.
    private struct Content {
        var unfinished: [Store: Begun] = [:]
        /// The highest epoch that a rotation has given.
        var epochs: [Store: Int] = [:]
    }

    private let content: Content
    private let path: String
    private let descriptor: FileDescriptor
    /// Whether a run that was killed, or a full disk, has left a part of a line.
    private let endsTornLine = Mutex(false)

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
            let (content, isTorn) = try Self.read(descriptor, path)
            self.content = content
            endsTornLine.withLock { $0 = isTorn }
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
        content.unfinished[Self.store(path, storeID)]
    }

    /// The highest epoch that the store was given, as far as the file says.
    func knownEpoch(_ path: String, storeID: String) -> Int? {
        content.epochs[Self.store(path, storeID)]
    }

    private static func store(_ path: String, _ id: String) -> Store {
        Store(path: resolved(ReportedPath(path).absolute), id: id)
    }

    /// The bytes of the path of the file itself, whatever links lead to it.
    private static func resolved(_ path: String) -> [UInt8] {
        guard let real = realpath(path, nil) else { return Array(path.utf8) }
        defer { free(real) }
        return Array(UnsafeRawBufferPointer(start: real, count: strlen(real)))
    }

    private struct Line: Decodable {
        let event: RotationState
        let path: String
        // Each line has these, so that no other file is taken for a report.
        let host: String
        let uid: Int
        let time: String
        let schema: Int
        let storeID: String?
        let oldEpoch: Int?
        let oldKeyID: String?
        let oldRootID: String?
        let epoch: Int?
        let keyID: String?
        let rootID: String?
        let exitCode: Int32?

        /// Adds the line to the facts about its store.
        func apply(to content: inout Content, _ resolve: (String) -> [UInt8]) {
            guard let storeID else { return }
            let store = Store(path: resolve(path), id: storeID)
            if let epoch, [.rotated, .foundRotated].contains(event) {
                content.epochs[store] = max(epoch, content.epochs[store] ?? 0)
            }
            switch event {
            case .started:
                // The oldest one counts, until it is known how it ended.
                guard content.unfinished[store] == nil, let oldEpoch else { return }
                content.unfinished[store] = Begun(
                    epoch: oldEpoch, keyID: oldKeyID, rootID: oldRootID)
            case .rotated, .foundRotated, .current:
                content.unfinished[store] =
                    exitCode == ExitStatus.unfinished.rawValue
                    ? epoch.map { Begun(epoch: $0, keyID: keyID, rootID: rootID) } : nil
            case .failed, .interrupted, .notStarted, .wouldRotate: break
            }
        }
    }

    /// - Throws: `ToolError` `.badInput` for the file of something else; `Errno`.
    private static func read(
        _ descriptor: FileDescriptor, _ path: String
    ) throws -> (content: Content, isTorn: Bool) {
        var content = Content()
        var rest: [UInt8] = []
        let decoder = JSONDecoder()
        // The first line decides whether it is a report. It may be torn: a later run has ended it.
        var isReport: Bool?
        var resolvedPaths: [String: [UInt8]] = [:]
        func resolve(_ path: String) -> [UInt8] {
            if let known = resolvedPaths[path] { return known }
            let found = resolved(path)
            resolvedPaths[path] = found
            return found
        }
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
                let read = try? decoder.decode(Line.self, from: Data(line))
                read?.apply(to: &content, resolve)
                guard isReport == nil else { continue }
                let isTorn = read == nil && isBeginning(of: Array(line))
                // So few bytes begin every object: the next line decides.
                if isTorn, line.count < 4 { continue }
                isReport = read != nil || isTorn
            }
            rest.removeSubrange(...end)
            guard isReport != false else { break }
        }
        guard isReport ?? (offset == 0 || isBeginning(of: rest)) else {
            throw ToolError(
                .badInput, "\(path) is not a report of coffer rotate",
                hint: "Nothing was written to it. Name a new file, or an earlier report.")
        }
        return (content, !rest.isEmpty)
    }

    /// Whether bytes may be the beginning of a line that was not written to its end.
    private static func isBeginning(of bytes: [UInt8]) -> Bool {
        // The fields are sorted by their names.
        let firstFields = [#"{"byteCount":"#, #"{"code":""#, #"{"event":""#].map { Array($0.utf8) }
        return firstFields.contains { bytes.starts(with: $0) || $0.starts(with: bytes) }
            && (try? JSONSerialization.jsonObject(with: Data(bytes))) == nil
    }

    /// Appends a line. It is durable after the next `sync()`.
    ///
    /// - Throws: `ToolError` `.io`.
    func append(_ event: RotationEvent) throws {
        try endsTornLine.withLock { isTorn in
            do {
                let line = JSON.object(event) + "\n"
                _ = try descriptor.writeAll(((isTorn ? "\n" : "") + line).utf8)
                isTorn = false
            } catch {
                isTorn = true
                throw ToolError(.io, "\(path) cannot be written: \(error)")
            }
        }
    }

    /// Makes all lines durable.
    ///
    /// - Throws: `ToolError` `.io`.
    func sync() throws {
        guard fsync(descriptor.rawValue) == 0 else {
            throw ToolError(.io, "\(path) cannot be synced: \(Errno(rawValue: errno))")
        }
    }
}
