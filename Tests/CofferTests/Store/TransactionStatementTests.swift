import Foundation
import Testing

@testable import Coffer

/// What a transaction has of a whole database: scripts, statements and cursors by hand, the schema.
@Suite(.againstHanging, .onOwnThreads) struct TransactionStatementTests {
    private let folder: TemporaryFolder
    private let store: Store

    init() throws {
        folder = try TemporaryFolder()
        store = try Store(path: folder.path(), key: .numbered(1), configuration: .testing())
        try store.write { tx in
            try tx.executeScript(
                """
                CREATE TABLE parent (id INTEGER PRIMARY KEY, name TEXT);
                CREATE TABLE child (id INTEGER PRIMARY KEY, parent REFERENCES parent);
                CREATE INDEX of_parent ON child (parent);
                CREATE VIEW names AS SELECT name FROM parent;
                CREATE TRIGGER told AFTER DELETE ON child BEGIN SELECT 1; END;
                INSERT INTO parent VALUES (1, 'a'), (2, 'b'); -- two
                """)
        }
    }

    @Test func `a script whose third statement fails has done nothing, and the rest goes on`()
        throws
    {
        try store.write { tx throws in
            let text =
                "CREATE TABLE t (a); INSERT INTO t VALUES (1); INSERT INTO nothing VALUES (2)"
            let error = expect(.sql) { try tx.executeScript(text) }
            #expect(error?.sqlOffset != nil)
            #expect(try !tx.tableExists("t"))
            try tx.executeScript("INSERT INTO parent VALUES (3, 'c');;")
        }
        #expect(try store.read { tx in try tx.requireScalar("SELECT count(*) FROM parent") } == 3)
    }

    @Test(arguments: ["COMMIT", "ROLLBACK", "BEGIN", "SAVEPOINT a; RELEASE a", "PRAGMA key = 'x'"])
    func `a script cannot end the transaction or reach the key`(text: String) throws {
        try store.write { tx throws in
            expect(.misuse) { try tx.executeScript("DELETE FROM parent; \(text)") }
            #expect(try tx.requireScalar("SELECT count(*) FROM parent", as: Int.self) == 2)
        }
    }

    private final class Leak {
        var statement: Statement?
        var cursor: Cursor?
    }

    @Test func `a statement and a cursor serve in their body, and end with it`() throws {
        let leak = Leak()
        let found = try store.write { tx in
            let insert = try tx.prepare("INSERT INTO parent VALUES (?, ?)")
            for id in 10..<13 {
                try insert.bind([.integer(Int64(id)), .text("n\(id)")])
                #expect(try !insert.step())
            }
            #expect(try tx.lastInsertedRowID == 12)
            #expect(try tx.lastChangeCount == 1)
            let cursor = try tx.cursor("SELECT name FROM parent WHERE id >= \(10) ORDER BY id")
            var names: [String] = []
            while let row = try cursor.next() { names.append(try row.get(0)) }
            leak.statement = insert
            leak.cursor = try tx.cursor("SELECT 1")
            return names
        }
        #expect(found == ["n10", "n11", "n12"])
        expect(.closed) { try leak.statement?.step() }
        expect(.closed) { try leak.cursor?.step() }
    }

    @Test func `those of a savepoint end with the savepoint`() throws {
        let leak = Leak()
        try store.write { tx in
            let outer = try tx.cursor("SELECT id FROM parent ORDER BY id")
            #expect(try outer.next()?.get(0, as: Int.self) == 1)
            try tx.savepoint { inner in leak.cursor = try inner.cursor("SELECT 1") }
            expect(.closed) { try leak.cursor?.step() }
            #expect(try outer.next()?.get(0, as: Int.self) == 2)
        }
        struct Stop: Error {}
        #expect(throws: Stop.self) {
            try store.read { tx in
                leak.statement = try tx.prepare("SELECT id FROM parent")
                #expect(try leak.statement?.step() == true)
                throw Stop()
            }
        }
        expect(.closed) { try leak.statement?.step() }
        // Nothing of the read is left to keep the WAL.
        try store.write { tx in try tx.execute("DELETE FROM parent") }
        try store.close()
    }

    @Test func `one that the body drops ends there, and keeps neither a row nor memory`() throws {
        try store.write { tx in
            try tx.executeScript("CREATE TABLE two (x); INSERT INTO two VALUES (1), (2)")
            let connection = try tx.connection()
            for _ in 0..<1000 {
                let cursor = try tx.cursor("SELECT x FROM two")
                #expect(try cursor.step())
            }
            let kept = try tx.prepare("SELECT x FROM two WHERE x = 2")
            #expect(try connection.current().runningCount == 0)
            // With a cursor on a row, SQLite refuses this: the table is locked.
            try tx.execute("DROP TABLE two")
            expect(.sql) { try kept.step() }
        }
    }

    @Test func `a read takes no statement that changes anything`() throws {
        try store.read { tx throws in
            expect(.readOnly) { try tx.prepare("DELETE FROM parent") }
            expect(.readOnly) { try tx.cursor("DELETE FROM parent") }
            expect(.sql) { try tx.prepare("SELECT 1; SELECT 2") }
            expect(.misuse) { try tx.cursor(SQL(text: "SELECT ?")) }
            expect(.notFound) { try tx.requireScalar("SELECT NULL", as: Int.self) }
        }
    }

    @Test func `a transaction knows the schema that it sees`() throws {
        try store.write { tx throws in
            #expect(try tx.tableExists("PARENT") && !tx.tableExists("names"))
            #expect(try tx.viewExists("names") && tx.indexExists("of_parent"))
            #expect(try tx.triggerExists("told") && !tx.triggerExists("nothing"))
            #expect(try tx.columnExists("name", in: "parent"))
            #expect(try !tx.columnExists("other", in: "parent"))
            #expect(try tx.columns(of: "child").map(\.name) == ["id", "parent"])
            #expect(try tx.indexes(of: "child").map(\.name) == ["of_parent"])
            #expect(try tx.foreignKeys(of: "child").map(\.parentTable) == ["parent"])
            #expect(try tx.schemaObjects(in: "main").count == 5)
            expect(.notFound) { try tx.columns(of: "nothing") }
            expect(.notFound) { try tx.schemaObjects(in: "other") }
            #expect(try tx.userVersion == 0 && tx.applicationID == 0)
            try tx.setUserVersion(7)
            try tx.setApplicationID(9)
            try tx.execute("CREATE TABLE later (a)")
            #expect(try tx.tableExists("later"))
            try tx.rollback()
        }
        try store.read { tx throws in
            #expect(try tx.userVersion == 0 && tx.applicationID == 0)
            #expect(try !tx.tableExists("later"))
            try tx.validate("SELECT * FROM parent; SELECT 1")
            expect(.sql) { try tx.validate("SELECT * FROM later") }
        }
    }

    @Test func `damage under a cursor reaches nobody as rows`() throws {
        try store.write { tx in
            for id in 100..<2_000 {
                try tx.execute(
                    "INSERT INTO parent VALUES (\(id), \(String(repeating: "x", count: 99)))")
            }
        }
        try store.close()
        try Damage.flip(folder.path(), at: 39 * 4_096 + 200)
        let again = try Store(path: folder.path(), key: .numbered(1), configuration: .testing())
        expect(.damaged) {
            try again.read { tx in
                let cursor = try tx.cursor("SELECT name FROM parent")
                while try cursor.step() {}
            }
        }
    }
}
