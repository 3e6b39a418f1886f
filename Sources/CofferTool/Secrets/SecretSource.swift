/// Where a secret comes from.
enum SecretSource: Equatable {
    /// A person types it on the terminal.
    case prompt
    case file(String)
    case descriptor(Int32)
    /// What a shell command prints.
    case command(String)
    case rawKeyDescriptor(Int32)

    static let standardInput = SecretSource.descriptor(0)

    /// How messages call it; never the secret.
    var description: String {
        switch self {
        case .prompt: "the terminal"
        case .file(let path): path
        case .descriptor(0): "standard input"
        case .descriptor(let number), .rawKeyDescriptor(let number): "descriptor \(number)"
        case .command: "the passphrase command"
        }
    }

    /// The descriptor that it reads, if it is one that the process was given.
    var descriptor: Int32? {
        switch self {
        case .descriptor(let number), .rawKeyDescriptor(let number): number
        default: nil
        }
    }

    var isStandardInput: Bool { descriptor == 0 }
}
