import ArgumentParser
import Coffer
import Synchronization

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
        if recoveryKeyOut == nil { try RecoveryLetters.requireTerminal() }
    }

    /// Adds a slot for a new recovery key, after its letters came back from the terminal or are in
    /// the file.
    func add(to store: Store, label: String) async throws -> KeySlot {
        Signals.workBegins()
        let letters = RecoveryLetters(self)
        do {
            return try store.keys.addRecoveryKey(label: label) { try letters.askBack($0) }
        } catch {
            letters.warnIfWritten()
            throw error
        }
    }
}

/// The letters of a new recovery key on their way to the terminal or to a file.
final class RecoveryLetters: Sendable {
    private let path: String?
    private let isWritten = Atomic(false)

    init(_ option: RecoveryKeyOutOption) {
        path = option.recoveryKeyOut
    }

    /// Shows the letters.
    ///
    /// - Returns: The letters as they came back.
    func askBack(_ letters: UnsafeRawBufferPointer) throws -> [UInt8] {
        guard let path else {
            try Self.requireTerminal()
            return try PaperLetters.askBack(letters, title: "Recovery key, shown once")
        }
        try PaperLetters.write(letters, to: path)
        isWritten.store(true, ordering: .relaxed)
        return Array(letters)
    }

    /// - Throws: `ToolError` `.secretSource` without a terminal.
    static func requireTerminal() throws {
        try Prompt.terminal(
            toShow: "the recovery key",
            hint: "Name a new file for it with --recovery-key-out."
        ).close()
    }

    /// Says after a failure that the file may be of no use.
    func warnIfWritten() {
        guard let path, isWritten.load(ordering: .relaxed) else { return }
        Terminal.warn(
            "\(path) has a recovery key that may open nothing: coffer key list shows whether its "
                + "slot exists")
    }
}
