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
        RunFiles.opens(path)
        return try read(source, prompts: ["Passphrase for \(path): "])
    }

    /// Reads the first or next key of a store, which a person types twice on a terminal.
    static func new(_ source: SecretSource, for path: String) throws -> StoreKey {
        try read(
            source, prompts: ["New passphrase for \(path): ", "The new passphrase once more: "])
    }

    private static func read(_ source: SecretSource, prompts: [String]) throws -> StoreKey {
        let key = try StoreKey(
            isPassphrase: !source.isRawKey, maximumByteCount: maximumByteCount
        ) { bytes in
            let count = try read(source, prompts, into: bytes)
            guard !source.isRawKey else {
                return try RawKeyText.decode(bytes, count: count, source: source)
            }
            let stripped = withoutNewline(bytes, count: count)
            guard stripped > 0 else {
                throw ToolError(
                    .secretSource, "the passphrase from \(source.description) is empty")
            }
            return stripped
        }
        Signals.workBegins()
        return key
    }

    private static func read(
        _ source: SecretSource, _ prompts: [String], into bytes: UnsafeMutableRawBufferPointer
    ) throws -> Int {
        switch source.origin {
        case .prompt: try Prompt.read(prompts, into: bytes)
        case .file(let path): try readFile(path, source, into: bytes)
        case .descriptor(let number):
            try readAll(FileDescriptor(rawValue: number), source, into: bytes)
        case .command(let command): try SecretCommand(command, source).run(into: bytes)
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
        if fstat(file.rawValue, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG,
            facts.st_mode & 0o077 != 0
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
