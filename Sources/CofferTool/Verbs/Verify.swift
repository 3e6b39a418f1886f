import ArgumentParser
import Coffer

/// `coffer verify`
struct Verify: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Checks every page's authentication, then the structure.",
        discussion: """
            Also covers free pages and the WAL, and may run while programs use the store. It never \
            checkpoints or deletes a WAL that it finds. If the WAL has a newer version of a page, \
            that version is checked, and the report says that a checkpoint is owed, which is not \
            damage. Where nothing may be written it needs a store without a WAL or journal; \
            otherwise the exit code is 21. The exit code is 14 if anything is damaged. With \
            --sample it checks the WAL and only some pages, but not the structure.

            EXAMPLES
              coffer verify notes.db
              coffer verify notes.db --passphrase-file secret --json --progress json
              coffer verify large.db --sample 10000
              coffer verify large.db --sample $(date +%u)/7
            """)

    @OptionGroup var stores: StoreListOptions
    @Option(
        help: ArgumentHelp(
            "Check only this many pages, chosen at random, or a part such as 1/7: the parts 1/7 "
                + "to 7/7 together are every page.",
            valueName: "pages"))
    var sample: Sample?
    @OptionGroup(title: "Secret") var secret: SecretOptions
    @OptionGroup(title: "Output") var output: OutputOptions

    func run() async throws {
        guard let store = stores.single else {
            return try await VerbListRun(
                verb: ["verify"], stores: stores, secret: secret, output: output,
                options: sample.map { ["--sample=\($0.text)"] } ?? []
            ).run()
        }
        let reporter = output.reporter("verify", unit: "pages")
        let scope = sample?.scope ?? .everything
        // Opens for reading only, which leaves a WAL with content alone. The last connection to
        // close would otherwise move the WAL into the file and delete it. By then, opening has
        // already cut off the frames behind a damaged frame, so that nobody could save them.
        // With three readers the structure is checked beside the pages.
        let found = try await store.withStore(
            secret, mode: .readOnly, hardLinks: .told, readerCount: 3
        ) { opened in
            try await Signals.cancelling(isLateResultKept: false) {
                defer { reporter.finish() }
                return try await opened.verify(scope) { progress in
                    reporter.update(progress.pageCount, of: progress.pageCountTotal)
                }
            }
        }
        try output.print(VerifyResult(path: store.path, found))
        guard found.isGood else {
            if output.quiet, !output.json {
                Terminal.fail(
                    Failure(
                        ToolError(
                            .damaged,
                            "\(store.path) is damaged: " + Remedy.ofDamage(to: store.path),
                            hint: "Without --quiet, verify says what is damaged.")))
            }
            throw ExitCode(ExitStatus.damaged.rawValue)
        }
    }
}

/// How much `verify --sample` checks.
struct Sample: ExpressibleByArgument {
    let scope: VerificationScope
    let text: String

    init?(argument: String) {
        text = argument
        let numbers = argument.split(separator: "/", omittingEmptySubsequences: false)
            .map { Int($0) ?? 0 }
        guard numbers.allSatisfy({ $0 >= 1 }) else { return nil }
        switch numbers.count {
        case 1: scope = .sample(maximumPageCount: numbers[0])
        case 2 where numbers[0] <= numbers[1]: scope = .part(numbers[0], of: numbers[1])
        default: return nil
        }
    }
}

/// The report of `verify`.
struct VerifyResult: Report {
    let path: ReportedPath
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

    /// Damaged pages that follow each other and have the same content. A file whose tail is lost
    /// may have hundreds of thousands.
    struct Damaged: Encodable {
        /// The first page; 0 if the damage is not in a page.
        let page: Int
        private(set) var lastPage: Int
        let content: String

        static func runs(of pages: [DamagedPage]) -> [Damaged] {
            pages.reduce(into: []) { runs, page in
                let content = page.content.description
                if let last = runs.last, last.lastPage + 1 == page.number, page.number > 1,
                    last.content == content
                {
                    runs[runs.count - 1].lastPage = page.number
                } else {
                    runs.append(
                        Damaged(page: page.number, lastPage: page.number, content: content))
                }
            }
        }

        var text: String {
            guard page > 0 else { return content }
            let name = page == lastPage ? "page" : "\(lastPage - page + 1) pages,"
            return "\(name) \(PageRuns.text(page...lastPage)): \(content)"
        }
    }

    init(path: String, _ report: VerificationReport) {
        self.path = ReportedPath(path)
        isGood = report.isGood
        pageCount = report.pageCount
        pageCountTotal = report.pageCountTotal
        isStructureChecked = report.isStructureChecked
        structureFailure = report.structureFailure
        frameCount = report.frameCount
        stalePageCount = report.stalePageCount
        isCheckpointOwed = report.isCheckpointOwed
        damagedPages = Damaged.runs(of: report.damagedPages)
        damagedFramePages = Damaged.runs(of: report.damagedFramePages)
        trailingByteCount = report.trailingByteCount
        surplusByteCount = report.surplusByteCount
        problems = report.problems
    }

    private var soundness: String {
        let isSample = !isStructureChecked && structureFailure == nil
        return isSample ? "nothing wrong in the sample" : "all good"
    }

    private var structure: String {
        if isStructureChecked { return "checked" }
        return structureFailure.map { "not checked: \($0)" } ?? "not checked"
    }

    var lines: [(label: String, value: String)] {
        var lines = [
            ("store", "\(path)"), ("pages", "\(pageCount) of \(pageCountTotal) checked"),
            ("WAL", "\(frameCount) committed frames checked"),
            ("structure", structure),
            ("result", isGood ? soundness : "DAMAGED"),
        ]
        if !isGood { lines.append(("next step", Remedy.ofDamage(to: "\(path)"))) }
        if isCheckpointOwed {
            let text = "owed: \(stalePageCount) pages are current only in the WAL, so copy it too"
            lines.append(("checkpoint", text))
        }
        lines += damagedPages.map { ("damaged", $0.text) }
        lines += damagedFramePages.map { ("damaged in the WAL", $0.text) }
        if trailingByteCount > 0 {
            lines.append(("cut short", "the last page has \(trailingByteCount) bytes"))
        }
        if surplusByteCount > 0 {
            let text = "\(surplusByteCount) bytes that do not belong to the store; rekey needs a "
            lines.append(("after the end", text + "copy made by backup, which leaves them out"))
        }
        lines += Self.lines(of: problems)
        return lines
    }

    /// A line for each line of the problems, and the number of those that are left out.
    private static func lines(of problems: [String]) -> [(label: String, value: String)] {
        let all = problems.flatMap { $0.split(separator: "\n") }
        let rest = all.dropFirst(maximumProblemCount).count
        return all.prefix(maximumProblemCount).map { ("problem", String($0)) }
            + (rest > 0 ? [("problems", "\(rest) more, which --json lists")] : [])
    }

    private static let maximumProblemCount = 20
}
