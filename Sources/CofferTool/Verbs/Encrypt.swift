import ArgumentParser
import Coffer

/// `coffer encrypt`
struct Encrypt: AsyncParsableCommand, ChangingVerb {
    static let configuration = CommandConfiguration(
        abstract: "Makes a store from a plaintext SQLite database.",
        discussion: """
            The database is kept as it is: delete it when you no longer need it. The secret is the \
            new store's.

            EXAMPLES
              coffer encrypt plain.db notes.db
              coffer encrypt plain.db notes.db --passphrase-file secret --profile portable

            EXIT CODES
              0 the copy exists and was checked, even if the report could not be written; 130 \
            after a second Ctrl-C: the copy is complete or absent. Any other: this run made no \
            copy. The original is as it was in any case
            """)

    @OptionGroup var copy: CopyOptions
    @OptionGroup var profile: ProfileOption
    @Flag(help: "Make a keyring as well; the secret is its first slot.")
    var keyring = false
    @OptionGroup(title: "Secret") var secret: SecretOptions
    @OptionGroup(title: "Output") var output: OutputOptions

    func run() async throws {
        try copy.requireFree()
        try profile.requireUsable()
        let format = try StoreFileStatus(path: copy.store.path).format
        guard format == .plaintext else {
            throw ToolError(
                .unsupportedFormat, "\(copy.store.path) is not a plaintext SQLite database",
                hint: format == .plaintextHeader
                    ? "It is encrypted behind a plaintext header (cipher_plaintext_header_size). "
                        + "Export it into a file without that setting, with the program that made "
                        + "it."
                    : "Copy an encrypted database of another format with coffer upgrade.")
        }
        var configuration = copy.store.configuration
        configuration.profile = profile.profile?.profile
        let key = KeyHolder(
            try SecretReader.new(
                try secret.source(), for: copy.newPath, makesKeyring: keyring))
        let report = try await output.copying("encrypt") { [copy, configuration] progress in
            try await Store.encrypt(
                plaintextAt: copy.store.path, to: copy.newPath, key: try key.takeOne(),
                configuration: configuration, progress: progress)
        }
        output.printDone(CopyResult(copy, report))
    }
}
