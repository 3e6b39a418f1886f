import ArgumentParser
import Coffer

extension Key {
    /// `coffer key enable`
    struct Enable: AsyncParsableCommand, ChangingVerb {
        static let configuration = CommandConfiguration(
            abstract: "Gives a store a keyring, and the new credential its first slot.",
            discussion: """
                Afterwards coffer key adds and removes credentials, and coffer rotate replaces the \
                key. The store gets a new root key, and every page a key from it, as coffer rekey \
                does, with the same proof. The current secret opens the store until then; copies \
                of before keep it. The second slot is a recovery key for paper, unless \
                --no-recovery-key is given.

                The same command can be run again: if it was interrupted, it finishes. Other \
                programs that have the store open do not follow: they have to open it again by the \
                keyring. So the command refuses if one has it open, and in the journal mode delete \
                always, unless --end-others is given.

                Several stores get the same credential, each in a run of its own that reads it \
                from a file or a command, and no recovery key: coffer key add makes one for each.

                EXAMPLES
                  coffer key enable notes.db --label me
                  coffer key enable --list stores.txt --passphrase-file old --new-key-file ops.key \
                --no-recovery-key

                EXIT CODES
                  0 the keyring opens the store, even if the report could not be written; 3 some \
                stores of a list are not done; 11 another program has the store open, or may have \
                it open; 12 neither secret opens the store; 14 damaged: verify says where; 18 the \
                keyring opens the store, but a program that reads keeps the former key in the main \
                file: coffer checkpoint finishes; 22 there is a keyring that no interrupted run \
                has made; 130 interrupted: \
                one of both secrets opens every row. Any other: nothing was changed, unless the \
                message says otherwise
                """)

        @OptionGroup var stores: StoreListOptions
        @Option(help: ArgumentHelp("The name of the first slot in lists.", valueName: "text"))
        var label = ""
        @Flag(help: "Make no recovery key. If every credential is lost, nothing opens the store.")
        var noRecoveryKey = false
        @OptionGroup var paper: RecoveryKeyOutOption
        @Flag(help: "End the access of other programs, until they open the store by the keyring.")
        var endOthers = false
        @OptionGroup(title: "Current secret") var secret: SecretOptions
        @OptionGroup(title: "New credential") var new: NewCredentialOptions
        @OptionGroup(title: "Output") var output: OutputOptions

        func validate() throws {
            try LabelOption.require(label)
            try paper.requireUse(!noRecoveryKey)
            if let form = try secret.named()?.form, !Self.isOwn(form) {
                throw ValidationError(Self.misfit)
            }
            _ = try SecretChoice.one(new.named, isNew: true)
            guard noRecoveryKey || stores.single != nil else {
                throw ValidationError(
                    "Each store has a recovery key of its own: for several stores, give "
                        + "--no-recovery-key, and add them with coffer key add --make-recovery-key."
                )
            }
        }

        /// Whether a store without a keyring has such a key.
        private static func isOwn(_ form: SecretSource.Form) -> Bool {
            [.passphrase, .rawKey].contains(form)
        }

        private static let misfit =
            "The current secret is a passphrase or a raw key: the store has no keyring yet."

        struct Result: Report {
            let path: ReportedPath
            /// Whether this run changed the key, and not an earlier one.
            let isChanged: Bool
            let keyID: String
            let rootID: String
            let pageCount: Int
            let oldPageCount: Int
            let isWholeFile: Bool
            let seconds: Double
            let slots: [SlotReport]

            init(_ path: String, _ report: KeyringEnablingReport, _ keyring: Keyring) {
                self.path = ReportedPath(path)
                isChanged = report.isChanged
                keyID = keyring.keyID.description
                rootID = keyring.rootID
                pageCount = report.pageCount
                oldPageCount = report.oldPageCount
                isWholeFile = report.isWholeFile
                seconds = RotationResult.seconds(report.duration)
                slots = keyring.slots.map { SlotReport($0) }
            }

            var lines: [(label: String, value: String)] {
                [
                    ("store", "\(path)"),
                    ("result", isChanged ? "the keyring opens it" : "the keyring opened it before"),
                    ("pages", "\(pageCount) under a key of the keyring"),
                    (
                        "main file",
                        isWholeFile
                            ? "all of it under that key"
                            : "\(oldPageCount) of \(pageCount) pages still have the former key"
                    ),
                    ("key id", keyID), ("root", rootID), ("time", "\(seconds) s"),
                ] + slots.map { ("slot \($0.id)", $0.text) }
            }
        }

