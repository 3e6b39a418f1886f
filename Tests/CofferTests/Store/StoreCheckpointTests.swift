import Foundation
import Testing

@testable import Coffer

/// Checkpoints that a program asks a store for.
@Suite(.againstHanging, .onOwnThreads) struct StoreCheckpointTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func make(
        _ journalMode: Configuration.JournalMode = .wal, _ configuration: Configuration = .testing()
    ) throws -> Store {
        var configuration = configuration
        configuration.journalMode = journalMode
        configuration.waitTimeout = .milliseconds(50)
        let store = try Store(path: folder.path(), key: .numbered(7), configuration: configuration)
        try store.write { tx throws in
            try tx.execute("CREATE TABLE t (n INTEGER)")
            try tx.execute("INSERT INTO t VALUES (1)")
        }
        return store
    }

    private var walByteCount: Int {
        let path = folder.path() + "-wal"
        return (try? FileManager.default.attributesOfItem(atPath: path)[.size] as? Int) ?? 0
    }

    @Test func `a passive checkpoint moves every frame, and truncate empties the WAL`() throws {
        let store = try make()
        #expect(walByteCount > 0)
        let moved = try #require(try store.checkpoint())
        #expect(moved.walFrameCount > 0 && moved.checkpointedFrameCount == moved.walFrameCount)
        let truncated = try #require(try store.checkpoint(.truncate))
        #expect(truncated == CheckpointResult(walFrameCount: 0, checkpointedFrameCount: 0))
        #expect(walByteCount == 0)
        try store.write { tx in try tx.execute("INSERT INTO t VALUES (2)") }
        #expect(try store.read { tx in try tx.scalar("SELECT count(*) FROM t") } == 2)
    }

    @Test func `an open snapshot is busy for truncate, and is told in the counts of passive`()
        throws
    {
        let store = try make(.wal, .impatient())
        let snapshot = try store.snapshot()
        try store.write { tx in try tx.execute("INSERT INTO t VALUES (2)") }
        expect(.busy) { try store.checkpoint(.truncate) }
        let passive = try #require(try store.checkpoint())
        #expect(passive.checkpointedFrameCount < passive.walFrameCount)
        #expect(try snapshot.read { tx in try tx.scalar("SELECT count(*) FROM t") } == 1)
        try snapshot.close()
        #expect(try store.checkpoint(.truncate)?.walFrameCount == 0)
    }

    @Test func `without a WAL there is nothing to move`() async throws {
        #expect(try await make(.delete).checkpoint(.truncate) == nil)
        #expect(try await Store(.memory).checkpoint() == nil)
    }

    @Test func `a body, a long write, reading only and a closed store are told apart`() async throws
    {
        let store = try make()
        try await store.write { _ in expect(.misuse) { try store.checkpoint() } }
        let hold = Hold()
        let writing = Task { try await store.write { _ in hold.stay() } }
        await hold.isEntered()
        await #expect(throws: StoreError.self) { try await store.checkpoint() }
        hold.release()
        try await writing.value
        #expect(try await store.checkpoint() != nil)
        try await store.close()
        await #expect(throws: StoreError.self) { try await store.checkpoint() }
        let reading = try await Store(
            path: folder.path(), key: .numbered(7), mode: .readOnly, configuration: .testing())
        await #expect(throws: StoreError.self) { try await reading.checkpoint() }
    }
}
