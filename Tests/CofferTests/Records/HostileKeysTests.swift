import CSQLCipher
import Foundation
import Synchronization
import Testing

@testable import Coffer

/// The table of keys has rows for Coffer's own statements only.
@Suite(.againstHanging, .onOwnThreads) struct HostileKeysTests {
    private let fixture: RecordFixture

    init() throws {
        fixture = try RecordFixture()
        try fixture.store.write { tx in
            try tx.insert((1...50).map { Item(id: $0, title: "t\($0)") })
        }
    }

    struct Item: Record, Equatable {
        var id: Int
        var title: String
    }

    struct FastItem: Record {
        static let access = RecordAccess.storedProperties
        static let table = "item"
        var id: Int
        var title: String
    }

    /// Uses the keys, so that the connection knows their table.
    private func expectFound(_ tx: borrowing some Reading & ~Copyable) throws {
        #expect(try tx.find(Item.self, keys: 41...60).map(\.id) == Array(41...50))
        #expect(try tx.find(FastItem.self, keys: 41...60).map(\.id) == Array(41...50))
        let list = Item.where(Array(41...300).contains(\.id)).order(by: \.id)
        #expect(try tx.fetch(list).map(\.id) == Array(41...50))
    }

    @Test func `SQL of the program finds no key, with any ticket`() throws {
        try fixture.store.write { tx throws in
            try expectFound(tx)
            for from in [
                "coffer_keys", "main.coffer_keys", "coffer_keys(0)", "coffer_keys(1)",
                "coffer_keys(NULL)", "coffer_keys('x')", "coffer_keys(x'00')", "coffer_keys(-1)",
                "coffer_keys WHERE ticket > 0", "coffer_keys WHERE ticket IN (0, 1, 2)",
                "item, coffer_keys(item.id)", "item LEFT JOIN coffer_keys ON ticket = item.title",
            ] {
                let rows = try tx.rows(SQL(text: "SELECT coffer_keys.value FROM \(from)"))
                #expect(rows.allSatisfy { $0[0] == .null }, "\(from)")
            }
            expect(.sql) { try tx.execute("INSERT INTO coffer_keys VALUES (1)") }
            expect(.sql) { try tx.execute("DELETE FROM coffer_keys") }
            expect(.sql) { try tx.execute("CREATE VIRTUAL TABLE k USING coffer_keys") }
            expect(.sql) { try tx.execute("CREATE VIRTUAL TABLE k USING coffer_keys(1)") }
            try expectFound(tx)
        }
    }

    /// Runs other code while it is decoded.
    struct Looking: Record {
        static let table = "item"
        @TaskLocal static var look: (@Sendable () throws -> Void)?
        var id: Int
        enum CodingKeys: CodingKey { case id }
        init(from decoder: any Decoder) throws {
            id = try decoder.container(keyedBy: CodingKeys.self).decode(Int.self, forKey: .id)
            try Self.look?()
        }
    }

    @Test(arguments: ["coffer_keys", "coffer_keys(1)", "shown"])
    func `SQL that runs while keys are looked up sees none of them`(from: String) throws {
        try fixture.execute("CREATE TABLE seen(key)")
        try fixture.execute("CREATE TABLE thing(id)")
        try fixture.store.write { tx throws in
            try expectFound(tx)
            _ = try tx.find(Looking.self, keys: 1...9)
            let connection = try tx.connection()
            try tx.execute("CREATE TEMP VIEW shown AS SELECT value FROM coffer_keys")
            try tx.execute(
                SQL(
                    text: """
                        CREATE TEMP TRIGGER thief AFTER INSERT ON main.thing BEGIN
                        INSERT INTO seen SELECT value FROM coffer_keys;
                        END
                        """))
            nonisolated(unsafe) let inside = connection
            let lookCount = Mutex(0)
            let found = try Looking.$look.withValue({
                let rows = try inside.rows(SQL(text: "SELECT value FROM \(from)"))
                #expect(rows.isEmpty)
                try inside.execute("INSERT INTO thing VALUES (1)")
                lookCount.withLock { $0 += 1 }
            }) { try tx.find(Looking.self, keys: 41...60) }
            #expect(found.map(\.id) == Array(41...50))
            #expect(lookCount.withLock { $0 } == 10)
            #expect(try tx.rows("SELECT * FROM thing").count == 10)
            #expect(try tx.rows("SELECT * FROM seen").isEmpty)
        }
    }

