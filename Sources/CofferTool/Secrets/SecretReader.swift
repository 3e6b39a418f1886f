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

    /// Reads the key of an existing store.
    static func current(_ source: SecretSource, for path: String) throws -> StoreKey {
        try read(source, prompts: ["Passphrase for \(path): "])
    }

    /// Reads the first or next key of a store, which a person types twice on a terminal.
    static func new(_ source: SecretSource, for path: String) throws -> StoreKey {
        try read(
            source, prompts: ["New passphrase for \(path): ", "The new passphrase once more: "])
    }

    private static func read(_ source: SecretSource, prompts: [String]) throws -> StoreKey {
        // Handles signals only after reading, so that a command that fetches the secret can be
        // interrupted in the usual way.
        defer { Signals.install() }
        switch source {
        case .prompt:
            return try passphrase(source) { try Prompt.read(prompts, into: $0) }
        case .file(let path):
            return try passphrase(source) { try readFile(path, into: $0) }
        case .descriptor(let number):
            return try passphrase(source) {
                try readAll(FileDescriptor(rawValue: number), source, into: $0)
            }
        case .command(let command):
            return try passphrase(source) { try PassphraseCommand(command).run(into: $0) }
        case .rawKeyDescriptor(let number):
            return try StoreKey(isPassphrase: false, maximumByteCount: maximumByteCount) { bytes in
                let count = try readAll(FileDescriptor(rawValue: number), source, into: bytes)
                return try RawKeyText.decode(bytes, count: count, source: source)
            }
        }
    }

    private static func passphrase(
        _ source: SecretSource, _ read: (UnsafeMutableRawBufferPointer) throws -> Int
    ) throws -> StoreKey {
        try StoreKey(isPassphrase: true, maximumByteCount: maximumByteCount) { bytes in
            let count = withoutNewline(bytes, count: try read(bytes))
            guard count > 0 else {
                throw ToolError(
                    .secretSource, "the passphrase from \(source.description) is empty")
            }
            return count
        }
    }

    /// Strips one trailing newline (LF or CR LF), which an editor or `echo` adds.
    static func withoutNewline(_ bytes: UnsafeMutableRawBufferPointer, count: Int) -> Int {
        guard count > 0, bytes[count - 1] == 10 else { return count }
        return count > 1 && bytes[count - 2] == 13 ? count - 2 : count - 1
    }

    private static func readFile(
        _ path: String, into bytes: UnsafeMutableRawBufferPointer
    ) throws -> Int {
        let file: FileDescriptor
        do {
            file = try FileDescriptor.open(FilePath(path), .readOnly, options: [.closeOnExec])
        } catch {
            throw ToolError(.secretSource, "\(path) cannot be opened: \(error)")
        }
        defer { try? file.close() }
        var facts = stat()
        if fstat(file.rawValue, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG,
            facts.st_mode & 0o077 != 0
        {
            Terminal.warn("\(path) can be read by other users: chmod 600 it")
        }
        return try readAll(file, .file(path), into: bytes)
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
