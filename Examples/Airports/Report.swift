import Foundation

/// Prints aligned lines; ends with a failure if a check failed.
struct Report {
    private var isFailed = false
    private let start = ContinuousClock.now

    func line(_ name: String, _ value: String) {
        let width = 44
        print(name.padding(toLength: max(width, name.count), withPad: " ", startingAt: 0), value)
    }

    func item(_ name: String, _ value: String) { line("    " + name, value) }

    func time<T>(_ name: String, _ work: () async throws -> T) async rethrows -> T {
        let begin = ContinuousClock.now
        let result = try await work()
        line(name, Self.milliseconds(since: begin))
        return result
    }

    mutating func check(_ name: String, _ isTrue: Bool) {
        line(name, isTrue ? "yes" : "NO")
        if !isTrue { isFailed = true }
    }

    func end() {
        line("all of it", Self.milliseconds(since: start))
        if isFailed { exit(1) }
    }

    private static func milliseconds(since begin: ContinuousClock.Instant) -> String {
        let parts = (ContinuousClock.now - begin).components
        let milliseconds = Double(parts.seconds) * 1e3 + Double(parts.attoseconds) / 1e15
        return String(format: "%9.1f ms", milliseconds)
    }
}
