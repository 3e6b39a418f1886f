import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// What is said to a person: standard error only, so that standard output carries nothing but data.
///
/// Errors are lower case and have no full stop; what to do comes on a line of its own.
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

    /// A line of its own, whatever the message holds: paths, names and SQL may come from others.
    private static func say(_ kind: String, _ message: String) {
        writeRaw("coffer: \(kind)\(VisibleText.of(message))\n")
    }

    /// Writes lines as they are, but for what a terminal would obey.
    static func write(_ lines: String) {
        writeRaw(VisibleText.of(lines, keeping: ["\n"]) + "\n")
    }

    /// That nobody can read it is no reason to fail.
    static func writeRaw(_ text: String) {
        _ = try? FileDescriptor.standardError.writeAll(Array(text.utf8))
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
