import Foundation
import Testing
import Workload

@testable import Coffer

/// Kills a process that writes, at random moments, and checks the store: each write that the
/// process reported is there, and none is half done.
struct KillHarness {
    let keeping: Keeping
    /// For tests of tests: the process reports its writes before it commits them.
    var tellsEarly = false

    /// How often a file is used: the more it holds, the longer a check takes.
    private static let killCountOfFile = 25

    func run(killCount: Int, seed: UInt64) throws -> Tally {
        var random = SeededGenerator(seed: seed)
        var tally = Tally()
        while tally.triedCount < killCount {
            let count = min(Self.killCountOfFile, killCount - tally.triedCount)
            try runOnFile(killCount: count, &tally, using: &random)
        }
        return tally
    }

    private func runOnFile(
        killCount: Int, _ tally: inout Tally, using random: inout SeededGenerator
    ) throws {
        let folder = try TemporaryFolder()
        let path = folder.path()
        let store = try Store(path: path, key: .numbered(1), configuration: keeping.configuration())
        try store.write { tx in try Ledger.create(tx) }
        try store.close()
        /// The last reported write of each worker.
        var told = [Int](repeating: 0, count: Ledger.workerCount)
        var uncheckedCount = 0
        for number in 0..<killCount {
            var problems: [String] = []
            for line in try linesUntilKilled(path, using: &random) where line != "ready" {
                let words = line.split(separator: " ").compactMap { Int($0) }
                guard words.count == 2, told.indices.contains(words[0]) else {
                    problems.append(line)
                    continue
                }
                told[words[0]] = max(told[words[0]], words[1])
            }
            uncheckedCount += 1
            // Sometimes the next process recovers what this one left, and is killed during that.
            if number % 4 != 2 || number == killCount - 1 {
                problems += try check(path, &told, uncheckedCount)
                uncheckedCount = 0
            }
            tally.add(problems, "\(keeping), kill \(number)")
        }
    }

    private func linesUntilKilled(
        _ path: String, using random: inout SeededGenerator
    ) throws -> [String] {
        let durability = keeping.durability == .power ? "power" : "process"
        let peer = try Peer([
            "ledger", tellsEarly ? "early" : "truly", path, "1", keeping.journalMode.description,
            durability,
        ])
        var lines: [String] = []
        // One of eight is killed while it starts or opens the file.
        if Int.random(in: 0..<8, using: &random) > 0 {
            for _ in 0..<Int.random(in: 1...40, using: &random) {
                guard let line = peer.line() else { break }
                lines.append(line)
            }
            usleep(UInt32.random(in: 0...3000, using: &random))
        } else {
            usleep(UInt32.random(in: 0...60_000, using: &random))
        }
        peer.kill()
        while let line = peer.line() { lines.append(line) }
        return lines
    }

    private func check(
        _ path: String, _ told: inout [Int], _ uncheckedCount: Int
    ) throws -> [String] {
        let store = try Store(
            path: path, key: .numbered(1), mode: .mustExist, configuration: keeping.configuration())
        let (contents, integrityProblems) = try store.read { tx in
            (try Ledger.contents(tx), try tx.integrityProblems())
        }
        try store.close()
        var problems = contents.problems + integrityProblems
        for worker in told.indices {
            let numbers = contents.entries.filter { $0.worker == worker }.map(\.number)
            let last = contents.count(of: worker)
            if numbers.count != last { problems.append("worker \(worker) has only \(numbers)") }
            if last < told[worker] {
                problems.append("worker \(worker) told of \(told[worker]), and \(last) are there")
            }
            // Each process may have committed one write that it had no time to report.
            if last > told[worker] + uncheckedCount {
                problems.append("worker \(worker) told of \(told[worker]), but \(last) are there")
            }
            told[worker] = last
        }
        return problems
    }
}
