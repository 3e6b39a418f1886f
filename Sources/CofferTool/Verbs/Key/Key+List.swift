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
                """)

        @Argument(help: "The store's file.", completion: .file())
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
            let keyring = try Keyring(of: path)
            try output.print(
                Result(path: ReportedPath(path), keyring: KeyringReport(keyring)))
        }
    }
}
