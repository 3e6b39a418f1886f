import ArgumentParser
import Coffer

extension Key {
    /// `coffer key change`
    struct Change: AsyncParsableCommand, ChangingVerb {
        static let configuration = CommandConfiguration(
            abstract: "Gives a slot another credential, such as a new passphrase.",
            discussion: """
                Without a number it changes the slot that the current passphrase opens. After a \
                forgotten passphrase give the number of its slot, which coffer key list shows, and \
                open the store by another credential, such as the recovery key. Somebody who kept \
                a copy of the keyring can still open the store with the old credential.

                EXIT CODES
                  0 the new credential opens the slot, even if the report could not be written; 10 \
                there is no slot of this number; 13 a wrapped secret that was not tried would be \
                the only one left; 22 a slot is for the new credential already; 130 interrupted: \
                exactly one of both credentials opens the \
                slot. Any other: the old credential opens it; after 17 one of both
                """)

        @OptionGroup var store: StoreOptions
        @Argument(help: "The number of the slot.")
        var slot: UInt16?
        @Option(
            help: ArgumentHelp(
                "A new name of the slot as well; key rename changes the name alone.",
                valueName: "text"))
        var label: String?
        @OptionGroup(title: "Current secret") var secret: SecretOptions
        @OptionGroup(title: "New credential") var new: NewSlotOptions
        @OptionGroup(title: "Output") var output: OutputOptions

        func validate() throws { try LabelOption.require(label) }

        func run() async throws {
            let choice = try new.choice(apartFrom: secret.source())
            let changed = try await store.withKeyring(secret) { opened in
                let id = try slot ?? Self.ownPassphrase(opened.keys)
                if case .wrap(_, proof: nil) = choice { try Self.requireOther(id, opened.keys) }
                return try await opened.keys.change(
                    id, to: try NewSlotOptions.read(choice, for: store.path, slot: id),
                    label: label)
            }
            output.printDone(
                SlotResult(
                    store.path, changed,
                    notice: "an earlier copy of the keyring opens with the old credential"))
        }

        /// Refuses to replace the only credential that certainly opens the store.
        private static func requireOther(_ id: KeySlot.ID, _ keys: StoreKeys) throws {
            guard try !keys.slots.contains(where: { $0.id != id && $0.kind != .external }) else {
                return
            }
            throw ToolError.noCertainSlot(
                hint: "Prove that the wrapped secret can be unwrapped, with "
                    + "--new-unwrap-command, or keep another slot.")
        }

        /// The slot that opened the store. A recovery key, or the key file of a service, would be
        /// lost by an oversight.
        private static func ownPassphrase(_ keys: StoreKeys) throws -> KeySlot.ID {
            let id = try keys.ownSlotID
            guard let slot = try keys.slots.first(where: { $0.id == id }), slot.kind != .passphrase
            else { return id }
            throw ToolError(
                .usage, "the current secret is the \(slot.kind) of slot \(id), not a passphrase",
                hint: "Name the slot to change: coffer key list shows their numbers.")
        }
    }
}
