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
        @OptionGroup(title: "Secret of the copy") var secret: SecretOptions
        @OptionGroup(title: "Output") var output: OutputOptions

        func run() async throws {
            let source = try secret.source()
            _ = try StoreFileStatus(path: store.path)
            let before = (try? Keyring(of: store.path))?.slots
            let old = try await Keyring.restore(
                from: backup, for: store.path,
                by: try SecretReader.credential(source, for: store.path),
                configuration: store.configuration)
            if let before { warn(ofReturned: before) }
            output.printDone(ReplacedKeyringResult(store.path, old: old))
        }

        /// Warns of slots that the replaced keyring did not have: they were removed or changed
        /// after the copy was made.
        private func warn(ofReturned before: [KeySlot]) {
            let now = (try? Keyring(of: store.path))?.slots ?? []
            let returned = now.filter { !before.contains($0) }
            guard !returned.isEmpty else { return }
            let names = returned.map { slot in
                slot.label.isEmpty ? "\(slot.id)" : "\(slot.id) (\(slot.label))"
            }
            let (noun, verb) = returned.count == 1 ? ("slot", "opens") : ("slots", "open")
            Terminal.warn(
                "\(noun) \(names.joined(separator: ", ")) \(verb) the store again, as when the "
                    + "copy was made: remove what should not, with coffer key remove")
        }
    }
}
