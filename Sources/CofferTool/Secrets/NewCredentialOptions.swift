import ArgumentParser

/// The sources of a new passphrase or key file, which a new key and a new slot have in common.
struct NewCredentialOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Read the new passphrase from a file; one trailing newline is stripped.",
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
            "Read a new key file, for a keyring: 32 bytes, or 64 hex digits.", valueName: "path"),
        completion: .file())
    var newKeyFile: String?

    /// The sources that the options name.
    var named: [SecretSource?] {
        [
            newPassphraseFile.map { .passphrase(.file($0)) },
            newPassphraseFd.map { .passphrase(.descriptor($0)) },
            newPassphraseCommand.map { .passphrase(.command($0)) },
            newPassphraseStdin ? .passphrase(.descriptor(0)) : nil,
            newKeyFile.map { SecretSource(origin: .file($0), form: .keyFile) },
        ]
    }

    /// The options for each run over several stores, which reads the credential by itself.
    ///
    /// - Throws: `ToolError` `.secretSource` for what only one of them would get.
    func repeatedArguments() throws -> [String] {
        try Self.requireReadableAgain(SecretChoice.one(named, isNew: true)?.origin)
        return (newPassphraseFile.map { ["--new-passphrase-file=\($0)"] } ?? [])
            + (newPassphraseCommand.map { ["--new-passphrase-command=\($0)"] } ?? [])
            + (newKeyFile.map { ["--new-key-file=\($0)"] } ?? [])
    }

    /// - Parameter origin: `nil` if nothing is named: then a variable or a person has to.
    static func requireReadableAgain(_ origin: SecretSource.Origin?) throws {
        let origin = try origin ?? SecretVariables.source(isNew: true)?.origin ?? .prompt
        switch origin {
        case .command: return
        case .file(let path) where !ListSecret.isReadOnce(path): return
        case .file, .descriptor, .prompt:
            throw ToolError(
                .secretSource, "each store of a list needs the new credential for itself",
                hint: "Name a file, such as with --new-key-file, or with --new-passphrase-command "
                    + "a command that writes it each time.")
        }
    }
}
