import ArgumentParser
import Coffer

extension Key {
    /// `coffer key restore`
    struct PutBack: AsyncParsableCommand, ChangingVerb {
        static let configuration = CommandConfiguration(
            commandName: "restore",
            abstract: "Puts a copy of the keyring in its place, after it has opened the store.",
            discussion: """
                The secret opens a slot of the copy. The present keyring gets the name \
                STORE.keyring.old-1. No program may have the store open.

                EXIT CODES
                  0 the copy is the keyring now, even if the report could not be written; 12 no \
                slot of the copy is for the secret; 15 the copy does not open this store; 130 \
                interrupted: the keyring is the old one or the copy. Any other: nothing was changed
                """)

        @Argument(help: "The copy.", completion: .file())
        var backup: String
        @OptionGroup var store: StoreOptions
        @OptionGroup(title: "Secret of the copy") var secret: SecretOptions
        @OptionGroup(title: "Output") var output: OutputOptions

        func run() async throws {
            let source = try secret.source()
            _ = try StoreFileStatus(path: store.path)
            let old = try await Keyring.restore(
                from: backup, for: store.path,
                by: try SecretReader.credential(source, for: store.path),
                configuration: store.configuration)
            output.printDone(ReplacedKeyringResult(store.path, old: old))
        }
    }
}
