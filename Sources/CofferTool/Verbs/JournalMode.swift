import ArgumentParser
import Coffer

/// `coffer journal-mode`
struct JournalMode: AsyncParsableCommand, ChangingVerb {
    static let configuration = CommandConfiguration(
        commandName: "journal-mode",
        abstract: "Shows or changes how a store keeps changes until they are complete.",
        discussion: """
            With wal readers and the writer do not wait for each other, and a -wal file stands \
            beside the store. With delete the store is one file. The mode cannot change while \
            another program reads or writes; the store's own program may change it back.

            EXAMPLES
              coffer journal-mode notes.db
              coffer journal-mode notes.db delete --passphrase-file secret

            EXIT CODES
              0 the store has that mode, even if the report could not be written; 11 a program \
            uses the store: the mode is mostly the old one. 11, 17 and 130: the mode is the old \
            or the new one, and no content is lost; run the same command again. Any other: \
            nothing was changed
            """)

    @OptionGroup var store: StoreOptions
    @Argument(help: "wal or delete; without it the mode is shown.")
    var mode: Init.Journal?
    @OptionGroup(title: "Secret") var secret: SecretOptions
    @OptionGroup(title: "Output") var output: OutputOptions

    var isChanging: Bool { mode != nil }

    struct Result: Report {
        let path: ReportedPath
        let journalMode: String
        let isChanged: Bool

        var lines: [(label: String, value: String)] {
            [
                ("store", "\(path)"),
                ("journal mode", isChanged ? "\(journalMode), changed" : journalMode),
            ]
        }
    }

    func run() async throws {
        let source = try secret.source()
        _ = try StoreFileStatus(path: store.path)
        let key = try SecretReader.current(source, for: store.path)
        let before = try await store.closing(
            try await store.open(with: key.copy(), mode: .readOnly)
        ) { $0.journalMode }
        let wanted = mode?.mode ?? before
        if wanted != before {
            var configuration = store.configuration
            configuration.journalMode = wanted
            let opened = try await Store(
                path: store.path, key: key, mode: .mustExist, configuration: configuration)
            let now = try await store.closing(opened) { $0.journalMode }
            guard now == wanted else {
                throw ToolError(.busy, "the journal mode is still \(now)", hint: "Try again.")
            }
        }
        let result = Result(
            path: ReportedPath(store.path), journalMode: wanted.description,
            isChanged: wanted != before)
        isChanging ? output.printDone(result) : try output.print(result)
    }
}
