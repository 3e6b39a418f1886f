import Foundation
import Testing
import Workload

@testable import Coffer
@testable import CofferReplica

/// Kills a process that replicates, at random moments, and restores what it has sent: each row that
/// it told of is there, none is missing before it, and a position has what it had when it was told.
struct ReplicaKillHarness {
    let journalMode: Configuration.JournalMode
    var work = ReplicatorWork.plain
    /// For tests of tests: the process tells of rows before the remote has them.
    var tellsEarly = false

    /// How often a remote is used: the more it holds, the longer a restore takes.
    private static let killCountOfRemote = 10

    private struct Told {
        let count: Int
        let position: ReplicaPosition?
    }

    func run(killCount: Int, seed: UInt64) async throws -> Tally {
        var random = SeededGenerator(seed: seed)
        var tally = Tally()
        while tally.triedCount < killCount {
            let count = min(Self.killCountOfRemote, killCount - tally.triedCount)
            try await runOnRemote(killCount: count, &tally, using: &random)
        }
        return tally
    }

    private func runOnRemote(
        killCount: Int, _ tally: inout Tally, using random: inout SeededGenerator
    ) async throws {
        let folder = try TemporaryFolder()
        try FileManager.default.createDirectory(
            at: folder.url.appending(path: "remote"), withIntermediateDirectories: false)
        try makeStore(folder.path())
        var told: [Told] = []
        for number in 0..<killCount {
            var problems: [String] = []
            for line in try linesUntilKilled(folder, using: &random) where line != "ready" {
                let words = line.split(separator: " ")
                guard words.count == 3, words[0] == "told", let count = Int(words[1]) else {
                    problems.append(line)
                    continue
                }
                told.append(Told(count: count, position: ReplicaPosition(String(words[2]))))
            }
            problems += await check(folder, told, using: &random)
            tally.add(problems, "\(journalMode), \(work), kill \(number)")
        }
    }

    private func makeStore(_ path: String) throws {
        let store = try Store(
            path: path, key: work.key(), configuration: .testing(journalMode))
        try store.write { tx in try tx.execute("CREATE TABLE t(n INTEGER PRIMARY KEY, b)") }
        try store.close()
    }

    private func linesUntilKilled(
        _ folder: TemporaryFolder, using random: inout SeededGenerator
    ) throws -> [String] {
        let peer = try Peer([
            "replicate", tellsEarly ? "early" : "truly", journalMode.description, folder.path(),
            work.rawValue, folder.path("remote"),
        ])
        var lines: [String] = []
        // One of eight is killed while it starts, or takes over.
        if Int.random(in: 0..<8, using: &random) > 0 {
            for _ in 0..<Int.random(in: 1...20, using: &random) {
                guard let line = peer.line() else { break }
                lines.append(line)
            }
            usleep(UInt32.random(in: 0...5000, using: &random))
        } else {
            usleep(UInt32.random(in: 0...200_000, using: &random))
        }
        peer.kill()
        while let line = peer.line() { lines.append(line) }
        return lines
    }

    /// Restores the newest commit, and one of the positions that were told.
    private func check(
        _ folder: TemporaryFolder, _ told: [Told], using random: inout SeededGenerator
    ) async -> [String] {
        guard let last = told.last else { return [] }
        var problems = await check(folder, .newest, atLeast: last.position, count: last.count)
        do {
            let kept = try await kept(told, folder)
            guard let any = kept.randomElement(using: &random) else {
                return problems + ["none of \(told.count) positions is kept"]
            }
            problems += await check(
                folder, .position(any.position), atLeast: nil, count: any.count, isExact: true)
        } catch {
            problems.append("\(error)")
        }
        return problems
    }

    /// The positions that were told and can be restored: without snapshots, that is all of them.
    private func kept(
        _ told: [Told], _ folder: TemporaryFolder
    ) async throws -> [(count: Int, position: ReplicaPosition)] {
        let told = told.compactMap { told in told.position.map { (told.count, $0) } }
        guard work == .maintained else { return told }
        let history = try await ReplicaHistory(
            of: FolderRemote(folder.path("remote")), key: work.key())
        let kept = Set(history.commits.map(\.position))
        return told.filter { kept.contains($0.1) }
    }

    private func check(
        _ folder: TemporaryFolder, _ moment: ReplicaMoment, atLeast: ReplicaPosition?, count: Int,
        isExact: Bool = false
    ) async -> [String] {
        let copy = folder.path("copy.db")
        defer {
            removeStore(copy)
            unlinkIfPresent(copy + Keyring.fileSuffix)
        }
        do {
            try await Store.restore(
                from: FolderRemote(folder.path("remote")), to: copy, key: work.key(), at: moment,
                atLeast: atLeast, configuration: .testing(journalMode))
            let numbers = try numbers(copy)
            guard numbers == Array(1...max(1, numbers.count)) else {
                return ["rows are missing among \(numbers.count)"]
            }
            guard isExact ? numbers.count == count : numbers.count >= count else {
                return ["told of \(count) rows, and \(numbers.count) are there"]
            }
            return []
        } catch {
            return ["\(error)"]
        }
    }

    private func numbers(_ path: String) throws -> [Int] {
        let store = try Store(
            path: path, key: work.key(), configuration: .testing(journalMode))
        defer { try? store.close() }
        return try store.read { tx in
            try tx.rows("SELECT n FROM t ORDER BY n").map { try $0.get(0) }
        }
    }
}
