import Foundation
import Testing

@testable import Coffer

/// How often a harness tried, and what it found.
///
/// The harnesses return it instead of failing by themselves, so that a test can also expect them to
/// find something: each is run once with its guard switched off.
struct Tally: Sendable {
    var triedCount = 0
    /// Descriptions of what was lost, half done, or answered wrongly.
    private(set) var problems: [String] = []

    /// Counts one more try, with its problems.
    mutating func add(_ problems: [String], _ place: @autoclosure () -> String) {
        triedCount += 1
        let text = problems.isEmpty ? "" : place()
        if !problems.isEmpty { lostCount += 1 }
        self.problems += problems.map { "\(text): \($0)" }
    }

    /// Counts the last try as lost, for a problem that showed only later.
    mutating func addLate(_ problem: String) {
        lostCount += 1
        problems.append(problem)
    }

    private(set) var lostCount = 0
    var survivedCount: Int { triedCount - lostCount }

    /// Fails the test for each problem, and adds the counts to those that `make proof` collects.
    func expectNothingLost(
        _ harness: String, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        for problem in problems.prefix(10) {
            Issue.record("\(harness): \(problem)", sourceLocation: sourceLocation)
        }
        if problems.count > 10 {
            Issue.record("\(harness): \(problems.count) problems", sourceLocation: sourceLocation)
        }
        try report(harness)
    }

    /// Appends one line in one write, because the harnesses run concurrently.
    private func report(_ harness: String) throws {
        guard let path = ProcessInfo.processInfo.environment["COFFER_PROOF"] else { return }
        let engine = try Engine.capabilities.cipherVersion
        let line = "\(harness)\t\(engine)\t\(triedCount)\t\(survivedCount)\t\(lostCount)\n"
        let descriptor = open(path, O_WRONLY | O_APPEND | O_CREAT, 0o644)
        guard descriptor >= 0 else { throw CocoaError(.fileWriteUnknown) }
        defer { close(descriptor) }
        try #require(write(descriptor, line, line.utf8.count) == line.utf8.count)
    }
}

/// How often a harness tries; the thread sanitizer makes everything some ten times slower.
func tryCount(_ count: Int, long: Int) -> Int {
    #if COFFER_TSAN
    return max(count / 10, 2)
    #else
    return isLongRun ? long : count
    #endif
}

extension Reading where Self: ~Copyable {
    /// The problems that the engine's own check of the file found.
    func integrityProblems() throws -> [String] {
        let found = try firstRow("PRAGMA integrity_check")?.get(0, as: String.self)
        return found == "ok" ? [] : ["integrity: \(found ?? "none")"]
    }
}

/// A combination of journal mode and durability; the harnesses try all of them.
struct Keeping: Sendable, CustomStringConvertible, CustomTestStringConvertible {
    let journalMode: Configuration.JournalMode
    let durability: Configuration.Durability

    static let all: [Keeping] = journalModes.flatMap { mode in
        [.power, .process].map { Keeping(journalMode: mode, durability: $0) }
    }

    var description: String {
        "\(journalMode.description.uppercased()) \(durability == .power ? "FULL" : "NORMAL")"
    }

    var testDescription: String { description }

    func configuration(_ disk: FaultDisk? = nil) -> Configuration {
        var configuration = Configuration.testing(journalMode)
        configuration.durability = durability
        configuration.vfs = disk?.name
        return configuration
    }
}