    @Test(arguments: [Item.self, FastItem.self] as [any Record.Type])
    func `a view that names the keys has no row of them`(type: any Record.Type) throws {
        try fixture.execute("ALTER TABLE item RENAME TO base")
        try fixture.execute(
            """
            CREATE VIEW item AS SELECT value AS id, 'key' AS title FROM coffer_keys
            UNION ALL SELECT id, title FROM base
            """)
        func expectNoKey<R: Record>(_ type: R.Type) throws {
            let keys = Array(1...60)
            // SQLCipher 4 refuses the view: the schema is not trusted.
            let found = try? fixture.store.read { tx in try tx.find(type, keys: keys) }
            let singly = try? fixture.store.read { tx throws in
                try keys.compactMap { try tx.find(type, $0) }
            }
            #expect(found?.count == singly?.count)
            #expect(found?.count ?? 50 == 50)
        }
        try expectNoKey(type)
    }

    /// Writes a table of the module into the schema, as a crafted file may have it.
    private static func makeTable(on handle: Handle) throws {
        _ = coffer_set_option(handle.db, Int32(coffer_option_defensive), 0)
        try handle.run("PRAGMA writable_schema = ON")
        try handle.run(
            "INSERT INTO sqlite_master VALUES ('table', 'evil', 'evil', 0, "
                + "'CREATE VIRTUAL TABLE evil USING coffer_keys')")
        try handle.run("PRAGMA writable_schema = OFF")
        let version = try handle.schemaVersion()
        try handle.run("PRAGMA schema_version = \(version + 1)")
    }

    @Test func `a crafted table of the module is empty, and is dropped without harm`() throws {
        try fixture.store.write { tx throws in
            try expectFound(tx)
            try Self.makeTable(on: try tx.connection().current())
        }
        let path = fixture.folder.path()
        try fixture.store.close()
        let store = try Store(path: path, key: .numbered(7), configuration: .testing())
        // Nobody has registered the module yet.
        expect(.sql) { try store.read { tx in try tx.rows("SELECT * FROM evil") } }
        try store.write { tx throws in
            try expectFound(tx)
            #expect(try tx.rows("SELECT * FROM evil").isEmpty)
            #expect(try tx.rows("SELECT * FROM evil WHERE ticket = 1").isEmpty)
            expect(.sql) { try tx.execute("INSERT INTO evil VALUES (1)") }
            try expectFound(tx)
            _ = try? tx.execute("ALTER TABLE evil RENAME TO worse")
            _ = try? tx.execute("DROP TABLE evil")
            try expectFound(tx)
        }
        try store.close()
    }

    @Test(arguments: [
        "CREATE TABLE coffer_keys(value, ticket)",
        "CREATE VIRTUAL TABLE Coffer_Keys USING fts4(value)",
        "CREATE TABLE Coffer_Keys(value, ticket, list)",
        "CREATE VIEW coffer_keys AS SELECT id AS value, 1 AS ticket FROM item",
        "CREATE TEMP TABLE coffer_keys(value, ticket)",
    ])
    func `an object of the same name changes no result`(definition: String) throws {
        try fixture.store.write { tx throws in
            try expectFound(tx)
            try tx.execute(SQL(text: definition))
            _ = try? tx.execute("INSERT INTO coffer_keys(value) VALUES (1), (2), (3)")
            try expectFound(tx)
            #expect(
                try tx.find(Item.self, keys: [7, 8, 7, 9, 99, 10]).map(\.id) == [7, 8, 7, 9, 10])
            expect(.mismatch) { try tx.find(Item.self, keys: [1, 2, 3, 4, "x"] as [Value]) }
        }
    }
}
