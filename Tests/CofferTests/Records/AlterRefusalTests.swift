import Foundation
import Testing

@testable import Coffer

/// Changes of a table that would lose something, or change what other SQL means, are refused.
@Suite(.againstHanging, .onOwnThreads) struct AlterRefusalTests {
    private let fixture: RecordFixture
    private let migrator: Migrator

    struct Item: Record {
        var id: Int
        var code: String
        var amount: Int?
    }

    init() throws {
        fixture = try RecordFixture()
        migrator = Migrator(fixture.store)
    }

    private func schema() throws -> [Value] {
        try fixture.values("SELECT sql FROM sqlite_master ORDER BY name")
    }

    /// Runs a migration that fails, and compares schema and rows of `item` afterwards.
    @discardableResult
    private func refuse(
        _ code: StoreError.Code, _ line: Int = #line,
        _ body: @escaping @Sendable (inout WriteTransaction) throws -> Void
    ) throws -> StoreError? {
        let before = (try schema(), try fixture.values("SELECT * FROM item"))
        let error = expect(code) { try migrator.run(body) }
        #expect(error?.hint != nil || error?.column != nil, "line \(line)")
        #expect(try schema() == before.0, "line \(line)")
        #expect(try fixture.values("SELECT * FROM item") == before.1, "line \(line)")
        return error
    }

    @Test func `a dropped column whose CHECK names the table takes nothing else along`() throws {
        try fixture.execute(
            """
            CREATE TABLE transactions(a INT, b INT CHECK (transactions.b > 0), CHECK (a > 0))
            """)
        try migrator.run { tx in try tx.table("transactions").dropColumns("b") }
        try fixture.store.write { tx throws in
            _ = expect(.constraint) { try tx.execute("INSERT INTO transactions VALUES (0)") }
            try tx.execute("INSERT INTO transactions VALUES (1)")
        }
    }

    @Test func `a CHECK behind a dropped column that is about others stays`() throws {
        try fixture.execute(
            "CREATE TABLE item(id INTEGER PRIMARY KEY, a INT, b INT CHECK (a > id))")
        try refuse(.unsupported) { tx in try tx.table("item").dropColumns("b") }
    }

    @Test(.enabled(if: isEngine4)) func `a generated column is not lost`() throws {
        try fixture.execute(
            """
            CREATE TABLE item(id INTEGER PRIMARY KEY, code TEXT NOT NULL,
                amount INTEGER AS (id * 2) STORED)
            """)
        try fixture.execute("INSERT INTO item VALUES (1, 'a')")
        let error = try refuse(.unsupported) { tx in try tx.alter(Item.self) }
        #expect(error?.column == "amount")
    }

    @Test func `values are not converted by a column's new type`() throws {
        try fixture.execute(
            "CREATE TABLE item(id INTEGER PRIMARY KEY, code TEXT NOT NULL, amount TEXT)")
        try fixture.execute("INSERT INTO item VALUES (1, 'a', '007')")
        try refuse(.mismatch) { tx in try tx.alter(Item.self) }
        try migrator.run { tx in
            try tx.alter(Item.self) { table in
                table.set(\.amount, sql: "CAST(amount AS INTEGER)")
            }
        }
        #expect(try fixture.values("SELECT amount FROM item") == [7])
    }

    @Test func `a column without a type gets one if all of its values stay as they are`() throws {
        for (value, isExact) in [
            ("7", true), ("NULL", true), ("'7'", true), ("9223372036854775807", true),
            ("'7.0'", false), ("' 7'", false), ("'seven'", false), ("7.5", false), ("x'37'", false),
        ] {
            try fixture.execute(
                "CREATE TABLE item(id INTEGER PRIMARY KEY, code TEXT NOT NULL, amount)")
            try fixture.execute("INSERT INTO item VALUES (1, 'a', \(SQL(text: value)))")
            if isExact {
                try migrator.run { tx in try tx.alter(Item.self) }
                let kept = try fixture.values("SELECT amount IS \(SQL(text: value)) FROM item")
                #expect(kept == [1], "\(value)")
            } else {
                try refuse(.mismatch) { tx in try tx.alter(Item.self) }
            }
            try fixture.execute("DROP TABLE item")
        }
    }

    @Test func `SQL that takes columns by their places keeps the order`() throws {
        for sql: SQL in [
            "CREATE VIEW v(a, b, c) AS SELECT * FROM item",
            "CREATE TRIGGER v AFTER INSERT ON other BEGIN INSERT INTO item VALUES (1, 2, 3); END",
        ] {
            try fixture.execute(
                "CREATE TABLE item(amount INTEGER, code TEXT NOT NULL, id INTEGER PRIMARY KEY)")
            try fixture.execute("CREATE TABLE other(a)")
            try fixture.execute(sql)
            try refuse(.unsupported) { tx in try tx.alter(Item.self) }
            try fixture.execute(
                "DROP \(SQL(text: sql.text.contains("VIEW") ? "VIEW" : "TRIGGER")) v")
            try migrator.run { tx in try tx.alter(Item.self) }
            try fixture.execute("DROP TABLE item")
            try fixture.execute("DROP TABLE other")
        }
    }

