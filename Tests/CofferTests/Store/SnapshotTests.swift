import Foundation
import Testing

@testable import Coffer

/// Snapshots that outlive a call, and what a store reports about itself.
@Suite(.againstHanging, .onOwnThreads) struct SnapshotTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func make(_ configuration: Configuration = .testing()) throws -> Store {
        let store = try Store(
            path: folder.path(), key: .numbered(1), configuration: configuration)
        try store.write { tx in try tx.execute("CREATE TABLE IF NOT EXISTS t(v)") }
        return store
    }

    private static func add(_ store: Store) throws {
        try store.write { tx in try tx.execute("INSERT INTO t VALUES (1)") }
    }

    private static func count(_ tx: borrowing ReadTransaction) throws -> Int {
        try tx.rows("SELECT * FROM t").count
    }

    @Test func `a snapshot sees the same in every read, whatever is written`() async throws {
        let store = try make()
        try Self.add(store)
        let snapshot = try await store.snapshot()
        try Self.add(store)
        #expect(try await snapshot.read { tx in try Self.count(tx) } == 1)
        try Self.add(store)
        let counts = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<8 {
                group.addTask { try await snapshot.read { tx in try Self.count(tx) } }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(counts == Array(repeating: 1, count: 8))
        #expect(try await store.read { tx in try Self.count(tx) } == 3)
        #expect(store.statistics.readerInUseCount == 1)
        try snapshot.close()
        try snapshot.close()
        #expect(store.statistics.readerInUseCount == 0)
        expect(.closed) { try snapshot.read { _ in } }
    }

    @Test func `a body that throws leaves the snapshot unchanged, and changes nothing`() throws {
        struct Wrong: Error {}
        let store = try make()
        let snapshot = try store.snapshot()
        #expect(throws: Wrong.self) { try snapshot.read { _ in throw Wrong() } }
        expect(.readOnly) { try snapshot.read { tx in try tx.rows("DELETE FROM t") } }
        expect(.misuse) { try snapshot.read { _ in try store.write { _ in } } }
        expect(.misuse) { try snapshot.read { _ in try snapshot.read { _ in } } }
        #expect(try snapshot.read { tx in try Self.count(tx) } == 0)
    }

    @Test func `a snapshot that is deallocated gives its connection back`() throws {
        var configuration = Configuration.impatient()
        configuration.maximumReaderCount = 1
        let store = try make(configuration)
        var snapshot: StoreSnapshot? = try store.snapshot()
        expect(.busy) { try store.read { _ in } }
        expect(.busy) { try store.rekey(to: .numbered(2)) }
        #expect(try snapshot?.read { tx in try Self.count(tx) } == 0)
        snapshot = nil
        try store.read { _ in }
        try store.rekey(to: .numbered(2))
    }

    @Test func `a pause ends a snapshot, and so does a WAL that is full`() async throws {
        var configuration = Configuration.impatient()
        configuration.waitTimeout = .seconds(3)
        configuration.maximumWALByteCount = 4 << 20
        configuration.maximumSnapshotAge = .milliseconds(1)
        let store = try make(configuration)
        let first = try await store.snapshot()
        try await store.suspend()
        try await store.resume()
        expect(.suspended) { try first.read { _ in } }
        let second = try await store.snapshot()
        for _ in 0..<20 {
            try await store.write { tx in
                try tx.execute("DELETE FROM t")
                for _ in 0..<16 { try tx.execute("INSERT INTO t VALUES (randomblob(100000))") }
            }
        }
        while store.statistics.readerInUseCount > 0 { try await Task.sleep(for: .milliseconds(1)) }
        expect(.snapshotExpired) { try second.read { _ in } }
    }

    @Test func `without a write-ahead log there is no snapshot`() throws {
        let store = try make(.testing(.delete))
        expect(.unsupported) { try store.snapshot() }
    }

    @Test func `a task that waits for a snapshot is cancelled at once`() async throws {
        var configuration = Configuration.testing()
        configuration.maximumReaderCount = 1
        configuration.waitTimeout = .seconds(600)
        let store = try make(configuration)
        let held = try await store.snapshot()
        let waiting = Task { try await store.snapshot() }
        try await yieldWhile { store.statistics.waitingReadCount == 0 }
        waiting.cancel()
        await #expect {
            _ = try await waiting.value
        } throws: { $0 is CancellationError }
        try held.close()
        try await store.snapshot().close()
    }

    @Test func `tasks that wait for a snapshot hold no threads`() async throws {
        var configuration = Configuration.testing()
        configuration.maximumReaderCount = 1
        configuration.waitTimeout = .seconds(600)
        let store = try make(configuration)
        let held = try await store.snapshot()
        let count = 400
        let failureCount = Counter()
        // A single one that held the only thread would stop the others and this loop.
        try await withTaskExecutorPreference(OneThread()) {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<count {
                    group.addTask {
                        do { try await store.snapshot().close() } catch { failureCount.add() }
                    }
                }
                while store.statistics.waitingReadCount < count, failureCount.count == 0 {
                    try await Task.sleep(for: .milliseconds(1))
                }
                try held.close()
                try await group.waitForAll()
            }
        }
        #expect(failureCount.count == 0)
    }

    // MARK: Telemetry

    @Test func `statistics report what writes and reads did`() throws {
        let store = try make()
        for _ in 0..<3 { try Self.add(store) }
        expect(.sql) { try store.write { tx in try tx.execute("nonsense") } }
        for _ in 0..<5 { _ = try store.read { tx in try Self.count(tx) } }
        let statistics = store.statistics
        #expect(statistics.writes.committedCount == 4)
        #expect(statistics.writes.commitCount == 4)
        #expect(statistics.writes.undoneCount == 1)
        #expect(statistics.writes.maximumGroupWriteCount == 1)
        #expect(statistics.writes.groupCountMean == 1)
        #expect(statistics.writes.commitDuration >= statistics.writes.maximumCommitDuration)
        #expect(statistics.writes.maximumCommitDuration > .zero)
        #expect((0.1...1).contains(statistics.cacheHitRate))
        #expect(statistics.derivationDuration == .zero)
        let other = try Store(path: folder.path("other.db"), key: .passphrase("secret"))
        #expect(other.statistics.derivationDuration > .zero)
    }

    @Test func `a metrics backend gets the store's own figures`() throws {
        let lines = try Peer.run(["metrics", folder.path("metrics.db"), "1"])
        // The table, the write that holds the write gate, the group.
        #expect(lines == ["largest group 9, line 12, commits 3, undone 3, checkpoints agree"])
    }

    @Test func `the hit rate shows whether the pages that are read fit into the cache`() throws {
        func rate(maximumCacheByteCount: Int) throws -> Double {
            var configuration = Configuration.testing()
            configuration.maximumCacheByteCount = maximumCacheByteCount
            // Not shared with the stores of concurrent tests.
            configuration.cacheBudget = PageCacheBudget(maximumByteCount: .max)
            let store = try Store(
                path: folder.path("\(maximumCacheByteCount).db"), key: .numbered(1),
                configuration: configuration)
            try store.write { tx in
                try tx.execute("CREATE TABLE t(v)")
                for _ in 0..<1000 { try tx.execute("INSERT INTO t VALUES (zeroblob(3000))") }
            }
            for _ in 0..<20 { _ = try store.read { tx in try tx.rows("SELECT * FROM t").count } }
            return store.statistics.cacheHitRate
        }
        #expect(try rate(maximumCacheByteCount: 64 << 20) > 0.9)
        let small = try rate(maximumCacheByteCount: 1)
        #expect(small < 0.5, "\(small)")
    }

    @Test func `the oldest read is the running one that began first`() throws {
        let store = try make()
        #expect(store.statistics.oldestReadBeginning == nil)
        let before = ContinuousClock.now
        let first = try store.snapshot()
        let between = ContinuousClock.now
        let second = try store.snapshot()
        let after = ContinuousClock.now
        let oldest = try #require(store.statistics.oldestReadBeginning)
        #expect((before...between).contains(oldest))
        try first.close()
        let next = try #require(store.statistics.oldestReadBeginning)
        #expect((between...after).contains(next))
        try second.close()
        #expect(store.statistics.oldestReadBeginning == nil)
    }
}
