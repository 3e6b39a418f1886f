import Foundation
import Synchronization
import Testing

@testable import Coffer

/// Waiting, deadlines, deadlocks, pauses and the WAL of a store.
@Suite(.againstHanging, .onOwnThreads) struct QueueTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func make(
        _ configuration: Configuration = .testing(), name: String = "store.db"
    ) throws -> Store {
        let store = try Store(
            path: folder.path(name), key: .numbered(1), configuration: configuration)
        try store.write { tx in try tx.execute("CREATE TABLE IF NOT EXISTS t(v)") }
        return store
    }

    private func count(_ store: Store) throws -> Int {
        try store.read { tx in try tx.rows("SELECT * FROM t").count }
    }

    // MARK: Waiting

    @Test func `a write waits no longer than allowed, and the queue's holder can be seen`()
        async throws
    {
        let store = try make()
        let hold = Hold()
        let before = ContinuousClock.now
        let line = #line + 1
        let holder = Task { try await store.write { _ in hold.stay() } }
        await hold.isEntered()
        let after = ContinuousClock.now
        let running = try #require(store.statistics.runningWrite)
        #expect(running.line == line && running.fileID.hasSuffix("QueueTests.swift"))
        #expect((before...after).contains(running.beginning))
        let late = Task { try await store.write(timeout: .milliseconds(20)) { _ in } }
        #expect(await code(late) == .busy)
        let blocked = onThread { try store.write(timeout: .milliseconds(20)) { _ in } }
        #expect(await code(blocked) == .busy)
        let patient = Task { try await store.write { _ in } }
        try await yieldWhile { store.statistics.waitingWriteCount < 1 }
        let isInLine = ContinuousClock.now
        let waited = isInLine.duration(to: .now)
        hold.release()
        try await holder.value
        try await patient.value
        #expect(store.statistics.runningWrite == nil)
        #expect(waited > .zero && store.statistics.writes.maximumWaitDuration >= waited)
        #expect(store.statistics.writes.waitDuration >= store.statistics.writes.maximumWaitDuration)
    }

    @Test(arguments: journalModes)
    func `stores that wait for each other get an error instead`(
        mode: Configuration.JournalMode
    ) async throws {
        let stores = try (0..<3).map { try make(.testing(mode), name: "\($0).db") }
        let holds = stores.map { _ in Hold() }
        let tasks = stores.indices.map { index in
            onThread {
                try stores[index].write { tx in
                    try tx.execute("INSERT INTO t VALUES (1)")
                    holds[index].stay()
                    // A read without WAL waits in the same queue.
                    let next = stores[(index + 1) % 3]
                    if index == 2, mode == .delete {
                        try next.read { _ in }
                    } else {
                        try next.write { part in try part.execute("INSERT INTO t VALUES (2)") }
                    }
                }
            }
        }
        for hold in holds { await hold.isEntered() }
        for hold in holds { hold.release() }
        var codes: [StoreError.Code?] = []
        for task in tasks { codes.append(await code(task)) }
        #expect(codes.filter { $0 == .wouldDeadlock }.count == 1)
        #expect(codes.filter { $0 == nil }.count == 2)
        // The same order everywhere is not a cycle, and A -> B -> A joins.
        try await stores[0].write { _ in
            try stores[1].write { _ in try stores[0].write { _ in } }
        }
    }

    @Test func `a write inside another store's body does not wait for a group`() async throws {
        let outer = try make(name: "outer.db")
        let inner = try make(name: "inner.db")
        let hold = Hold()
        let first = Task { try await inner.write(mode: .deferred) { _ in hold.stay() } }
        await hold.isEntered()
        let nested = onThread {
            try outer.write { _ in
                _ = try inner.write { tx in try tx.execute("INSERT INTO t VALUES (1)") }
            }
        }
        try await yieldWhile { inner.waitingWriteCount < 1 }
        // It would share the commit, and it waits for the store that the nested one holds.
        let next = onThread {
            try inner.write { tx in
                try tx.execute("INSERT INTO t VALUES (2)")
                try outer.write { _ in }
            }
        }
        try await yieldWhile { inner.waitingWriteCount < 2 }
        hold.release()
        try await first.value
        try await nested.value
        try await next.value
        #expect(try count(inner) == 2)
    }

    @Test(arguments: [TransactionMode.deferred, .immediate, .exclusive])
    func `every mode of a transaction writes`(mode: TransactionMode) async throws {
        let store = try make()
        try await store.write(mode: mode) { tx in try tx.execute("INSERT INTO t VALUES (1)") }
        try await store.write(mode: mode) { tx in try tx.execute("INSERT INTO t VALUES (2)") }
        #expect(try count(store) == 2)
    }

    /// Something that a function registered by `prepare`, or a program by mistake, may keep.
    private final class Leak: @unchecked Sendable {
        // @unchecked: only the body that has the connection uses it.
        var connection: Connection?
        var statement: Statement?
    }

    @Test(arguments: journalModes)
    func `a statement that a body leaves open is ended with it`(
        mode: Configuration.JournalMode
    ) throws {
        let leak = Leak()
        var configuration = Configuration.testing(mode)
        configuration.prepare = { connection in
            if leak.connection == nil { leak.connection = connection }
        }
        let store = try make(configuration)
        try store.write { tx in
            try tx.execute("INSERT INTO t VALUES (1), (2)")
            leak.statement = try leak.connection?.prepare("SELECT v FROM t")
            #expect(try leak.statement?.step() == true)
        }
        expect(.cancelled) { try leak.statement?.step() }
        try store.write { tx in try tx.execute("DELETE FROM t") }
        #expect(try count(store) == 0)
        leak.connection = nil
    }

    // MARK: Pause

    @Test(arguments: journalModes)
    func `a suspended store holds no file and lets nothing in until it is resumed`(
        mode: Configuration.JournalMode
    ) async throws {
        let store = try make(.testing(mode))
        try await store.write { tx in try tx.execute("INSERT INTO t VALUES (1)") }
        try await store.suspend()
        try await store.suspend()
        #expect(!FileManager.default.fileExists(atPath: folder.path() + "-wal"))
        expect(.suspended) { try store.write { _ in } }
        expect(.suspended) { try store.read { _ in } }
        expect(.suspended) { try store.rekey(to: .numbered(2)) }
        let late = Task { try await store.write { _ in } }
        #expect(await code(late) == .suspended)
        do {
            let other = try Connection(
                path: folder.path(), key: .numbered(1), configuration: .testing(mode))
            try other.transaction(.exclusive) { try other.execute("INSERT INTO t VALUES (2)") }
        }
        try await store.resume()
        try await store.resume()
        #expect(try count(store) == 2)
        try await store.write { tx in try tx.execute("INSERT INTO t VALUES (3)") }
        try await store.suspend()
        try await store.close()
        expect(.closed) { try store.read { _ in } }
        expect(.closed) {
            try store.resume()
            try store.read { _ in }
        }
        #expect(try count(try make(.testing(mode))) == 3)
    }

    @Test
    func `work that does not end before a pause is rolled back, and waiting callers get an error`()
        async throws
    {
        let store = try make(.impatient())
        let hold = Hold()
        let running = Task {
            try await store.write { tx in
                try tx.execute("INSERT INTO t VALUES (1)")
                hold.stay()
                while true { _ = try tx.rows("SELECT 1") }
            }
        }
        await hold.isEntered()
        let waiting = Task { try await store.write { _ in } }
        try await yieldWhile { store.waitingWriteCount < 1 }
        hold.release()
        try await store.suspend()
        #expect(await code(running) == .suspended)
        #expect(await code(waiting) == .suspended)
        try await store.resume()
        #expect(try count(store) == 0)
    }

    @Test func `a body that does not end at all leaves the store as it was`() async throws {
        let store = try make(.impatient())
        let hold = Hold()
        let running = Task { try await store.write { _ in hold.stay() } }
        await hold.isEntered()
        await #expect {
            try await store.suspend()
        } throws: { ($0 as? StoreError)?.code == .busy }
        hold.release()
        #expect(await code(running) == nil)
        try await store.write { tx in try tx.execute("INSERT INTO t VALUES (1)") }
        #expect(try count(store) == 1)
    }

    @Test(arguments: journalModes)
    func `a store that another process rekeyed goes on with reopen(with:)`(
        mode: Configuration.JournalMode
    ) async throws {
        let store = try make(.testing(mode))
        try await store.write { tx in try tx.execute("INSERT INTO t VALUES (1)") }
        try await store.suspend()
        do {
            let other = try Connection(
                path: folder.path(), key: .numbered(1), configuration: .testing(mode))
            try other.rekey(to: .numbered(2))
        }
        expect(.wrongKey) { try store.resume() }
        expect(.suspended) { try store.read { _ in } }
        expect(.wrongKey) { try store.reopen(with: .numbered(3)) }
        try await store.reopen(with: .numbered(2))
        #expect(try count(store) == 1)
        expect(.wrongKey) { try store.reopen(with: .numbered(3)) }
        try await store.write { tx in try tx.execute("INSERT INTO t VALUES (2)") }
        #expect(try count(store) == 2)
        expect(.misuse) {
            try store.write { tx in
                try tx.execute("COMMIT")
            }
        }
        try await store.rekey(to: .numbered(4))
        #expect(try count(store) == 2)
    }

    // MARK: The WAL

    private func walByteCount() -> Int {
        let attributes = try? FileManager.default.attributesOfItem(atPath: folder.path() + "-wal")
        return (attributes?[.size] as? Int) ?? 0
    }

    /// Writes about 400 pages.
    private static func fill(_ store: Store) throws { try store.write { tx in try fill(&tx) } }

    private static func fill(_ tx: inout WriteTransaction) throws {
        try tx.execute("DELETE FROM t")
        for _ in 0..<16 { try tx.execute("INSERT INTO t VALUES (randomblob(100000))") }
    }

    @Test func `the WAL is checkpointed concurrently with writes and stays below its bound`() throws
    {
        var configuration = Configuration.testing()
        configuration.maximumWALByteCount = 8 << 20
        let store = try make(configuration)
        for _ in 0..<30 { try Self.fill(store) }
        #expect(store.statistics.checkpoints.count > 0)
        // One more write may come before the checkpoint that it waits for.
        #expect(walByteCount() < 16 << 20)
        #expect(try count(store) == 16)
    }

    @Test func `a read that keeps the WAL above its bound for too long has to end`() async throws {
        var configuration = Configuration.testing()
        configuration.maximumWALByteCount = 8 << 20
        configuration.maximumSnapshotAge = .milliseconds(1)
        let store = try make(configuration)
        try await store.write { tx in try tx.execute("INSERT INTO t VALUES (1)") }
        let hold = Hold()
        let old = Task {
            try await store.read { tx in
                _ = try tx.rows("SELECT * FROM t")
                hold.stay()
                // The body keeps the rows that it has read, but cannot read more.
                while true { _ = try tx.rows("SELECT * FROM t") }
            }
        }
        await hold.isEntered()
        #expect(store.statistics.oldestReadBeginning != nil)
        hold.release()
        for _ in 0..<30 { try Self.fill(store) }
        #expect(await code(old) == .snapshotExpired)
        #expect(store.statistics.oldestReadBeginning == nil)
        for _ in 0..<10 { try Self.fill(store) }
        #expect(try count(store) == 16)
    }

    /// Registers an SQL function `stay()`, so that a statement signals that it runs.
    private static func staying(_ hold: Hold) -> Configuration {
        var configuration = Configuration.testing()
        configuration.prepare = { connection in
            try connection.register(function: "stay", argumentCount: 0) { _ in
                hold.stay()
                return 1
            }
        }
        return configuration
    }

    @Test func `an interrupted read ends in the middle of its statement`() async throws {
        let hold = Hold()
        let store = try make(Self.staying(hold))
        let task = Task {
            try await store.read { tx in
                _ = try tx.rows(
                    """
                    WITH RECURSIVE n(i) AS (SELECT stay() UNION ALL SELECT i + 1 FROM n)
                    SELECT count(*) FROM n
                    """)
            }
        }
        await hold.isEntered()
        hold.release()
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(try count(store) == 0)
    }

    @Test func `an observer learns of other connections' commits during a pause`() async throws {
        let store = try make()
        let counts = store.observe { tx in try tx.rows("SELECT * FROM t").count }
        let loop = counts.makeAsyncIterator()
        #expect(try await loop.next() == 0)
        try await store.suspend()
        do {
            let other = try Connection(
                path: folder.path(), key: .numbered(1), configuration: .testing())
            try other.execute("INSERT INTO t VALUES (1)")
        }
        try await store.resume()
        #expect(try await loop.next() == 1)
    }

    @Test func `a closed store stays closed, whatever is called in which order`() async throws {
        let store = try make()
        try await store.close()
        expect(.closed) { try store.suspend() }
        try await store.resume()
        expect(.closed) { try store.write { _ in } }
        expect(.closed) { try store.reopen(with: .numbered(1)) }
        let other = try make()
        #expect(try count(other) == 0)
    }

    @Test func `concurrent pauses, resumes and closes leave the store in one state`() async throws {
        let store = try make()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<12 {
                group.addTask {
                    for _ in 0..<5 {
                        do {
                            switch number % 3 {
                            case 0: try await store.suspend()
                            case 1: try await store.resume()
                            default: try await store.write { tx in try tx.execute("DELETE FROM t") }
                            }
                        } catch let error as StoreError where error.code == .suspended {
                            // The order of the two is undetermined.
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        try await store.resume()
        try await store.write { tx in try tx.execute("INSERT INTO t VALUES (1)") }
        #expect(try count(store) == 1)
    }

    @Test func `a checkpoint that was requested does not open a paused file`() async throws {
        let store = try make()
        for _ in 0..<10 {
            for _ in 0..<3 { try await store.write { tx in try Self.fill(&tx) } }
            try await store.suspend()
            // Queued behind all requested checkpoints, which run one after the other.
            await withCheckedContinuation { continuation in
                store.core.checkpointer.thread.async { continuation.resume() }
            }
            #expect(!FileManager.default.fileExists(atPath: folder.path() + "-wal"))
            try await store.resume()
        }
    }

    @Test func `SQL that a body must not run is still refused after a pause`() async throws {
        let store = try make()
        try await store.suspend()
        try await store.resume()
        expect(.misuse) { try store.write { tx in try tx.execute("PRAGMA busy_timeout = 0") } }
        try await store.reopen(with: .numbered(1))
        expect(.misuse) { try store.write { tx in try tx.execute("PRAGMA busy_timeout = 0") } }
    }

    @Test func `a task cancelled in a savepoint gets .cancelled`() async throws {
        let hold = Hold()
        let store = try make(Self.staying(hold))
        let task = Task {
            try await store.write { tx in
                try tx.savepoint { part in
                    try part.execute(
                        """
                        INSERT INTO t
                        WITH RECURSIVE n(i) AS (SELECT stay() UNION ALL SELECT i + 1 FROM n)
                        SELECT i FROM n
                        """)
                }
            }
        }
        await hold.isEntered()
        hold.release()
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(try count(store) == 0)
    }
}