    @Test func `a text in double quotes does not become a column`() throws {
        try fixture.execute(
            "CREATE TABLE item(id INTEGER PRIMARY KEY, kind TEXT, b TEXT)")
        for sql: SQL in [
            "CREATE VIEW v AS SELECT count(*) FROM item WHERE kind = \"special\"",
            "CREATE UNIQUE INDEX v ON item(id) WHERE kind = \"special\"",
            """
            CREATE TRIGGER v AFTER INSERT ON item BEGIN
                UPDATE item SET kind = \"special\" WHERE id = new.id; END
            """,
        ] {
            do { try fixture.execute(sql) } catch { continue }  // Not every engine takes it.
            try refuse(.unsupported) { tx in
                try tx.table("item").renameColumn("b", to: "special")
            }
            let kind = ["VIEW", "INDEX", "TRIGGER"].first { sql.text.contains(" \($0) ") }
            try fixture.execute("DROP \(SQL(text: kind ?? "")) v")
        }
    }

    @Test func `a column does not replace another one that the type has too`() throws {
        try fixture.execute(
            "CREATE TABLE item(id INTEGER PRIMARY KEY, code TEXT NOT NULL, number TEXT, amount INT)"
        )
        try refuse(.misuse) { tx in
            try tx.alter(Item.self) { table in table.rename("number", to: \.code) }
        }
    }

    @Test func `UNIQUE, DEFAULT and foreign keys are given up only if asked`() throws {
        for clause in [
            "code TEXT NOT NULL UNIQUE, amount INTEGER",
            "code TEXT NOT NULL, amount INTEGER DEFAULT 7",
            "code TEXT NOT NULL, amount INTEGER REFERENCES other(id) ON DELETE CASCADE",
        ] {
            try fixture.execute("CREATE TABLE other(id INTEGER PRIMARY KEY)")
            try fixture.execute(
                "CREATE TABLE item(id INTEGER PRIMARY KEY, \(SQL(text: clause)), gone INT)")
            try refuse(.mismatch) { tx in
                try tx.alter(Item.self) { table in table.drop("gone") }
            }
            try migrator.run { tx in
                try tx.alter(Item.self) { table in
                    table.drop("gone")
                    table.dropUndeclaredClauses()
                }
            }
            try fixture.execute("DROP TABLE item")
            try fixture.execute("DROP TABLE other")
        }
    }

    @Test func `a history that would miss changed values stops the change`() throws {
        try fixture.store.write { tx throws in
            try tx.insert(Item(id: 1, code: "a", amount: 1))
            try tx.keepHistory(of: "item")
        }
        try refuse(.unsupported) { tx in
            try tx.alter(Item.self) { table in table.set(\.amount, sql: "amount + 1") }
        }
        try migrator.run { tx in try tx.alter(Item.self) }
    }

    @Test func `a table whose expressions name it is not renamed`() throws {
        try fixture.execute(
            "CREATE TABLE item(id INTEGER PRIMARY KEY, a INT, CHECK (item.a > 0))")
        try refuse(.unsupported) { tx in try tx.table("item").rename(to: "thing") }
        try fixture.execute("DROP TABLE item")
        try fixture.execute("CREATE TABLE item(id INTEGER PRIMARY KEY, a INT)")
        try fixture.execute("CREATE INDEX i ON item(a) WHERE item.a > 0")
        try refuse(.unsupported) { tx in try tx.table("item").rename(to: "thing") }
    }

    @Test func `a word that is a value in a CHECK stays one`() throws {
        try fixture.execute(
            """
            CREATE TABLE item(id INTEGER PRIMARY KEY, "null" INT,
                a INT CHECK (a IS NOT NULL AND "null" > 0))
            """)
        try migrator.run { tx in try tx.table("item").renameColumn("null", to: "x") }
        expect(.constraint) { try fixture.execute("INSERT INTO item VALUES (1, 1, NULL)") }
        expect(.constraint) { try fixture.execute("INSERT INTO item VALUES (1, 0, 1)") }
        try fixture.execute("INSERT INTO item VALUES (1, 1, 1)")
    }

    private struct Gained: Record {
        static let table = "item"
        var id: Int
        var code: String
        var more: Int?
    }

    @Test func `values do not move when one column goes and another one comes`() throws {
        try fixture.execute("CREATE TABLE item(id INTEGER PRIMARY KEY, b TEXT, code TEXT NOT NULL)")
        try fixture.execute("CREATE TABLE other(a)")
        try fixture.execute(
            """
            CREATE TRIGGER v AFTER INSERT ON other BEGIN
                INSERT INTO 'item' VALUES (NULL, 'b', 'code'); END
            """)
        try refuse(.unsupported) { tx in
            try tx.alter(Gained.self) { table in table.drop("b") }
        }
    }

