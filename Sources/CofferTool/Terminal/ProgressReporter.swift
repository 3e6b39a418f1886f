import ArgumentParser
import Foundation
import Synchronization

/// How progress is shown.
enum ProgressStyle: String, ExpressibleByArgument, CaseIterable {
    /// A bar on a terminal, nothing elsewhere.
    case auto
    case bar
    /// One JSON object per line, on standard error.
    case json
    case none
}

/// Shows the progress of a long run, at most ten times a second.
final class ProgressReporter: Sendable {
    private let style: ProgressStyle
    private let verb: String
    private let unit: String
    private let start = ContinuousClock.now
    private let state = Mutex(State())

    private struct State {
        var shown: ContinuousClock.Instant?
        var isLineOpen = false
    }

    init(style: ProgressStyle, verb: String, unit: String) {
        self.style = style == .auto ? (Terminal.isInteractive ? .bar : .none) : style
        self.verb = verb
        self.unit = unit
    }

    var isShown: Bool { style != .none }

    /// - Parameter total: `nil` if it is unknown.
    func update(_ done: Int, of total: Int?) {
        guard style != .none else { return }
        let now = ContinuousClock.now
        let isDue = state.withLock { state in
            if let shown = state.shown, now - shown < .milliseconds(100), done != total {
                return false
            }
            state.shown = now
            state.isLineOpen = style == .bar
            return true
        }
        guard isDue else { return }
        style == .json ? writeJSON(done, total) : drawBar(done, total, elapsed: now - start)
    }

    /// Erases the bar, so that the next line starts at the left.
    func finish() {
        let wasOpen = state.withLock { state in
            defer { state.isLineOpen = false }
            return state.isLineOpen
        }
        if wasOpen { Terminal.writeRaw("\r\u{1b}[K") }
    }

    private struct Line: Encodable {
        let progress: String
        let done: Int
        let total: Int?
        let unit: String
    }

    private func writeJSON(_ done: Int, _ total: Int?) {
        Terminal.write(JSON.object(Line(progress: verb, done: done, total: total, unit: unit)))
    }

    private func drawBar(_ done: Int, _ total: Int?, elapsed: Duration) {
        let line = ProgressLine(
            verb: verb, unit: unit, done: done, total: total, elapsed: elapsed)
        Terminal.writeRaw("\r\u{1b}[K\(line.text(width: Terminal.width))")
    }
}
