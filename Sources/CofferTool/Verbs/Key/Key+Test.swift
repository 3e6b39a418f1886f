import ArgumentParser
import Coffer

extension Key {
    /// `coffer key test`
    struct Test: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Says which slot a credential opens, and authenticates the whole keyring.",
            discussion: """
                EXIT CODES
                  0 the credential opens the store; 3 it does not open each store of a list, and \
                --json has the exit code of each; 12 no slot is for it; 14 the keyring or the \
                store is damaged; 15 the keyring is missing or another store's
                """)

        @OptionGroup var stores: StoreListOptions
        @OptionGroup(title: "Credential") var secret: SecretOptions
        @OptionGroup(title: "Output") var output: OutputOptions

        func run() async throws {
            guard let store = stores.single else {
                return try await VerbListRun(
                    verb: ["key", "test"], stores: stores, secret: secret, output: output,
                    options: [],
                    summary: { report in
                        report["slot"]?["id"]?.integer.map { "slot \($0) opens it" }
                    }
                ).run()
            }
            let slot = try await store.withKeyring(secret, mode: .readOnly, hardLinks: .told) {
                opened in
                let id = try opened.keys.ownSlotID
                let keyring = try opened.keys.keyring
                if !keyring.isWhole { Terminal.warn(KeyringReport.notWhole) }
                return keyring.slots.first { $0.id == id }
            }
            guard let slot else {
                throw ToolError(
                    .busy, "the slot of the credential was removed in the meantime",
                    hint: "Run the same command again.")
            }
            try output.print(
                SlotResult(store.path, slot, notice: "this credential opens the store"))
        }
    }
}
