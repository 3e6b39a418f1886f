import ArgumentParser
import Coffer

extension Key {
    /// `coffer key backup`
    struct BackUp: AsyncParsableCommand, ChangingVerb {
        static let configuration = CommandConfiguration(
            commandName: "backup",
            abstract: "Copies the keyring, after its content is authenticated.",
            discussion: """
                The copy opens the store by every credential that has a slot now. coffer backup \
                copies a store with its keyring.

                EXIT CODES
                  0 the copy exists, even if the report could not be written; 22 a file has that \
                name already. Any other: this run made none
                """)

        @OptionGroup var store: StoreOptions
        @Argument(help: "The new file.", completion: .file())
        var newPath: String
        @OptionGroup(title: "Secret") var secret: SecretOptions
        @OptionGroup(title: "Output") var output: OutputOptions

        struct Result: Report {
            let path: ReportedPath
            let copy: ReportedPath

            var lines: [(label: String, value: String)] {
                [("store", "\(path)"), ("copy of its keyring", "\(copy)")]
            }
        }

        func validate() throws {
            guard newPath != "-" else {
                throw ValidationError(
                    "A copy of a keyring is written to a file; ./- is one of that name.")
            }
        }

        func run() async throws {
            try NewFile.requireFree(newPath)
            try await store.withKeyring(secret, mode: .readOnly, hardLinks: .told) { opened in
                _ = try opened.keys.slots
                try await opened.keys.backUp(to: newPath)
            }
            output.printDone(
                Result(path: ReportedPath(store.path), copy: ReportedPath(newPath)))
        }
    }
}
