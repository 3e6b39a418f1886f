import ArgumentParser
import Coffer

/// `coffer backup`
struct Backup: AsyncParsableCommand, ChangingVerb {
    static let configuration = CommandConfiguration(
        abstract: "Copies a store while it is in use, and verifies the copy.",
        discussion: """
            The copy is a snapshot of the store. It has the store's key, unless a --new-… option \
            or --new-prompt names another one. Every page of the copy is authenticated before the \
            copy appears under its name.

            EXAMPLES
              coffer backup notes.db notes-2026-11.db
              coffer backup notes.db offsite.db --passphrase-file a --new-passphrase-file b

            EXIT CODES
              0 the copy exists and was checked, even if the report could not be written; 130 \
            after a second Ctrl-C: the copy is complete or absent. Any other: this run made no \
            copy. The store is as it was in any case
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
