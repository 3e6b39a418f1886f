/// The source of a secret, and whether the secret is a passphrase or a raw key.
struct SecretSource: Equatable {
    enum Origin: Equatable {
        /// A person types it on the terminal.
        case prompt
        case file(String)
        case descriptor(Int32)
        /// The output of a shell command.
        case command(String)
    }

    let origin: Origin
    let isRawKey: Bool

    static let prompt = SecretSource(origin: .prompt, isRawKey: false)

    static func passphrase(_ origin: Origin) -> SecretSource {
        SecretSource(origin: origin, isRawKey: false)
    }

    static func rawKey(_ origin: Origin) -> SecretSource {
        SecretSource(origin: origin, isRawKey: true)
    }

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
    var secretName: String { isRawKey ? "raw key" : "passphrase" }

    /// The descriptor to read, if the process was given one.
    var descriptor: Int32? {
        if case .descriptor(let number) = origin { number } else { nil }
    }

    var isStandardInput: Bool { descriptor == 0 }
}
