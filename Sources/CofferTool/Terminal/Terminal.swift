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
    /// Whether progress and colours make sense. `NO_COLOR`: <https://no-color.org>.
    static let isInteractive = isatty(STDERR_FILENO) != 0

    static func fail(_ message: String, hint: String?) {
        say(painted("error:", .red) + " ", message)
        if let hint { say(painted("hint:", .blue) + " ", hint) }
    }

    static func warn(_ message: String) {
        say(painted("warning:", .yellow) + " ", message)
    }

    static func note(_ message: String) {
        say("", message)
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

    private static let isColoured =
        isInteractive && getenv("NO_COLOR") == nil
        && getenv("TERM").map { String(cString: $0) } != "dumb"

    private static func painted(_ text: String, _ colour: Colour) -> String {
        isColoured ? "\u{1b}[1;\(colour.rawValue)m\(text)\u{1b}[0m" : text
    }
}
