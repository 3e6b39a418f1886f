import CSQLCipher
import Foundation
import Synchronization
import Testing

@testable import Coffer

/// What runs, or is reported, once a shared commit is durable, and never for a body rolled back.
@Suite(.againstHanging, .onOwnThreads) struct AfterCommitTests: GroupCommitSuite {
    let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
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
