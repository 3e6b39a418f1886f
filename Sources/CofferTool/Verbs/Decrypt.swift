import ArgumentParser
import Coffer

/// `coffer decrypt`
struct Decrypt: AsyncParsableCommand, ChangingVerb {
    static let configuration = CommandConfiguration(
        abstract: "Makes a plaintext SQLite database from a store.",
        discussion: """
            Anybody who can read the new file can read everything, so only its owner may read and \
            write it. The store is kept as it is.

            EXAMPLES
              coffer decrypt notes.db plain.db --write-plaintext

            EXIT CODES
              0 the copy exists and was checked, even if the report could not be written; 130 \
            after a second Ctrl-C: the copy is complete or absent. Any other: this run made no \
            copy. The store is as it was in any case
            """)

    @OptionGroup var copy: CopyOptions
    @Flag(help: "Really write everything in the clear.")
    var writePlaintext = false
    @OptionGroup(title: "Secret") var secret: SecretOptions
    @OptionGroup(title: "Output") var output: OutputOptions

    func validate() throws {
        guard writePlaintext else {
            throw ValidationError(
                "This writes everything in the clear: add --write-plaintext if you mean it.")
        }
    }

    func run() async throws {
        try copy.requireFree()
        let report = try await copy.store.withStore(
            secret, mode: .readOnly, hardLinks: .told
        ) { opened in
            try await output.copying("decrypt") { [copy] progress in
                try await opened.decrypt(to: copy.newPath, progress: progress)
            }
        }
        if !output.quiet { Terminal.warn("\(copy.newPath) is not encrypted") }
        output.printDone(CopyResult(copy, report))
    }
}
