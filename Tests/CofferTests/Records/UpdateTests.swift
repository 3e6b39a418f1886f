import Coffer
import Testing

/// `update` runs as `UPDATE OR FAIL` where that is equivalent. These tables are those where it is
/// not.
@Suite(.againstHanging, .onOwnThreads) struct UpdateTests {
    private struct Item: Record, Equatable {
        static let table = "item"
        var id: Int
        var name: String
    }

    private let fixture: RecordFixture

    init() throws {
        fixture = try RecordFixture()
    }

    private func makeTable(_ sql: SQL, then more: SQL...) throws {
        try fixture.store.write { tx throws in
            try tx.execute(sql)
            for sql in more { try tx.execute(sql) }
            try tx.execute("INSERT INTO item VALUES (1, 'one'), (2, 'two')")
        }
    }

    private func items() throws -> [Item] {
        try fixture.store.read { tx in try tx.fetch(Item.all.order(by: \.id)) }
    }

    @Test func `a failed update rolls back what a trigger did before it failed`() throws {
        try makeTable(
            "CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT UNIQUE)",
            then: "CREATE TABLE log(text TEXT)",
            "CREATE TRIGGER t BEFORE UPDATE ON item BEGIN INSERT INTO log VALUES ('x'); END")
        try fixture.store.write { tx throws in
            _ = expect(.constraint) { try tx.update(Item(id: 2, name: "one")) }
            #expect(try tx.updateIfPresent(Item(id: 2, name: "three")))
        }
        #expect(try fixture.values("SELECT count(*) FROM log") == [.integer(1)])
    }

    @Test
    func `a failed update rolls back what a trigger did that was made after the first update`()
        throws
    {
        try makeTable(
            "CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT UNIQUE)",
            then: "CREATE TABLE log(text TEXT)")
        try fixture.store.write { tx throws in
            try tx.update(Item(id: 2, name: "TWO"))
            try tx.execute(
                """
                CREATE TEMP TRIGGER t BEFORE UPDATE ON item
                BEGIN INSERT INTO log VALUES ('x'); END
                """)
            _ = expect(.constraint) { try tx.update(Item(id: 2, name: "one")) }
        }
        #expect(try fixture.values("SELECT count(*) FROM log") == [.integer(0)])
    }

    @Test func `a key that names several rows changes all of them or none`() throws {
        try makeTable("CREATE TABLE item(id INTEGER, name TEXT UNIQUE)")
        try fixture.execute("INSERT INTO item VALUES (2, 'three')")
        try fixture.store.write { tx throws in
            _ = expect(.constraint) { try tx.update(Item(id: 2, name: "four")) }
        }
        let names = try fixture.values("SELECT name FROM item ORDER BY name")
        #expect(names == [.text("one"), .text("three"), .text("two")])
    }

    @Test func `the table's own conflict clause applies`() throws {
        try makeTable(
            "CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT UNIQUE ON CONFLICT REPLACE)")
        try fixture.store.write { tx throws in
            #expect(try tx.updateIfPresent(Item(id: 2, name: "one")))
        }
        #expect(try items() == [Item(id: 2, name: "one")])
    }

    @Test func `a failed update of one row leaves it as it was, and the transaction open`() throws {
        try makeTable("CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT UNIQUE)")
        try fixture.store.write { tx throws in
            _ = expect(.constraint) { try tx.update(Item(id: 2, name: "one")) }
            try tx.insert(Item(id: 3, name: "three"))
        }
        #expect(try items().map(\.name) == ["one", "two", "three"])
    }
}
