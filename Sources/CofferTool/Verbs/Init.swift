import ArgumentParser
import Coffer

/// `coffer init`
struct Init: AsyncParsableCommand, ChangingVerb {
    static let configuration = CommandConfiguration(
        abstract: "Makes a new, empty store.",
        discussion: """
            Only its owner may read and write the file, whatever the umask. With --keyring it has \
            a second file, STORE.keyring, whose slots coffer key adds, changes and removes. The \
            secret is the first slot; a recovery key for paper is the second one, unless \
            --no-recovery-key is given.

            EXAMPLES
              coffer init notes.db
              coffer init team.db --keyring
              coffer init shared.db --profile portable --passphrase-file secret
              head -c 32 /dev/urandom > key && coffer init fast.db --raw-key-fd 3 3< key

            EXIT CODES
              0 the store exists, even if the report could not be written; 18 the store exists, \
            but without the recovery key, or its keyring is not complete yet; 130 interrupted: the \
            store is complete or absent, and a keyring without a store may be left. Any other: \
            this run made none; after 17 a keyring may be left
            """)

    enum Journal: String, ExpressibleByArgument, CaseIterable {
        case wal, delete

        var mode: Configuration.JournalMode { self == .wal ? .wal : .delete }
    }

    @OptionGroup var store: StoreOptions
    @OptionGroup var profile: ProfileOption
    @Option(help: "wal (readers and the writer do not wait for each other) or delete (one file).")
    var journalMode = Journal.wal
    @Flag(help: "Make a keyring as well, for several credentials.")
    var keyring = false
    @Flag(help: "Make no recovery key. If every credential is lost, nothing opens the store.")
    var noRecoveryKey = false
    @OptionGroup var paper: RecoveryKeyOutOption
    @OptionGroup(title: "Secret") var secret: SecretOptions
    @OptionGroup(title: "Output") var output: OutputOptions

    func validate() throws {
        try paper.requireUse(keyring && !noRecoveryKey)
        guard keyring || !noRecoveryKey else {
            throw ValidationError("--no-recovery-key needs --keyring.")
        }
        if let form = try secret.named()?.form, let misfit = misfit(form) {
            throw ValidationError(misfit)
        }
    }

    /// Why a new store does not begin with such a secret; `nil` if it does.
    private func misfit(_ form: SecretSource.Form) -> String? {
        switch form {
        case .rawKey where keyring: "A raw key is not a credential of a keyring."
        case .external: "Add an external slot later, with key add."
        case .keyFile, .identity, .recoveryKey:
            keyring ? nil : "This credential opens a keyring: add --keyring."
        default: nil
        }
    }

    struct Result: Report {
        let path: ReportedPath
        let profile: String
        let journalMode: String
        let keyID: String
        /// `nil` without a keyring.
        let slots: [SlotReport]?

        var lines: [(label: String, value: String)] {
            [
                ("store", "\(path)"), ("profile", profile), ("journal mode", journalMode),
                ("key id", keyID),
            ] + (slots ?? []).map { ("slot \($0.id)", $0.text) }
        }
    }

    func run() async throws {
        let source = try secret.source()
        // A variable may have named it.
        if let misfit = misfit(source.form) { throw ToolError(.usage, misfit) }
        try NewFile.requireFree(forStore: store.path)
        try profile.requireUsable()
        var configuration = store.configuration
        configuration.profile = profile.profile?.profile
        configuration.journalMode = journalMode.mode
        let hasRecoveryKey = keyring && !noRecoveryKey
        if hasRecoveryKey { try paper.requirePlace() }
        let key = try SecretReader.new(source, for: store.path, makesKeyring: keyring)
        let made: Store
        do {
            made = try await Store(path: store.path, key: key, configuration: configuration)
        } catch {
            throw Self.left(error, at: store.path)
        }
        if hasRecoveryKey { try await addRecoveryKey(to: made) }
        let result = Result(
            path: ReportedPath(store.path), profile: made.profile.description,
            journalMode: journalMode.rawValue,
            keyID: try made.keyID().description,
            slots: keyring ? try made.keys.slots.map { SlotReport($0) } : nil)
        try await made.close()
        output.printDone(result)
    }

    /// The error of a disk that failed, and what is left of the new store. `init` began without
    /// either file.
    private static func left(_ error: any Error, at path: String) -> any Error {
        let failure = Failure(error)
        guard failure.status == .io, (try? Keyring.exists(for: path)) == true else { return error }
        guard (try? StoreFileStatus(path: path)) == nil else {
            return ToolError(
                .unfinished, failure.message,
                hint: "The store and its keyring exist. Open the store once, such as with coffer "
                    + "key test \(ShellWord.of(path)), when the cause is gone.")
        }
        return ToolError(
            .io, failure.message,
            hint: "No store was made. Remove \(ShellWord.of(path + Keyring.fileSuffix)) before "
                + "you run the same command again.")
    }

    private func addRecoveryKey(to made: Store) async throws {
        do {
            _ = try await paper.add(to: made, label: "recovery")
        } catch {
            try? await made.close()
            let failure = Failure(error)
            throw ToolError(
                .unfinished, failure.message,
                hint: "The store exists, without a recovery key. Add one with coffer key add "
                    + "\(ShellWord.of(store.path)) --make-recovery-key.")
        }
    }
}
