import Foundation
import Workload

@testable import Coffer

/// Kills a process that compacts a store, and checks what it left: every row, in the old pages or
/// the new ones, and nothing that another compaction does not remove.
struct CompactKillHarness {
    let journalMode: Configuration.JournalMode
    /// For tests of tests: a store that cannot undo what it has written.
    var lacksJournal = false

    // MARK: At random moments

    func run(killCount: Int, seed: UInt64) throws -> Tally {
        let store = try SparseStore(journalMode, rowCount: 400, rowByteCount: 3000)
        let whole = try duration(of: store.copy())
        var random = SeededGenerator(seed: seed)
        var tally = Tally()
        for number in 0..<killCount {
            let folder = try store.copy()
            let pause = Double.random(in: 0..<1.05, using: &random) * whole
            let isDone = try killed(folder, after: .seconds(pause))
            tally.add(
                store.problems(folder, isDone: isDone),
                "\(journalMode), kill \(number) of seed \(seed)")
        }
        return tally
    }

    private func begin(_ folder: TemporaryFolder) throws -> Peer {
        let peer = try Peer(["compact", journalMode.description, folder.path(), "1"])
        guard peer.line() == "ready" else { throw WorkloadError("the peer is not ready") }
        peer.goOn()
        return peer
    }

    /// Seconds that a compaction takes which is not killed.
    private func duration(of folder: TemporaryFolder) throws -> Double {
        let peer = try begin(folder)
        let start = ContinuousClock.now
        guard peer.finish() == ["compacted"] else { throw WorkloadError("it was not compacted") }
        return (ContinuousClock.now - start) / .seconds(1)
    }

    /// - Returns: Whether the process said that it was done.
    private func killed(_ folder: TemporaryFolder, after pause: Duration) throws -> Bool {
        let peer = try begin(folder)
        let end = ContinuousClock.now + pause
        while ContinuousClock.now < end { usleep(200) }
        peer.kill()
        var isDone = false
        while let line = peer.line() { if line == "compacted" { isDone = true } }
        return isDone
    }

    // MARK: At each step

    /// Kills at each report of progress. The last one comes after the commit, before the WAL is
    /// moved into the file.
    ///
    /// - Parameter killCountMax: If there are more reports, equal parts of them are left out, but
    ///   neither the first nor the last of a step.
    func runAtSteps(killCountMax: Int) throws -> Tally {
        // So many rows that the copy reports too, and so large that pages are replaced in several
        // steps.
        let store = try SparseStore(journalMode, rowCount: 3000, rowByteCount: 4200)
        let reports = try self.reports(of: store.copy())
        let replaced = reports.count { $0.hasPrefix("replacingPages") }
        let steps = Set(reports.compactMap { $0.split(separator: " ").first })
        let isLast = reports.last?.split(separator: " ")
        guard replaced >= 4, isLast?.count == 3, isLast?[1] == isLast?[2],
            steps == ["copyingPages", "verifyingPages", "verifyingRows", "replacingPages"]
        else { throw WorkloadError("\(reports)") }
        var tally = Tally()
        for number in chosen(reports, killCountMax) {
            let folder = try store.copy()
            let isLast = number == reports.count - 1
            var problems = try kill(folder, at: number, reports)
            let names = try store.names(in: folder)
            if !names.contains(where: { $0.contains(".new-") }) {
                problems.append("there is no unfinished file")
            }
            if isLast, journalMode == .wal, !names.contains("store.db-wal") {
                problems.append("there is no WAL")
            }
            tally.add(
                problems + store.problems(folder, isDone: isLast),
                "\(journalMode), killed at \(reports[number])")
        }
        return tally
    }

    private func chosen(_ reports: [String], _ countMax: Int) -> [Int] {
        func step(_ number: Int) -> Substring? { reports[number].split(separator: " ").first }
        let ends = reports.indices.filter { number in
            number == 0 || number == reports.count - 1 || step(number - 1) != step(number)
                || step(number + 1) != step(number)
        }
        let others = reports.indices.filter { !ends.contains($0) }
        let part = max(1, others.count / max(1, countMax - ends.count))
        return (ends + others.indices.filter { $0 % part == 0 }.map { others[$0] }).sorted()
    }

    private func reports(of folder: TemporaryFolder) throws -> [String] {
        let peer = try Peer(["compact-stepwise", journalMode.description, folder.path(), "1"])
        var reports: [String] = []
        while let line = peer.line(), line != "compacted" {
            reports.append(line)
            peer.goOn()
        }
        return reports
    }

    private func kill(
        _ folder: TemporaryFolder, at number: Int, _ reports: [String]
    ) throws -> [String] {
        let peer = try Peer(["compact-stepwise", journalMode.description, folder.path(), "1"])
        var found: [String?] = []
        for _ in 0..<number {
            found.append(peer.line())
            peer.goOn()
        }
        found.append(peer.line())
        peer.kill()
        return found == Array(reports.prefix(number + 1)) ? [] : ["reports: \(found)"]
    }

    // MARK: At operations of the disk

    /// Kills before operations of the disk that change a file: before all, if there are no more.
    /// The seed chooses them from equal parts of the whole.
    func runAtOperations(killCount: Int, seed: UInt64) throws -> Tally {
        let store = try SparseStore(journalMode, rowCount: 100, rowByteCount: 3000)
        func lines(_ folder: TemporaryFolder, _ skipCount: Int) throws -> [String] {
            let mode = lacksJournal ? "memory" : journalMode.description
            return try Peer.run(
                ["compact-struck", "\(skipCount)", mode, folder.path(), "1"])
        }
        let whole = try lines(store.copy(), -1)
        guard whole.count == 2, let operationCount = Int(whole[0]), operationCount > 200 else {
            throw WorkloadError("\(whole)")
        }
        var random = SeededGenerator(seed: seed)
        var tally = Tally()
        let count = min(killCount, operationCount)
        for number in 0..<count {
            let part = number * operationCount / count..<(number + 1) * operationCount / count
            let skipCount = Int.random(in: part, using: &random)
            let folder = try store.copy()
            let said = try lines(folder, skipCount)
            // The number of operations may differ by some.
            let isDone = said.last == "compacted"
            tally.add(
                (said.isEmpty || isDone ? [] : ["said \(said)"])
                    + store.problems(folder, isDone: isDone),
                "\(journalMode), killed before operation \(skipCount) of \(operationCount)")
        }
        return tally
    }
}
