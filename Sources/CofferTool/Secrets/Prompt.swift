import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Asks a person on the terminal, without showing the typed text.
///
/// The terminal is `/dev/tty`, whatever standard input and output are, so that they remain free to
/// carry data through a pipe.
enum Prompt {
    /// Asks once for each prompt; all answers must be the same.
    ///
    /// - Parameters:
    ///   - form: The form of the answer, which chooses the options to name without a terminal.
    ///   - bytes: Filled from the start with the answer. It also holds the further answers, one
    ///     after the other, so that they too are locked and wiped.
    static func read(
        _ prompts: [String], for form: SecretSource.Form,
        into bytes: UnsafeMutableRawBufferPointer
    ) throws -> Int {
        let (secret, hint) =
            switch form {
            case .rootBackup:
                ("root backup", "Name its source: --root-backup-file or --root-backup-fd.")
            case .recoveryKey: ("recovery key", "Name its source: --recovery-key-fd.")
            default:
                prompts.count > 1
                    ? (
                        "new passphrase",
                        "Name its source: --new-passphrase-file, for the first passphrase of a "
                            + "store --passphrase-file, or another option or variable that --help "
                            + "lists."
                    )
                    : (
                        "passphrase",
                        "Name its source: --passphrase-file or another option that --help lists, "
                            + "or a variable such as COFFER_PASSPHRASE_FILE."
                    )
            }
        let terminal = try terminal("to ask for the \(secret)", hint: hint)
        defer { try? terminal.close() }
        return try withoutEcho(terminal) {
            let room = bytes.count / prompts.count
            var counts: [Int] = []
            for (index, prompt) in prompts.enumerated() {
                _ = try? terminal.writeAll(VisibleText.of(prompt).utf8)
                defer { _ = try? terminal.writeAll("\n".utf8) }
                let part = UnsafeMutableRawBufferPointer(rebasing: bytes[(index * room)...])
                counts.append(try line(terminal, into: part))
                guard counts[index] == counts[0],
                    part[..<counts[0]].elementsEqual(bytes[..<counts[0]])
                else { throw ToolError(.secretSource, "the two passphrases differ") }
            }
            return counts[0]
        }
    }

    /// Opens the terminal.
    ///
    /// - Parameter shown: What it is to show.
    static func terminal(toShow shown: String, hint: String) throws -> FileDescriptor {
        try terminal("to show \(shown)", hint: hint)
    }

    private static func terminal(_ use: String, hint: String) throws -> FileDescriptor {
        do {
            return try FileDescriptor.open("/dev/tty", .readWrite, options: [.closeOnExec])
        } catch {
            throw ToolError(
                .secretSource, "there is no terminal on which \(use)", hint: hint)
        }
    }

    private static func withoutEcho<T>(
        _ terminal: FileDescriptor, _ work: () throws -> T
    ) throws -> T {
        let number = terminal.rawValue
        var settings = termios()
        guard tcgetattr(number, &settings) == 0 else {
            throw ToolError(.secretSource, "the terminal's echo cannot be turned off")
        }
        let before = settings
        hide(&settings)
        let restore = { @Sendable [before] in
            var before = before
            _ = tcsetattr(number, TCSAFLUSH, &before)
        }
        return try Signals.restoring(restore) {
            guard tcsetattr(number, TCSAFLUSH, &settings) == 0 else {
                throw ToolError(
                    .secretSource, "the terminal's echo cannot be turned off")
            }
            return try work()
        }
    }

    fileprivate static func hide(_ settings: inout termios) {
        settings.c_lflag &= ~tcflag_t(ECHO)
        // Ctrl-Z would return to the shell with the terminal's echo still off.
        withUnsafeMutableBytes(of: &settings.c_cc) { $0[Int(VSUSP)] = disabledCharacter }
    }

    /// Reads up to the newline, which is not part of the answer.
    private static func line(
        _ terminal: FileDescriptor, into bytes: UnsafeMutableRawBufferPointer
    ) throws -> Int {
        var count = 0
        while count < bytes.count {
            let room = UnsafeMutableRawBufferPointer(rebasing: bytes[count..<count + 1])
            guard try terminal.read(into: room) == 1, room[0] != 10 else { return count }
            count += 1
        }
        throw ToolError(.secretSource, "the passphrase is too long")
    }

    /// `_POSIX_VDISABLE`, which Swift does not import.
    #if canImport(Darwin)
    private static let disabledCharacter: UInt8 = 0xff
    #else
    private static let disabledCharacter: UInt8 = 0
    #endif
}

/// Keeps the terminal from showing typed text between two prompts, because somebody who knows the
/// next prompt may type a passphrase ahead.
final class HiddenTyping {
    private var isEnded = false

    /// - Returns: `nil` without a terminal.
    init?() {
        guard
            let terminal = try? FileDescriptor.open(
                "/dev/tty", .readWrite, options: [.closeOnExec])
        else { return nil }
        var settings = termios()
        guard tcgetattr(terminal.rawValue, &settings) == 0 else {
            try? terminal.close()
            return nil
        }
        let before = settings
        Signals.willRestore { [before] in
            var before = before
            _ = tcsetattr(terminal.rawValue, TCSAFLUSH, &before)
            try? terminal.close()
        }
        Prompt.hide(&settings)
        _ = tcsetattr(terminal.rawValue, TCSANOW, &settings)
    }

    /// Shows typed text again, and discards text that was typed before.
    func end() {
        guard !isEnded else { return }
        isEnded = true
        Signals.restore()
    }

    deinit {
        end()
    }
}
