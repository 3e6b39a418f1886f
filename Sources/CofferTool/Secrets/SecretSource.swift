import Coffer

/// The source of a secret, and the form that its bytes have.
struct SecretSource: Equatable {
    enum Origin: Equatable {
        /// A person types it on the terminal.
        case prompt
        case file(String)
        case descriptor(Int32)
        /// The output of a shell command.
        case command(String)
    }

    enum Form: Equatable {
        case passphrase
        case rawKey
        case keyFile
        case recoveryKey
        case identity
        /// The wrapped secret of an external slot, which the command unwraps. Without a number it
        /// is the only one.
        case external(slot: UInt16?)
        case rootBackup
        /// The public key of a recipient, in letters.
        case recipient

        /// The kind of credential that the bytes are; `nil` for those that are none, and for an
        /// external secret, which must be unwrapped first.
        var kind: KeySlot.Kind? {
            switch self {
            case .passphrase: .passphrase
            case .keyFile: .keyFile
            case .recoveryKey: .recoveryKey
            case .identity: .recipient
            case .rawKey, .external, .rootBackup, .recipient: nil
            }
        }
    }

    let origin: Origin
    let form: Form
    /// Whether a file is opened that is older than its keyring.
    var acceptsOlderFile = false

    static let prompt = SecretSource(origin: .prompt, form: .passphrase)

    static func passphrase(_ origin: Origin) -> SecretSource {
        SecretSource(origin: origin, form: .passphrase)
    }

    static func rawKey(_ origin: Origin) -> SecretSource {
        SecretSource(origin: origin, form: .rawKey)
    }

    /// Whether a person types it.
    var isPrompt: Bool { origin == .prompt }

    /// The source's name in messages; never the secret.
    var description: String {
        switch origin {
        case .prompt: "the terminal"
        case .file(let path): path
        case .descriptor(0): "standard input"
        case .descriptor(let number): "descriptor \(number)"
        case .command: "the \(secretName) command"
        }
    }

    /// The secret's name in messages.
    var secretName: String {
        switch form {
        case .passphrase: "passphrase"
        case .rawKey: "raw key"
        case .keyFile: "key file"
        case .recoveryKey: "recovery key"
        case .identity: "identity"
        case .external: "unwrap"
        case .rootBackup: "root backup"
        case .recipient: "public key"
        }
    }

    /// The descriptor to read, if the process was given one.
    var descriptor: Int32? {
        if case .descriptor(let number) = origin { number } else { nil }
    }

    /// Whether the bytes come from standard input, by its number or by one of its names.
    var isStandardInput: Bool {
        if case .file(let path) = origin {
            return ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"].contains(path)
        }
        return descriptor == 0
    }
}
