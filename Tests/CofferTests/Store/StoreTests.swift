import Foundation
import Testing

@testable import Coffer

/// Reads and writes of one store: what returned is there, what threw is not.
@Suite(.againstHanging, .onOwnThreads) struct StoreTests: StoreSuite {
    let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    @Test(arguments: journalModes)
    func `a returned write is read back and a thrown one is undone`(
        mode: Configuration.JournalMode
    ) throws {
        struct Undo: Error {}
        let store = try make(.testing(mode))
        let count = try store.write { tx in try tx.execute("INSERT INTO t VALUES (1), (2)") }
        #expect(count == 2)
        #expect(throws: Undo.self) {
            try store.write { tx in
                try tx.execute("DELETE FROM t")
                throw Undo()
            }
        }
        #expect(try values(store) == [1, 2])
    }

    @Test func `the async twins do the same`() async throws {
        let store = try await Store(path: path, key: .numbered(1), configuration: .testing())
        try await store.write { tx in
            try tx.execute("CREATE TABLE t(v)")
            try tx.execute("INSERT INTO t VALUES (\(7))")
        }
        let value = try await store.read { tx in
            try tx.firstRow("SELECT v FROM t")?.get(0, as: Int.self)
        }
        #expect(value == 7)
        try await store.rekey(to: .numbered(2))
        try await store.close()
        let again = try await Store(path: path, key: .numbered(2), configuration: .testing())
        #expect(try await again.read { tx in try tx.rows("SELECT * FROM t").count } == 1)
    }

    @Test func `a savepoint that throws undoes its part only`() throws {
        let store = try make()
        try store.write { tx in
            try tx.execute("INSERT INTO t VALUES (1)")
            try? tx.savepoint { part in
                try part.execute("INSERT INTO t VALUES (2)")
                throw CancellationError()
            }
            try tx.savepoint { part in
                try part.execute("INSERT INTO t VALUES (3)")
                try part.savepoint { inner in try inner.execute("INSERT INTO t VALUES (4)") }
            }
        }
        #expect(try values(store) == [1, 3, 4])
    }

    @Test func `a write inside a write joins it as a savepoint`() throws {
        let store = try make()
        try store.write { tx in
            try tx.execute("INSERT INTO t VALUES (1)")
            try store.write { inner in try inner.execute("INSERT INTO t VALUES (2)") }
            try? store.write { inner in
                try inner.execute("INSERT INTO t VALUES (3)")
                throw CancellationError()
            }
        }
        #expect(try values(store) == [1, 2])
        try? store.write { tx in
            try store.write { inner in try inner.execute("INSERT INTO t VALUES (9)") }
            throw CancellationError()
        }
        #expect(try values(store) == [1, 2], "the outer throw undoes the inner write too")
    }

    @Test func `the outer transaction is misuse while an inner one is open`() throws {
        let store = try make()
        try store.write { tx in
            let outer = tx.access
            try store.write { _ in
                expect(.misuse) { try outer.connection() }
            }
            try tx.execute("INSERT INTO t VALUES (1)")
        }
        #expect(try values(store) == [1])
    }

    @Test func `a transaction is misuse after its body`() throws {
        let store = try make()
        let access = try store.write { tx in tx.access }
        expect(.misuse) { try access.connection() }
    }

    @Test func `a read inside a write sees the write, inside a read its snapshot`() throws {
        let store = try make()
        try store.write { tx in
            try tx.execute("INSERT INTO t VALUES (1)")
            #expect(try store.read { inner in try inner.rows("SELECT * FROM t").count } == 1)
        }
        let counts = try store.read { tx -> [Int] in
            let before = try tx.rows("SELECT * FROM t").count
            let thread = Thread {
                try? store.write { _ = try $0.execute("INSERT INTO t VALUES (2)") }
            }
            thread.start()
            try waitUntil { thread.isFinished }
            let after = try store.read { inner in try inner.rows("SELECT * FROM t").count }
            return [before, after]
        }
        #expect(counts == [1, 1])
        #expect(try values(store) == [1, 2])
    }

    @Test func `a write inside a read is misuse`() throws {
        let store = try make()
        try store.read { _ in
            _ = expect(.misuse) {
                try store.write { tx in try tx.execute("INSERT INTO t VALUES (1)") }
            }
        }
        #expect(try values(store) == [])
    }

    @Test func `two stores may be nested in each other`() throws {
        let store = try make()
        let other = try Store(
            path: folder.path("other.db"), key: .numbered(3), configuration: .testing())
        try store.write { tx in
            try other.write { inner in
                try inner.execute("CREATE TABLE u(v)")
                try store.write { joined in try joined.execute("INSERT INTO t VALUES (5)") }
            }
        }
        #expect(try values(store) == [5])
    }

    @Test(arguments: journalModes)
    func `a change in a read is refused in every journal mode, also inside a write`(
        mode: Configuration.JournalMode
    ) throws {
        let store = try make(.testing(mode))
        for sql: SQL in ["INSERT INTO t VALUES (1)", "DROP TABLE t", "PRAGMA user_version = 7"] {
            expect(.readOnly) { try store.read { tx in try tx.rows(sql).count } }
            expect(.readOnly) { try store.read { tx in try tx.firstRow(sql)?.values } }
            try store.write { tx in
                _ = expect(.readOnly) { try store.read { inner in try inner.rows(sql).count } }
                try tx.execute("SELECT 1")
            }
        }
        #expect(try values(store) == [])
    }

    @Test(arguments: [
        "BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT s", "RELEASE s", "ROLLBACK TO s",
        "/* hidden */ commit", "PRAGMA key = 'x'", "PRAGMA rekey = 'x'", "PRAGMA hexkey = '00'",
        "PRAGMA journal_mode = DELETE", "PRAGMA temp_store = 1", "PRAGMA locking_mode = EXCLUSIVE",
        "PRAGMA cipher_page_size = 1024", "PRAGMA kdf_iter = 1", "PRAGMA query_only = 0",
        "PRAGMA writable_schema = 1", "PRAGMA synchronous = OFF", "PRAGMA recursive_triggers = OFF",
        "ATTACH 'other.db' AS other", "DETACH other", "SELECT load_extension('x')",
        "SELECT fts3_tokenizer('x')",
    ])
    func `SQL that would break the transaction or the connection is misuse`(sql: String) throws {
        let store = try make()
        let error = expect(.misuse) {
            try store.write { tx in
                try tx.execute("INSERT INTO t VALUES (1)")
                try tx.execute(SQL(text: sql))
            }
        }
        #expect(error?.sql == (sql.contains("key") ? "PRAGMA …" : sql), "no key in an error")
        #expect(try values(store) == [])
        try store.write { tx in try tx.execute("INSERT INTO t VALUES (2)") }
        #expect(try values(store) == [2])
    }

    @Test func `pragmas that only ask are allowed`() throws {
        let store = try make()
        let names = try store.read { tx in
            try tx.rows("PRAGMA table_info(t)").map { try $0.get("name", as: String.self) }
        }
        #expect(names == ["v"])
        #expect(try store.read { tx in try tx.firstRow("PRAGMA foreign_keys")?[0] } == .integer(1))
        #expect(try store.read { tx in try tx.firstRow("PRAGMA synchronous")?[0] } == .integer(2))
        #expect(try store.read { tx in try tx.firstRow("PRAGMA temp_store")?[0] } == .integer(2))
    }

    @Test(.enabled(if: isEngine4), arguments: journalModes)
    func `RETURNING changes nothing in a read of records`(
        mode: Configuration.JournalMode
    ) throws {
        struct Mark: Record { var id: Int }
        let store = try make(.testing(mode))
        try store.write { tx in try tx.insert(Mark(id: 1)) }
        let sql: SQL = "DELETE FROM mark RETURNING *"
        expect(.readOnly) { try store.read { tx in try tx.fetch(Mark.self, sql: sql).count } }
        let count = try store.write { tx -> Int in
            _ = expect(.readOnly) {
                try store.read { inner in try inner.fetch(Mark.self, sql: sql).count }
            }
            return try tx.count(Mark.all)
        }
        #expect(count == 1)
    }

    @Test func `records see columns that another connection has added since`() throws {
        struct Thing: Record {
            var id: Int
            var extra: String?
        }
        let store = try make()
        try store.write { tx in
            try tx.execute("CREATE TABLE thing(id INTEGER PRIMARY KEY NOT NULL)")
            try tx.execute("INSERT INTO thing VALUES (1)")
        }
        let sql: SQL = "SELECT * FROM thing"
        let before = try store.read { tx in try tx.fetch(Thing.self, sql: sql).map(\.extra) }
        try store.write { tx in
            try tx.execute("ALTER TABLE thing ADD COLUMN extra TEXT")
            try tx.execute("UPDATE thing SET extra = 'there'")
        }
        let after = try store.read { tx in try tx.fetch(Thing.self, sql: sql).map(\.extra) }
        #expect(before == [nil] && after == ["there"])
    }

    @Test func `a pool of any size opens and closes at once`() throws {
        var configuration = Configuration.testing()
        configuration.maximumReaderCount = .max
        #expect(configuration.maximumReaderCount == 256)
        try make(configuration).close()
        configuration.maximumReaderCount = -1
        #expect(configuration.maximumReaderCount == 1)
    }

    @Test func `eight threads lose no write`() throws {
        let store = try make()
        DispatchQueue.concurrentPerform(iterations: 8) { _ in
            for _ in 0..<25 {
                try? store.write { tx in
                    let count = try tx.rows("SELECT v FROM t").count
                    try tx.execute("INSERT INTO t VALUES (\(count))")
                }
            }
        }
        #expect(try values(store) == Array(0..<200))
    }

    @Test func `a deferred foreign key that fails at COMMIT undoes the write with .constraint`()
        throws
    {
        let store = try make()
        try store.write { tx in
            try tx.execute("CREATE TABLE p(id INTEGER PRIMARY KEY)")
            try tx.execute("CREATE TABLE c(p REFERENCES p DEFERRABLE INITIALLY DEFERRED)")
        }
        expect(.constraint) {
            try store.write { tx in
                try tx.execute("INSERT INTO t VALUES (1)")
                try tx.execute("INSERT INTO c VALUES (42)")
            }
        }
        #expect(try values(store) == [])
        try store.write { tx in try tx.execute("INSERT INTO t VALUES (2)") }
        #expect(try values(store) == [2])
    }

    @Test func `ON CONFLICT ROLLBACK tells the body that all is undone`() throws {
        let store = try make()
        try store.write { tx in try tx.execute("CREATE TABLE u(v UNIQUE)") }
        expect(.rolledBack) {
            try store.write { tx in
                try tx.execute("INSERT INTO u VALUES (1)")
                _ = try? tx.execute("INSERT OR ROLLBACK INTO u VALUES (1)")
                try tx.execute("INSERT INTO t VALUES (1)")
            }
        }
        expect(.rolledBack) {
            try store.write { tx in
                try tx.execute("INSERT INTO u VALUES (1)")
                _ = try? tx.execute("INSERT OR ROLLBACK INTO u VALUES (1)")
            }
        }
        #expect(try values(store) == [])
        #expect(try store.read { tx in try tx.rows("SELECT * FROM u").count } == 0)
    }
}
