import ArgumentParser

/// Further sources of a secret, for a store with a keyring. There the options of a passphrase name
/// a credential as well.
struct CredentialOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Read a key file: 32 bytes, or 64 hex digits as key make-file writes them.",
            valueName: "path"),
        completion: .file())
    var keyFile: String?

    @Option(
        help: ArgumentHelp(
            "Read the identity of a recipient from a file of key make-identity.",
            valueName: "path"),
        completion: .file())
    var identityFile: String?

    @Option(help: ArgumentHelp("Read it from an open descriptor.", valueName: "number"))
    var identityFd: Int32?

    @Flag(help: "Ask for a recovery key on the terminal.")
    var recoveryKeyPrompt = false

    @Option(help: ArgumentHelp("Read it from an open descriptor.", valueName: "number"))
    var recoveryKeyFd: Int32?

    @Option(
        help: ArgumentHelp(
            "Unwrap the secret of an external slot by a shell command: it gets the wrapped secret "
                + "on standard input, and writes the 32 bytes to standard output.",
            valueName: "command"),
        completion: .list([]))
    var unwrapCommand: String?

    @Option(
        help: ArgumentHelp(
            "The external slot, if the keyring has several.", valueName: "number"))
    var unwrapSlot: UInt16?

    @Flag(help: "Open a file that is older than its keyring, such as one that was put back.")
    var acceptOlderFile = false

    func validate() throws {
        guard unwrapSlot == nil || unwrapCommand != nil else {
            throw ValidationError("--unwrap-slot needs --unwrap-command.")
        }
    }

    /// The sources that the options name.
    var named: [SecretSource?] {
        [
            keyFile.map { SecretSource(origin: .file($0), form: .keyFile) },
            identityFile.map { SecretSource(origin: .file($0), form: .identity) },
            identityFd.map { SecretSource(origin: .descriptor($0), form: .identity) },
            recoveryKeyPrompt ? SecretSource(origin: .prompt, form: .recoveryKey) : nil,
            recoveryKeyFd.map { SecretSource(origin: .descriptor($0), form: .recoveryKey) },
            unwrapCommand.map {
                SecretSource(origin: .command($0), form: .external(slot: unwrapSlot))
            },
        ]
    }
}
