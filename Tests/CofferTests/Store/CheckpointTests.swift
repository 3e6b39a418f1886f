import Foundation
import Testing

@testable import Coffer

/// The WAL while tasks read and write.
@Suite(.againstHanging, .onOwnThreads) struct CheckpointTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func make(_ configuration: Configuration) throws -> Store {
        let store = try Store(path: folder.path(), key: .numbered(1), configuration: configuration)
        try store.write { tx in try tx.execute("CREATE TABLE t(v)") }
        return store
    }

    /// Adds some 160 kB to the WAL.
    private static func fill(_ store: Store) throws {
        try store.write { tx in
            try tx.execute("DELETE FROM t")
            for _ in 0..<8 { try tx.execute("INSERT INTO t VALUES (randomblob(20000))") }
        }
    }

    private func walByteCount() -> Int {
        let file = try? FileManager.default.attributesOfItem(atPath: folder.path() + "-wal")
        return (file?[.size] as? Int) ?? 0
    }

    @Test func `short reads that overlap do not keep the WAL`() async throws {
        var configuration = Configuration.testing()
        configuration.maximumWALByteCount = 2 << 20
        configuration.checkpointPageCount = 100
        let store = try make(configuration)
        let isOver = Shared(false)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    while !isOver.value {
                        try await store.read { tx in
                            _ = try tx.rows("SELECT count(*) FROM t")
                            usleep(3000)
                        }
                    }
                }
            }
            group.addTask {
                defer { isOver.value = true }
                for _ in 0..<100 { try Self.fill(store) }
            }
            try await group.waitForAll()
        }
        // 16 MB were written. The WAL may exceed its bound by the one write that went beyond it.
        #expect(walByteCount() < 4 << 20)
    }

    @Test func `a writer that never pauses does not keep the WAL`() throws {
        var configuration = Configuration.testing()
        configuration.checkpointPageCount = 100
        let store = try make(configuration)
        // 32 MB were written. The limit here is half of the bound that applies next to readers.
        for _ in 0..<200 { try Self.fill(store) }
        #expect(walByteCount() < 8 << 20)
    }

    @Test func `writes and reads return while a checkpoint waits for the disk`() async throws {
        let disk = try FaultDisk()
        var configuration = Configuration.testing()
        configuration.vfs = disk.name
        configuration.checkpointPageCount = 100
        let store = try make(configuration)
        disk.holdMainSyncs()
        defer { disk.release() }
        for _ in 0..<3 { try Self.fill(store) }
        try await disk.isHolding()
        for _ in 0..<20 {
            try await store.write { tx in try tx.execute("INSERT INTO t VALUES (1)") }
        }
        #expect(try await store.read { tx in try tx.rows("SELECT * FROM t").count } == 28)
        #expect(store.statistics.checkpoints.count == 0)
        disk.release()
        while store.statistics.checkpoints.count == 0 {
            try await Task.sleep(for: .milliseconds(1))
        }
        #expect(try await store.read { tx in try tx.integrityProblems() } == [])
    }

    @Test func `a long read keeps the WAL for a while and no write`() async throws {
        var configuration = Configuration.testing()
        configuration.maximumWALByteCount = 1 << 20
        configuration.checkpointPageCount = 100
        let store = try make(configuration)
        let snapshot = try await store.snapshot()
        for _ in 0..<30 { try Self.fill(store) }
        #expect(walByteCount() > 3 << 20)
        #expect(try await snapshot.read { tx in try tx.rows("SELECT * FROM t").count } == 0)
        try snapshot.close()
        for _ in 0..<60 { try Self.fill(store) }
        // The WAL restarts once nobody needs it; SQLite does not shorten the file.
        #expect(try await store.read { tx in try tx.rows("SELECT * FROM t").count } == 8)
        #expect(store.statistics.checkpoints.walFrameCount < 2000)
    }

    @Test func `only a read that is too old has to end`() async throws {
        let store = try make(.testing())
        let old = try await store.snapshot()
        let between = ContinuousClock.now
        let young = try await store.snapshot()
        let reason = StoreError(.snapshotExpired, "too old")
        #expect(store.core.pool.stopReaders(reason, since: between) == 1)
        while store.statistics.readerInUseCount > 1 { try await Task.sleep(for: .milliseconds(1)) }
        expect(.snapshotExpired) { try old.read { _ in } }
        #expect(try await young.read { tx in try tx.rows("SELECT * FROM t").count } == 0)
    }

    @Test func `statistics report what checkpoints did`() throws {
        var configuration = Configuration.testing()
        configuration.checkpointPageCount = 100
        let store = try make(configuration)
        #expect(store.statistics.checkpoints == CheckpointStatistics())
        for _ in 0..<3 { try Self.fill(store) }
        // The checkpoint runs concurrently with the writes.
        try waitUntil { store.statistics.checkpoints.count > 0 }
        let checkpoints = store.statistics.checkpoints
        #expect(checkpoints.duration > .zero)
        #expect(checkpoints.walFrameCount >= 100 && checkpoints.movedFrameCount >= 100)
    }
}
