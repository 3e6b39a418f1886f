import CSQLCipher
import Foundation
import Synchronization
import Testing

@testable import Coffer

/// Writes that wait together and share one commit.
@Suite(.againstHanging) struct GroupCommitTests {
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    private func make(_ configuration: Configuration = .testing()) throws -> Store {
        let store = try Store(path: path, key: .numbered(1), configuration: configuration)
        try store.write { tx in try tx.execute("CREATE TABLE t(v)") }
        return store
    }

    private func values(_ store: Store) throws -> [Int] {
        try store.read { tx in try tx.rows("SELECT v FROM t ORDER BY rowid").map { try $0.get(0) } }
    }

    typealias Body = @Sendable (inout WriteTransaction) throws -> Void

    /// How each of some writes ended that stood in line together, and how many commits there were.
    private struct Outcome {
        var results: [Result<Void, any Error>] = []
        var commitCount = 0

        /// The code of each error, `nil` where there was none.
        var codes: [StoreError.Code?] {
            results.map { result in
                guard case .failure(let error) = result else { return nil }
                return (error as? StoreError)?.code
            }
        }
    }

    /// Lets the bodies wait in line behind a write that does not share, then lets them go.
    private func run(
        _ store: Store, isSynchronous: (Int) -> Bool = { _ in false }, _ bodies: [Body]
    ) async throws -> Outcome {
        let hold = Hold()
        let first = Task { try await store.write(mode: .deferred) { _ in hold.stay() } }
        await hold.isEntered()
        var tasks: [Task<Void, any Error>] = []
        for (index, body) in bodies.enumerated() {
            tasks.append(
                isSynchronous(index)
                    ? onThread { try store.write(body) }
                    : Task { try await store.write(body) })
            while store.waitingWriteCount <= index { try await Task.sleep(for: .microseconds(50)) }
        }
        hold.release()
        try await first.value
        let before = store.statistics.writes.commitCount
        var outcome = Outcome()
        for task in tasks { outcome.results.append(await task.result) }
        outcome.commitCount = store.statistics.writes.commitCount - before
        return outcome
    }

    private static func insert(_ number: Int) -> Body {
        { tx in try tx.execute("INSERT INTO t VALUES (\(number))") }
    }

    struct Undo: Error {}

    private static func fail(_ number: Int) -> Body {
        { tx in
            try tx.execute("INSERT INTO t VALUES (\(number))")
            throw Undo()
        }
    }

    @Test(arguments: journalModes)
    func `writes that wait together share a commit, in their order`(
        mode: Configuration.JournalMode
    ) async throws {
        var configuration = Configuration.testing(mode)
        configuration.groupCommit.maximumDuration = .seconds(60)
        let store = try make(configuration)
        let outcome = try await run(
            store, isSynchronous: { $0 % 3 == 1 }, (0..<20).map(Self.insert))
        #expect(outcome.codes.allSatisfy { $0 == nil })
        #expect(try values(store) == Array(0..<20))
        #expect(outcome.commitCount <= 2, "the first may commit before it is asked for the count")
        #expect(store.statistics.writes.maximumGroupWriteCount == 20)
        // The table, the write that they waited for, and they.
        #expect(store.statistics.writes.groupCountMean == 22.0 / 3)
    }

    @Test(arguments: [false, true])
    func `a body that throws undoes only its own work`(isSynchronous: Bool) async throws {
        let store = try make()
        let bodies = [
            Self.fail(0), Self.insert(1), Self.fail(2), Self.insert(3), Self.fail(4),
        ]
        let outcome = try await run(store, isSynchronous: { _ in isSynchronous }, bodies)
        for (index, result) in outcome.results.enumerated() {
            guard case .failure(let error) = result else {
                #expect(index % 2 == 1)
                continue
            }
            #expect(error is Undo && index % 2 == 0)
        }
        #expect(try values(store) == [1, 3])
        #expect(store.statistics.writes.undoneCount == 3)
    }

