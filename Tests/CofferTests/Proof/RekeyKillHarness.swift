import Foundation
import Workload

@testable import Coffer

/// Kills a process that changes the key, at random moments, and checks what it left: one of the two
/// keys opens every row, the other none. It must be the new key if the process reported success.
///
/// Only a kill in the middle counts as a try: one that leaves a journal or a WAL behind. What other
/// kills leave is checked all the same.
struct RekeyKillHarness {
    let journalMode: Configuration.JournalMode
    /// For tests of tests: the engine changes the salt with the key.
    var changesSalt = false

    private static let rowCount = 1500
    private static let rowByteCount = 3000

    /// - Parameter killCount: The number of kills in the middle to reach.
    func run(killCount: Int, seed: UInt64) throws -> Tally {
        let folder = try TemporaryFolder()
        let original = folder.path("original.db")
        try make(original)
        var random = SeededGenerator(seed: seed)
        var tally = Tally()
        var otherCount = 0
        // Nearly all kills are in the middle, because the growth of the journal decides the moment.
        while tally.triedCount < killCount, otherCount < 10 + killCount {
            let place = "\(journalMode), kill \(tally.triedCount + otherCount) of seed \(seed)"
            let path = try folder.copy(original, as: "store.db")
            defer { removeStore(path) }
            let lines = try linesUntilKilled(path, using: &random)
            let isInterrupted = try FileLocation(path).hasPendingChanges
            let problems = check(path, isTold: lines.contains("rekeyed"), using: &random)
            if isInterrupted || !problems.isEmpty {
                tally.add(problems, place)
            } else {
                otherCount += 1
            }
        }
        if tally.triedCount < killCount {
            tally.addLate("\(journalMode), only \(tally.triedCount) kills came in the middle")
        }
        return tally
    }

    private func make(_ path: String) throws {
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(journalMode))
        try connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, v)")
        try connection.transaction {
            for _ in 0..<Self.rowCount {
                let filler = [UInt8](repeating: 3, count: Self.rowByteCount)
                try connection.execute("INSERT INTO t(v) VALUES (\(filler))")
            }
        }
        connection.close()
    }

    private func linesUntilKilled(
        _ path: String, using random: inout SeededGenerator
    ) throws -> [String] {
        let verb = changesSalt ? "rekey-with-salt" : "rekey"
        let peer = try Peer([verb, journalMode.description, path, "1", "2"])
        guard peer.line() == "ready" else { throw WorkloadError("the peer is not ready") }
        // In the end the journal or the WAL holds every page. One kill of eight comes after that.
        let part = Double.random(in: 0..<1.14, using: &random)
        let pause = UInt32.random(in: 0..<2000, using: &random)
        let byteCount = Int(Double(try Damage.byteCount(path)) * part)
        let (file, suffix) = (try FileLocation(path), journalMode == .wal ? "-wal" : "-journal")
        peer.goOn()
        let end = ContinuousClock.now + .seconds(10)
        var isBegun = false
        while ContinuousClock.now < end {
            let found = file.companionByteCount(suffix)
            if found > 0 { isBegun = true }
            if isBegun, found > byteCount || found == 0 { break }
            usleep(100)
        }
        usleep(pause)
        peer.kill()
        var lines: [String] = []
        while let line = peer.line() { lines.append(line) }
        return lines
    }

    private func check(
        _ path: String, isTold: Bool, using random: inout SeededGenerator
    ) -> [String] {
        var problems: [String] = []
        var keys: Set<UInt8> = []
        // Twice, because a file that is repaired as it is opened must open again.
        for _ in 0..<2 {
            for key in [UInt8(1), 2].shuffled(using: &random) {
                do {
                    problems += try contentProblems(path, key: key)
                    keys.insert(key)
                } catch let error as StoreError where error.code == .wrongKey {
                    if keys.contains(key) { problems.append("key \(key) opened once only") }
                } catch {
                    problems.append("key \(key): \(error)")
                }
            }
        }
        if keys.count != 1 { problems.append("keys that open: \(keys.sorted())") }
        if isTold, keys != [2] { problems.append("told of the new key, and \(keys) open") }
        return problems
    }

    private func contentProblems(_ path: String, key: UInt8) throws -> [String] {
        let connection = try Connection(
            path: path, key: .numbered(key), mode: .mustExist, configuration: .testing(journalMode))
        defer { connection.close() }
        let row = try connection.firstRow("SELECT count(*), sum(id), sum(length(v)) FROM t")
        let expected = [
            Self.rowCount, Self.rowCount * (Self.rowCount + 1) / 2,
            Self.rowCount * Self.rowByteCount,
        ]
        let isWhole = row?.values == expected.map { .integer(Int64($0)) }
        let found = try connection.firstRow("PRAGMA integrity_check")?.get(0, as: String.self)
        return (isWhole ? [] : ["rows: \(String(describing: row?.values))"])
            + (found == "ok" ? [] : ["integrity: \(found ?? "none")"])
    }
}
