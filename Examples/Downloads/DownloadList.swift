import Coffer
import Foundation

/// The downloads on the standard output, as the store has them.
///
/// A terminal shows a list that redraws itself; anything else gets a line when something changed.
/// The manager does not know that somebody looks: the list observes the store.
actor DownloadList {
    private let store: DownloadStore
    private let terminal = Terminal()
    private var token: ObservationToken?
    private var drawnCount = 0
    private var lastLine = ""

    init(_ store: DownloadStore) { self.store = store }

    /// Draws now, and after commits, ten times a second at most.
    func start() {
        token = store.observeSummary(rowCount: rowCount)
            .throttle(for: .milliseconds(terminal == nil ? 1000 : 100))
            .start { error in
                Terminal.write("list: \(error)\n")
            } onChange: { summary in
                self.draw(summary)
            }
    }

    /// Draws a last time. That list stays.
    func stop() async throws {
        token?.cancel()
        token = nil
        draw(try await store.summary(rowCount: rowCount))
        drawnCount = 0
    }

    private var rowCount: Int { terminal.map { max(1, $0.height - 3) } ?? 0 }

    private func draw(_ summary: Summary) {
        guard let terminal else {
            let line = Self.title(summary)
            if line != lastLine { Terminal.write(line + "\n") }
            lastLine = line
            return
        }
        let lines = [Self.title(summary)] + summary.rows.map { Self.line($0) }
        // Up to the first line of the last list, then each line over the old one, then the rest.
        let up = drawnCount > 0 ? "\u{1B}[\(drawnCount)A" : ""
        let text = lines.map { $0.prefix(terminal.width - 1) + "\u{1B}[K\n" }.joined()
        Terminal.write("\r" + up + text + "\u{1B}[J")
        drawnCount = lines.count
    }

    private static func title(_ summary: Summary) -> String {
        let counts = Download.State.allCases.compactMap { state in
            summary.counts[state].map { "\($0) \(state)" }
        }
        let bytes = String(
            format: "%.1f of %.1f MB", Double(summary.bytesDone) / 1e6,
            Double(summary.bytesTotal) / 1e6)
        return "\(bytes)  \(counts.joined(separator: ", "))"
    }

    private static func line(_ row: Summary.Row) -> String {
        let part = row.bytesTotal.map { Double(row.bytesDone) / Double(max(1, $0)) } ?? 0
        let full = Int((part * 20).rounded(.down))
        let bar =
            String(repeating: "#", count: min(20, full))
            + String(repeating: ".", count: max(0, 20 - full))
        let name = Terminal.visible(row.name).padding(toLength: 24, withPad: " ", startingAt: 0)
        var line = "\(name) [\(bar)] \(String(format: "%3d", Int(part * 100))) %  \(row.state)"
        if row.state == .failed, let reason = row.reason { line += ": \(Terminal.visible(reason))" }
        if row.state == .failed, row.nextTry != nil { line += ", attempt \(row.attempts + 1) soon" }
        return line
    }
}

/// The terminal of the standard output.
struct Terminal {
    let width: Int
    let height: Int

    /// Whether somebody sees the output.
    static var isThere: Bool { isatty(STDOUT_FILENO) == 1 }

    /// `nil` if the output goes elsewhere.
    init?() {
        guard Self.isThere else { return nil }
        var size = winsize()
        let isKnown = ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0
        (width, height) = isKnown ? (Int(size.ws_col), Int(size.ws_row)) : (80, 24)
    }

    /// Names and reasons come from servers: none of their characters may command the terminal.
    static func visible(_ text: String) -> String {
        let scalars = text.unicodeScalars.map { scalar -> Unicode.Scalar in
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator: "?"
            default: scalar
            }
        }
        return String(String.UnicodeScalarView(scalars))
    }

    /// `print` keeps what it prints while the output is no terminal.
    static func write(_ text: String) {
        try? FileHandle.standardOutput.write(contentsOf: Data(text.utf8))
    }
}
