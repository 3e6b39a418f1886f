import ArgumentParser
import Coffer

/// `coffer checkpoint`
struct Checkpoint: AsyncParsableCommand, ChangingVerb {
    static let configuration = CommandConfiguration(
        abstract: "Moves the WAL into the main file, and empties it.",
        discussion: """
            A program that uses the store does this by itself, alongside its writes. Run it before \
            something copies the file without its WAL, or when the size of the WAL matters. It \
            waits for reads and writes as long as --busy-timeout says. A store without a WAL has \
            nothing to move.

            EXAMPLES
              coffer checkpoint notes.db
              coffer checkpoint notes.db --busy-timeout 60 --passphrase-file secret

            EXIT CODES
              0 all content is in the main file, and the WAL is empty; 11 a program reads or \
            writes for longer: what could be moved was moved, run the same command again. Any \
            other: no content was lost, and the WAL has it
            """)

    @OptionGroup var stores: StoreListOptions
    @OptionGroup(title: "Secret") var secret: SecretOptions
    @OptionGroup(title: "Output") var output: OutputOptions

    struct Result: Report {
        let path: ReportedPath
        let hasWAL: Bool
        /// Bytes of the WAL before.
        let walByteCount: Int

        var lines: [(label: String, value: String)] {
            let done =
                hasWAL ? "\(walByteCount) bytes moved into the main file" : "none: nothing to move"
            return [("store", "\(path)"), ("WAL", done)]
        }
    }

    func run() async throws {
        guard let store = stores.single else {
            return try await VerbListRun(
                verb: ["checkpoint"], stores: stores, secret: secret, output: output, options: []
            ).run()
        }
        let byteCount = try StoreFileStatus(path: store.path).walByteCount
        let result = try await store.withStore(secret) { opened in
            try await opened.checkpoint(.truncate)
        }
        output.printDone(
            Result(path: ReportedPath(store.path), hasWAL: result != nil, walByteCount: byteCount))
    }
}
