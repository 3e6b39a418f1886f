/// The source of a secret.
enum SecretSource: Equatable {
    /// A person types it on the terminal.
    case prompt
    case file(String)
    case descriptor(Int32)
    /// The output of a shell command.
    case command(String)
    case rawKeyDescriptor(Int32)

    static let standardInput = SecretSource.descriptor(0)

    /// The source's name in messages; never the secret.
    var description: String {
        switch self {
        case .prompt: "the terminal"
        case .file(let path): path
        case .descriptor(0): "standard input"
        case .descriptor(let number), .rawKeyDescriptor(let number): "descriptor \(number)"
        case .command: "the passphrase command"
        }
    }

    /// The descriptor to read, if the process was given one.
    var descriptor: Int32? {
        switch self {
        case .descriptor(let number), .rawKeyDescriptor(let number): number
        default: nil
        }
    }

    var isStandardInput: Bool { descriptor == 0 }
}
