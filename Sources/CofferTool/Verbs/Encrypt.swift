import ArgumentParser
import Coffer

/// `coffer encrypt`
struct Encrypt: AsyncParsableCommand, ChangingVerb {
    static let configuration = CommandConfiguration(
        abstract: "Makes a store of a plaintext SQLite database.",
        discussion: """
            The database is kept as it is: delete it when the copy serves you. The secret is that \
            of the new store.

            EXAMPLES
              coffer encrypt plain.db notes.db
              coffer encrypt plain.db notes.db --passphrase-file secret --profile portable

            EXIT CODES
              0 the copy is there and was checked, also if the report could not be written; 130 \
            after a second Ctrl-C: it is there as a whole or not at all. Any other: this run has \
            made none. The original is as it was in any case
            """)

    @OptionGroup var copy: CopyOptions
    @OptionGroup var profile: ProfileOption
    @OptionGroup(title: "Secret") var secret: SecretOptions
    @OptionGroup(title: "Output") var output: OutputOptions

    func run() async throws {
        try copy.requireFree()
        let format = try StoreFileStatus(path: copy.store.path).format
        guard format == .plaintext else {
            throw ToolError(
                .unsupportedFormat, "\(copy.store.path) is no plaintext SQLite database",
                hint: format == .plaintextHeader
                    ? "it is encrypted behind a plaintext header (cipher_plaintext_header_size): "
                        + "export it into a file without that setting, with the program that made "
                        + "it"
                    : "coffer upgrade copies encrypted databases of other formats")
        }
        var configuration = copy.store.configuration
        configuration.profile = profile.profile?.profile
        let key = KeyHolder(try SecretReader.new(try secret.source(), for: copy.newPath))
        let report = try await output.copying("encrypt") { [copy, configuration] progress in
            try await Store.encrypt(
                plaintextAt: copy.store.path, to: copy.newPath, key: try key.takeOne(),
                configuration: configuration, progress: progress)
        }
        output.printDone(CopyResult(copy, report))
    }
}
