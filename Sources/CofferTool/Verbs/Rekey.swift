import ArgumentParser
import Coffer
import Foundation

/// `coffer rekey`
struct Rekey: AsyncParsableCommand, ChangingVerb {
    static let configuration = CommandConfiguration(
        abstract: "Changes the key of every page, and proves it.",
        discussion: """
            It reports success only after a new connection has opened the store with the new key \
            and failed with the old one. If it fails or is killed, one of the two keys opens every \
            row. The journal needs as much room as the file. Earlier copies keep the old key.

            The same command can be run again: if the current secret fails and the new one opens \
            the store, it reports that the key was changed before, and finishes that change. \
            --dry-run asks for both secrets, lists the obstacles, and touches nothing.

            The key of a store with a keyring comes from the keyring: key change changes a \
            credential, in milliseconds. With --abandon-keyring the store gets a key of its own, \
            and the keyring the name STORE.keyring.old-1.

            EXAMPLES
              coffer rekey notes.db
              coffer rekey notes.db --passphrase-file old --new-passphrase-file new
              coffer rekey notes.db --passphrase-fd 3 --new-raw-key-fd 4 3< old 4< new.key
              coffer rekey notes.db --passphrase-file a --new-passphrase-file b --dry-run

            EXIT CODES
              0 the new key holds, even if the report could not be written; 18 the new key holds, \
            but the change is not complete, mostly because a program is reading: the main file \
            without its WAL still opens with the old key. Run the same command again when that \
            read has ended; 130 interrupted, or not proven: one of the two keys holds, run the \
            same command again; 12 neither secret opens the store; 14 damaged: verify says where, \
            with the secret that opens the store. Any other: this run changed nothing. After 130 \
            or 18 that does not prove that the old key holds: keep both until a run ends with 0. \
            --dry-run exits as the change would, but with 0 where a reader would make it 18
            """)

    @OptionGroup var store: StoreOptions
    @Flag(help: "Report the effect of the change and its obstacles; change nothing.")
    var dryRun = false
    @Flag(help: "Rename the keyring, and give the store a key of its own.")
    var abandonKeyring = false
    @OptionGroup(title: "Current secret") var secret: SecretOptions
    @OptionGroup(title: "New secret") var newSecret: NewSecretOptions
    @OptionGroup(title: "Output") var output: OutputOptions

    var isChanging: Bool { !dryRun }

    func validate() throws {
        try newSecret.validate()
        guard !newSecret.makesKeyring else {
            throw ValidationError("rekey makes no keyring: coffer key enable does.")
        }
    }

    struct Result: Report {
        let path: ReportedPath
        /// Whether this run changed the key, and not an earlier one.
        let isChanged: Bool
        /// The key that opens the store now.
        let key = "new"
        let keyID: String
        let proof: String
        let isWholeFile: Bool
        /// Where the keyring is that the store had before.
        let abandonedKeyring: ReportedPath?
        let journalMode: String
        let pageCount: Int
        let oldPageCount: Int
        let seconds: Double
        let engine: String
        /// The reason why the WAL could not be moved. It is not in the JSON.
        private(set) var failure: StoreError?
        /// The reason why the keyring could not be renamed. It is not in the JSON.
        private(set) var keyringFailure: StoreError?

        private enum CodingKeys: CodingKey {
            case path, isChanged, key, keyID, proof, isWholeFile, abandonedKeyring, journalMode
            case pageCount, oldPageCount
            case seconds, engine
        }

        init(
            _ store: StoreOptions, _ opened: Store, _ report: RekeyReport, isChanged: Bool,
            abandoned keyring: String?, took duration: Duration
        ) {
            path = ReportedPath(store.path)
            self.isChanged = isChanged
            proof =
                isChanged
                ? "a new connection opens with the new key and fails with the old one"
                : "the new key opens it and the current one does not: changed before"
            keyID = (try? opened.keyID())?.description ?? "unknown"
            isWholeFile = report.isWholeFile
            journalMode = opened.journalMode.description
            pageCount = report.pageCount
            oldPageCount = report.oldPageCount
            seconds = (duration / .seconds(1) * 100).rounded() / 100
            engine = (try? Engine.capabilities)?.names ?? "unknown"
            failure = report.checkpointFailure
            abandonedKeyring = keyring.map { ReportedPath($0) }
            keyringFailure = report.keyringFailure
        }

