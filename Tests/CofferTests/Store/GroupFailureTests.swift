import CSQLCipher
import Foundation
import Synchronization
import Testing

@testable import Coffer

/// Writes that share a commit while the disk, a page or SQLite fails: each gets the truth.
@Suite(.againstHanging, .onOwnThreads) struct GroupFailureTests: GroupCommitSuite {
    let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
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
}
