import ArgumentParser
import Coffer

/// `coffer upgrade`
struct Upgrade: AsyncParsableCommand, ChangingVerb {
    static let configuration = CommandConfiguration(
        abstract: "Copies a file of SQLCipher 1, 2, 3 or 4 into a store of today's profile.",
        discussion: """
            The original is kept as it is. The copy is compared with it row by row before the copy \
            appears under its name. The copy has the same passphrase or key, unless a --new-… \
            option or --new-prompt names another one.

            A copy of a store with a keyring has a new root and one slot, for the secret that was \
            given. The other credentials and the root backup do not open it: add them again.

            EXAMPLES
              coffer upgrade old.db notes.db
              coffer upgrade notes4.db shared.db --profile portable

            EXIT CODES
              0 the copy exists and was checked, even if the report could not be written; 130 \
            after a second Ctrl-C: the copy is complete or absent. Any other: this run made no \
            copy. The original is as it was in any case
            """)

    @OptionGroup var copy: CopyOptions
    @OptionGroup var profile: ProfileOption
    @Flag(help: "Ask for another passphrase for the copy on the terminal.")
    var newPrompt = false
    @OptionGroup(title: "Secret of the original") var secret: SecretOptions
    @OptionGroup(title: "Another secret of the copy") var newSecret: NewSecretOptions
    @OptionGroup(title: "Output") var output: OutputOptions

    func run() async throws {
        try copy.requireFree()
        try profile.requireUsable()
        let source = try secret.source()
        let newSource = try newSecret.source(apartFrom: source)
        _ = try StoreFileStatus(path: copy.store.path)
        var configuration = copy.store.configuration
        configuration.profile = profile.profile?.profile
        let key = KeyHolder(try SecretReader.current(source, for: copy.store.path))
        // Only a file of a profile can be a store that these verbs open.
        RunFiles.remedy(
            "restore the file from a backup, or, if SQLCipher 3 or 4 made it, "
                + Remedy.savingRows(of: copy.store.path))
        let hasNewKey = newPrompt || newSecret.isGiven(newSource)
        let newKey = KeyHolder(
            hasNewKey ? try newSecret.read(newSource, for: copy.newPath) : nil)
        let report = try await output.copying("upgrade") { [copy, configuration] progress in
            try await Store.upgrade(
                from: copy.store.path, key: try key.takeOne(), to: copy.newPath,
                newKey: newKey.take(), configuration: configuration, progress: progress)
        }
        output.printDone(CopyResult(copy, report))
    }
}
