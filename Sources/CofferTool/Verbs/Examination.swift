import CSQLCipher
import Coffer
import Foundation

/// The individual checks.
enum Examination {
    typealias Check = DoctorReport.Check

    static func machine() -> [Check] {
        [engine(), coreDumps(), memoryLock(), swap()]
    }

    private static func engine() -> Check {
        do {
            let engine = try Engine.capabilities
            guard let notice = engine.ageNotice else {
                return Check(name: "engine", state: .good, message: engine.names)
            }
            return Check(name: "engine", state: .warning, message: notice)
        } catch {
            return Check(name: "engine", state: .bad, message: Failure(error).message)
        }
    }

    /// `Main` has already forbidden core dumps; this checks that it took effect.
    private static func coreDumps() -> Check {
        coffer_core_limit() == 0
            ? Check(name: "core dumps", state: .good, message: "disabled for this process")
            : Check(
                name: "core dumps", state: .warning,
                message: "this process may leave one, with keys in it")
    }

    /// Each connection has a key, which takes a page or two.
    private static let lockByteCountMin = 1 << 16

    private static func memoryLock() -> Check {
        let limit = coffer_lock_limit()
        if limit == -1 || limit >= lockByteCountMin {
            let text = limit == -1 ? "without limit" : "up to \(limit) bytes"
            return Check(name: "memory lock", state: .good, message: text)
        }
        return Check(
            name: "memory lock", state: .warning,
            message: "only \(max(0, limit)) bytes: keys may be swapped out (raise ulimit -l)")
    }

    private static func swap() -> Check {
        // The first line is a heading.
        guard let table = try? FileHandle(forReadingFrom: URL(filePath: "/proc/swaps")).readToEnd()
        else { return Check(name: "swap", state: .warning, message: "cannot be determined here") }
        let areas = String(decoding: table, as: UTF8.self).split(separator: "\n").dropFirst()
        return areas.isEmpty
            ? Check(name: "swap", state: .good, message: "none")
            : Check(
                name: "swap", state: .warning,
                message: "\(areas.count) in use: pages of data are not locked in memory; encrypt "
                    + "the swap")
    }

    // MARK: A file

    static func file(_ path: String) throws -> [Check] {
        let status = try StoreFileStatus(path: path)
        let folder = URL(filePath: status.path).deletingLastPathComponent().path
        return [
            permissions("file", status.path, mask: 0o077, "chmod 600"),
            permissions("folder", folder, mask: 0o022, "chmod go-w"),
        ] + KeyringExamination(of: status.path).checks.map(\.check) + findings(of: status)
    }

    /// What needs attention, apart from permissions.
    static func findings(of status: StoreFileStatus) -> [Check] {
        var checks: [Check] = []
        if status.nameCount > 1 {
            checks.append(
                Check(
                    name: "names", state: .warning,
                    message: "\(status.nameCount) (hard links): programs that open it under "
                        + "different names lose each other's changes (find DIR -samefile "
                        + "\(ShellWord.of(status.path)) lists them)"))
        }
        if let warning = warning(of: status) {
            checks.append(Check(name: "format", state: .warning, message: warning))
        }
        if status.journalByteCount > 0 {
            checks.append(
                Check(
                    name: "journal", state: .warning,
                    message: "\(status.journalByteCount) bytes: in use, or left by a crash; the "
                        + "next program that opens the store rolls it back"))
        }
        return checks
    }

    private static func warning(of status: StoreFileStatus) -> String? {
        switch status.format {
        case .plaintext: "a plaintext SQLite database: coffer encrypt makes a store of it"
        case .plaintextHeader:
            "its header is plaintext (cipher_plaintext_header_size) and no page's MAC covers it: "
                + "no verb opens such a file"
        case .blank where status.walByteCount + status.journalByteCount > 0:
            "its first page is blank, but the WAL or journal may contain it: run coffer status "
                + "with the key"
        case .blank: "blank, which is damage: " + Remedy.ofDamage(to: status.path)
        case .empty: "empty, so it is not a store: " + Remedy.ofDamage(to: status.path)
        case .notAStore: "named as a database, and not one: it may be a piece of a store"
        case .keyring: "a keyring, or a copy of one, with the name of a store"
        case .encrypted: nil
        }
    }

    // MARK: Unfinished files

    static func unfinished(_ file: UnfinishedFile, isCleaned: Bool) -> Check {
        let (size, state) = (file.byteCount, file.state)
        func check(_ result: Check.State, _ message: String) -> Check {
            Check(
                name: "unfinished", state: result, message: message, path: ReportedPath(file.path))
        }
        switch state {
        case .held: return check(.good, "\(size) bytes, being made by a process that is running")
        case .unknown:
            return check(
                .warning,
                "\(size) bytes, without a lock that shows whether a process is making it: remove "
                    + "it yourself if none is")
        case .left where !isCleaned:
            return check(
                .warning,
                "\(size) bytes, left by a process that ended (coffer doctor FOLDER --clean "
                    + "removes it)")
        case .left:
            return file.removeIfLeft()
                ? check(.good, "\(size) bytes, left by a process that ended, removed")
                : check(.warning, "\(size) bytes, left by a process that ended, cannot be removed")
        }
    }

    /// Permissions as chmod(1) takes them: three digits or four.
    private static func octal(_ mode: UInt32) -> String {
        let digits = String(mode, radix: 8)
        return String(repeating: "0", count: max(0, 3 - digits.count)) + digits
    }

    static func permissions(
        _ name: String, _ path: String, mask: UInt32, _ remedy: String
    ) -> Check {
        let facts = try? FileManager.default.attributesOfItem(atPath: path)
        guard let mode = (facts?[.posixPermissions] as? NSNumber)?.uint32Value else {
            return Check(name: name, state: .warning, message: "its permissions cannot be read")
        }
        let text = "mode \(octal(mode))"
        return mode & mask == 0
            ? Check(name: name, state: .good, message: text)
            : Check(
                name: name, state: .warning,
                message: "\(text): open to other users (\(remedy) \(ShellWord.of(path)))")
    }
}
