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
            "Read the passphrase from a file; one trailing newline is stripped.",
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

    func validate() throws {
        _ = try source()
    }

    /// - Throws: `ValidationError` if the options name more than one source.
    func source() throws -> SecretSource {
        try SecretChoice.one(
            file: passphraseFile, descriptor: passphraseFd, command: passphraseCommand,
            standardInput: passphraseStdin, rawKeyDescriptor: rawKeyFd, prefix: "")
    }
}

/// The source of the new key; it must differ from the source of the current one.
struct NewSecretOptions: ParsableArguments {
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
            "Read a new raw key from an open descriptor: 32 bytes, or 64 hex digits.",
            valueName: "number"))
    var newRawKeyFd: Int32?

    func validate() throws {
        _ = try source()
    }

    /// - Throws: `ValidationError` if the options name more than one source.
    func source() throws -> SecretSource {
        try SecretChoice.one(
            file: newPassphraseFile, descriptor: newPassphraseFd, command: newPassphraseCommand,
            standardInput: newPassphraseStdin, rawKeyDescriptor: newRawKeyFd, prefix: "new-")
    }

    /// - Throws: `ToolError` `.secretSource` if the source is also that of the current secret,
    ///   because one of the two would be read as the other.
    func source(apartFrom current: SecretSource) throws -> SecretSource {
        let source = try source()
        guard source != .prompt, SecretChoice.isSame(source, current) else { return source }
        throw ToolError(
            .secretSource,
            "the current and the new secret both come from \(source.description)",
            hint: "Name two sources, so that neither secret is taken for the other.")
    }
}

/// The logic that both groups of options share.
enum SecretChoice {
    static func one(
        file: String?, descriptor: Int32?, command: String?, standardInput: Bool,
        rawKeyDescriptor: Int32?, prefix: String
    ) throws -> SecretSource {
        let named: [SecretSource] = [
            file.map(SecretSource.file), descriptor.map(SecretSource.descriptor),
            command.map(SecretSource.command), standardInput ? .standardInput : nil,
            rawKeyDescriptor.map(SecretSource.rawKeyDescriptor),
        ].compactMap { $0 }
        guard named.count <= 1 else {
            throw ValidationError("Name one source of the \(prefix)secret, not \(named.count).")
        }
        if let number = named.first?.descriptor, number < 0 || number == 1 || number == 2 {
            throw ValidationError("Descriptor \(number) cannot be the source of a secret.")
        }
        return named.first ?? .prompt
    }

    /// Whether both read the same input, whatever its name: `/dev/stdin`, a link, a descriptor.
    static func isSame(_ first: SecretSource, _ second: SecretSource) -> Bool {
        if let descriptor = first.descriptor, descriptor == second.descriptor { return true }
        guard let one = identity(first), let other = identity(second) else {
            return first == second
        }
        return one == other
    }

    /// Device and inode of the input.
    private static func identity(_ source: SecretSource) -> [UInt64]? {
        var found = stat()
        switch source {
        case .file(let path): guard stat(path, &found) == 0 else { return nil }
        case .descriptor(let number), .rawKeyDescriptor(let number):
            guard fstat(number, &found) == 0 else { return nil }
        case .prompt, .command: return nil
        }
        return [UInt64(found.st_dev), UInt64(found.st_ino)]
    }
}
