import Foundation
import Testing

@testable import Coffer

/// What a harness has tried, and what came of it.
///
/// The harnesses return it instead of failing by themselves, so that a test can also expect them to
/// find something: each is run once with its guard switched off.
struct Tally: Sendable {
    var triedCount = 0
    /// What was lost, half there, or answered wrongly, in words.
    private(set) var problems: [String] = []

    /// Counts one more, with what was wrong about it.
    mutating func add(_ problems: [String], _ place: @autoclosure () -> String) {
        triedCount += 1
        let text = problems.isEmpty ? "" : place()
        if !problems.isEmpty { lostCount += 1 }
        self.problems += problems.map { "\(text): \($0)" }
    }

    /// Counts the last try as lost, for what showed only later.
    mutating func addLate(_ problem: String) {
        lostCount += 1
        problems.append(problem)
    }

    private(set) var lostCount = 0
    var survivedCount: Int { triedCount - lostCount }

    /// Fails the test for each problem, and adds the counts to what `make proof` collects.
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

    /// One line, appended in one write: the harnesses run beside each other.
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
    /// What the engine's own check of the file found, in words.
    func integrityProblems() throws -> [String] {
        let found = try firstRow("PRAGMA integrity_check")?.get(0, as: String.self)
        return found == "ok" ? [] : ["integrity: \(found ?? "none")"]
    }
}

/// One way of keeping a store: what the harnesses go through.
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
