import ArgumentParser
import Coffer

/// `coffer backup`
struct Backup: AsyncParsableCommand, ChangingVerb {
    static let configuration = CommandConfiguration(
        abstract: "Copies a store while it is in use, and verifies the copy.",
        discussion: """
            The copy is a snapshot of the store. It has the store's key, unless a --new-… option \
            or --new-prompt names another one. Every page of the copy is authenticated before the \
            copy appears under its name. The copy of a store with a keyring has a copy of the \
            keyring, with the same slots.

            With - as the new file, the copy goes to standard output. It is made and checked in a \
            private folder of TMPDIR first, which needs space for all of it. The reader must keep \
            it only if the exit code is 0 (in a shell: set -o pipefail). A keyring does not go \
            with it: back it up too, with coffer key backup.

            EXAMPLES
              coffer backup notes.db notes-2026-11.db
              coffer backup notes.db - | ssh backup 'cat > notes.db.part'
              coffer backup notes.db offsite.db --passphrase-file a --new-passphrase-file b

            EXIT CODES
              0 the copy exists and was checked, even if the report could not be written; 130 \
            after a second Ctrl-C: the copy is complete or absent. Any other: this run made no \
            copy. With -, standard output has the whole copy only if the code is 0. The store is \
            as it was in any case
            """)

    @OptionGroup var copy: CopyOptions
    @Flag(help: "Ask for another passphrase for the copy on the terminal.")
    var newPrompt = false
    @OptionGroup(title: "Secret of the store") var secret: SecretOptions
    @OptionGroup(title: "Another secret of the copy") var newSecret: NewSecretOptions
    @OptionGroup(title: "Output") var output: OutputOptions

    func run() async throws {
        if copy.newPath == "-" { return try await runToStandardOutput() }
        try copy.requireFree()
        output.printDone(CopyResult(copy, try await makeCopy { copy.newPath }))
    }

    /// The report is a message then, because standard output has the copy.
    private func runToStandardOutput() async throws {
        let stream = try StreamedCopy()
        defer { stream.remove() }
        let report = try await makeCopy { try stream.makePath() }
        let reporter = output.reporter("backup: write", unit: "bytes")
        let byteCount = try await Signals.cancelling {
            defer { reporter.finish() }
            return try stream.write { reporter.update($0, of: $1) }
        }
        guard !output.quiet else { return }
        Terminal.note(
            "\(copy.store.path): a copy of \(report.tableCount.counted("table")) and "
                + "\(report.rowCount.counted("row")), \(byteCount) bytes, was checked and written "
                + "to standard output")
    }

    /// - Parameter place: Returns the path of the copy. It is called when all secrets are read, so
    ///   that a person who ends the tool at a prompt leaves nothing behind.
    private func makeCopy(at place: () throws -> String) async throws -> CopyReport {
        let newSource = try newSecret.source(apartFrom: try secret.source())
        let hasNewKey = newPrompt || newSecret.isGiven(newSource)
        if copy.newPath == "-", !hasNewKey, try Keyring.exists(for: copy.store.path) {
            Terminal.warn(
                "standard output gets the copy without its keyring, and no credential opens it "
                    + "alone: back the keyring up with coffer key backup "
                    + "\(ShellWord.of(copy.store.path)) FILE")
        }
        let name = copy.newPath == "-" ? "the copy" : copy.newPath
        return try await copy.store.withStore(
            secret, mode: .readOnly, hardLinks: .told
        ) { opened in
            let newKey = KeyHolder(
                hasNewKey ? try newSecret.read(newSource, for: name) : nil)
            let path = try place()
            return try await output.copying("backup") { progress in
                try await opened.backup(to: path, key: newKey.take(), progress: progress)
            }
        }
    }
}
