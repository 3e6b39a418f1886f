import ArgumentParser
import Coffer

/// The credential that gets a slot of a keyring. Without an option, a passphrase is asked for.
struct NewSlotOptions: ParsableArguments {
    @OptionGroup var credential: NewCredentialOptions

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

    @Option(
        help: ArgumentHelp(
            "With --wrap-command: unwrap the secret again by this shell command, before anything "
                + "is written.",
            valueName: "command"),
        completion: .list([]))
    var newUnwrapCommand: String?

    /// The source of a new credential.
    enum Choice {
        case secret(SecretSource)
        case recipient(SecretSource)
        /// Commands that wrap a secret and, as a proof, unwrap it.
        case wrap(String, proof: String?)
    }

    func validate() throws {
        _ = try named()
        guard newUnwrapCommand == nil || wrapCommand != nil else {
            throw ValidationError("--new-unwrap-command needs --wrap-command.")
        }
    }

    /// - Throws: `ValidationError` if the options name more than one credential.
    private func named() throws -> Choice? {
        let secret = try SecretChoice.one(credential.named, isNew: true)
        let choices: [Choice] = [
            secret.map { .secret($0) },
            recipient.map { .recipient(SecretSource(origin: .file($0), form: .recipient)) },
            wrapCommand.map { .wrap($0, proof: newUnwrapCommand) },
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
        if case .secret(let source) = choice {
            try SecretChoice.requireApart(source, from: current)
        }
        return choice
    }

    /// The options for each run over several stores, which reads the credential by itself.
    ///
    /// - Throws: `ToolError` `.secretSource` for what only one of them would get.
    func repeatedArguments() throws -> [String] {
        switch try named() {
        case nil:
            try NewCredentialOptions.requireReadableAgain(nil)
            return []
        case .secret: return try credential.repeatedArguments()
        case .recipient(let source):
            try NewCredentialOptions.requireReadableAgain(source.origin)
            // Each run would say the same of a key that is none.
            _ = try SecretReader.recipient(source)
            return recipient.map { ["--recipient=\($0)"] } ?? []
        case .wrap(let command, let proof):
            return ["--wrap-command=\(command)"]
                + (proof.map { ["--new-unwrap-command=\($0)"] } ?? [])
        }
    }

    /// Reads the credential.
    ///
    /// - Parameter slot: The slot that is changed; `nil` for a new one.
    static func read(_ choice: Choice, for path: String, slot: UInt16? = nil) throws -> NewSlot {
        switch choice {
        case .secret(let source):
            return try NewSlot(for: try SecretReader.newCredential(source, for: path))
        case .recipient(let source): return try SecretReader.recipient(source)
        case .wrap(let command, let proof):
            Signals.workBegins()
            return try WrappedSecret.slot(
                wrappedBy: command, unwrapping: proof, for: path, slot: slot)
        }
    }
}
