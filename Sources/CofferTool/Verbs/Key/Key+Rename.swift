import ArgumentParser
import Coffer

extension Key {
    /// `coffer key rename`
    struct Rename: AsyncParsableCommand, ChangingVerb {
        static let configuration = CommandConfiguration(
            abstract: "Gives a slot another name in lists. Its credential stays.",
            discussion: """
                EXIT CODES
                  0 the slot has the name, even if the report could not be written; 10 there is no \
                slot of this number; 130 interrupted: the name is the old one or the new one. Any \
                other: nothing was changed, except perhaps after 17: key list shows the name
                """)

        @OptionGroup var store: StoreOptions
        @Argument(help: "The number of the slot.")
        var slot: UInt16
        @Argument(help: "The new name; an empty one removes it.")
        var label: String
        @OptionGroup(title: "Secret") var secret: SecretOptions
        @OptionGroup(title: "Output") var output: OutputOptions

        func validate() throws { try LabelOption.require(label) }

        func run() async throws {
            let renamed = try await store.withKeyring(secret) { opened in
                try await opened.keys.rename(slot, to: label)
            }
            output.printDone(SlotResult(store.path, renamed))
        }
    }
}
