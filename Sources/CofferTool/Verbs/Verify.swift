import ArgumentParser
import Coffer

/// `coffer verify`
struct Verify: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Checks every page's authentication, then the structure.",
        discussion: """
            Covers free pages and the write-ahead log too, and may run beside programs that use \
            the store. It never moves or deletes a log that it finds. A page that stands newer in \
            the log is checked there, and a checkpoint is said to be owed: that is not damage. \
            Where nothing may be written it needs a store without a log or journal, and else exits \
            with 21. Exit code 14 if anything is damaged. With --sample only so many pages, drawn \
            anew each time, and the log are checked, and the structure is not.

            EXAMPLES
              coffer verify notes.db
              coffer verify notes.db --passphrase-file secret --json --progress json
              coffer verify large.db --sample 10000
            """)

    @OptionGroup var store: StoreOptions
    @Option(help: ArgumentHelp("Check so many pages, drawn at random.", valueName: "pages"))
    var sample: Int?
    @OptionGroup(title: "Secret") var secret: SecretOptions
    @OptionGroup(title: "Output") var output: OutputOptions

    func validate() throws {
        guard sample ?? 1 >= 1 else { throw ValidationError("--sample is 1 page or more.") }
    }

    func run() async throws {
        let reporter = output.reporter("verify", unit: "pages")
        let scope = sample.map(VerificationScope.sample(maximumPageCount:)) ?? .everything
        // Opens for reading only, which leaves a WAL with content alone. The last connection to
        // close would otherwise move the WAL into the file and delete it. By then, opening has
        // already cut off the frames behind a damaged frame, so that nobody could save them.
        let found = try await store.withStore(
            secret, mode: .readOnly, hardLinks: .told
        ) { opened in
            try await Interruption.cancelling(isLateResultKept: false) {
                defer { reporter.finish() }
                return try await opened.verify(scope) { progress in
                    reporter.update(progress.pageCount, of: progress.pageCountTotal)
                }
            }
        }
        try output.print(VerifyResult(path: store.path, found))
        guard found.isGood else { throw ExitCode(ExitStatus.damaged.rawValue) }
    }
}

/// The report of `verify`.
struct VerifyResult: Report {
    let path: String
    let isGood: Bool
    let pageCount: Int
    let pageCountTotal: Int
    let isStructureChecked: Bool
    let structureFailure: String?
    let frameCount: Int
    let stalePageCount: Int
    let isCheckpointOwed: Bool
    let damagedPages: [Damaged]
    let damagedFramePages: [Damaged]
    let trailingByteCount: Int
    let surplusByteCount: Int
    let problems: [String]

    /// A page and its content.
    struct Damaged: Encodable {
        let page: Int
        let content: String

        init(_ page: DamagedPage) {
            self.page = page.number
            content = page.content.description
        }

        var text: String { page == 0 ? content : "page \(page): \(content)" }
    }

    init(path: String, _ report: VerificationReport) {
        self.path = path
        isGood = report.isGood
        pageCount = report.pageCount
        pageCountTotal = report.pageCountTotal
        isStructureChecked = report.isStructureChecked
        structureFailure = report.structureFailure
        frameCount = report.frameCount
        stalePageCount = report.stalePageCount
        isCheckpointOwed = report.isCheckpointOwed
        damagedPages = report.damagedPages.map(Damaged.init)
        damagedFramePages = report.damagedFramePages.map(Damaged.init)
        trailingByteCount = report.trailingByteCount
        surplusByteCount = report.surplusByteCount
        problems = report.problems
    }

    private var soundness: String {
        pageCount < pageCountTotal ? "nothing wrong in the sample" : "all good"
    }

    private var structure: String {
        if isStructureChecked { return "checked" }
        return structureFailure.map { "not checked: \($0)" } ?? "not checked"
    }

    var lines: [(label: String, value: String)] {
        var lines = [
            ("store", path), ("pages", "\(pageCount) of \(pageCountTotal) checked"),
            ("log", "\(frameCount) committed frames checked"),
            ("structure", structure),
            ("result", isGood ? soundness : "DAMAGED: restore from a backup"),
        ]
        if isCheckpointOwed {
            let text = "owed: \(stalePageCount) pages stand in the log alone, so copy it too"
            lines.append(("checkpoint", text))
        }
        lines += damagedPages.map { ("damaged", $0.text) }
        lines += damagedFramePages.map { ("damaged in the log", $0.text) }
        if trailingByteCount > 0 {
            lines.append(("cut short", "the last page has \(trailingByteCount) bytes"))
        }
        if surplusByteCount > 0 {
            let text = "\(surplusByteCount) bytes, which are not of the store; rekey needs a copy "
            lines.append(("behind the end", text + "made by backup, which leaves them out"))
        }
        lines += problems.map { ("problem", $0) }
        return lines
    }
}
