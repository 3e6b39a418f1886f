import ArgumentParser
import Coffer

extension Key {
    /// `coffer key remove`
    struct Remove: AsyncParsableCommand, ChangingVerb {
        static let configuration = CommandConfiguration(
            abstract: "Removes a slot: its credential no longer opens the store.",
            discussion: """
                It takes no access from somebody who kept a copy of the keyring, or the key \
                itself: coffer revoke does.

                EXIT CODES
                  0 the slot is removed, even if the report could not be written; 10 there is no \
                slot of this number; 13 it is the only one; 130 interrupted: it is removed or not. \
                Any other: nothing was changed; after 17 key list shows whether it is removed
                """)

        @OptionGroup var store: StoreOptions
        @Argument(help: "The number of the slot.")
        var slot: UInt16
        @OptionGroup(title: "Secret") var secret: SecretOptions
        @OptionGroup(title: "Output") var output: OutputOptions

        func run() async throws {
            let removed = try await store.withKeyring(secret) { opened in
                let slots = try opened.keys.slots
                let found = slots.first { $0.id == slot }
                if found != nil { try requireCertain(slots, opened.keys.ownSlotID) }
                try await opened.keys.remove(slot)
                return found
            }
            guard let removed else { return }
            output.printDone(
                SlotResult(
                    store.path, removed,
                    notice: "removed; it takes no access from somebody who kept a copy of the "
                        + "keyring: coffer revoke does"))
        }

        /// Refuses to leave external slots alone, unless one of them has just opened the store.
        private func requireCertain(_ slots: [KeySlot], _ own: KeySlot.ID) throws {
            let left = slots.filter { $0.id != slot }
            guard !left.isEmpty, left.allSatisfy({ $0.kind == .external && $0.id != own }) else {
                return
            }
            throw ToolError.noCertainSlot(
                hint: "Open the store by an external slot that stays, with --unwrap-command, or "
                    + "keep another slot.")
        }
    }
}

extension ToolError {
    /// The refusal of a change after which only external slots would be left: whether a service
    /// unwraps their secrets is not known.
    static func noCertainSlot(hint: String) -> ToolError {
        ToolError(
            .lastSlot, "no slot would be left that is certain to open the store", hint: hint)
    }
}
