import Foundation

/// Prints aligned lines; ends with a failure if a check failed.
public struct Report {
    private var isFailed = false
    private let start = ContinuousClock.now
    private var last = ContinuousClock.now

    public init() {}

    public mutating func line(_ name: String, _ value: String) {
        let width = 56
        print(name.padding(toLength: max(width, name.count), withPad: " ", startingAt: 0), value)
        last = .now
    }

    public mutating func item(_ name: String, _ value: String) { line("    " + name, value) }

    /// Prints how long it took since the last line.
    public mutating func lap(_ name: String) {
        line(name, Self.milliseconds(since: last))
        last = .now
    }

    public mutating func check(_ name: String, _ isTrue: Bool) {
        line(name, isTrue ? "yes" : "NO")
        if !isTrue { isFailed = true }
    }

    public mutating func end() {
        line("all of it", Self.milliseconds(since: start))
        if isFailed { exit(1) }
    }

    private static func milliseconds(since begin: ContinuousClock.Instant) -> String {
        let parts = (ContinuousClock.now - begin).components
        let milliseconds = Double(parts.seconds) * 1e3 + Double(parts.attoseconds) / 1e15
        return String(format: "%9.1f ms", milliseconds)
    }
}
