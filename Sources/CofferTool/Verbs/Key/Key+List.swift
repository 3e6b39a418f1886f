import ArgumentParser
import Coffer

extension Key {
    /// `coffer key list`
    struct ListSlots: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list",
            abstract: "Lists the slots of a keyring, and the ages of its keys. Needs no secret.",
            discussion: """
                It authenticates nothing: a user who may write the keyring can forge the list. key \
                test authenticates it.

                It also lists a copy of a keyring. The store id tells which store a copy belongs to.
                """)

        @Argument(help: "The store's file, or a copy of a keyring.", completion: .file())
        var path: String
        @OptionGroup(title: "Output") var output: OutputOptions

        struct Result: Report {
            let path: ReportedPath
            let keyring: KeyringReport

            var lines: [(label: String, value: String)] {
                [("store", "\(path)")] + keyring.lines
            }
        }

        func run() async throws {
            try output.print(
                Result(path: ReportedPath(path), keyring: KeyringReport(try keyring())))
        }

        /// The keyring of the store. A file without one may be a copy of a keyring itself.
        private func keyring() throws -> Keyring {
            do {
                return try Keyring(of: path)
            } catch let error as StoreError where error.code == .keyringMissing {
                guard let copy = try? Keyring(contentsOf: path) else { throw error }
                return copy
            }
        }
    }
}
