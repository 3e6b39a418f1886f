import ArgumentParser
import Coffer

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The source of the key of an existing store, or of the first key of a new one.
struct SecretOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Read the passphrase from a file; one trailing newline is stripped. Without an option "
                + "for the secret, COFFER_PASSPHRASE_FILE may name the file, and such variables "
                + "other sources.",
            valueName: "path"),
        completion: .file())
    var passphraseFile: String?

    @Option(help: ArgumentHelp("Read it from an open descriptor.", valueName: "number"))
    var passphraseFd: Int32?

    @Option(
        help: ArgumentHelp(
            "Read it from a shell command's output, such as that of 'pass show notes'.",
            valueName: "command"),
        completion: .list([]))
    var passphraseCommand: String?

    @Flag(help: "Read it from standard input.")
    var passphraseStdin = false

    @Option(
        help: ArgumentHelp(
            "Read a raw key from an open descriptor: 32 bytes, or 48 with the salt, or twice "
                + "as many hex digits.",
            valueName: "number"))
    var rawKeyFd: Int32?

    @Option(
        help: ArgumentHelp("Read a raw key from a file, in the same forms.", valueName: "path"),
        completion: .file())
    var rawKeyFile: String?

    @Option(
        help: ArgumentHelp("Read a raw key from a shell command's output.", valueName: "command"),
        completion: .list([]))
    var rawKeyCommand: String?

    @OptionGroup(title: "Other credentials, for a store with a keyring")
    var credential: CredentialOptions

    func validate() throws {
        _ = try named()
    }

    /// The source that the options name, otherwise that of the variables, otherwise the terminal.
    ///
    /// - Throws: As `named()`, and errors of `SecretVariables`.
    func source() throws -> SecretSource {
        accepting(try named() ?? SecretVariables.source(isNew: false) ?? .prompt)
    }

    /// The source, with the option to open an older file.
    func accepting(_ source: SecretSource) -> SecretSource {
        var source = source
        source.acceptsOlderFile = credential.acceptOlderFile
        return source
    }

    /// The source that the options name; `nil` if they name none.
    ///
    /// - Throws: `ValidationError` if they name more than one.
    func named() throws -> SecretSource? {
        try SecretChoice.one(
            [
                passphraseFile.map { .passphrase(.file($0)) },
                passphraseFd.map { .passphrase(.descriptor($0)) },
                passphraseCommand.map { .passphrase(.command($0)) },
                passphraseStdin ? .passphrase(.descriptor(0)) : nil,
                rawKeyFd.map { .rawKey(.descriptor($0)) },
                rawKeyFile.map { .rawKey(.file($0)) },
                rawKeyCommand.map { .rawKey(.command($0)) },
            ] + credential.named, isNew: false
        ).map(accepting)
    }
}

/// The source of the new key; it must differ from the source of the current one.
struct NewSecretOptions: ParsableArguments {
    @OptionGroup var credential: NewCredentialOptions

    @Option(
        help: ArgumentHelp(
            "Read a new raw key from an open descriptor: 32 bytes, or 64 hex digits.",
            valueName: "number"))
    var newRawKeyFd: Int32?

    @Option(
        help: ArgumentHelp("Read a new raw key from a file, in the same forms.", valueName: "path"),
        completion: .file())
    var newRawKeyFile: String?

    @Option(
        help: ArgumentHelp(
            "Read a new raw key from a shell command's output.", valueName: "command"),
        completion: .list([]))
    var newRawKeyCommand: String?

    @Flag(help: "Make a keyring: the new secret, a passphrase or a key file, is its first slot.")
    var newKeyring = false

    func validate() throws {
        let form = try named()?.form
        guard !newKeyring || form != .rawKey else {
            throw ValidationError("A raw key is not a credential of a keyring.")
        }
    }

    /// The source that the options name; `nil` if they name none.
    ///
    /// - Throws: `ValidationError` if they name more than one.
    private func named() throws -> SecretSource? {
        try SecretChoice.one(
            credential.named + [
                newRawKeyFd.map { .rawKey(.descriptor($0)) },
                newRawKeyFile.map { .rawKey(.file($0)) },
                newRawKeyCommand.map { .rawKey(.command($0)) },
            ], isNew: true)
    }

    /// Whether the new secret is the first slot of a keyring.
    var makesKeyring: Bool { newKeyring || credential.newKeyFile != nil }

    /// Whether the options ask for a new secret, and not only for the default source.
    func isGiven(_ source: SecretSource) -> Bool { newKeyring || !source.isPrompt }

    /// Reads the new secret.
    func read(_ source: SecretSource, for path: String) throws -> StoreKey {
        try SecretReader.new(source, for: path, makesKeyring: makesKeyring)
    }

    /// The source that the options name, otherwise the terminal.
    ///
    /// - Parameter hasVariables: Whether variables name the source if the options do not. They do
    ///   for a change of the key; a copy would otherwise get another key than its original, only
    ///   because of the environment.
    /// - Throws: `ToolError` `.secretSource` if the source is also that of the current secret,
    ///   because one of the two would be read as the other; errors of `SecretVariables`.
    func source(
        apartFrom current: SecretSource, hasVariables: Bool = false
    ) throws -> SecretSource {
        let source =
            try named() ?? (hasVariables ? SecretVariables.source(isNew: true) : nil) ?? .prompt
        try SecretChoice.requireApart(source, from: current)
        return source
    }
}

/// The logic that both groups of options share.
enum SecretChoice {
    /// - Throws: `ValidationError` for several sources, or a descriptor that cannot be one.
    static func one(_ options: [SecretSource?], isNew: Bool) throws -> SecretSource? {
        let named = options.compactMap { $0 }
        guard named.count <= 1 else {
            let secret = isNew ? "new secret" : "secret"
            throw ValidationError("Name one source of the \(secret), not \(named.count).")
        }
        if let number = named.first?.descriptor, number < 0 || number == 1 || number == 2 {
            throw ValidationError("Descriptor \(number) cannot be the source of a secret.")
        }
        return named.first
    }

    /// Refuses one source for two secrets, because one of the two would be read as the other.
    ///
    /// - Throws: `ToolError` `.secretSource`. The terminal may be the source of both.
    static func requireApart(_ new: SecretSource, from current: SecretSource) throws {
        guard !new.isPrompt, isSame(new, current) else { return }
        throw ToolError(
            .secretSource,
            "the current and the new secret both come from \(new.description)",
            hint: "Name two sources, so that neither secret is taken for the other.")
    }

    /// Whether both read the same input, whatever its name: `/dev/stdin`, a link, a descriptor.
    private static func isSame(_ first: SecretSource, _ second: SecretSource) -> Bool {
        if let descriptor = first.descriptor, descriptor == second.descriptor { return true }
        guard let one = identity(first), let other = identity(second) else {
            return first.origin == second.origin
        }
        return one == other
    }

    /// Device and inode of the input.
    private static func identity(_ source: SecretSource) -> [UInt64]? {
        var found = stat()
        switch source.origin {
        case .file(let path): guard stat(path, &found) == 0 else { return nil }
        case .descriptor(let number):
            guard fstat(number, &found) == 0 else { return nil }
        case .prompt, .command: return nil
        }
        return [UInt64(found.st_dev), UInt64(found.st_ino)]
    }
}
