import ArgumentParser
import Coffer

extension Key {
    /// `coffer key add`
    struct Add: AsyncParsableCommand, ChangingVerb {
        static let configuration = CommandConfiguration(
            abstract: "Adds a slot for another credential.",
            discussion: """
                The current secret opens the store, and the new credential gets a slot. It is a \
                passphrase, asked for on the terminal, unless an option names another one. \
                --make-recovery-key makes a new recovery key: it is shown on the terminal once and \
                asked for, or written to a new file by --recovery-key-out.

                Several stores get the same credential, each in a run of its own that reads it \
                from a file or a command. A store that has a slot for it is done, so the same \
                command can be run again. --wrap-command makes a new secret each time: run that \
                again with the list of --failed-out only.

                EXAMPLES
                  coffer key add notes.db --label phone
                  coffer key add --list stores.txt --recipient anna.pub --label anna --key-file \
                ops.key

                EXIT CODES
                  0 the slot exists, even if the report could not be written; 3 some stores of a \
                list are not done; 22 a slot is for this credential already, without --if-missing; \
                25 the keyring has 15 slots, which is the most; 130 interrupted: the slot exists \
                or not, and key list shows which. Any other: nothing was changed; after 17 key \
                list shows whether the slot exists
                """)

        @OptionGroup var stores: StoreListOptions
        @Option(help: ArgumentHelp("The name of the slot in lists.", valueName: "text"))
        var label = ""
        @Flag(help: "A store that has a slot for the credential is done, as in a list.")
        var ifMissing = false
        @Flag(help: "Make a recovery key: 56 letters and digits for paper.")
        var makeRecoveryKey = false
        @OptionGroup var paper: RecoveryKeyOutOption
        @OptionGroup(title: "Current secret") var secret: SecretOptions
        @OptionGroup(title: "New credential") var new: NewSlotOptions
        @OptionGroup(title: "Output") var output: OutputOptions

        func validate() throws {
            try LabelOption.require(label)
            try paper.requireUse(makeRecoveryKey)
            guard !makeRecoveryKey || !ifMissing else {
                throw ValidationError("A new recovery key is always missing: drop --if-missing.")
            }
            guard new.wrapCommand == nil || !ifMissing else {
                throw ValidationError(
                    "--wrap-command makes a new secret each time: drop --if-missing.")
            }
            guard !makeRecoveryKey || !new.isNamed else {
                throw ValidationError("Name one new credential, not 2.")
            }
            guard !makeRecoveryKey || stores.single != nil else {
                throw ValidationError("Each store has a recovery key of its own: name one store.")
            }
        }

        func run() async throws {
            guard let store = stores.single else {
                return try await VerbListRun(
                    verb: ["key", "add"], stores: stores, secret: secret, output: output,
                    options: LabelOption.arguments(label) + new.repeatedArguments()
                        + (new.wrapCommand == nil ? ["--if-missing"] : []),
                    again: new.wrapCommand == nil
                        ? "Run the same command again."
                        : "Run it again for the stores that --failed-out names.",
                    summary: { report in
                        report["notice"]?.text
                            ?? report["slot"]?["id"]?.integer.map { "slot \($0)" }
                    }
                ).run()
            }
            let source = try secret.source()
            let choice = makeRecoveryKey ? nil : try new.choice(apartFrom: source)
            try paper.requireFree()
            let result = try await store.withKeyring(secret) { opened in
                guard let choice else {
                    return SlotResult(
                        store.path, try await paper.add(to: opened, label: label))
                }
                do {
                    return SlotResult(
                        store.path,
                        try await opened.keys.add(
                            try NewSlotOptions.read(choice, for: store.path), label: label))
                } catch let error as StoreError where ifMissing && error.code == .alreadyExists {
                    return try found(error, in: opened, at: store.path)
                }
            }
            output.printDone(result)
        }

        /// Reports the slot that is for the credential already.
        ///
        /// - Parameter path: The path as the command names it.
        private func found(
            _ error: StoreError, in opened: Store, at path: String
        ) throws -> SlotResult {
            guard let slot = try opened.keys.slots.first(where: { $0.id == error.slotID }) else {
                throw ToolError(
                    .busy, "the slot of the credential was removed in the meantime",
                    hint: "Run the same command again.")
            }
            if !label.isEmpty, label != slot.label {
                Terminal.warn(
                    "\(slot.named) of \(path) keeps its label: coffer key rename changes it")
            }
            return SlotResult(path, slot, notice: error.message)
        }
    }
}
