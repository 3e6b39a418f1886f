import ArgumentParser
import Coffer
import Foundation

/// `coffer doctor`
struct Doctor: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Checks the machine, and stores, for conditions that weaken encryption.",
        discussion: """
            Needs no secret. The exit code is 0 even with warnings, and 1 if the engine cannot be \
            used or a keyring is damaged, so that no credential opens its store.

            In a folder and all folders below it, it looks at each store: a file whose name ends \
            in .db, .sqlite or .sqlite3, one with a -wal or -journal file, and each plaintext \
            database. It names only what needs attention. It does not follow links.

            It also lists the unfinished files. A process that is killed while it makes a file \
            leaves one. Its name ends in .new- and 16 hex digits, and it may be plaintext. \
            --clean removes unfinished files whose process has ended, and never one that is still \
            being made, nor one without a -lock file, which does not show it.

            EXAMPLES
              coffer doctor
              coffer doctor notes.db --json
              coffer doctor /var/lib/notes --clean
            """)

    @Argument(
        help: "A store's file, to check its permissions and names too, or a folder.",
        completion: .file())
    var path: String?
    @Flag(help: "Remove unfinished files whose process has ended; needs a folder.")
    var clean = false
    @OptionGroup(title: "Output") var output: OutputOptions

    func validate() throws {
        guard path != "" else { throw ValidationError("The path is empty.") }
        guard !clean || path != nil else { throw ValidationError("--clean needs a folder.") }
    }

    func run() async throws {
        Signals.note("run the same command again")
        var checks = Examination.machine()
        if let path {
            var isFolder: ObjCBool = false
            _ = FileManager.default.fileExists(atPath: path, isDirectory: &isFolder)
            if !isFolder.boolValue {
                let found = try Examination.file(path)
                guard !clean else { throw ToolError(.usage, "\(path) is not a folder") }
                checks += found
            } else {
                checks += FolderExamination(isCleaned: clean).run(path)
            }
        }
        try output.print(DoctorReport(checks: checks))
        if checks.contains(where: { $0.state == .bad }) {
            throw ExitCode(ExitStatus.failure.rawValue)
        }
    }
}

/// The report of `doctor`.
struct DoctorReport: Report {
    struct Check: Encodable {
        enum State: String, Encodable {
            case good, warning, bad
        }

        let name: String
        let state: State
        let message: String
        /// The file or folder that the check concerns, in a folder.
        var path: ReportedPath?
    }

    let checks: [Check]

    var lines: [(label: String, value: String)] {
        checks.map { check in
            let about = check.path.map { "\($0): " } ?? ""
            let state = check.state == .good ? "" : "\(check.state): "
            return (check.name, state + about + check.message)
        }
    }
}
