import Foundation
import Workload

@testable import Coffer

/// Kills a process that compacts a store, at random moments, and checks what it left: every row,
/// and a file that another compaction makes shorter.
struct CompactKillHarness {
    let journalMode: Configuration.JournalMode

    private static let rowCount = 1200
    private static let rowByteCount = 3000

    func run(killCount: Int, seed: UInt64) throws -> Tally {
        let folder = try TemporaryFolder()
        let original = folder.path("original.db")
        try make(original)
        let whole = try duration(of: folder.copy(original, as: "store.db"))
        var random = SeededGenerator(seed: seed)
        var tally = Tally()
        for number in 0..<killCount {
            let path = try folder.copy(original, as: "store.db")
            defer { removeStore(path) }
            let pause = Double.random(in: 0..<1.05, using: &random) * whole
            let isTold = try killed(path, after: .seconds(pause))
            tally.add(
                problems(path, isTold: isTold), "\(journalMode), kill \(number) of seed \(seed)")
        }
        return tally
    }

    private func make(_ path: String) throws {
        let store = try Store(
            path: path, key: .numbered(1), configuration: .testing(journalMode))
        try store.write { tx in
            try tx.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, v, w UNIQUE)")
            for number in 0..<Self.rowCount {
                let filler = [UInt8](repeating: 3, count: Self.rowByteCount)
                try tx.execute("INSERT INTO t(v, w) VALUES (\(filler), \(number))")
            }
        }
        try store.write { tx in try tx.execute("DELETE FROM t WHERE id % 3 <> 0") }
        try store.close()
    }

    /// Seconds that a compaction takes which is not killed.
    private func duration(of path: String) throws -> Double {
        defer { removeStore(path) }
        let peer = try Peer(["compact", journalMode.description, path, "1"])
        guard peer.line() == "ready" else { throw WorkloadError("the peer is not ready") }
        let start = ContinuousClock.now
        guard peer.finish() == ["compacted"] else { throw WorkloadError("it was not compacted") }
        return (ContinuousClock.now - start) / .seconds(1)
    }

    /// - Returns: Whether the process said that it was done.
    private func killed(_ path: String, after pause: Duration) throws -> Bool {
        let peer = try Peer(["compact", journalMode.description, path, "1"])
        guard peer.line() == "ready" else { throw WorkloadError("the peer is not ready") }
        let end = ContinuousClock.now + pause
        while ContinuousClock.now < end { usleep(200) }
        peer.kill()
        var isTold = false
        while let line = peer.line() { if line == "compacted" { isTold = true } }
        return isTold
    }

    private func problems(_ path: String, isTold: Bool) -> [String] {
        do {
            let byteCount = try Damage.byteCount(path)
            let store = try Store(
                path: path, key: .numbered(1), mode: .mustExist,
                configuration: .testing(journalMode))
            defer { try? store.close() }
            var problems = try contentProblems(store)
            if isTold, byteCount > Self.rowCount * Self.rowByteCount / 2 {
                problems.append("told of the end, and the file has \(byteCount) bytes")
            }
            try store.compact()
            return problems + (try contentProblems(store))
        } catch {
            return ["\(error)"]
        }
    }

    private func contentProblems(_ store: Store) throws -> [String] {
        let row = try store.read { tx in
            try tx.firstRow("SELECT count(*), sum(id), sum(length(v)), sum(w) FROM t")?.values
        }
        let count = Self.rowCount / 3
        let sum = 3 * count * (count + 1) / 2
        let expected = [count, sum, count * Self.rowByteCount, sum - count]
        let isWhole = row == expected.map { .integer(Int64($0)) }
        let report = try store.verify()
        return (isWhole ? [] : ["rows: \(String(describing: row))"])
            + (report.isGood ? [] : ["verification: \(report.problems)"])
    }
}