        var lines: [(label: String, value: String)] {
            [
                ("store", "\(path)"), ("pages", "\(pageCount) under the new key"),
                ("main file", isWholeFile ? "all of it under the new key" : unfinished),
                ("journal mode", journalMode), ("key id", keyID), ("proof", proof),
                ("time", "\(seconds) s"),
            ] + (abandonedKeyring.map { [("old keyring", "\($0)")] } ?? [])
        }

        var unfinished: String { "\(oldPageCount) of \(pageCount) pages still have the old key" }
    }

    func run() async throws {
        let newSource = try newSecret.source(apartFrom: secret.source(), hasVariables: true)
        guard [.passphrase, .rawKey].contains(newSource.form) else {
            throw ToolError(
                .usage, "\(newSource.description) is for a keyring, which rekey does not make",
                hint: "Name a passphrase or a raw key, or make a keyring with coffer key enable.")
        }
        if !abandonKeyring, try Keyring.exists(for: store.path) {
            throw ToolError(
                .usage, "the key of \(store.path) comes from its keyring",
                hint: "coffer key change changes a credential, and coffer backup --new-keyring "
                    + "makes a copy with a new root. --abandon-keyring gives the store a key of "
                    + "its own.")
        }
        guard !dryRun else { return try rehearse(newSource) }
        let typing = try newSource.isPrompt && secret.source().isPrompt ? HiddenTyping() : nil
        let opened: Store
        do {
            opened = try await store.open(with: try store.key(secret))
        } catch let error as StoreError where meansOtherKey.contains(error.code) {
            let newKey = KeyHolder(try SecretReader.new(newSource, for: store.path))
            typing?.end()
            return try tell(try await finish(with: newKey, unless: error))
        }
        try tell(try await change(opened, to: newSource, typing))
    }

    private func change(
        _ opened: Store, to newSource: SecretSource, _ typing: HiddenTyping?
    ) async throws -> Result {
        var result: Result?
        do {
            return try await store.closing(opened) { opened in
                let newKey = KeyHolder(try SecretReader.new(newSource, for: store.path))
                typing?.end()
                let done = try await rekey(opened, to: newKey)
                result = done
                return done
            }
        } catch let failure as RekeyFailure {
            throw failure.told
        } catch {
            // Closing failed after the key was changed.
            guard let result else { throw error }
            Terminal.warn("closing the store failed: \(Failure(error).message)")
            return result
        }
    }

    /// The errors of an opening whose key may have been changed by an earlier run, which has
    /// renamed the keyring or not.
    private var meansOtherKey: [StoreError.Code] {
        abandonKeyring ? [.wrongKey, .keyringMismatch, .keyringMissing] : [.wrongKey]
    }

    /// An error that occurred after the change.
    fileprivate static func unfinished(_ error: any Error) -> ToolError {
        ToolError(
            .unfinished, Failure(error).message,
            hint: "The new key holds. Run the same command again to finish the change.")
    }

    private static let finishing =
        "the new key holds; run the same command again to finish the change"

    private func rekey(_ opened: Store, to newKey: KeyHolder) async throws -> Result {
        let status = try StoreFileStatus(path: store.path)
        if status.walByteCount > 0 { await Self.warnOfCutOffCommits(opened) }
        let start = ContinuousClock.now
        let report = try await RekeyProgress.showing(
            status, output.reporter("rekey", unit: "bytes")
        ) {
            Signals.note("one of the two keys opens every row: run the same command again")
            let report = try await opened.changeKey(
                to: newKey.takeOne(), abandonsKeyring: abandonKeyring)
            Signals.note(Self.finishing)
            return report
        }
        // Counts page by page, instead of trusting the engine's report of moved pages.
        let counted: RekeyReport
        do {
            counted = try await opened.finishRekey(abandonsKeyring: abandonKeyring)
        } catch let error as StoreError where error.code == .damaged {
            throw error
        } catch {
            Terminal.warn("the pages could not be counted again: \(Failure(error).message)")
            counted = report
        }
        return Result(
            store, opened, counted, isChanged: true,
            abandoned: report.abandonedKeyring ?? counted.abandonedKeyring,
            took: ContinuousClock.now - start)
    }

