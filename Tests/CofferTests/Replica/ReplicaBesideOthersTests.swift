import Foundation
import Synchronization
import Testing
import Workload

@testable import Coffer
@testable import CofferReplica

/// Programs that know nothing of a replica write to its store meanwhile. They move the WAL and let
/// it restart, run VACUUM, and are the last ones to leave it.
@Suite(.againstHanging, .onOwnThreads) struct ReplicaBesideOthersTests {
    private let folder: TemporaryFolder
    private let remote = MemoryRemote()
    private static let workers = 1...2

    init() throws {
        folder = try TemporaryFolder()
    }

    /// How many rows each worker had when a position was told.
    private struct Told {
        let position: ReplicaPosition
        let counts: [Int: Int]
    }

    /// How many rows the workers have told of.
    private final class Counts: Sendable {
        private let state = Mutex((counts: [Int: Int](), summaries: [String](), endCount: 0))

        var counts: [Int: Int] { state.withLock(\.counts) }
        var summaries: [String] { state.withLock(\.summaries) }
        var areAtEnd: Bool { state.withLock { $0.endCount == workers.count } }

        func note(_ line: String, of worker: Int) {
            state.withLock { state in
                if let count = Int(line) {
                    state.counts[worker] = count
                } else {
                    state.summaries.append(line)
                }
            }
        }

        func end() { state.withLock { $0.endCount += 1 } }
    }

    private func open(_ name: String, _ mode: Configuration.JournalMode) throws -> Store {
        var configuration = Configuration.testing(mode)
        configuration.checkpointPageCount = 20
        configuration.busyTimeout = .seconds(60)
        return try Store(path: folder.path(name), key: .numbered(1), configuration: configuration)
    }

    private func makeStore(_ mode: Configuration.JournalMode) throws {
        let store = try open("store.db", mode)
        try store.write { tx in
            try tx.execute(
                """
                CREATE TABLE entry(
                    worker INTEGER, number INTEGER, filler BLOB, PRIMARY KEY (worker, number))
                """)
            try tx.execute("CREATE TABLE total(worker INTEGER PRIMARY KEY, count INTEGER)")
            for worker in Self.workers {
                try tx.execute("INSERT INTO total VALUES (\(worker), 0)")
            }
        }
        try store.close()
    }

    private func start(_ worker: Int, seed: UInt64, count: Int) throws -> Peer {
        try Peer([
            "write-foreign", folder.path(), "1", "\(worker)", "\(seed &+ UInt64(worker))",
            "\(count)",
        ])
    }

    @Test(arguments: journalModes)
    func `commits of foreign programs are in the replica, whatever they do to the WAL`(
        mode: Configuration.JournalMode
    ) async throws {
        let seed = testSeed()
        try makeStore(mode)
        let clock = HandInstant()
        var options = ReplicaOptions.testing
        options.sleep = { _ in throw CancellationError() }
        options.currentInstant = { clock.now }
        // Each position that is told is compared.
        (options.keptSnapshotCount, options.keptHistorySnapshotCount) = (1000, 1000)
        let store = try open("store.db", mode)
        let replica = try await store.replicate(to: remote, options)
        let counts = Counts()
        let readers = try Self.workers.map { worker in
            let peer = try start(worker, seed: seed, count: tryCount(100, long: 3000))
            return onThread {
                while let line = peer.line() { counts.note(line, of: worker) }
                counts.end()
            }
        }
        var told: [Told] = []
        while !counts.areAtEnd {
            let before = counts.counts
            told.append(Told(position: try await replica.caughtUp(), counts: before))
            // A snapshot too, beside the writers.
            if told.count.isMultiple(of: 20) {
                clock.advance(by: .seconds(86_500))
                try await replica.maintain()
            }
        }
        for reader in readers { try await reader.value }
        told.append(Told(position: try await replica.caughtUp(), counts: counts.counts))
        try await replica.close()
        try await store.close()
        requireWork(counts.summaries, mode)
        try await check(told, mode)
        try await leaveAndReturn(mode, options, seed: seed)
    }