    @Test func `a foreign key that is left open undoes that body alone`() async throws {
        let store = try make()
        try await store.write { tx in
            try tx.execute("CREATE TABLE p(id INTEGER PRIMARY KEY)")
            try tx.execute("CREATE TABLE c(p REFERENCES p)")
        }
        let isAtOnce = Mutex(false)
        let outcome = try await run(
            store,
            [
                Self.insert(1),
                { tx in
                    try tx.execute("PRAGMA defer_foreign_keys = ON")
                    try tx.execute("INSERT INTO t VALUES (2)")
                    try tx.execute("INSERT INTO c VALUES (42)")
                },
                { tx in
                    try tx.execute("PRAGMA defer_foreign_keys = ON")
                    try tx.execute("INSERT INTO c VALUES (7)")
                    try tx.execute("INSERT INTO p VALUES (7)")
                },
                { tx in
                    // The wish of those before does not hold here.
                    do { try tx.execute("INSERT INTO c VALUES (43)") } catch {
                        isAtOnce.withLock { $0 = true }
                    }
                    try tx.execute("INSERT INTO t VALUES (4)")
                },
            ])
        #expect(outcome.codes == [nil, .constraint, nil, nil])
        #expect(isAtOnce.withLock { $0 })
        #expect(try values(store) == [1, 4])
        let count = try await store.read { tx in try tx.rows("SELECT * FROM c").count }
        #expect(count == 1)
    }

    @Test func `if SQLite ends the transaction, those who ran are told and the rest goes on`()
        async throws
    {
        let store = try make()
        try await store.write { tx in try tx.execute("CREATE TABLE u(v UNIQUE)") }
        let outcome = try await run(
            store, isSynchronous: { $0 == 1 },
            [
                Self.insert(1), Self.insert(2),
                { tx in
                    try tx.execute("INSERT INTO u VALUES (1)")
                    try tx.execute("INSERT OR ROLLBACK INTO u VALUES (1)")
                },
                Self.insert(4), Self.insert(5),
            ])
        #expect(outcome.codes == [.rolledBack, .rolledBack, .constraint, nil, nil])
        #expect(try values(store) == [4, 5])
        guard case .failure(let error) = outcome.results[0] else { return }
        #expect(((error as? StoreError)?.cause as? StoreError)?.code == .constraint)
    }

    @Test func `if a body fills the disk, those who ran are told and the rest goes on`()
        async throws
    {
        let store = try make()
        try await store.write { tx in
            try tx.connection().current().run("PRAGMA max_page_count = 20")
        }
        let outcome = try await run(
            store,
            [
                Self.insert(1), Self.insert(2),
                { tx in
                    for _ in 0..<200 {
                        try tx.execute(
                            "INSERT INTO t VALUES (\([UInt8](repeating: 1, count: 4000)))")
                    }
                },
                Self.insert(4),
            ])
        #expect(outcome.codes == [.rolledBack, .rolledBack, .full, nil])
        #expect(try values(store) == [4])
    }

    @Test func `no body runs twice, also if SQLite ends its transaction`() async throws {
        let store = try make()
        try await store.write { tx in try tx.execute("CREATE TABLE u(v UNIQUE)") }
        let runCounts = (0..<6).map { _ in Shared(0) }
        let outcome = try await run(
            store,
            runCounts.indices.map { index in
                { tx in
                    runCounts[index].update { $0 += 1 }
                    try tx.execute("INSERT OR ROLLBACK INTO u VALUES (\(index / 2 * 2))")
                }
            })
        #expect(outcome.codes.contains(.rolledBack))
        #expect(runCounts.map(\.value) == Array(repeating: 1, count: 6))
    }

    @Test func `without group commit each write has a commit of its own`() async throws {
        var configuration = Configuration.testing()
        configuration.groupCommit = .off
        let store = try make(configuration)
        let before = store.statistics.writes.commitCount
        let outcome = try await run(store, (0..<8).map(Self.insert))
        #expect(outcome.codes.allSatisfy { $0 == nil })
        #expect(store.statistics.writes.maximumGroupWriteCount == 1)
        #expect(store.statistics.writes.commitCount - before == 9, "with the one they wait for")
    }

    @Test func `a damaged page is .damaged for who reads it, and no group commits over it`()
        async throws
    {
        let size: Int
        let endPage: Int
        do {
            let store = try make(.testing(.delete))
            try await store.write { tx in
                try tx.execute("CREATE TABLE big(b, flag)")
                try tx.execute("INSERT INTO big VALUES (zeroblob(20000), 7)")
            }
            size = store.profile.pageByteCount
            endPage = try await store.read { tx in
                try tx.rows("PRAGMA page_count")[0].get(0, as: Int.self)
            }
            try await store.close()
        }
        try Damage.flip(path, at: (endPage - 1) * size + 10)
        let store = try await Store(
            path: path, key: .numbered(1), configuration: .testing(.delete))
        let outcome = try await run(
            store,
            [
                Self.insert(1),
                { tx in _ = try tx.rows("SELECT flag FROM big") },
                Self.insert(3),
            ])
        #expect(outcome.codes == [.rolledBack, .damaged, nil])
        #expect(try values(store) == [3])
    }

