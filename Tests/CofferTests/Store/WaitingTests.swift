import Foundation
import Testing

@testable import Coffer

/// Calls that wait for others: their order, deadlines and cancellation, and a rekey among them.
@Suite(.againstHanging, .onOwnThreads) struct WaitingTests: StoreSuite {
    let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    @Test(arguments: journalModes)
    func `rekey re-opens every connection under the new key`(
        mode: Configuration.JournalMode
    ) async throws {
        var configuration = Configuration.testing(mode)
        configuration.checkpointPageCount = 1
        let store = try make(configuration)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<16 {
                group.addTask { try await Self.insert(number, into: store) }
                group.addTask { try await store.read { tx in _ = try tx.rows("SELECT * FROM t") } }
            }
            try await group.waitForAll()
        }
        try await store.rekey(to: .numbered(2))
        #expect(try await store.read { tx in try tx.rows("SELECT * FROM t").count } == 16)
        // Those of the checkpoints too.
        let count = store.statistics.checkpoints.count
        try await store.write { tx in try tx.execute("INSERT INTO t VALUES (99)") }
        // A minute would be short where other tests have all threads; the suite's limit ends it.
        while mode == .wal, store.statistics.checkpoints.count == count {
            // A write asks for none while one that is counted already ends.
            try await store.write { tx in try tx.execute("UPDATE t SET v = v WHERE v = 99") }
            try await Task.sleep(for: .milliseconds(1))
        }
        try await store.close()
        expect(.wrongKey) { try openAgain() }
        let again = try await Store(path: path, key: .numbered(2), configuration: .testing(mode))
        #expect(try values(again).count == 17)
    }

    @Test func `rekey waits for a reader and gives .busy after the deadline`() async throws {
        let store = try make(.impatient())
        let hold = Hold()
        let reading = Task {
            try await store.read { tx in
                hold.stay()
                return try tx.rows("SELECT * FROM t").count
            }
        }
        await hold.isEntered()
        await #expect {
            try await store.rekey(to: .numbered(2))
        } throws: { ($0 as? StoreError)?.code == .busy }
        hold.release()
        #expect(try await reading.value == 0)
        try await store.rekey(to: .numbered(2))
        #expect(try await store.read { tx in try tx.rows("SELECT * FROM t").count } == 0)
    }

    @Test func `writes run in the order they came`() async throws {
        let store = try make()
        let hold = Hold()
        let first = Task {
            try await store.write { _ in
                hold.stay()
            }
        }
        await hold.isEntered()
        var tasks: [Task<Void, any Error>] = []
        for number in 0..<20 {
            let count = store.waitingWriteCount
            tasks.append(Task { try await Self.insert(number, into: store) })
            try await yieldWhile { store.waitingWriteCount == count }
        }
        hold.release()
        try await first.value
        for task in tasks { try await task.value }
        #expect(try values(store) == Array(0..<20))
    }

    @Test func `a task cancelled before its turn never starts`() async throws {
        let store = try make()
        let hold = Hold()
        let holder = Task {
            try await store.write { _ in
                hold.stay()
            }
        }
        await hold.isEntered()
        let cancelled = Task {
            try await store.write { tx in try tx.execute("INSERT INTO t VALUES (1)") }
        }
        try await yieldWhile { store.waitingWriteCount == 0 }
        cancelled.cancel()
        await #expect {
            _ = try await cancelled.value
        } throws: { $0 is CancellationError }
        hold.release()
        try await holder.value
        #expect(try values(store) == [])
    }

    @Test func `a task cancelled inside is undone at the next verb`() async throws {
        let store = try make()
        let hold = Hold()
        let task = Task {
            try await store.write { tx in
                try tx.execute("INSERT INTO t VALUES (1)")
                hold.stay()
                try tx.execute("INSERT INTO t VALUES (2)")
            }
        }
        await hold.isEntered()
        task.cancel()
        hold.release()
        await #expect {
            _ = try await task.value
        } throws: { $0 is CancellationError }
        #expect(try values(store) == [])
    }

    @Test func `a cancelled body that swallows the error commits nothing`() async throws {
        let store = try make()
        let hold = Hold()
        let task = Task {
            try await store.write { tx in
                try tx.execute("INSERT INTO t VALUES (1)")
                hold.stay()
                _ = try? tx.execute("INSERT INTO t VALUES (2)")
            }
        }
        await hold.isEntered()
        task.cancel()
        hold.release()
        await #expect {
            _ = try await task.value
        } throws: { $0 is CancellationError }
        #expect(try values(store) == [])
    }

    @Test(arguments: journalModes)
    func `a read beyond the pool waits and gives .busy after the deadline`(
        mode: Configuration.JournalMode
    ) async throws {
        var configuration = Configuration.impatient(mode)
        configuration.maximumReaderCount = 1
        let store = try make(configuration)
        let hold = Hold()
        let reading = Task {
            try await store.read { _ in
                hold.stay()
            }
        }
        await hold.isEntered()
        await #expect {
            try await store.read { _ in }
        } throws: { ($0 as? StoreError)?.code == .busy }
        let blocked = Task.detached { () -> StoreError.Code? in
            do { try Self.readSynchronously(store) } catch { return (error as? StoreError)?.code }
            return nil
        }
        #expect(await blocked.value == .busy)
        hold.release()
        try await reading.value
        try await store.read { _ in }
    }

    private static func readSynchronously(_ store: Store) throws { try store.read { _ in } }

    @Test func `64 tasks lose no write`() async throws {
        let store = try make(.testing())
        let perWriter = isLongRun ? 200 : 20
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<64 {
                group.addTask {
                    for _ in 0..<perWriter {
                        try await store.write { tx in
                            let last = try tx.firstRow("SELECT max(v) FROM t")?.get(
                                0, as: Int?.self)
                            try tx.execute(
                                "INSERT INTO t VALUES (\((last.flatMap { $0 } ?? -1) + 1))")
                        }
                        _ = try await store.read { tx in try tx.rows("SELECT count(*) FROM t") }
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try values(store) == Array(0..<(64 * perWriter)))
    }

    private static func insert(_ number: Int, into store: Store) async throws {
        try await store.write { tx in try tx.execute("INSERT INTO t VALUES (\(number))") }
    }
}
