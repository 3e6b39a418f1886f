import ArgumentParser
import Coffer

/// `coffer salvage`
struct Salvage: AsyncParsableCommand, ChangingVerb {
    static let configuration = CommandConfiguration(
        abstract: "Copies every row of every good page of a damaged store into a new one.",
        discussion: """
            Use it when verify finds damage and there is no backup. No page needs to be intact, \
            not even the first. Every page is authenticated, and what fails is left out. Commits \
            in the -wal file count. The report names each table with its rows, and the gaps.

            A row that has no place in its table is in the table lost_and_found of the copy, \
            with the reason: its table is unknown, its end was in a lost page, or its table \
            refused it. Without page 1 all rows are there. If the list of free pages is damaged, \
            deleted rows can come back there.

            The damaged store is not changed, and no program may have it open. The copy has the \
            same passphrase or key, unless a --new-… option or --new-prompt names another one.

            A copy of a store with a keyring has a new root and one slot, for the secret that was \
            given. The other credentials and the root backup do not open it: add them again.

            EXAMPLES
              coffer salvage damaged.db rest.db
              coffer salvage damaged.db rest.db --raw-key-file key --json

            EXIT CODES
              0 the copy has every row, index, view and trigger; 14 the copy was made and \
            checked, and the report says what it lacks; 12 the key opens no page; 11 a program \
            has the store open; 130 after a second Ctrl-C: the copy is complete or absent. Any \
            other: this run made no copy. The damaged store is as it was in any case
            """)

    @OptionGroup var copy: CopyOptions
    @Flag(help: "Ask for another passphrase for the copy on the terminal.")
    var newPrompt = false
    @OptionGroup(title: "Secret of the damaged store") var secret: SecretOptions
    @OptionGroup(title: "Another secret of the copy") var newSecret: NewSecretOptions
    @OptionGroup(title: "Output") var output: OutputOptions

    func run() async throws {
        try copy.requireFree()
        let source = try secret.source()
        let newSource = try newSecret.source(apartFrom: source)
        _ = try StoreFileStatus(path: copy.store.path)
        let key = KeyHolder(try SecretReader.current(source, for: copy.store.path))
        let hasNewKey = newPrompt || newSecret.isGiven(newSource)
        let newKey = KeyHolder(
            hasNewKey ? try newSecret.read(newSource, for: copy.newPath) : nil)
        let report = try await output.copying("salvage") { [copy] progress in
            try await Store.salvage(
                damagedAt: copy.store.path, key: try key.takeOne(), to: copy.newPath,
                newKey: newKey.take(), configuration: copy.store.configuration,
                progress: progress)
        }
        output.printDone(SalvageResult(copy, report))
        guard report.isComplete else { throw ExitCode(ExitStatus.damaged.rawValue) }
    }
}

/// The report of `salvage`.
struct SalvageResult: Report {
    let source: ReportedPath
    let copy: ReportedPath
    let profile: String?
    let isComplete: Bool
    /// Rows of the copy, with those of the table for lost rows.
    let rowCount: Int
    /// Pages of the damaged store.
    let pageCount: Int
    let damagedPages: [VerifyResult.Damaged]
    let tables: [Table]
    let lostTable: String?
    let lostRowCount: Int
    let problems: [String]

    struct Table: Encodable {
        let name: String
        let rowCount: Int
        let cutRowCount: Int
        let refusedRowCount: Int
        let gaps: [Gap]

        var text: String {
            var parts = [rowCount.counted("row")]
            if cutRowCount > 0 { parts.append("\(cutRowCount) cut short") }
            if refusedRowCount > 0 { parts.append("\(refusedRowCount) refused") }
            if !gaps.isEmpty { parts.append(gaps.count.counted("gap")) }
            return "\(name): " + parts.joined(separator: ", ")
        }
    }

    /// Lost pages that follow each other, and whose rows do.
    struct Gap: Encodable {
        let page: Int
        private(set) var lastPage: Int
        let firstRowID: Int64?
        private(set) var lastRowID: Int64?

        static func runs(of gaps: [SalvageReport.Gap]) -> [Gap] {
            gaps.reduce(into: []) { runs, gap in
                if let last = runs.last, last.isContinued(by: gap) {
                    runs[runs.count - 1].lastPage = gap.page
                    runs[runs.count - 1].lastRowID = gap.lastRowID
                } else {
                    runs.append(
                        Gap(
                            page: gap.page, lastPage: gap.page, firstRowID: gap.firstRowID,
                            lastRowID: gap.lastRowID))
                }
            }
        }

        /// Pages without limits, or with the same ones, may have held the same rows.
        private func isContinued(by gap: SalvageReport.Gap) -> Bool {
            guard gap.page == lastPage + 1 else { return false }
            if (gap.firstRowID, gap.lastRowID) == (firstRowID, lastRowID) { return true }
            guard let lastRowID, lastRowID < .max else { return false }
            return gap.firstRowID == lastRowID + 1
        }

        var text: String {
            let rows = SalvageReport.Gap.rows(from: firstRowID, through: lastRowID)
            let name = page == lastPage ? "page" : "\(lastPage - page + 1) pages,"
            return "\(rows), \(name) \(PageRuns.text(page...lastPage))"
        }
    }

    init(_ options: CopyOptions, _ report: SalvageReport) {
        source = ReportedPath(options.store.path)
        copy = ReportedPath(options.newPath)
        profile = report.copy.profile?.description
        isComplete = report.isComplete
        rowCount = report.copy.rowCount
        pageCount = report.pageCount
        damagedPages = VerifyResult.Damaged.runs(of: report.damagedPages)
        tables = report.tables.map { table in
            Table(
                name: table.name, rowCount: table.rowCount, cutRowCount: table.cutRowCount,
                refusedRowCount: table.refusedRowCount, gaps: Gap.runs(of: table.gaps))
        }
        lostTable = report.lostTableName
        lostRowCount = report.lostRowCount
        problems = report.problems
    }

    var lines: [(label: String, value: String)] {
        var lines = [
            ("source", "\(source), kept as it is"), ("copy", "\(copy)"),
            ("profile", profile ?? "none: plaintext"),
            ("result", isComplete ? "complete: every row was saved" : "INCOMPLETE: see below"),
        ]
        for table in tables {
            lines.append(("table", table.text))
            lines += table.gaps.map { ("lost", "\(table.name): \($0.text)") }
        }
        if let lostTable { lines.append(("lost rows", "\(lostRowCount) in table \(lostTable)")) }
        lines += damagedPages.map { ("damaged", $0.text) }
        lines += problems.map { ("problem", $0) }
        return lines
    }
}
