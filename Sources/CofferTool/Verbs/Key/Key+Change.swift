import ArgumentParser
import Coffer

extension Key {
    /// `coffer key change`
    struct Change: AsyncParsableCommand, ChangingVerb {
        static let configuration = CommandConfiguration(
            abstract: "Gives a slot another credential, such as a new passphrase.",
            discussion: """
                Without a number it changes the slot that the current secret opens. Somebody who \
                kept a copy of the keyring can still open the store with the old credential.

                EXIT CODES
                  0 the new credential opens the slot, even if the report could not be written; 10 \
                there is no slot of this number; 130 interrupted: exactly one of both credentials \
                opens the slot. Any other: the old credential opens it; after 17 one of both
                """)

        @OptionGroup var store: StoreOptions
        @Argument(help: "The number of the slot.")
        var slot: UInt16?
        @Option(help: ArgumentHelp("A new name of the slot.", valueName: "text"))
        var label: String?
        @OptionGroup(title: "Current secret") var secret: SecretOptions
        @OptionGroup(title: "New credential") var new: NewSlotOptions
        @OptionGroup(title: "Output") var output: OutputOptions

        func run() async throws {
            let choice = try new.choice(apartFrom: secret.source())
            let changed = try await store.withStore(secret) { opened in
                let id = try slot ?? opened.keys.ownSlotID
                return try await opened.keys.change(
                    id, to: try NewSlotOptions.read(choice, for: store.path, slot: id),
                    label: label)
            }
            output.printDone(
                SlotResult(
                    store.path, changed,
                    notice: "an earlier copy of the keyring opens with the old credential"))
        }
    }
}