    @Test func `if COMMIT fails every body gets its error and nothing is applied`() async throws {
        let store = try make(.impatient(.delete))
        let reader = try Connection(
            path: path, key: .numbered(1), configuration: .testing(.delete))
        try reader.begin(.deferred)
        #expect(try reader.rows("SELECT * FROM t").isEmpty)
        let isRun = Mutex(false)
        let outcome = try await run(
            store,
            [
                Self.insert(1), Self.insert(2),
                { tx in
                    try tx.afterCommit { isRun.withLock { $0 = true } }
                    try tx.execute("INSERT INTO t VALUES (3)")
                },
            ])
        #expect(outcome.codes == [.busy, .busy, .busy])
        #expect(!isRun.withLock { $0 })
        try reader.commit()
        try await store.write(Self.insert(4))
        #expect(try values(store) == [4])
    }

    @Test(arguments: [1, 4])
    func `a group takes as many bodies as it may`(maximumCount: Int) async throws {
        var configuration = Configuration.testing()
        configuration.groupCommit = .init(
            maximumWriteCount: maximumCount, maximumDuration: .seconds(60))
        let store = try make(configuration)
        _ = try await run(store, (0..<8).map(Self.insert))
        #expect(store.statistics.writes.maximumGroupWriteCount == maximumCount)
        #expect(try values(store) == Array(0..<8))
    }

    @Test func `a task cancelled as the first of its group takes nobody with it`() async throws {
        let store = try make()
        let hold = Hold()
        let first = Task {
            try await store.write { tx in
                try tx.execute("INSERT INTO t VALUES (1)")
                hold.stay()
                try tx.execute("INSERT INTO t VALUES (2)")
            }
        }
        await hold.isEntered()
        let next = Task { try await store.write(Self.insert(3)) }
        while store.waitingWriteCount < 1 { await Task.yield() }
        first.cancel()
        hold.release()
        let result = await first.result
        try await next.value
        #expect(throws: StoreError.self) { try result.get() }
        #expect(try values(store) == [3])
    }

    @Test func `a task cancelled in a group is undone alone`() async throws {
        let store = try make()
        let hold = Hold()
        let first = Task { try await store.write(mode: .deferred) { _ in hold.stay() } }
        await hold.isEntered()
        let inner = Hold()
        let before = Task { try await store.write(Self.insert(1)) }
        while store.waitingWriteCount < 1 { await Task.yield() }
        let cancelled = Task {
            try await store.write { tx in
                try tx.execute("INSERT INTO t VALUES (2)")
                inner.stay()
                try tx.execute("INSERT INTO t VALUES (3)")
            }
        }
        while store.waitingWriteCount < 2 { await Task.yield() }
        let after = Task { try await store.write(Self.insert(4)) }
        while store.waitingWriteCount < 3 { await Task.yield() }
        hold.release()
        try await first.value
        await inner.isEntered()
        cancelled.cancel()
        inner.release()
        let result = await cancelled.result
        try await before.value
        try await after.value
        #expect(throws: StoreError.self) { try result.get() }
        #expect(try values(store) == [1, 4])
    }

    @Test func `rollback() undoes without an error, also a part and in a group`() async throws {
        let store = try make()
        let count = try await store.write { tx in
            try tx.execute("INSERT INTO t VALUES (1)")
            try tx.rollback()
            return try tx.rows("SELECT * FROM t").count
        }
        #expect(count == 1)
        #expect(try values(store) == [])
        let bodies: [Body] = [
            Self.insert(1),
            { tx in
                try tx.execute("INSERT INTO t VALUES (2)")
                try tx.rollback()
            },
            { tx in
                try tx.execute("INSERT INTO t VALUES (3)")
                let seen = try tx.savepoint { part in
                    try part.execute("INSERT INTO t VALUES (4)")
                    try part.rollback()
                    return try part.rows("SELECT * FROM t").count
                }
                #expect(seen == 3)
            },
        ]
        let outcome = try await run(store, bodies)
        #expect(outcome.codes == [nil, nil, nil])
        #expect(try values(store) == [1, 3])
    }

