import ArgumentParser
import Coffer

/// The file to copy, and the file to create.
struct CopyOptions: ParsableArguments {
    @OptionGroup var store: StoreOptions
    @Argument(help: "The new file. An existing file is never overwritten.", completion: .file())
    var newPath: String

    func requireFree() throws {
        guard newPath != "-" else {
            throw ToolError(
                .usage, "only backup writes to standard output",
                hint: "Name a file; ./- is one of that name.")
        }
        try NewFile.requireFree(newPath)
    }
}

/// The report of every verb that copies.
struct CopyResult: Report {
    let source: ReportedPath
    let copy: ReportedPath
    /// The keyring of the copy; `nil` for a copy with a key of its own.
    let keyring: ReportedPath?
    let profile: String?
    let tableCount: Int
    let rowCount: Int
    let pageCount: Int

    init(_ options: CopyOptions, _ report: CopyReport) {
        source = ReportedPath(options.store.path)
        copy = ReportedPath(options.newPath)
        keyring = ReportedPath(keyringOf: options.newPath)
        profile = report.profile?.description
        tableCount = report.tableCount
        rowCount = report.rowCount
        pageCount = report.pageCount
    }

    static func content(_ tableCount: Int, _ rowCount: Int, _ pageCount: Int) -> String {
        "\(tableCount.counted("table")), \(rowCount.counted("row")), \(pageCount.counted("page"))"
    }

    var lines: [(label: String, value: String)] {
        [("source", "\(source), kept as it is"), ("copy", "\(copy)")]
            + (keyring.map { [("keyring", "\($0)")] } ?? []) + [
                ("profile", profile ?? "none: plaintext"),
                ("content", CopyResult.content(tableCount, rowCount, pageCount)),
                ("proof", "read back and compared or authenticated, and its structure checked"),
            ]
    }
}

extension ReportedPath {
    /// The path of a store's keyring; `nil` for a store without one.
    init?(keyringOf path: String) {
        guard (try? Keyring.exists(for: path)) == true else { return nil }
        self.init(path + Keyring.fileSuffix)
    }
}

extension OutputOptions {
    /// Runs a copy that a signal cancels, with its progress shown.
    func copying<Result: Sendable>(
        _ verb: String,
        _ work:
            @escaping @Sendable (@escaping @Sendable (CopyProgress) -> Void) async throws
            -> Result
    ) async throws -> Result {
        let rows = reporter(verb, unit: "rows")
        let pages = reporter("\(verb): check", unit: "pages")
        let replaced = reporter("\(verb): replace", unit: "pages")
        return try await Signals.cancelling {
            defer {
                rows.finish()
                pages.finish()
                replaced.finish()
            }
            return try await work { progress in
                switch progress.step {
                case .copyingRows, .verifyingRows:
                    rows.update(progress.count, of: progress.countTotal)
                case .readingPages, .copyingPages, .verifyingPages:
                    pages.update(progress.count, of: progress.countTotal)
                case .replacingPages:
                    replaced.update(progress.count, of: progress.countTotal)
                }
            }
        }
    }
}
