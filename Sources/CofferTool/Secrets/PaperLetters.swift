import Coffer
import SystemPackage

/// The letters of a recovery key or a root backup, which leave the tool in one of two ways: on the
/// terminal, or in a new file that only its owner may read.
enum PaperLetters {
    /// How often a person may type a recovery key before the letters are given up.
    private static let tryCount = 3

    /// Shows the letters of a recovery key on the terminal, and asks for them. After a slip, asks
    /// again.
    ///
    /// - Returns: The letters that the person has typed last. The caller wipes them.
    static func askBack(_ letters: UnsafeRawBufferPointer, title: String) throws -> [UInt8] {
        try show(letters, title: title)
        var leftCount = tryCount
        while true {
            let typed = try StoreKey(isPassphrase: true, maximumByteCount: 256) { bytes in
                try Prompt.read(["Type it from the paper: "], for: .recoveryKey, into: bytes)
            }
            leftCount -= 1
            if leftCount == 0 || isRecoveryKey(typed) { return typed.withBytes { Array($0) } }
            Terminal.warn("there is a slip in it: compare it with the paper, and type it again")
        }
    }

    private static func isRecoveryKey(_ typed: borrowing StoreKey) -> Bool {
        do {
            _ = try typed.credential(of: .recoveryKey)
            return true
        } catch {
            return false
        }
    }

    /// Shows the letters on the terminal.
    static func show(_ letters: UnsafeRawBufferPointer, title: String) throws {
        let terminal = try Prompt.terminal(
            toShow: "the letters", hint: "Name a new file for them instead.")
        defer { try? terminal.close() }
        do {
            try terminal.writeAll("\(VisibleText.of(title)):\n\n  ".utf8)
            try terminal.writeAll(letters)
            try terminal.writeAll("\n\n".utf8)
        } catch {
            throw ToolError(.secretSource, "the letters cannot be shown: \(error)")
        }
    }

    /// Writes the letters and a newline to a new file.
    static func write(_ letters: UnsafeRawBufferPointer, to path: String) throws {
        let line = StoreKey(isPassphrase: true, maximumByteCount: letters.count + 1) { line in
            line.copyMemory(from: letters)
            line[letters.count] = UInt8(ascii: "\n")
            return letters.count + 1
        }
        try line.withBytes { try SecretFile.write($0, to: path) }
    }
}
