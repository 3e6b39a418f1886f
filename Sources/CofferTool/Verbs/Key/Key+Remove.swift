import ArgumentParser
import Coffer

extension Key {
    /// `coffer key remove`
    struct Remove: AsyncParsableCommand, ChangingVerb {
        static let configuration = CommandConfiguration(
            abstract: "Removes slots: their credentials no longer open the store.",
            discussion: """
                It takes no access from somebody who kept a copy of the keyring, or the key \
                itself: coffer revoke does.

                Several stores number their slots differently: name the slot with --slot by its \
                label or its fingerprint.

                EXAMPLES
                  coffer key remove notes.db 3
                  coffer key remove stores/*.db --slot label:anna --key-file ops.key

                EXIT CODES
                  0 the slots are removed, even if the report could not be written; 3 some stores \
                of a list are not done; 10 there is no such slot; 13 no other slot would stay; 130 \
                interrupted: they are removed or not. Any other: nothing was changed, or of \
                several slots some are removed: key list shows which are left
                """)

        @OptionGroup var stores: StoreListOptions
        @OptionGroup var taken: TakenSlotOptions
        @Flag(help: "A store that has no such slot is done, as in a list.")
        var ifThere = false
        @OptionGroup(title: "Secret") var secret: SecretOptions
        @OptionGroup(title: "Output") var output: OutputOptions

        func validate() throws { _ = try taken.split(stores) }

        private static let noAccess =
            "removed; it takes no access from somebody who kept a copy of the keyring: coffer "
            + "revoke does"

        struct Result: Report {
            let path: ReportedPath
            /// The slots that are removed.
            let slots: [SlotReport]

            var lines: [(label: String, value: String)] {
                guard !slots.isEmpty else {
                    return [("store", "\(path)"), ("note", "there is no such slot")]
                }
                return [("store", "\(path)")] + slots.map { ("slot \($0.id)", $0.text) }
                    + [("note", Remove.noAccess)]
            }
        }

        func run() async throws {
            let (stores, names) = try taken.split(stores)
            guard let store = stores.single else {
                return try await remove(names, from: stores)
            }
            let removed = try await store.withKeyring(secret) { opened in
                let slots = try opened.keys.slots
                let own = try opened.keys.ownSlotID
                let numbers = try names.numbers(
                    in: slots, of: store.path, isComplete: !ifThere)
                guard !numbers.isEmpty else { return [KeySlot]() }
                try requireCertain(slots.filter { !numbers.contains($0.id) }, own)
                // The last one, because the keyring opens by it.
                let isOwn = numbers.contains(own)
                for number in numbers where number != own { try await opened.keys.remove(number) }
                if isOwn { try await opened.keys.remove(own) }
                return slots.filter { numbers.contains($0.id) }
            }
            output.printDone(
                Result(path: ReportedPath(store.path), slots: removed.map { SlotReport($0) }))
        }

        private func remove(_ names: [SlotName], from stores: StoreListOptions) async throws {
            let list = try await VerbListRun(
                verb: ["key", "remove"], stores: stores, secret: secret, output: output,
                options: names.map { "--slot=\($0)" } + ["--if-there"],
                summary: { report in
                    let slots = Self.removed(report)
                    guard !slots.isEmpty else { return "no such slot" }
                    return slots.map(SlotReport.name(in:)).joined(separator: ", ")
                }
            ).result()
            guard list.stores.allSatisfy({ Self.removed($0.report).isEmpty }) else {
                return output.note(Self.noAccess)
            }
            throw ToolError(
                .notFound, "no store has a slot \(names.listed)",
                hint: "It was removed before, or has another name: coffer key list shows the slots."
            )
        }

        /// The slots that a run has removed.
        private static func removed(_ report: JSONTree?) -> [JSONTree] {
            guard case .list(let slots)? = report?["slots"] else { return [] }
            return slots
        }

        /// Refuses to leave no slot, or external slots alone, unless one of them has just opened
        /// the store.
        private func requireCertain(_ left: [KeySlot], _ own: KeySlot.ID) throws {
            guard !left.isEmpty else {
                throw ToolError(
                    .lastSlot, "no slot would be left: nothing would open the store",
                    hint: "Add another slot first: coffer key add.")
            }
            guard left.allSatisfy({ $0.kind == .external && $0.id != own }) else { return }
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
