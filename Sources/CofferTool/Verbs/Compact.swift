import ArgumentParser
import Coffer

/// `coffer compact`
struct Compact: AsyncParsableCommand, ChangingVerb {
    static let configuration = CommandConfiguration(
        abstract: "Gives the space of deleted content back to the disk.",
        discussion: """
            Copies every row into an unfinished file next to the store, under the store's key, \
            checks that file, and only then replaces the store's pages in one transaction. The \
            file keeps its name, so programs that use the store go on; their writes wait, and may \
            time out. It needs free space for twice the new size, and without a WAL for the new \
            and the old size. A store that is killed meanwhile has its old content or the new one.

            EXAMPLES
              coffer compact notes.db
              coffer compact notes.db --passphrase-file secret --json --progress json

            EXIT CODES
              0 the store is compacted, even if the report could not be written; 18 it is \
            compacted, but a program that reads keeps the old pages in the file: coffer checkpoint \
            frees them when that read has ended; 130 after a second Ctrl-C: the content is the old \
            one or the new one, the same rows. Any other: the store is as it was
            """)

    @OptionGroup var store: StoreOptions
    @OptionGroup(title: "Secret") var secret: SecretOptions
    @OptionGroup(title: "Output") var output: OutputOptions

    struct Result: Report {
        let path: ReportedPath
        let oldByteCount: Int
        let byteCount: Int
        let tableCount: Int
        let rowCount: Int
        let pageCount: Int
        let isShortened: Bool

        init(_ path: String, _ report: CompactReport) {
            self.path = ReportedPath(path)
            oldByteCount = report.oldByteCount
            byteCount = report.byteCount
            tableCount = report.content.tableCount
            rowCount = report.content.rowCount
            pageCount = report.content.pageCount
            isShortened = report.isShortened
        }

        var lines: [(label: String, value: String)] {
            [
                ("store", "\(path)"), ("before", "\(oldByteCount) bytes"),
                ("now", "\(byteCount) bytes"),
                ("content", CopyResult.content(tableCount, rowCount, pageCount)),
                ("proof", "every row compared, every page authenticated, the structure checked"),
            ]
        }
    }

    func run() async throws {
        let report = try await store.withStore(secret) { [output] opened in
            try await output.copying("compact") { progress in
                try await opened.compact(progress: progress)
            }
        }
        output.printDone(Result(store.path, report))
        guard report.isShortened else {
            Terminal.warn(
                "the store is compacted, but a program that reads keeps the old pages; run "
                    + "coffer checkpoint when it has ended")
            throw ExitCode(ExitStatus.unfinished.rawValue)
        }
    }
}
