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
                interrupted: the keyring is as it was, or the copy. Any other: nothing was changed
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
            try requireCopy()
            let before = try? Keyring(of: store.path)
            let credential = try SecretReader.credential(source, for: store.path)
            if dryRun {
                let copy = try namingCopy {
                    try Keyring.rehearseRestore(
                        from: backup, for: store.path, by: credential,
                        configuration: store.configuration)
                }
                warn(of: copy, besides: before, "would open")
                return try output.print(
                    Rehearsal(
                        path: ReportedPath(store.path), slots: copy.slots.map { SlotReport($0) }))
            }
            let old = try namingCopy {
                try Keyring.restore(
                    from: backup, for: store.path, by: credential,
                    configuration: store.configuration)
            }
            let now = try? Keyring(of: store.path)
            if let now { warn(of: now, besides: before, "opens") }
            output.printDone(ReplacedKeyringResult(store.path, old: old, now: now))
        }

        /// Replaces the error for a wrong credential by one that names the copy.
        private func namingCopy<T>(_ work: () throws -> T) throws -> T {
            do {
                return try work()
            } catch let error as StoreError where error.code == .wrongKey {
                throw ToolError(
                    .wrongKey, "no slot of the copy \(backup) is for this credential",
                    hint: "coffer key list \(ShellWord.of(backup)) shows which kinds open it.")
            }
        }

        /// Checks that the first argument is a whole copy of a keyring, before the user types a
        /// secret.
        private func requireCopy() throws {
            let failure: StoreError
            do {
                _ = try Keyring(contentsOf: backup)
                return
            } catch let error as StoreError where error.code == .keyringDamaged {
                failure = error
            }
            if (try? Keyring(contentsOf: store.path)) != nil {
                throw ToolError(
                    .usage, "\(store.path) is a copy of a keyring, and \(backup) is not",
                    hint: "Name the copy first, then the store.")
            }
            let status = try StoreFileStatus(path: backup)
            guard status.format == .keyring || status.byteCount == Keyring.fileByteCount else {
                throw ToolError(
                    .badInput, "\(backup) is not a copy of a keyring",
                    hint: (try? Keyring.exists(for: backup)) == true
                        ? "Name the keyring next to it, \(backup)\(Keyring.fileSuffix)."
                        : "Name a file that coffer key backup has made.")
            }
            throw ToolError(
                .damaged, "the copy \(backup) is damaged: \(failure.message)",
                hint: "Name another copy. The present keyring was not changed.")
        }

        /// Warns of slots that differ from those of the present keyring.
        private func warn(of copy: Keyring, besides present: Keyring?, _ verb: String) {
            guard let present, present.rootID == copy.rootID else {
                return Terminal.warn(
                    "there is no present keyring of this store to compare: a slot that was removed "
                        + "after the copy was made \(verb) the store again")
            }
            for slot in copy.slots {
                guard let same = present.slots.first(where: { $0.id == slot.id }) else {
                    Terminal.warn(
                        "\(slot.named), which was removed, \(verb) the store again: "
                            + "coffer key remove ends that")
                    continue
                }
                guard same.changed != slot.changed || same.kind != slot.kind else { continue }
                Terminal.warn(
                    "\(slot.named) \(verb) the store by its earlier credential: coffer "
                        + "key change ends that")
            }
            for slot in present.slots where !copy.slots.contains(where: { $0.id == slot.id }) {
                Terminal.warn(
                    "\(slot.named) is not in the copy: its credential no longer opens "
                        + "the store")
            }
        }
    }
}
