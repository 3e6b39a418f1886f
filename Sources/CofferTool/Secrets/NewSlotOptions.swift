import ArgumentParser
import Coffer

/// The credential that gets a slot of a keyring, and the name of the slot.
struct NewSlotOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Read the new passphrase from a file; one trailing newline is stripped. Without an "
                + "option for the new credential, a passphrase is asked for.",
            valueName: "path"),
        completion: .file())
    var newPassphraseFile: String?

    @Option(help: ArgumentHelp("Read it from an open descriptor.", valueName: "number"))
    var newPassphraseFd: Int32?

    @Option(
        help: ArgumentHelp("Read it from a shell command's output.", valueName: "command"),
        completion: .list([]))
    var newPassphraseCommand: String?

    @Flag(help: "Read it from standard input.")
    var newPassphraseStdin = false

    @Option(
        help: ArgumentHelp(
            "Read a key file: 32 bytes, or 64 hex digits as key make-file writes them.",
            valueName: "path"),
        completion: .file())
    var newKeyFile: String?

    @Option(
        help: ArgumentHelp(
            "Read a recipient's public key from a file: the line that key make-identity prints.",
            valueName: "path"),
        completion: .file())
    var recipient: String?

    @Option(
        help: ArgumentHelp(
            "Wrap a new random secret by a shell command: it gets the 32 bytes on standard input, "
                + "and writes at most 702 bytes to standard output.",
            valueName: "command"),
        completion: .list([]))
    var wrapCommand: String?

    /// Where a new credential comes from.
    enum Choice {
        case secret(SecretSource)
        case recipient(SecretSource)
        case wrap(String)
    }

    func validate() throws {
        _ = try named()
    }

    /// - Throws: `ValidationError` if the options name more than one credential.
    private func named() throws -> Choice? {
        let secret = try SecretChoice.one(
            [
                newPassphraseFile.map { .passphrase(.file($0)) },
                newPassphraseFd.map { .passphrase(.descriptor($0)) },
                newPassphraseCommand.map { .passphrase(.command($0)) },
                newPassphraseStdin ? .passphrase(.descriptor(0)) : nil,
                newKeyFile.map { SecretSource(origin: .file($0), form: .keyFile) },
            ], isNew: true)
        let choices: [Choice] = [
            secret.map { .secret($0) },
            recipient.map { .recipient(SecretSource(origin: .file($0), form: .recipient)) },
            wrapCommand.map { .wrap($0) },
        ].compactMap { $0 }
        guard choices.count <= 1 else {
            throw ValidationError("Name one new credential, not \(choices.count).")
        }
        return choices.first
    }

    /// Whether an option names the credential.
    var isNamed: Bool { (try? named()) != nil }

    /// The credential that the options name, otherwise a variable, otherwise a passphrase from the
    /// terminal.
    ///
    /// - Throws: `ToolError` `.secretSource` if it comes from the same source as the current
    ///   secret, because one would be read as the other.
    func choice(apartFrom current: SecretSource) throws -> Choice {
        let choice =
            try named() ?? SecretVariables.source(isNew: true).map { .secret($0) }
            ?? .secret(.prompt)
        if case .secret(let source) = choice, !source.isPrompt,
            SecretChoice.isSame(source, current)
        {
            throw ToolError(
                .secretSource,
                "the current and the new secret both come from \(source.description)",
                hint: "Name two sources, so that neither secret is taken for the other.")
        }
        return choice
    }

    /// Reads the credential.
    ///
    /// - Parameter slot: The slot that is changed; `nil` for a new one.
    static func read(_ choice: Choice, for path: String, slot: UInt16? = nil) throws -> NewSlot {
        switch choice {
        case .secret(let source):
            return try NewSlot(for: try SecretReader.newCredential(source, for: path))
        case .recipient(let source): return try SecretReader.recipient(source, for: path)
        case .wrap(let command):
            Signals.workBegins()
            return try WrappedSecret.slot(wrappedBy: command, for: path, slot: slot)
        }
    }
}