    @Test func `afterCommit runs once all is durable, and never for what was undone`()
        async throws
    {
        let store = try make()
        let seen = Mutex<[Int]>([])
        let note: @Sendable (Int) -> @Sendable () -> Void = { number in
            { seen.withLock { $0.append(number) } }
        }
        try await store.write { tx in
            try tx.afterCommit(note(1))
            try? tx.savepoint { part in
                try part.afterCommit(note(2))
                throw Undo()
            }
            try store.write { (part: inout WriteTransaction) in try part.afterCommit(note(3)) }
            #expect(seen.withLock { $0.isEmpty })
        }
        #expect(seen.withLock { $0 } == [1, 3])
        _ = try? await store.write { tx in
            try tx.afterCommit(note(4))
            throw Undo()
        }
        try await store.write { tx in try tx.afterCommit(note(5)) }
        try await store.write { tx in
            try tx.afterCommit(note(6))
            try tx.rollback()
        }
        #expect(seen.withLock { $0 } == [1, 3, 5])
    }

    @Test func `who observes is told once of a group, and nothing of what was undone`()
        async throws
    {
        let store = try make()
        let loop = store.changes(in: "t").makeAsyncIterator()
        _ = try await run(store, [Self.insert(1), Self.fail(2), Self.insert(3)])
        guard case .commit(let rows) = try await loop.next() else {
            Issue.record("no commit was told")
            return
        }
        #expect(rows.map(\.key) == [[1], [2]])
        try await store.write(Self.insert(4))
        guard case .commit(let more) = try await loop.next() else { return }
        #expect(more.map(\.key) == [[3]])
    }

    @Test func `what a body saw of others before it was undone is told only when they are durable`()
        async throws
    {
        let store = try make(.impatient(.delete))
        let reader = try Connection(
            path: path, key: .numbered(1), configuration: .testing(.delete))
        try reader.begin(.deferred)
        #expect(try reader.rows("SELECT * FROM t").isEmpty)
        // Nobody can commit beside the reader.
        let outcome = try await run(
            store,
            [
                Self.insert(1),
                { tx in if try tx.rows("SELECT * FROM t").count == 1 { throw Undo() } },
                { tx in
                    #expect(try tx.rows("SELECT * FROM t").count == 1)
                    try tx.rollback()
                },
                Self.insert(4),
            ])
        #expect(outcome.codes == [.busy, .busy, .busy, .busy])
        try reader.commit()
        #expect(try values(store) == [])
    }

    @Test func `damage of another store is an error as any other`() async throws {
        let store = try make()
        let outcome = try await run(
            store,
            [
                Self.insert(1),
                { _ in throw StoreError(.damaged, "another store's page") },
                Self.insert(3),
            ])
        #expect(outcome.codes == [nil, .damaged, nil])
        #expect(try values(store) == [1, 3])
    }

    @Test func `a group takes no further body after its time`() async throws {
        var configuration = Configuration.testing()
        configuration.groupCommit = .init(maximumWriteCount: 100, maximumDuration: .milliseconds(1))
        let store = try make(configuration)
        let outcome = try await run(
            store,
            (0..<6).map { number in
                { tx in
                    try tx.execute("INSERT INTO t VALUES (\(number))")
                    usleep(2000)
                }
            })
        #expect(outcome.codes.allSatisfy { $0 == nil })
        #expect(store.statistics.writes.maximumGroupWriteCount == 1)
        #expect(try values(store) == Array(0..<6))
    }

    @Test func `who does not share has its turn between those who do, and each runs once`()
        async throws
    {
        let store = try make()
        let order = Shared<[Int]>([])
        let hold = Hold()
        let first = Task { try await store.write(mode: .deferred) { _ in hold.stay() } }
        await hold.isEntered()
        let tasks = (0..<9).map { number in
            Task {
                while store.waitingWriteCount != number { await Task.yield() }
                try await store.write(mode: number == 4 ? .exclusive : .immediate) { tx in
                    order.update { $0.append(number) }
                    try tx.execute("INSERT INTO t VALUES (\(number))")
                }
            }
        }
        while store.waitingWriteCount < 9 { await Task.yield() }
        hold.release()
        try await first.value
        for task in tasks { try await task.value }
        #expect(order.value == Array(0..<9))
        #expect(store.statistics.writes.maximumGroupWriteCount == 4)
    }

