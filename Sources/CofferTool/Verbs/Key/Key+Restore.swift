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
                STORE.keyring.old-1. A slot that was removed after the copy was made opens the \
                store again. No program may have the store open, and one that has is not noticed.

                EXIT CODES
                  0 the copy is the keyring now, even if the report could not be written; 12 no \
                slot of the copy is for the secret; 15 the copy does not open this store; 130 \
                interrupted: the keyring is the old one or the copy. Any other: nothing was changed
                """)

        @Argument(help: "The copy.", completion: .file())
        var backup: String
        @OptionGroup var store: StoreOptions
        @Flag(help: "Open the store by the copy, and change nothing.")
        var dryRun = false
        @OptionGroup(title: "Secret of the copy") var secret: SecretOptions
        @OptionGroup(title: "Output") var output: OutputOptions

        var isChanging: Bool { !dryRun }

        /// The report of `key restore --dry-run`.
        struct Rehearsal: Report {
            let path: ReportedPath
            let dryRun = true
            let slots: [SlotReport]

            private enum CodingKeys: CodingKey { case path, dryRun, slots }

            var lines: [(label: String, value: String)] {
                [("store", "\(path)"), ("copy", "opens the store; nothing was changed")]
                    + slots.map { ("slot \($0.id)", $0.text) }
            }
        }

        func run() async throws {
            let source = try secret.source()
            _ = try StoreFileStatus(path: store.path)
            let before = (try? Keyring(of: store.path))?.slots
            if dryRun {
                let copy = try Keyring.rehearseRestore(
                    from: backup, for: store.path,
                    by: try SecretReader.credential(source, for: store.path),
                    configuration: store.configuration)
                if let before { warn(of: copy.slots, notIn: before, "would open") }
                return try output.print(
                    Rehearsal(
                        path: ReportedPath(store.path), slots: copy.slots.map { SlotReport($0) }))
            }
            let old = try await Keyring.restore(
                from: backup, for: store.path,
                by: try SecretReader.credential(source, for: store.path),
                configuration: store.configuration)
            if let before {
                let now = (try? Keyring(of: store.path))?.slots ?? []
                warn(of: now, notIn: before, "opens")
            }
            output.printDone(ReplacedKeyringResult(store.path, old: old))
        }

        /// Warns of slots that the present keyring does not have: they were removed or changed
        /// after the copy was made.
        private func warn(of slots: [KeySlot], notIn before: [KeySlot], _ verb: String) {
            for slot in slots where !before.contains(slot) {
                let name = slot.label.isEmpty ? "\(slot.id)" : "\(slot.id) (\(slot.label))"
                Terminal.warn(
                    "slot \(name) \(verb) the store again, as when the copy was made: coffer key "
                        + "remove ends that")
            }
        }
    }
}
