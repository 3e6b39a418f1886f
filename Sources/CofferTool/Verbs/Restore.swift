import ArgumentParser
import Coffer

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// `coffer restore`
struct Restore: AsyncParsableCommand, ChangingVerb {
    static let configuration = CommandConfiguration(
        abstract: "Restores a backup in the place of a store, or a replica to a new file.",
        discussion: """
            Verifies the backup, copies it next to the store, and authenticates every page of the \
            copy. Only then the store gets another name, STORE.old-1, with its -wal file, and the \
            copy takes its place. The store may be damaged or missing: it is not read. The \
            restored store has the secret of the backup, and the permissions of the old store.

            A store whose keyring has the root of the backup keeps its present slots: a \
            credential that was removed since the backup does not open it. Otherwise the keyring \
            of the backup comes with it, and the present one goes to STORE.old-1.keyring. A \
            backup from before a rotation undoes it, and a warning says so.

            The first argument may also be a remote: a folder that coffer replicate has filled, or \
            the URL of a service. Then every record and page is checked, and a new file is made. \
            An existing store stays where it is: move it away first, with its -wal file. --at or \
            --position names an earlier commit; coffer replicas lists them.

            No program may have the store open. One that is idle and uses no WAL is not noticed: \
            what it writes later is lost, or damages the restored store. A program that opens \
            the store meanwhile without Coffer does not notice either. So stop the programs first.

            EXAMPLES
              coffer restore notes-2026-11.db notes.db
              coffer restore notes-2026-11.db notes.db --raw-key-file key --json
              coffer restore /mnt/backups/notes noon.db --at 2026-11-28T12:00:00Z

            EXIT CODES
              0 the store is the backup, even if the report could not be written; 10 there is no \
            replica, or none of that moment; 14 the backup is damaged, or records or pages of the \
            replica are, or the store is missing and its WAL or journal is not; 11 a program has \
            the store open; 130 after a second Ctrl-C: the store is the old one or the backup; \
            run it again if there is a STORE.old-1 and the store is the old one. Any other: the \
            store is as it was
            """)

    @Argument(
        help: "The backup: a file, or a folder or URL that has a replica.", completion: .file())
    var backup: String
    @OptionGroup var store: StoreOptions
    @OptionGroup var moment: ReplicaMomentOptions
    @OptionGroup(title: "Secret of the backup") var secret: SecretOptions
    @OptionGroup(title: "Storage service") var remoteOptions: RemoteOptions
    @OptionGroup(title: "Output") var output: OutputOptions

    func run() async throws {
        let source = try secret.source()
        if RemoteOptions.isRemote(backup) { return try await restoreReplica() }
        guard moment.isEmpty else {
            throw ToolError(
                .usage, "\(backup) is a file, which has one moment only",
                hint: "A time or a position is of a replica: name its folder or URL.")
        }
        _ = try StoreFileStatus(path: backup)
        guard !isSameFile else {
            throw ToolError(
                .usage, "the backup and the store are the same file",
                hint: "Name the backup first, then the store in whose place it is put.")
        }
        let nameCount = (try? StoreFileStatus(path: store.path))?.nameCount ?? 1
        let former = try? Keyring(of: store.path)
        let key = KeyHolder(try SecretReader.current(source, for: backup))
        RunFiles.makes(store.path)
        RunFiles.remedy("take another backup, or " + Remedy.savingRows(of: backup))
        let report = try await output.copying("restore") { [self] progress in
            try await Store.restore(
                from: backup, key: try key.takeOne(), to: store.path,
                configuration: store.configuration, progress: progress)
        }
        if nameCount > 1, let old = report.oldPath {
            Terminal.warn(
                "the old store has \(nameCount) names (hard links): the other ones name \(old) now "
                    + "(find DIR -samefile \(ShellWord.of(old)) lists them)")
        }
        if let former { warnOfEarlierKey(than: former) }
        output.printDone(RestoreResult(self, report))
    }
}

extension Restore {
    /// Warns if the restored store has a key again that a rotation had ended.
    private func warnOfEarlierKey(than former: Keyring) {
        guard let keyring = try? Keyring(of: store.path) else { return }
        let path = ShellWord.of(store.path)
        if keyring.rootID != former.rootID {
            Terminal.warn(
                "the store has the root key of the backup, and not the one that it had: whoever "
                    + "lost their access since has it again, until coffer revoke \(path)")
        } else if keyring.epoch < former.epoch {
            Terminal.warn(
                "the backup is from before a rotation, and its pages have the key of epoch "
                    + "\(keyring.epoch) again, after \(former.epoch): coffer rotate \(path) ends "
                    + "its use")
        }
    }

    /// Whether both names lead to one file.
    private var isSameFile: Bool {
        var first = stat()
        var second = stat()
        return stat(backup, &first) == 0 && stat(store.path, &second) == 0
            && first.st_dev == second.st_dev && first.st_ino == second.st_ino
    }
}

/// The report of `restore`.
struct RestoreResult: Report {
    let backup: ReportedPath
    let path: ReportedPath
    /// The keyring of the restored store; `nil` for a store with a key of its own.
    let keyring: ReportedPath?
    /// Whether that is the keyring which was there; `nil` without one.
    let keepsKeyring: Bool?
    /// Where the store is that was replaced.
    let oldPath: ReportedPath?
    let profile: String?
    let tableCount: Int
    let rowCount: Int
    let pageCount: Int

    init(_ options: Restore, _ report: RestoreReport) {
        backup = ReportedPath(options.backup)
        path = ReportedPath(options.store.path)
        keyring = ReportedPath(keyringOf: options.store.path)
        keepsKeyring = keyring == nil ? nil : report.keepsKeyring
        oldPath = report.oldPath.map { ReportedPath($0) }
        profile = report.copy.profile?.description
        tableCount = report.copy.tableCount
        rowCount = report.copy.rowCount
        pageCount = report.copy.pageCount
    }

    var lines: [(label: String, value: String)] {
        var lines = [(label: "backup", value: "\(backup), kept as it is")]
        lines.append(("store", "\(path), restored"))
        if let keyring { lines.append(("keyring", "\(keyring), \(Self.fate(keepsKeyring))")) }
        let old = oldPath.map { "\($0), kept with its own secret" }
        lines.append(("old store", old ?? "there was none"))
        lines.append(("profile", profile ?? "none: plaintext"))
        lines.append(("content", CopyResult.content(tableCount, rowCount, pageCount)))
        let proof = "the backup verified, the copy's pages authenticated, its structure checked"
        lines.append(("proof", proof))
        return lines
    }

    private static func fate(_ keepsKeyring: Bool?) -> String {
        keepsKeyring == true
            ? "kept: its slots are the store's, not those of the backup" : "that of the backup"
    }
}
