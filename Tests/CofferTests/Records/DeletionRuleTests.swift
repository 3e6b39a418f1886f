import CSQLCipher
import Foundation
import Synchronization
import Testing

@testable import Coffer

/// Rules of a table that the deletion of many keys keeps: triggers, foreign keys, views, functions.
@Suite(.againstHanging, .onOwnThreads) struct DeletionRuleTests {
    private let fixture: DeletionFixture

    init() throws {
        fixture = try DeletionFixture()
        try fixture.run("CREATE TABLE seen(n INTEGER PRIMARY KEY, id, count)")
    }

    private struct Item: Record {
        var id: Int
        var title: String?
    }

    private struct Undo: Error {}

    /// A table `item` with 300 rows.
    private func makeItems(_ definition: String = "id INTEGER PRIMARY KEY, title TEXT") throws {
        try fixture.run(
            "DROP TABLE IF EXISTS part", "DROP TABLE IF EXISTS item",
            "CREATE TABLE item(\(definition))",
            """
            WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < 300)
            INSERT INTO item(id) SELECT n FROM i
            """)
    }

    private let keys = Array((150...320).reversed()) + Array(1...149)

    // MARK: Triggers

    @Test(arguments: [
        "BEFORE DELETE ON item BEGIN INSERT INTO seen(id) VALUES (old.id); END",
        "AFTER DELETE ON item BEGIN "
            + "INSERT INTO seen(id, count) SELECT old.id, count(*) FROM item; END",
        "BEFORE DELETE ON item WHEN old.id = 77 BEGIN SELECT raise(ABORT, 'kept'); END",
        "BEFORE DELETE ON item WHEN old.id = 77 BEGIN SELECT raise(FAIL, 'kept'); END",
        "BEFORE DELETE ON item WHEN old.id % 3 = 0 BEGIN SELECT raise(IGNORE); END",
        "AFTER DELETE ON item BEGIN DELETE FROM item WHERE id = old.id + 1; END",
        "AFTER DELETE ON item BEGIN UPDATE item SET id = old.id WHERE id = old.id + 1; END",
    ])
    func `triggers see one deletion after the other, in the order of the keys`(
        body: String
    ) throws {
        for place in ["TRIGGER", "TEMP TRIGGER"] {
            try makeItems()
            try fixture.run(
                "CREATE \(place) rule \(body.replacing("ON item", with: "ON main.item"))")
            try fixture.check(Item.self, keys, isMany: false, others: ["seen"])
        }
    }

    @Test func `a trigger that comes after the first deletion is kept as well`() throws {
        try makeItems()
        #expect(try fixture.check(Item.self, keys) == 300)
        try fixture.store.write { tx throws in
            #expect(try tx.delete(Item.self, keys: 1...120) == 120)
            try tx.execute(
                """
                CREATE TRIGGER rule BEFORE DELETE ON item BEGIN
                    INSERT INTO seen(id) VALUES (old.id);
                END
                """)
            #expect(try tx.delete(Item.self, keys: (121...240).reversed()) == 120)
            let seen = try tx.rows("SELECT id FROM seen ORDER BY n").map {
                try $0.get("id", as: Int.self)
            }
            #expect(seen == (121...240).reversed())
        }
        try fixture.check(Item.self, keys, isMany: false, others: ["seen"])
    }

    @Test func `a trigger that was undone is forgotten`() throws {
        try makeItems()
        _ = try? fixture.store.write { tx throws in
            try tx.execute("CREATE TRIGGER rule BEFORE DELETE ON item BEGIN SELECT 1; END")
            #expect(try tx.delete(Item.self, keys: 1...120) == 120)
            throw Undo()
        }
        #expect(try fixture.check(Item.self, keys) == 300)
    }

    // MARK: Foreign keys

    @Test(arguments: [
        "REFERENCES item(id)", "REFERENCES item(id) ON DELETE RESTRICT",
        "REFERENCES item(id) ON DELETE CASCADE", "REFERENCES item(id) ON DELETE SET NULL",
        "REFERENCES item(id) DEFERRABLE INITIALLY DEFERRED",
    ])
    func `foreign keys are followed and checked for each row`(reference: String) throws {
        try makeItems()
        try fixture.run(
            "CREATE TABLE part(id INTEGER PRIMARY KEY, item \(reference))",
            "INSERT INTO part(item) VALUES (200), (20), (20), (NULL)")
        try fixture.check(Item.self, keys, isMany: false, others: ["part"])
        try makeItems("id INTEGER PRIMARY KEY, title TEXT, item \(reference)")
        try fixture.run("UPDATE item SET item = 300 - id WHERE id < 290")
        try fixture.check(Item.self, keys, isMany: false)
    }

    @Test func `deleting while foreign keys are paused leaves them in force later`() throws {
        try makeItems()
        try fixture.run(
            "CREATE TABLE part(id INTEGER PRIMARY KEY, item REFERENCES item(id))",
            "INSERT INTO part(item) VALUES (200)")
        try fixture.store.migrate([
            Migration("first") { tx throws in
                #expect(try tx.delete(Item.self, keys: 1...120) == 120)
            }
        ])
        let error = expect(.constraint) {
            try fixture.store.write { tx in try tx.delete(Item.self, keys: 101...300) }
        }
        #expect(error?.table == "item")
        try fixture.check(Item.self, keys, isMany: false, others: ["part"])
    }

    // MARK: Names and kinds

