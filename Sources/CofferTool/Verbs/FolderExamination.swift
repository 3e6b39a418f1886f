import Coffer
import Foundation

/// The checks of a folder and of all folders below it. Links are not followed.
///
/// Only what needs attention is reported, file by file; what is good is counted.
struct FolderExamination {
    typealias Check = DoctorReport.Check

    /// Whether unfinished files whose process has ended are removed.
    let isCleaned: Bool

    func run(_ path: String) -> [Check] {
        var checks = [Examination.permissions("folder", path, mask: 0o022, "chmod go-w")]
        var storeCount = 0
        var unfinished: [Check] = []
        for (folder, names) in folders(in: path, &checks) {
            if folder != path {
                checks += attention(
                    [
                        Examination.permissions("folder", folder, mask: 0o022, "chmod go-w")
                    ], folder)
            }
            // Before they are removed.
            let left = UnfinishedFile.all(inFolder: folder)
            checks += files(names, in: folder, but: Set(left.map(\.path)), &storeCount)
            unfinished += left.map { Examination.unfinished($0, isCleaned: isCleaned) }
        }
        if unfinished.isEmpty {
            unfinished = [Check(name: "unfinished", state: .good, message: "none")]
        }
        checks.append(Check(name: "stores", state: .good, message: "\(storeCount) looked at"))
        return checks + unfinished
    }

    /// The folder and all folders below it that can be read, with the names in them.
    private func folders(
        in path: String, _ checks: inout [Check]
    ) -> [(path: String, names: [String])] {
        var found: [(path: String, names: [String])] = []
        var waiting = [path]
        while let folder = waiting.popLast() {
            guard let entries = FolderEntries(of: folder) else {
                checks.append(
                    Self.warning("folder", "cannot be read, so nothing in it was looked at", folder)
                )
                continue
            }
            checks += entries.misspelt.map { name in
                Self.warning(
                    "name", "\(name) in it is not UTF-8, so it was not looked at: rename it", folder
                )
            }
            found.append((folder, entries.names))
            waiting += entries.names.reversed().map { Self.path(folder, $0) }.filter {
                Self.type(of: $0) == .typeDirectory
            }
        }
        return found
    }

    private static func warning(_ name: String, _ message: String, _ path: String) -> Check {
        Check(name: name, state: .warning, message: message, path: ReportedPath(path))
    }

    private static func path(_ folder: String, _ name: String) -> String {
        folder.hasSuffix("/") ? folder + name : "\(folder)/\(name)"
    }

    /// Does not follow a link.
    private static func type(of path: String) -> FileAttributeType? {
        let facts = try? FileManager.default.attributesOfItem(atPath: path)
        return facts?[.type] as? FileAttributeType
    }

    /// - Parameter unfinished: The paths of unfinished files, which are reported apart with the
    ///   files next to them.
    private func files(
        _ names: [String], in folder: String, but unfinished: Set<String>, _ storeCount: inout Int
    ) -> [Check] {
        let all = Set(names)
        var checks: [Check] = []
        let old = KeyringExamination.oldNames(among: names)
        // The stores whose keyrings this loop has checked already.
        var stores: Set<String> = []
        for name in names.sorted() {
            let path = Self.path(folder, name)
            let companion = ["-wal", "-journal", "-shm", "-lock"].first(where: name.hasSuffix)
            guard !unfinished.contains(String(path.dropLast(companion?.count ?? 0))) else {
                continue
            }
            if let main = Self.mainName(of: name) {
                guard !all.contains(main) else { continue }
                checks.append(
                    Self.warning(
                        "journal",
                        "its main file is missing: put both together again, or move it away", path))
                continue
            }
            if let main = KeyringExamination.owner(of: name)?.store {
                guard stores.insert(main).inserted else { continue }
                checks += keyrings(of: main, name, old[main] ?? [], in: folder, among: all)
                continue
            }
            guard let status = status(of: path, name, among: all, &checks) else { continue }
            if status.format != .empty, status.format != .notAStore { storeCount += 1 }
            checks += attention(
                [Examination.permissions("file", path, mask: 0o077, "chmod 600")]
                    + Examination.findings(of: status), path)
            guard name.range(of: #"\.old-[0-9]+$"#, options: .regularExpression) != nil else {
                continue
            }
            checks.append(
                Self.warning(
                    "old store",
                    "a restore has kept it: delete it when you do not need it any more", path))
        }
        return checks
    }

    /// Checks the keyring of a store, and old ones. Passes over a file of another program, which is
    /// neither a keyring nor next to a store.
    ///
    /// - Parameters:
    ///   - name: The name of one of them.
    ///   - old: The names of the old ones.
    private func keyrings(
        of main: String, _ name: String, _ old: [String], in folder: String,
        among all: Set<String>
    ) -> [Check] {
        let path = Self.path(folder, name)
        guard all.contains(main) else {
            guard (try? Keyring(contentsOf: path)) != nil else { return [] }
            return [
                Self.warning(
                    "keyring",
                    "its store is missing: put both together again, or move it away", path)
            ]
        }
        return KeyringExamination(of: Self.path(folder, main), old: old).checks.flatMap {
            attention([$0.check], $0.path)
        }
    }

    /// The name of the main file, if this is a file that SQLite keeps next to one.
    private static func mainName(of name: String) -> String? {
        ["-wal", "-journal", "-shm"].first(where: name.hasSuffix)
            .map { String(name.dropLast($0.count)) }
    }

    /// - Returns: `nil` if nothing says that the file is a store or a database.
    private func status(
        of path: String, _ name: String, among all: Set<String>, _ checks: inout [Check]
    ) -> StoreFileStatus? {
        guard Self.type(of: path) == .typeRegular else { return nil }
        let status: StoreFileStatus
        do {
            status = try StoreFileStatus(path: path)
        } catch {
            // Another process may just have removed it.
            if Failure(error).status != .notFound {
                checks.append(
                    Self.warning("file", "it was not looked at: \(Failure(error).message)", path))
            }
            return nil
        }
        let stem = name.replacing(#/\.old-[0-9]+$/#, with: "")
        let isNamed = [".db", ".sqlite", ".sqlite3"].contains { stem.lowercased().hasSuffix($0) }
        let hasJournal = ["-wal", "-journal"].contains { all.contains(name + $0) }
        switch status.format {
        case .plaintext, .plaintextHeader: return status
        case .keyring, .encrypted, .blank: return isNamed || hasJournal ? status : nil
        case .empty: return isNamed || hasJournal ? status : nil
        case .notAStore: return isNamed ? status : nil
        }
    }

    /// Leaves out what is good, and names the file.
    private func attention(_ checks: [Check], _ path: String) -> [Check] {
        checks.filter { $0.state != .good }.map { check in
            var check = check
            check.path = ReportedPath(path)
            return check
        }
    }
}