    @Test func `a task cancelled in a group during a statement is undone alone, in its commit`()
        async throws
    {
        var configuration = Configuration.testing()
        configuration.groupCommit.maximumDuration = .seconds(60)
        let store = try make(configuration)
        let hold = Hold()
        let first = Task { try await store.write(mode: .deferred) { _ in hold.stay() } }
        await hold.isEntered()
        let before = Task { try await store.write(Self.insert(4)) }
        while store.waitingWriteCount < 1 { await Task.yield() }
        let inner = Hold()
        let cancelled = Task {
            try await store.write { tx in
                try tx.execute("INSERT INTO t VALUES (5)")
                inner.stay()
                _ = try tx.rows(
                    """
                    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n
                        WHERE i < 50000) SELECT count(*) FROM n
                    """)
                try tx.execute("INSERT INTO t VALUES (6)")
            }
        }
        while store.waitingWriteCount < 2 { await Task.yield() }
        let after = Task { try await store.write(Self.insert(7)) }
        while store.waitingWriteCount < 3 { await Task.yield() }
        let count = store.statistics.writes.commitCount
        hold.release()
        try await first.value
        await inner.isEntered()
        cancelled.cancel()
        inner.release()
        guard case .failure(let error as StoreError) = await cancelled.result else {
            Issue.record("a cancelled write returned")
            return
        }
        #expect(error.code == .cancelled)
        try await before.value
        try await after.value
        #expect(try values(store) == [4, 7])
        // That of the first, and one for the three.
        #expect(store.statistics.writes.commitCount == count + 2)
    }

    /// What fails, with which of the engine's codes (0: the one that fits), and what is told.
    struct DiskFailure {
        var kind: FaultDisk.Kinds
        var code: Int32 = 0
        var told: StoreError.Code
    }

    private static let diskFailures: [DiskFailure] = [
        .init(kind: .write, told: .io), .init(kind: .sync, told: .io),
        .init(kind: .write, code: SQLITE_FULL, told: .full),
        .init(kind: .write, code: SQLITE_NOMEM, told: .io),
        // SQLITE_IOERR_NOMEM, whose macro Swift does not see.
        .init(kind: .sync, code: SQLITE_IOERR | 12 << 8, told: .io),
    ]

    @Test(arguments: diskFailures)
    func `if the disk fails at COMMIT all of a group are told why, and nobody of rows`(
        failure: DiskFailure
    ) async throws {
        let disk = try FaultDisk()
        var configuration = Configuration.testing()
        configuration.vfs = disk.name
        configuration.groupCommit.maximumDuration = .seconds(60)
        let store = try make(configuration)
        let changes = store.changes(in: "t").makeAsyncIterator()
        let isRun = Shared(false)
        let outcome = try await run(
            store,
            [
                Self.insert(1),
                { tx in
                    try tx.afterCommit { isRun.value = true }
                    try tx.execute("INSERT INTO t VALUES (2)")
                },
                { tx in
                    try tx.execute("INSERT INTO t VALUES (3)")
                    disk.arm(failure.kind, code: failure.code)
                },
                Self.fail(4),
            ])
        disk.disarm()
        #expect(outcome.codes == Array(repeating: failure.told, count: 4))
        #expect(!isRun.value)
        try await store.write(Self.insert(5))
        #expect(try values(store) == [5])
        guard case .commit(let rows) = try await changes.next() else {
            Issue.record("the commit was not told row by row")
            return
        }
        #expect(rows.count == 1)
    }

    @Test func `afterCommit of a joined write and of a member that SQLite undid never runs`()
        async throws
    {
        let store = try make()
        try await store.write { tx in try tx.execute("CREATE TABLE u(v UNIQUE)") }
        let isRun = Shared(false)
        let run: @Sendable () -> Void = { isRun.value = true }
        #expect(throws: Undo.self) {
            try store.write { _ in
                _ = try store.write { (inner: inout WriteTransaction) in try inner.afterCommit(run)
                }
                throw Undo()
            }
        }
        let outcome = try await self.run(
            store, isSynchronous: { $0 == 0 },
            [
                { tx in try tx.afterCommit(run) },
                { tx in
                    try tx.execute("INSERT INTO u VALUES (1)")
                    try tx.execute("INSERT OR ROLLBACK INTO u VALUES (1)")
                },
            ])
        #expect(outcome.codes == [.rolledBack, .constraint])
        #expect(!isRun.value)
    }
}