    /// Fails unless the programs have done what the test is about.
    private func requireWork(_ summaries: [String], _ mode: Configuration.JournalMode) {
        var counts = ["moved": 0, "vacuums": 0]
        for summary in summaries {
            let words = summary.split(separator: " ").map(String.init)
            guard words.count == 4, let moved = Int(words[1]), let vacuums = Int(words[3]) else {
                Issue.record("a program ended with: \(summary)")
                continue
            }
            counts["moved", default: 0] += moved
            counts["vacuums", default: 0] += vacuums
        }
        // Nobody keeps the WAL from its restart.
        #expect(counts["moved"] ?? 0 > 0 && counts["vacuums"] ?? 0 > 0, "\(counts)")
    }

    /// Restores some positions, the last one among them.
    private func check(_ told: [Told], _ mode: Configuration.JournalMode) async throws {
        let history = try await ReplicaHistory(of: remote, key: .numbered(1))
        let kept = Set(history.commits.map(\.position))
        #expect(kept.isSuperset(of: told.map(\.position)))
        for (index, some) in told.enumerated()
        where index % max(1, told.count / 10) == 0 || index == told.count - 1 {
            let found = try await restoredCounts(at: .position(some.position), mode)
            for (worker, count) in some.counts {
                let isLast = index == told.count - 1
                #expect(isLast ? found[worker] == count : found[worker] ?? 0 >= count)
            }
        }
        #expect(
            try await restoredCounts(at: .newest, mode, compare: true) == told.last?.counts)
    }

    /// The rows of each worker in a commit, of which none may be missing before the last.
    private func restoredCounts(
        at moment: ReplicaMoment, _ mode: Configuration.JournalMode, compare: Bool = false
    ) async throws -> [Int: Int] {
        let copy = folder.path("copy.db")
        defer { removeStore(copy) }
        try await Store.restore(
            from: remote, to: copy, key: .numbered(1), at: moment, configuration: .testing(mode))
        if compare {
            #expect(try Dump.store(copy, key: 1) == Dump.store(folder.path(), key: 1))
        }
        let store = try open("copy.db", mode)
        defer { try? store.close() }
        return try counts(in: store)
    }

    private func counts(in store: Store) throws -> [Int: Int] {
        try store.read { tx in
            var counts: [Int: Int] = [:]
            for worker in Self.workers {
                let row = try #require(
                    try tx.firstRow(
                        """
                        SELECT count(*), coalesce(max(number), 0),
                            (SELECT count FROM total WHERE worker = \(worker))
                        FROM entry WHERE worker = \(worker)
                        """))
                let (count, last, total) = (
                    try row.get(0, as: Int.self), try row.get(1, as: Int.self),
                    try row.get(2, as: Int.self)
                )
                #expect(count == last && count == total)
                counts[worker] = count
            }
            return counts
        }
    }

    /// A program that is alone with the store writes, and takes the WAL away with its end. The next
    /// replica finds out what has changed.
    private func leaveAndReturn(
        _ mode: Configuration.JournalMode, _ options: ReplicaOptions, seed: UInt64
    ) async throws {
        try removeRows(mode)
        for round in 1...3 as ClosedRange<UInt64> {
            let lines = try start(1, seed: seed &+ round, count: 30).finish()
            #expect(lines.count == 31, "\(lines)")
            #expect(!FileManager.default.fileExists(atPath: folder.path("store.db-wal")))
            let store = try open("store.db", mode)
            let replica = try await store.replicate(to: remote, options)
            let found = try counts(in: store)
            try await replica.close()
            try await store.close()
            #expect(found[1] == 30)
            #expect(try await restoredCounts(at: .newest, mode, compare: true) == found)
            try removeRows(mode)
        }
    }

    private func removeRows(_ mode: Configuration.JournalMode) throws {
        let store = try open("store.db", mode)
        try store.write { tx in
            try tx.execute("DELETE FROM entry")
            try tx.execute("UPDATE total SET count = 0")
        }
        try store.close()
    }
}

/// A clock that a test puts forward.
final class HandInstant: Sendable {
    private let state = Mutex(ContinuousClock.now)

    var now: ContinuousClock.Instant { state.withLock(\.self) }

    func advance(by duration: Duration) { state.withLock { $0 += duration } }
}
