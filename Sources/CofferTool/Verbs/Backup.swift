import ArgumentParser
import Coffer

/// `coffer backup`
struct Backup: AsyncParsableCommand, ChangingVerb {
    static let configuration = CommandConfiguration(
        abstract: "Copies a store while it is in use, and verifies the copy.",
        discussion: """
            The copy is one moment of the store. It has the store's key, or another one if a \
            --new-… option or --new-prompt names it. Every page of it is authenticated before it \
            appears under its name.

            EXAMPLES
              coffer backup notes.db notes-2026-11.db
              coffer backup notes.db offsite.db --passphrase-file a --new-passphrase-file b

            EXIT CODES
              0 the copy is there and was checked, also if the report could not be written; 130 \
            after a second Ctrl-C: it is there as a whole or not at all. Any other: this run has \
            made none. The store is as it was in any case
            """)

    @OptionGroup var copy: CopyOptions
    @Flag(help: "Ask for another passphrase for the copy on the terminal.")
    var newPrompt = false
    @OptionGroup(title: "Secret of the store") var secret: SecretOptions
    @OptionGroup(title: "Another secret of the copy") var newSecret: NewSecretOptions
    @OptionGroup(title: "Output") var output: OutputOptions

    func run() async throws {
        try copy.requireFree()
        let newSource = try newSecret.source(apartFrom: try secret.source())
        let hasNewKey = newPrompt || newSource != .prompt
        let report = try await copy.store.withStore(
            secret, mode: .readOnly, hardLinks: .told
        ) { opened in
            let newKey = KeyHolder(
                hasNewKey ? try SecretReader.new(newSource, for: copy.newPath) : nil)
            return try await output.copying("backup") { [copy] progress in
                try await opened.backup(to: copy.newPath, key: newKey.take(), progress: progress)
            }
        }
        output.printDone(CopyResult(copy, report))
    }
}
