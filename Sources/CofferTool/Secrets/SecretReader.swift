import Coffer
import Foundation
import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Reads a secret directly into locked memory; no copy remains elsewhere.
enum SecretReader {
    /// A passphrase must be shorter. A longer input is assumed to be the wrong file.
    static let maximumByteCount = 64 << 10

    /// Reads the key of an existing store. A passphrase is a credential if the store has a keyring.
    static func current(_ source: SecretSource, for path: String) throws -> StoreKey {
        let isPlain =
            switch source.form {
            case .rawKey: true
            case .passphrase: try !Keyring.exists(for: path)
            default: false
            }
        if source.form == .passphrase, (try? Keyring(of: path))?.isBeingEnabled == true {
            return try duringEnabling(source, for: path)
        }
        guard isPlain else {
            return .keyring(
                try credential(source, for: path), acceptsOlderFile: source.acceptsOlderFile)
        }
        return try own(source, for: path)
    }

    /// Reads the passphrase of a store that is being given a keyring: the one from before, until
    /// the pages have a key of the keyring.
    private static func duringEnabling(
        _ source: SecretSource, for path: String
    ) throws -> StoreKey {
        let key = try own(source, for: path)
        var configuration = Configuration()
        configuration.journalMode = .existing
        do {
            try Connection(path: path, key: key, mode: .readOnly, configuration: configuration)
                .close()
            return key
        } catch let error as StoreError where error.code == .wrongKey {
            return .keyring(
                try key.credential(of: .passphrase), acceptsOlderFile: source.acceptsOlderFile)
        }
    }

    /// Reads the key that a store has apart from a keyring.
    static func own(_ source: SecretSource, for path: String) throws -> StoreKey {
        RunFiles.opens(path)
        return try read(source, for: path, prompts: ["Passphrase for \(path): "])
    }

    /// Reads the first or next key of a store, which a person types twice on a terminal.
    ///
    /// - Parameter makesKeyring: Whether the key is the first slot of a new keyring. Only a keyring
    ///   has a credential that is neither a passphrase nor a raw key.
    static func new(
        _ source: SecretSource, for path: String, makesKeyring: Bool = false
    ) throws -> StoreKey {
        guard makesKeyring || ![.passphrase, .rawKey].contains(source.form) else {
            return try read(source, for: path, prompts: newPrompts(path))
        }
        return .keyring(try newCredential(source, for: path))
    }

    /// Reads a credential of the store's keyring.
    static func credential(_ source: SecretSource, for path: String) throws -> KeyCredential {
        RunFiles.opens(path)
        return try credential(source, for: path, prompts: [prompt(source, "for \(path)")])
    }

    /// Reads the credential of one slot.
    static func credential(
        _ source: SecretSource, of slot: KeySlot, for path: String
    ) throws -> KeyCredential {
        try credential(source, for: path, prompts: [prompt(source, "of \(slot.named)")])
    }

    /// Reads a credential of the keyring that a replica has.
    static func credential(
        _ source: SecretSource, of keyring: Keyring, at place: String
    ) throws -> KeyCredential {
        try refused(source) {
            try parsed(
                source, for: place, in: keyring, prompts: [prompt(source, "for \(place)")])
        }
    }

    /// Reads a credential that gets a slot. A person types it twice on a terminal.
    static func newCredential(_ source: SecretSource, for path: String) throws -> KeyCredential {
        try credential(source, for: path, prompts: newPrompts(path))
    }

    /// The words that ask for a secret, such as "Key file for notes.db: ".
    private static func prompt(_ source: SecretSource, _ purpose: String) -> String {
        let name = source.secretName
        return "\(name.prefix(1).uppercased())\(name.dropFirst()) \(purpose): "
    }

    private static func newPrompts(_ path: String) -> [String] {
        ["New passphrase for \(path): ", "The new passphrase once more: "]
    }

    private static func credential(
        _ source: SecretSource, for path: String, prompts: [String]
    ) throws -> KeyCredential {
        try refused(source) { try parsed(source, for: path, prompts: prompts) }
    }

    /// - Parameter keyring: `nil` for that of the store.
    private static func parsed(
        _ source: SecretSource, for path: String, in keyring: Keyring? = nil, prompts: [String]
    ) throws -> KeyCredential {
        if case .external(let slot) = source.form {
            let wrapped = try WrappedSecret(keyring ?? Keyring(of: path), of: path, slot: slot)
            return try external(wrapped, source)
        }
        guard let kind = source.form.kind else {
            throw ToolError(
                .secretSource, "a \(source.secretName) is not a credential of a keyring",
                hint: "Name a passphrase, a key file, an identity or a recovery key.")
        }
        return try read(source, for: path, prompts: prompts).credential(of: kind)
    }

    /// Runs the command that unwraps the secret of an external slot.
    private static func external(
        _ wrapped: WrappedSecret, _ source: SecretSource
    ) throws -> KeyCredential {
        guard case .command(let command) = source.origin else {
            throw ToolError(
                .secretSource, "an external secret comes from a command",
                hint: "Name it with --unwrap-command.")
        }
        let key = try StoreKey(isPassphrase: true, maximumByteCount: maximumByteCount) { bytes in
            try wrapped.unwrapped(by: command, into: bytes)
        }
        Signals.workBegins()
        return try key.credential(of: .external, slot: wrapped.slotID)
    }

