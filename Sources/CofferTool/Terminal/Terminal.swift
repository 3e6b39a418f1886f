import Synchronization
import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Messages for people. They go to standard error only, so that standard output has only data.
///
/// Errors are lower case and have no full stop. The hint comes on its own line.
enum Terminal {
    /// Whether messages go to a terminal that erases lines, so that progress makes sense. A
    /// terminal without a type, or of the type `dumb`, does not.
    static let isInteractive =
        isatty(STDERR_FILENO) != 0
        && getenv("TERM").map { !["", "dumb"].contains(String(cString: $0)) } == true

    static func fail(_ failure: Failure) {
        guard !messages.withLock({ $0?.setError(failure) != nil }) else { return }
        say(painted("error:", .red) + " ", failure.message)
        if let hint = failure.hint { say(painted("hint:", .blue) + " ", hint) }
    }

    static func warn(_ message: String) {
        guard !messages.withLock({ $0?.warnings.append(message) != nil }) else { return }
        say(painted("warning:", .yellow) + " ", message)
    }

    /// Runs work that follows a change. Its error is only a warning, because an exit code would say
    /// that the change was not made.
    static func warning(_ work: () throws -> Void) {
        do { try work() } catch { warn(Failure(error).message) }
    }

    static func note(_ message: String) {
        guard !messages.withLock({ $0?.notes.append(message) != nil }) else { return }
        say("", message)
    }

    // MARK: JSON

    /// What standard error gets as one object at the end, if the user wants JSON.
    private struct Messages: Encodable {
        var warnings: [String] = []
        var notes: [String] = []
        private(set) var error: Failure?

        /// Whether they are written, or being written.
        var isEnded = false

        var isEmpty: Bool { warnings.isEmpty && notes.isEmpty && error == nil }

        private enum CodingKeys: CodingKey { case warnings, notes, error }

        /// Keeps the first error, which is the cause of the others.
        mutating func setError(_ failure: Failure) {
            error = error ?? failure
        }
    }

    /// `nil` if messages are written at once, as lines for people.
    private static let messages = Mutex<Messages?>(nil)

    /// Whether messages wait.
    static var isJSON: Bool { messages.withLock { $0 != nil } }

    /// From now on messages wait until `writeMessages()`.
    static func collectMessages() {
        messages.withLock { $0 = Messages() }
    }

    /// Forgets the messages of a run that has ended.
    static func forgetMessages() {
        messages.withLock { $0 = nil }
    }

    /// Writes the messages that wait, if there are any. Must be called before the process ends.
    ///
    /// - Returns: `false` if another thread has begun to write them, and so decides the exit code.
    @discardableResult
    static func writeMessages(endingWith failure: Failure? = nil) -> Bool {
        let (isFirst, waiting) = messages.withLock { messages in
            guard var all = messages else { return (true, Messages?.none) }
            guard !all.isEnded else { return (false, nil) }
            if let failure { all.setError(failure) }
            all.isEnded = true
            messages = all
            return (true, all)
        }
        if let waiting, !waiting.isEmpty { write(JSON.object(waiting)) }
        return isFirst
    }

    /// Writes one line, whatever the message contains: paths, names and SQL may come from others.
    private static func say(_ kind: String, _ message: String) {
        writeRaw("coffer: \(kind)\(VisibleText.of(message))\n")
    }

    /// Writes lines unchanged, except for characters that a terminal would interpret.
    static func write(_ lines: String) {
        writeRaw(VisibleText.of(lines, keeping: ["\n"]) + "\n")
    }

    /// Ignores errors: an unreadable message is not a reason to fail.
    static func writeRaw(_ text: String) {
        _ = try? FileDescriptor.standardError.writeAll(Array(text.utf8))
    }

    /// The columns of the terminal; 80 if it does not tell.
    static var width: Int {
        var size = winsize()
        guard ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
        return Int(size.ws_col)
    }

    // MARK: Colours

    enum Colour: Int {
        case red = 31
        case yellow = 33
        case blue = 34
    }

    /// `NO_COLOR`: <https://no-color.org>.
    private static let isColoured = isInteractive && getenv("NO_COLOR") == nil

    private static func painted(_ text: String, _ colour: Colour) -> String {
        isColoured ? "\u{1b}[1;\(colour.rawValue)m\(text)\u{1b}[0m" : text
    }
}