    @Test func `a view of a table in single quotes is looked at`() throws {
        try fixture.execute(
            "CREATE TABLE item(amount INTEGER, code TEXT NOT NULL, id INTEGER PRIMARY KEY)")
        try fixture.execute("CREATE VIEW v(a, b, c) AS SELECT * FROM 'item'")
        try refuse(.unsupported) { tx in try tx.alter(Item.self) }
    }

    @Test func `a join by all common names does not change`() throws {
        try fixture.execute("CREATE TABLE item(id INTEGER PRIMARY KEY, code TEXT)")
        try fixture.execute("CREATE TABLE other(id, code)")
        try fixture.execute("CREATE VIEW v AS SELECT other.id FROM item NATURAL JOIN other")
        try refuse(.unsupported) { tx in
            try tx.table("item").renameColumn("code", to: "isbn")
        }
    }

    @Test func `a column of a query around does not become one of the table`() throws {
        try fixture.execute("CREATE TABLE item(id INTEGER PRIMARY KEY, kind TEXT, b TEXT)")
        try fixture.execute("CREATE TABLE folder(id, note)")
        try fixture.execute(
            """
            CREATE VIEW v AS SELECT folder.id, (
                SELECT count(*) FROM item WHERE kind = note) AS n FROM folder
            """)
        try refuse(.unsupported) { tx in try tx.table("item").renameColumn("b", to: "note") }
        try migrator.run { tx in try tx.table("item").renameColumn("b", to: "c") }
    }

    @Test func `a trigger with a function of another program keeps its columns`() throws {
        try fixture.execute("CREATE TABLE item(id INTEGER PRIMARY KEY, code TEXT)")
        try fixture.execute("CREATE TABLE log(a)")
        try fixture.execute(
            """
            CREATE TRIGGER v AFTER INSERT ON item BEGIN INSERT INTO log VALUES (slug(new.code)); END
            """)
        try refuse(.unsupported) { tx in try tx.table("item").renameColumn("code", to: "x") }
    }

    private struct Named: Record {
        static let table = "item"
        static var indexes: [Index<Self>] { [Index(\.code, isUnique: true)] }
        var id: Int
        var code: String
    }

    @Test func `a collation of UNIQUE is not lost`() throws {
        try fixture.execute(
            """
            CREATE TABLE item(id INTEGER PRIMARY KEY, code TEXT NOT NULL, gone INT,
                UNIQUE(code COLLATE NOCASE))
            """)
        try refuse(.mismatch) { tx in try tx.alter(Named.self) { table in table.drop("gone") } }
    }

    private struct Rekeyed: Record {
        static let table = "item"
        static var key: [String] { ["number"] }
        var id: Int
        var number: Int
    }

    @Test func `a foreign key without columns does not refer to another key`() throws {
        try fixture.execute("CREATE TABLE item(id INTEGER PRIMARY KEY, number INTEGER NOT NULL)")
        try fixture.execute("INSERT INTO item VALUES (1, 2), (2, 1)")
        try fixture.execute("CREATE TABLE kid(p REFERENCES item)")
        try refuse(.unsupported) { tx in try tx.alter(Rekeyed.self) }
    }

    @Test func `a word that is a value in an index stays one`() throws {
        try fixture.execute("CREATE TABLE item(\"null\" INT, a INT)")
        try fixture.execute("CREATE UNIQUE INDEX i ON item(a, \"null\") WHERE a IS NOT NULL")
        try migrator.run { tx in try tx.table("item").renameColumn("null", to: "x") }
        let texts = try fixture.values("SELECT sql FROM sqlite_master WHERE name = 'i'")
        #expect(texts == ["CREATE UNIQUE INDEX i ON item(a, \"x\") WHERE a IS NOT NULL"])
    }

    @Test func `a full-text table that reads another table's texts keeps them`() throws {
        try fixture.execute("CREATE TABLE item(id INTEGER PRIMARY KEY, body TEXT)")
        try fixture.execute("CREATE VIRTUAL TABLE words USING fts4(content=\"item\", body)")
        try refuse(.unsupported) { tx in try tx.table("item").rename(to: "paper") }
        try refuse(.unsupported) { tx in try tx.table("item").renameColumn("body", to: "text") }
    }

    private struct Composed: Record {
        static let table = "item"
        static var checks: [CheckConstraint<Self>] { [CheckConstraint(sql: "code <> '\u{e9}'")] }
        var id: Int
        var code: String
    }

    @Test func `a CHECK of another composition of a letter is another one`() throws {
        try fixture.execute(
            """
            CREATE TABLE item(id INTEGER PRIMARY KEY, code TEXT NOT NULL,
                CHECK (code <> 'e\u{301}'))
            """)
        try refuse(.mismatch) { tx in try tx.alter(Composed.self) }
    }
}
