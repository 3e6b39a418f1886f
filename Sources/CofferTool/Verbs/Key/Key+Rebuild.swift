import ArgumentParser
import Coffer

extension Key {
    /// `coffer key rebuild`
    struct Rebuild: AsyncParsableCommand, ChangingVerb {
        static let configuration = CommandConfiguration(
            abstract: "Makes a new keyring from a root backup, when every copy is lost.",
            discussion: """
                The new keyring has one slot, for the new credential. Without an option the root \
                backup is asked for on the terminal. A present keyring gets the name \
                STORE.keyring.old-1. No program may have the store open. With the root backup of \
                another store the search for its key takes some minutes.

                EXIT CODES
                  0 the new keyring opens the store, even if the report could not be written; 15 \
                the root backup is another store's; 130 interrupted: the keyring is as it was, or \
                the new one. Any other: nothing was changed
                """)

        @OptionGroup var store: StoreOptions
        @Option(
            help: ArgumentHelp("Read the root backup from a descriptor.", valueName: "number"))
        var rootBackupFd: Int32?
        @Option(
            help: ArgumentHelp("Read it from a file.", valueName: "path"), completion: .file())
        var rootBackupFile: String?
        @Option(help: ArgumentHelp("The name of the slot in lists.", valueName: "text"))
        var label = ""
        @OptionGroup(title: "New credential") var new: NewSlotOptions
        @OptionGroup(title: "Output") var output: OutputOptions

        func validate() throws {
            try LabelOption.require(label)
            _ = try rootBackup()
        }

        private func rootBackup() throws -> SecretSource? {
            try SecretChoice.one(
                [
                    rootBackupFd.map { SecretSource(origin: .descriptor($0), form: .rootBackup) },
                    rootBackupFile.map { SecretSource(origin: .file($0), form: .rootBackup) },
                ], isNew: false)
        }

        func run() async throws {
            let source = try rootBackup() ?? SecretSource(origin: .prompt, form: .rootBackup)
            let choice = try new.choice(apartFrom: source)
            if case .wrap = choice {
                throw ToolError(
                    .usage, "a new keyring begins with another credential than a wrapped one",
                    hint: "Add the external slot afterwards with coffer key add.")
            }
            _ = try StoreFileStatus(path: store.path)
            let letters = try SecretReader.rootBackup(source, for: store.path)
            let slot = try NewSlotOptions.read(choice, for: store.path)
            let before = try? Keyring(of: store.path)
            let old = try rebuild(letters, slot)
            let now = try? Keyring(of: store.path)
            if let before, before.rootID == now?.rootID {
                for slot in before.slots {
                    Terminal.warn("\(slot.named) no longer opens the store: add it again")
                }
            }
            output.printDone(ReplacedKeyringResult(store.path, old: old, now: now))
        }

        /// - Throws: `ToolError` `.secretSource` for letters that are not a root backup.
        private func rebuild(
            _ letters: borrowing StoreKey, _ slot: borrowing NewSlot
        ) throws -> String? {
            let reporter = output.reporter("key rebuild", unit: "keys")
            defer { reporter.finish() }
            do {
                return try letters.withBytes { letters in
                    try Keyring.rebuild(
                        for: store.path, rootBackup: letters, as: slot, label: label,
                        configuration: store.configuration
                    ) { reporter.update($0.count, of: $0.countTotal) }
                }
            } catch let error as StoreError where error.code == .misuse {
                throw ToolError(.secretSource, error.message, hint: error.hint)
            }
        }
    }
}
