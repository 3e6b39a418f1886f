import Coffer
import SystemPackage

/// The secret of a list of stores, as each run of the tool for one of them gets it.
///
/// A run reads a file, or the output of a command, by itself: a command is told its store. What can
/// be read only once (the terminal, a descriptor) is read here, and each run gets it on standard
/// input.
final class ListSecret: Sendable {
    /// The options that name the source for a run.
    let options: [String]
    /// `nil` if a run reads the secret by itself.
    private let input: StoreKey?
    /// Whether a reader strips a newline at the end.
    private let isText: Bool

    /// - Parameters:
    ///   - secret: `nil` if no run gets a secret.
    ///   - isPrompted: Whether the terminal is asked, whatever variables name.
    ///   - count: The number of stores.
    /// - Throws: As `SecretOptions.source()` and `SecretReader`.
    init(_ secret: SecretOptions?, isPrompted: Bool = false, for count: Int) throws {
        guard let secret else {
            options = []
            input = nil
            isText = false
            return
        }
        let accepting = secret.credential.acceptOlderFile ? ["--accept-older-file"] : []
        let source = isPrompted ? SecretSource.prompt : try secret.source()
        isText = source.form != .rawKey
        switch source.origin {
        case .prompt, .descriptor:
            options = accepting + [Self.standardInput(for: source.form)]
            input = try SecretReader.shared(source, by: count)
        case .file, .command:
            // A variable reaches the run as it is.
            options = accepting + (try secret.named() == nil ? [] : Self.options(source))
            input = nil
        }
    }

    /// The option for a secret on standard input.
    private static func standardInput(for form: SecretSource.Form) -> String {
        switch form {
        case .rawKey: "--raw-key-fd=0"
        case .identity: "--identity-fd=0"
        case .recoveryKey: "--recovery-key-fd=0"
        default: "--passphrase-stdin"
        }
    }

    private static func options(_ source: SecretSource) -> [String] {
        let name: String
        var slot: [String] = []
        switch source.form {
        case .rawKey: name = "--raw-key"
        case .keyFile: name = "--key"
        case .identity: name = "--identity"
        case .external(let number):
            name = "--unwrap"
            if let number { slot = ["--unwrap-slot=\(number)"] }
        default: name = "--passphrase"
        }
        switch source.origin {
        case .file(let path): return ["\(name)-file=\(path)"]
        case .command(let command): return ["\(name)-command=\(command)"] + slot
        case .prompt, .descriptor: return []
        }
    }

    /// Whether a run gets the secret on standard input.
    var isShared: Bool { input != nil }

    /// Writes what a run reads on standard input. It fits the buffer of a pipe.
    func write(to descriptor: FileDescriptor) throws {
        _ = try input?.withBytes { try descriptor.writeAll($0) }
        if isText { _ = try descriptor.writeAll(CollectionOfOne(UInt8(ascii: "\n"))) }
    }
}
