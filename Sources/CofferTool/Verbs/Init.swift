import ArgumentParser
import Coffer

/// `coffer init`
struct Init: AsyncParsableCommand, ChangingVerb {
    static let configuration = CommandConfiguration(
        abstract: "Makes a new, empty store.",
        discussion: """
            Only its owner may read and write the file, whatever the umask.

            EXAMPLES
              coffer init notes.db
              coffer init shared.db --profile portable --passphrase-file secret
              head -c 32 /dev/urandom > key && coffer init fast.db --raw-key-fd 3 3< key

            EXIT CODES
              0 the store exists, even if the report could not be written; 130 interrupted: the \
            store is complete or absent. Any other: this run made none
            """)

    enum Journal: String, ExpressibleByArgument, CaseIterable {
        case wal, delete

        var mode: Configuration.JournalMode { self == .wal ? .wal : .delete }
    }

    @OptionGroup var store: StoreOptions
    @OptionGroup var profile: ProfileOption
    @Option(help: "wal (readers and the writer do not wait for each other) or delete (one file).")
    var journalMode = Journal.wal
    @OptionGroup(title: "Secret") var secret: SecretOptions
    @OptionGroup(title: "Output") var output: OutputOptions

    struct Result: Report {
        let path: ReportedPath
        let profile: String
        let journalMode: String
        let keyID: String

        var lines: [(label: String, value: String)] {
            [
                ("store", "\(path)"), ("profile", profile), ("journal mode", journalMode),
                ("key id", keyID),
            ]
        }
    }

    func run() async throws {
        try NewFile.requireFree(store.path)
        try profile.requireUsable()
        var configuration = store.configuration
        configuration.profile = profile.profile?.profile
        configuration.journalMode = journalMode.mode
        let key = try SecretReader.new(try secret.source(), for: store.path)
        let made = try await Store(path: store.path, key: key, configuration: configuration)
        let result = Result(
            path: ReportedPath(store.path), profile: made.profile.description,
            journalMode: journalMode.rawValue,
            keyID: try made.keyID().description)
        try await made.close()
        output.printDone(result)
    }
}