        func run() async throws {
            if let store = stores.single { return try await run(for: store) }
            try await VerbListRun(
                verb: ["key", "enable"], stores: stores, secret: secret, output: output,
                options: LabelOption.arguments(label) + ["--no-recovery-key"]
                    + (endOthers ? ["--end-others"] : []) + new.repeatedArguments(),
                summary: { report in
                    guard report["isChanged"]?.bool == true else {
                        return "the keyring opened it before, and no slot was made"
                    }
                    return report["rootID"]?.text.map { "root \($0)" }
                }
            ).run()
        }

        private func run(for store: StoreOptions) async throws {
            let source = try secret.source()
            // A variable may have named it.
            guard Self.isOwn(source.form) else { throw ToolError(.usage, Self.misfit) }
            let newSource =
                try SecretChoice.one(new.named, isNew: true)
                ?? SecretVariables.source(isNew: true) ?? .prompt
            try SecretChoice.requireApart(newSource, from: source)
            guard newSource.form != .rawKey else {
                throw ToolError(
                    .usage, "a raw key is not a credential of a keyring",
                    hint: "Name a passphrase or a key file, such as with --new-key-file.")
            }
            let status = try StoreFileStatus(path: store.path)
            try requirePlaceForLetters(store)
            let key = KeyHolder(try SecretReader.own(source, for: store.path))
            let report = try await enable(
                store, key.takeOne(), try SecretReader.newCredential(newSource, for: store.path),
                status)
            output.printDone(Result(store.path, report, try Keyring(of: store.path)))
            if report.isChanged {
                output.note(
                    "copies of before open with the former key: make a new backup, and a backup of "
                        + "the keyring with coffer key backup")
            }
            if !report.isChanged, !noRecoveryKey {
                Terminal.warn(
                    "this run made no recovery key and no slot; coffer key add "
                        + "\(ShellWord.of(store.path)) --make-recovery-key makes one")
            }
            guard !report.isWholeFile else { return }
            let reason = report.checkpointFailure.map(\.message) ?? "another program is reading"
            Terminal.warn(
                "the main file without its WAL still has the former key: \(reason); run coffer "
                    + "checkpoint when the cause is gone")
            throw ExitCode(ExitStatus.unfinished.rawValue)
        }

        /// Checks before anybody types a secret that the letters have a place to go to.
        private func requirePlaceForLetters(_ store: StoreOptions) throws {
            guard !noRecoveryKey else { return }
            let keyring = try? Keyring(of: store.path)
            if let out = paper.recoveryKeyOut {
                let own = NewFile.names(ofStore: store.path)
                guard !own.contains(ReportedPath(out).absolute) else {
                    throw ToolError(
                        .usage, "\(out) is a file of the store itself",
                        hint: "Name a new file for --recovery-key-out.")
                }
                if keyring?.isBeingEnabled == true, (try? NewFile.requireFree(out)) == nil {
                    throw ToolError(
                        .alreadyExists, "\(out) exists already",
                        hint: "If the interrupted run has written it, its recovery key opens "
                            + "nothing: remove it, or name another file.")
                }
            }
            // Otherwise an earlier run is finished, which makes none.
            if keyring == nil || keyring?.isBeingEnabled == true { try paper.requirePlace() }
        }

        private func enable(
            _ store: StoreOptions, _ key: consuming StoreKey,
            _ credential: consuming KeyCredential, _ status: StoreFileStatus
        ) async throws -> KeyringEnablingReport {
            Signals.note(interruption)
            let letters = RecoveryLetters(paper)
            let askBack: @Sendable (UnsafeRawBufferPointer) throws -> [UInt8] = {
                try letters.askBack($0)
            }
            do {
                return try await RekeyProgress.showing(
                    status, output.reporter("key enable", unit: "bytes")
                ) {
                    try await Store.enableKeyring(
                        store.path, key: key, as: credential, label: label,
                        endsOtherPrograms: endOthers, configuration: store.configuration,
                        recovery: noRecoveryKey ? nil : askBack)
                }
            } catch {
                letters.warnIfWritten()
                throw error
            }
        }
    }
}
