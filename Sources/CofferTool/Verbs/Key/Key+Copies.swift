import ArgumentParser
import Coffer

extension Key {
    /// `coffer key backup`
    struct BackUp: AsyncParsableCommand, ChangingVerb {
        static let configuration = CommandConfiguration(
            commandName: "backup",
            abstract: "Copies the keyring, after its content is authenticated.",
            discussion: """
                The copy opens the store by every credential that has a slot now. coffer backup \
                copies a store with its keyring.

                EXIT CODES
                  0 the copy exists, even if the report could not be written; 22 a file has that \
                name already. Any other: this run made none
                """)

        @OptionGroup var store: StoreOptions
        @Argument(help: "The new file.", completion: .file())
        var newPath: String
        @OptionGroup(title: "Secret") var secret: SecretOptions
        @OptionGroup(title: "Output") var output: OutputOptions

        struct Result: Report {
            let path: ReportedPath
            let copy: ReportedPath

            var lines: [(label: String, value: String)] {
                [("store", "\(path)"), ("copy of its keyring", "\(copy)")]
            }
        }

        func run() async throws {
            try NewFile.requireFree(newPath)
            try await store.withStore(secret, mode: .readOnly, hardLinks: .told) { opened in
                _ = try opened.keys.slots
                try await opened.keys.backUp(to: newPath)
            }
            output.printDone(
                Result(path: ReportedPath(store.path), copy: ReportedPath(newPath)))
        }
    }

    /// The report of a verb that replaced a keyring.
    struct ReplacedResult: Report {
        let path: ReportedPath
        /// Where the keyring is that was replaced.
        let oldPath: ReportedPath?

        init(_ path: String, old: String?) {
            self.path = ReportedPath(path)
            oldPath = old.map { ReportedPath($0) }
        }

        var lines: [(label: String, value: String)] {
            [
                ("store", "\(path)"), ("keyring", "opens the store"),
                ("old keyring", oldPath.map { "\($0)" } ?? "none"),
            ]
        }
    }

    /// `coffer key restore`
    struct PutBack: AsyncParsableCommand, ChangingVerb {
        static let configuration = CommandConfiguration(
            commandName: "restore",
            abstract: "Puts a copy of the keyring in its place, after it has opened the store.",
            discussion: """
                The secret opens a slot of the copy. The present keyring gets the name \
                STORE.keyring.old-1. No program may have the store open.

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
            let old = try await Keyring.restore(
                from: backup, for: store.path,
                by: try SecretReader.credential(source, for: store.path),
                configuration: store.configuration)
            output.printDone(ReplacedResult(store.path, old: old))
        }
    }

    /// `coffer key rebuild`
    struct Rebuild: AsyncParsableCommand, ChangingVerb {
        static let configuration = CommandConfiguration(
            abstract: "Makes a new keyring from a root backup, when every copy is lost.",
            discussion: """
                The new keyring has one slot, for the new credential. Without an option the root \
                backup is asked for on the terminal. A present keyring gets the name \
                STORE.keyring.old-1. No program may have the store open.

                EXIT CODES
                  0 the new keyring opens the store, even if the report could not be written; 15 \
                the root backup is another store's; 130 interrupted: the keyring is the old one or \
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
            let old = try rebuild(letters, slot)
            output.printDone(ReplacedResult(store.path, old: old))
        }

        /// - Throws: `ToolError` `.secretSource` for letters that are not a root backup.
        private func rebuild(
            _ letters: borrowing StoreKey, _ slot: borrowing NewSlot
        ) throws -> String? {
            do {
                return try letters.withBytes { letters in
                    try Keyring.rebuild(
                        for: store.path, rootBackup: letters, as: slot, label: label,
                        configuration: store.configuration)
                }
            } catch let error as StoreError where error.code == .misuse {
                throw ToolError(.secretSource, error.message, hint: error.hint)
            }
        }
    }

    /// `coffer key export-root`
    struct ExportRoot: AsyncParsableCommand, ChangingVerb {
        static let configuration = CommandConfiguration(
            abstract: "Shows the root backup: the letters from which a lost keyring is rebuilt.",
            discussion: """
                Whoever has the letters can open the store and every backup of it, also after \
                every slot was changed. They are shown on the terminal, or written to a new file. \
                The keyring counts how often.

                EXIT CODES
                  0 the letters were shown or written; 22 a file has that name already; any other: \
                they were not, but key list may count the attempt
                """)

        @OptionGroup var store: StoreOptions
        @Option(
            name: .customLong("out"),
            help: ArgumentHelp("Write the letters to a new file.", valueName: "path"),
            completion: .file())
        var newPath: String?
        @OptionGroup(title: "Secret") var secret: SecretOptions
        @OptionGroup(title: "Output") var output: OutputOptions

        struct Result: Report {
            let path: ReportedPath
            /// The file with the letters; `nil` if they were shown on the terminal.
            let copy: ReportedPath?
            let rootBackupCount: Int

            var lines: [(label: String, value: String)] {
                [
                    ("store", "\(path)"), ("root backup", copy.map { "\($0)" } ?? "shown"),
                    ("shown so far", rootBackupCount.counted("time")),
                    ("note", "it opens this store and all of its backups"),
                ]
            }
        }

        func run() async throws {
            if let newPath { try NewFile.requireFree(newPath) }
            // Shown letters that nobody can see would be counted.
            if newPath == nil {
                try Prompt.terminal(
                    toShow: "the letters", hint: "Name a new file for them with --out."
                ).close()
            }
            let path = store.path
            let count = try await store.withStore(secret) { opened in
                try opened.keys.withRootBackup { letters in
                    guard let newPath else {
                        return try PaperLetters.show(letters, title: "Root backup of \(path)")
                    }
                    try PaperLetters.write(letters, to: newPath)
                }
                return try opened.keys.keyring.rootBackups.count
            }
            output.printDone(
                Result(
                    path: ReportedPath(store.path), copy: newPath.map { ReportedPath($0) },
                    rootBackupCount: count))
        }
    }
}