    /// Warns of commits that damage cut off in the WAL. A change of the key ends with an empty WAL,
    /// so it deletes them.
    private static func warnOfCutOffCommits(_ opened: Store) async {
        // A sample covers the whole WAL. An error that prevents this check also prevents the
        // change.
        guard let report = try? await opened.verify(.sample(maximumPageCount: 1)) else { return }
        for problem in report.problems { Terminal.warn(problem) }
    }

    /// Called when the current secret does not open the store. If the new one does, the key was
    /// changed earlier, and this finishes the rest of that change.
    private func finish(with newKey: KeyHolder, unless refusal: StoreError) async throws -> Result {
        let opened: Store
        do {
            opened = try await store.open(with: newKey.takeOne())
        } catch let error as StoreError where error.code == .wrongKey {
            Terminal.note("the new secret does not open it either")
            throw refusal.code == .keyringMissing || refusal.code == .keyringMismatch
                ? error : refusal
        }
        // Its slots open the store: no earlier run has changed the key.
        if abandonKeyring, let keyID = (try? Keyring(of: store.path))?.keyID,
            keyID == (try? opened.keyID())
        {
            try? await opened.close()
            Terminal.note("the new secret is the key that the keyring gives")
            throw refusal
        }
        do {
            Signals.note(Self.finishing)
            return try await store.closing(opened) { opened in
                let report = try await opened.finishRekey(abandonsKeyring: abandonKeyring)
                return Result(
                    store, opened, report, isChanged: false,
                    abandoned: report.abandonedKeyring, took: report.duration)
            }
        } catch let error as StoreError where error.code == .damaged {
            throw error
        } catch {
            throw Self.unfinished(error)
        }
    }

    private func tell(_ result: Result) throws {
        output.printDone(result)
        if let failure = result.keyringFailure {
            Terminal.warn(
                "the new key holds, but the keyring has its name still: \(failure.message); run "
                    + "the same command again when the cause is gone")
            if result.isWholeFile { throw ExitCode(ExitStatus.unfinished.rawValue) }
        }
        guard !result.isWholeFile else { return }
        let reason = result.failure.map(\.message) ?? "another program is reading"
        Terminal.warn(
            "the new key holds, but in the main file without its WAL \(result.unfinished): "
                + "\(reason); run the same command again when the cause is gone")
        throw ExitCode(ExitStatus.unfinished.rawValue)
    }

    /// Reports the effect of a change, and the obstacles to it.
    private func rehearse(_ newSource: SecretSource) throws {
        let key = try store.key(secret)
        let newKey = try SecretReader.new(newSource, for: store.path)
        let rehearsal = try RekeyRehearsal(
            path: store.path, key: key, newKey: newKey, abandonsKeyring: abandonKeyring)
        let report = RekeyObstacles(rehearsal, LockHolders(of: rehearsal.path))
        try output.print(report)
        if let status = report.exitStatus { throw ExitCode(status.rawValue) }
    }
}

extension RekeyFailure {
    /// An error whose exit code says which key is valid.
    var told: any Error {
        switch key {
        // Another program changed the key after the store was opened.
        case .old where error.code == .wrongKey:
            ToolError(
                .interrupted, "another program changed the key in the meantime",
                hint: "Run the same command again to learn whether the new key opens the store.")
        case .old, .neither: error
        case .new: Rekey.unfinished(error)
        case .unproven:
            ToolError(
                .interrupted, Failure(error).message,
                hint: "One of the two keys holds. Run the same command again.")
        }
    }
}
