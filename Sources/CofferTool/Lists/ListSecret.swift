import Coffer
import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

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
    /// - Throws: `ToolError` `.usage` if standard input is the list and also the secret; otherwise
    ///   as `SecretOptions.source()` and `SecretReader`.
    init(
        _ secret: SecretOptions?, isPrompted: Bool = false, for count: Int
    ) throws {
        guard let secret else {
            options = []
            input = nil
            isText = false
            return
        }
        let accepting = secret.credential.acceptOlderFile ? ["--accept-older-file"] : []
        let source = isPrompted ? SecretSource.prompt : try secret.source()
        isText = ![.rawKey, .keyFile].contains(source.form)
        if Self.isReadOnce(source) {
            // A variable may have named it.
            guard !StandardInput.isClaimed || !source.isStandardInput else {
                throw ToolError(
                    .usage, "standard input cannot be both the list and the secret",
                    hint: "Name another source for one.")
            }
            options = accepting + [Self.standardInput(for: source.form)]
            input = try SecretReader.shared(source, by: count)
        } else {
            // A variable reaches the run as it is.
            options = accepting + (try secret.named() == nil ? [] : Self.options(source))
            input = nil
        }
    }

    /// Whether a second run would get nothing, or something else: a pipe, or a descriptor of this
    /// process that has the name of a file.
    private static func isReadOnce(_ source: SecretSource) -> Bool {
        switch source.origin {
        case .prompt, .descriptor: return true
        case .command: return false
        case .file(let path): return isReadOnce(path)
        }
    }

    static func isReadOnce(_ path: String) -> Bool {
        let isOwn = ["/dev/fd/", "/dev/stdin", "/proc/self/", "/proc/thread-self/"]
            .contains { path.hasPrefix($0) }
        var facts = stat()
        return isOwn || (stat(path, &facts) == 0 && facts.st_mode & S_IFMT != S_IFREG)
    }

    /// The option for a secret on standard input.
    private static func standardInput(for form: SecretSource.Form) -> String {
        switch form {
        case .rawKey: "--raw-key-fd=0"
        case .keyFile: "--key-file=/dev/stdin"
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

    /// Writes what a run reads on standard input. Nobody reads yet, so it has to fit the buffer of
    /// the pipe: 64 KiB is the default, and more than a secret may have.
    ///
    /// - Throws: `Errno` `.resourceTemporarilyUnavailable` for a smaller buffer.
    func write(to descriptor: FileDescriptor) throws {
        _ = fcntl(descriptor.rawValue, F_SETFL, O_NONBLOCK)
        try input?.withBytes { bytes in
            _ = try descriptor.writeAll(bytes)
            // The reader strips one newline, which must not be one of the secret.
            if isText, bytes.last == 10 { _ = try descriptor.writeAll(CollectionOfOne(10)) }
        }
    }
}
