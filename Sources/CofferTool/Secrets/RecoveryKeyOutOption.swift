import ArgumentParser
import Coffer

/// Where the letters of a new recovery key go: the terminal, unless a file is named.
struct RecoveryKeyOutOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Write the recovery key to a new file, which only its owner may read.",
            valueName: "path"),
        completion: .file())
    var recoveryKeyOut: String?

    /// - Throws: `ValidationError` for a file without a recovery key.
    func requireUse(_ isMade: Bool) throws {
        guard recoveryKeyOut == nil || isMade else {
            throw ValidationError("--recovery-key-out needs a recovery key to write.")
        }
    }

    /// Refuses a file that exists.
    func requireFree() throws {
        if let recoveryKeyOut { try NewFile.requireFree(recoveryKeyOut) }
    }

    /// Checks that there is a place for the letters.
    ///
    /// - Throws: `ToolError` `.secretSource` without a terminal; `.alreadyExists`.
    func requirePlace() throws {
        try requireFree()
        guard recoveryKeyOut == nil else { return }
        try Prompt.terminal(
            toShow: "the recovery key",
            hint: "Name a new file for it with --recovery-key-out."
        ).close()
    }

    /// Adds a slot for a new recovery key, after its letters came back from the terminal or are in
    /// the file.
    func add(to store: Store, label: String) async throws -> KeySlot {
        guard let path = recoveryKeyOut else {
            Signals.workBegins()
            return try store.keys.addRecoveryKey(label: label) { letters in
                try PaperLetters.askBack(letters, title: "Recovery key, shown once")
            }
        }
        Signals.workBegins()
        var isWritten = false
        do {
            return try store.keys.addRecoveryKey(label: label) { letters in
                try PaperLetters.write(letters, to: path)
                isWritten = true
                return Array(letters)
            }
        } catch {
            if isWritten {
                Terminal.warn(
                    "\(path) has a recovery key that may open nothing: coffer key list shows "
                        + "whether its slot exists")
            }
            throw error
        }
    }
}