    @Test func `views and tables without such a key are as for single keys`() throws {
        try makeItems()
        try fixture.run("ALTER TABLE item RENAME TO base", "CREATE VIEW item AS SELECT * FROM base")
        try fixture.check(Item.self, keys, isMany: false)
        try fixture.run(
            """
            CREATE TRIGGER rule INSTEAD OF DELETE ON item BEGIN
                DELETE FROM base WHERE id = old.id;
            END
            """)
        try fixture.check(Item.self, keys, isMany: false, others: ["base"])
        try fixture.run("DROP VIEW item", "CREATE TABLE item(other)")
        try fixture.check(Item.self, keys, isMany: false)
        try fixture.run("DROP TABLE item")
        try fixture.store.write { tx throws in
            #expect(try tx.delete(Item.self, keys: keys) == 0)
            #expect(try tx.delete(Item.self, keys: keys.map { "\($0)" }) == 0)
        }
    }

    @Test func `a temporary table that hides the file's is changed instead`() throws {
        try makeItems()
        try fixture.store.write { tx throws in
            #expect(try tx.delete(Item.self, keys: 1...120) == 120)
            try tx.execute("CREATE TEMP TABLE item AS SELECT id, title FROM main.item")
            #expect(try tx.delete(Item.self, keys: 1...300) == 180)
            try tx.execute("DROP TABLE temp.item")
            #expect(try tx.delete(Item.self, keys: 1...300) == 180)
        }
    }

    private struct Pair: Record {
        static let table = "item"
        static let key = ["id", "title"]
        var id: Int
        var title: String
    }

    private struct Keyless: Record {
        static let table = "item"
        static let key: [String] = []
        var title: String
    }

    @Test func `types without a key of one column are misuse, as for one key`() throws {
        try makeItems()
        try fixture.store.write { tx throws in
            for type in [Pair.self, Keyless.self] as [any Record.Type] {
                expect(.misuse) { try tx.delete(type, keys: 1...300) }
                expect(.misuse) { try tx.delete(type, keys: (1...300).map { $0 }) }
                expect(.misuse) { try tx.delete(type, keys: [1]) }
                #expect(try tx.delete(type, keys: [Int]()) == 0)
            }
            #expect(try tx.rows("SELECT * FROM item").count == 300)
        }
    }

    // MARK: Indexes and functions

    @Test(arguments: [
        ["CREATE INDEX i ON item(title)", "CREATE UNIQUE INDEX j ON item(title, id)"],
        ["CREATE INDEX i ON item(title) WHERE id > 100"],
        ["CREATE INDEX i ON item(id)", "CREATE INDEX j ON item(title COLLATE NOCASE)"],
    ])
    func `indexes lose the rows as well`(indexes: [String]) throws {
        try makeItems()
        try fixture.run("UPDATE item SET title = 'title ' || id % 7")
        for sql in indexes { try fixture.run(sql) }
        #expect(try fixture.check(Item.self, keys) == 300)
        try fixture.store.write { tx throws in
            #expect(try tx.delete(Item.self, keys: (1...200).map { $0 }) == 200)
            #expect(try tx.rows("PRAGMA integrity_check").map(\.values) == [["ok"]])
        }
    }

    @Test func `an index that calls a function is left to single deletions`() throws {
        try makeItems()
        try fixture.run("CREATE INDEX i ON item(lower(title))")
        try fixture.check(Item.self, keys, isMany: false)
    }

    // MARK: Stopping

    @Test func `an undone deletion gives the rows back`() throws {
        try makeItems()
        try fixture.store.write { tx throws in
            #expect(throws: Undo.self) {
                try tx.savepoint { part in
                    #expect(try part.delete(Item.self, keys: Array(1...300)) == 300)
                    throw Undo()
                }
            }
            #expect(try tx.count(Item.all) == 300)
        }
        #expect(throws: Undo.self) {
            try fixture.store.write { tx throws in
                #expect(try tx.delete(Item.self, keys: Array(1...300)) == 300)
                throw Undo()
            }
        }
        #expect(try fixture.store.read { tx in try tx.count(Item.all) } == 300)
    }

    @Test func `a cancelled task deletes nothing`() async throws {
        try makeItems()
        let store = fixture.store
        let running = Mutex<Task<Int, any Error>?>(nil)
        let task = Task {
            try await store.write { tx in
                try waitUntil { running.withLock { $0 != nil } }
                let keys = (1...300).lazy.map { id in
                    if id == 290 { running.withLock { $0?.cancel() } }
                    return id
                }
                return try tx.delete(Item.self, keys: keys)
            }
        }
        running.withLock { $0 = task }
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(try await store.read { tx in try tx.count(Item.all) } == 300)
    }

    @Test func `an interrupted deletion is undone, and the next one works`() throws {
        try makeItems()
        let error = expect(.cancelled) {
            try fixture.store.write { tx throws in
                let db = try tx.connection().current().db
                // The first row that goes interrupts the rest of the statement.
                sqlite3_update_hook(
                    db, { db, _, _, _, _ in sqlite3_interrupt(OpaquePointer(db)) },
                    UnsafeMutableRawPointer(db))
                defer { sqlite3_update_hook(db, nil, nil) }
                return try tx.delete(Item.self, keys: Array(1...200))
            }
        }
        #expect(error != nil)
        #expect(try fixture.store.read { tx in try tx.count(Item.all) } == 300)
        #expect(try fixture.check(Item.self, keys) == 300)
    }
}