    /// Reads a secret that opens each store of a list.
    static func shared(_ source: SecretSource, by count: Int) throws -> StoreKey {
        try read(source, for: nil, prompts: [prompt(source, "for \(count.counted("store"))")])
    }

    /// Reads the letters of a root backup.
    static func rootBackup(_ source: SecretSource, for path: String) throws -> StoreKey {
        RunFiles.opens(path)
        return try read(source, for: path, prompts: ["Root backup of \(path): "])
    }

    /// Reads the public key of a recipient, in letters.
    static func recipient(_ source: SecretSource) throws -> NewSlot {
        try refused(source) { try parsedRecipient(source) }
    }

    private static func parsedRecipient(_ source: SecretSource) throws -> NewSlot {
        let letters = try read(source, for: nil, prompts: [])
        return try .recipient(letters: letters.withBytes { Array($0) })
    }

    /// Turns the library's `.misuse` into `.secretSource`, which names the source.
    private static func refused<T: ~Copyable>(
        _ source: SecretSource, _ read: () throws -> T
    ) throws -> T {
        do {
            return try read()
        } catch let error as StoreError where error.code == .misuse {
            throw ToolError(
                .secretSource, "\(source.description): \(error.message)", hint: error.hint)
        }
    }

    /// - Parameter path: The store that the secret is for, which a command is told; `nil` for one
    ///   that is for any store.
    private static func read(
        _ source: SecretSource, for path: String?, prompts: [String]
    ) throws -> StoreKey {
        let key = try StoreKey(
            isPassphrase: source.form != .rawKey, maximumByteCount: maximumByteCount
        ) { bytes in
            let count = try read(source, for: path, prompts, into: bytes)
            switch source.form {
            case .rawKey, .keyFile:
                return try RawKeyText.decode(bytes, count: count, source: source)
            case .passphrase, .recoveryKey, .identity, .external, .rootBackup, .recipient:
                let stripped = withoutNewline(bytes, count: count)
                guard stripped > 0 else {
                    throw ToolError(
                        .secretSource,
                        "the \(source.secretName) from \(source.description) is empty")
                }
                return stripped
            }
        }
        Signals.workBegins()
        return key
    }

    private static func read(
        _ source: SecretSource, for path: String?, _ prompts: [String],
        into bytes: UnsafeMutableRawBufferPointer
    ) throws -> Int {
        switch source.origin {
        case .prompt: return try Prompt.read(prompts, for: source.form, into: bytes)
        case .file(let path): return try readFile(path, source, into: bytes)
        case .descriptor(let number):
            try requireInherited(number)
            return try readAll(FileDescriptor(rawValue: number), source, into: bytes)
        case .command(let command):
            return try ShellCommand(command, name: source.description).run(
                input: StandardInput.isClaimed ? .nothing : .own,
                variables: path.map(StoreVariables.of) ?? []
            ) { output in
                try readAll(output, source, into: bytes)
            }
        }
    }

    /// Refuses a number that the caller of the tool has not opened. A descriptor of the tool itself
    /// is one that closes when a program is started, and reading it could wait without end.
    private static func requireInherited(_ number: Int32) throws {
        let flags = fcntl(number, F_GETFD)
        guard flags >= 0, flags & FD_CLOEXEC == 0 else {
            throw ToolError(
                .secretSource, "descriptor \(number) is not open",
                hint: "Open it for the command, such as with \(number)< FILE in a shell.")
        }
    }

    /// Strips one trailing newline (LF or CR LF), which an editor or `echo` adds.
    static func withoutNewline(_ bytes: UnsafeMutableRawBufferPointer, count: Int) -> Int {
        guard count > 0, bytes[count - 1] == 10 else { return count }
        return count > 1 && bytes[count - 2] == 13 ? count - 2 : count - 1
    }

    private static func readFile(
        _ path: String, _ source: SecretSource, into bytes: UnsafeMutableRawBufferPointer
    ) throws -> Int {
        let file: FileDescriptor
        do {
            file = try FileDescriptor.open(FilePath(path), .readOnly, options: [.closeOnExec])
        } catch {
            throw ToolError(.secretSource, "\(path) cannot be opened: \(error)")
        }
        defer { try? file.close() }
        var facts = stat()
        if source.form != .recipient, fstat(file.rawValue, &facts) == 0,
            facts.st_mode & S_IFMT == S_IFREG, facts.st_mode & 0o077 != 0
        {
            Terminal.warn("\(path) can be read by other users: chmod 600 it")
        }
        return try readAll(file, source, into: bytes)
    }

    /// Reads to the end.
    static func readAll(
        _ file: FileDescriptor, _ source: SecretSource, into bytes: UnsafeMutableRawBufferPointer
    ) throws -> Int {
        var count = 0
        while count < bytes.count {
            let room = UnsafeMutableRawBufferPointer(rebasing: bytes[count...])
            let read: Int
            do {
                read = try file.read(into: room)
            } catch {
                throw ToolError(
                    .secretSource, "\(source.description) cannot be read: \(error)")
            }
            if read == 0 { return count }
            count += read
        }
        throw ToolError(
            .secretSource,
            "the input from \(source.description) is longer than \(maximumByteCount - 1) bytes",
            hint: "Check that it is the right source.")
    }
}
