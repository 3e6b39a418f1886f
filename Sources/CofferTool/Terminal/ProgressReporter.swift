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
    private let state = Mutex(State())

    private struct State {
        /// The time of the first update, and what was done by then: a step of several may begin
        /// long after the run.
        var start: (time: ContinuousClock.Instant, done: Int)?
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
        let start: (time: ContinuousClock.Instant, done: Int)? = state.withLock { state in
            // If less is done than at the start, a retry began the step over: time it from now.
            if done < state.start?.done ?? .max { state.start = (now, done) }
            if let shown = state.shown, now - shown < .milliseconds(100), done != total {
                return nil
            }
            state.shown = now
            state.isLineOpen = style == .bar
            return state.start
        }
        guard let start else { return }
        show(
            ProgressLine(
                verb: verb, unit: unit, done: done, total: total, elapsed: now - start.time,
                doneBefore: start.done))
    }

    /// Erases the bar, so that the next line starts at the left.
    func finish() {
        let wasOpen = state.withLock { state in
            defer { state.isLineOpen = false }
            return state.isLineOpen
        }
        if wasOpen { Terminal.writeRaw("\r\u{1b}[K") }
    }

    /// A line of JSON.
    struct Line: Encodable {
        let progress: String
        let done: Int
        let total: Int?
        let unit: String
        let perSecond: Double?
        let secondsLeft: Int?

        init(_ line: ProgressLine) {
            progress = line.verb
            done = line.done
            total = line.total
            unit = line.unit
            perSecond = line.perSecond.map { ($0 * 10).rounded() / 10 }
            secondsLeft = line.secondsLeft
        }
    }

    private func show(_ line: ProgressLine) {
        style == .json
            ? Terminal.write(JSON.object(Line(line)))
            : Terminal.writeRaw("\r\u{1b}[K\(line.text(width: Terminal.width))")
    }
}
