import Foundation
import Testing

@testable import Coffer

/// Views and triggers that record types declare.
@Suite(.againstHanging, .onOwnThreads) struct ViewAndTriggerTests {
    private let fixture: RecordFixture
    private let migrator: Migrator
    private var store: Store { fixture.store }

    init() throws {
        fixture = try RecordFixture()
        migrator = Migrator(fixture.store)
    }

    private struct Shelf: Record {
        var id: Int64
        var changes: Int
    }

    private struct Book: Record {
        static var triggers: [Trigger<Self>] {
            [
                Trigger(
                    "book \"moved\"", .after, .update(of: \.shelf), when: "new.title <> \("it's")",
                    sql: "UPDATE shelf SET changes = changes + \(10) WHERE id = old.shelf",
                    "UPDATE shelf SET changes = changes + 10 WHERE id = new.shelf"),
                Trigger(
                    "book_added", .before, .insert,
                    sql: "INSERT OR IGNORE INTO shelf(id, changes) VALUES (new.shelf, 0)"),
                Trigger(
                    "book_gone", .after, .delete,
                    sql:
                        "UPDATE shelf SET changes = (SELECT count(*) FROM book) WHERE id = 1"
                ),
            ]
        }
        var id: Int64
        var title: String
        var shelf: Int64
        var price: Double
        var bought: Date?
    }

    private struct ShelfSum: Record, Equatable {
        static var view: SQL? {
            """
            WITH dear(id, shelf, price) AS (SELECT id, shelf, price FROM book WHERE price > \(1.5))
            SELECT shelf AS id, count(*) AS books, sum(price) AS total, \("it's") AS note
            FROM dear GROUP BY shelf
            """
        }
        var id: Int64
        var books: Int
        var total: Double
        var note: String
    }

    private func fill() throws {
        try store.write { tx throws in
            try tx.create(Shelf.self)
            try tx.create(Book.self)
            for (id, shelf, price) in [(1, 1, 2.0), (2, 1, 3), (3, 2, 1), (4, 2, 5)] {
                try tx.insert(
                    Book(id: Int64(id), title: "t", shelf: Int64(shelf), price: price))
            }
        }
    }

    private func changes() throws -> [Int] {
        try store.read { tx throws in try tx.fetch(Shelf.all).map(\.changes) }
    }

    // MARK: Triggers

    @Test func `declared triggers run for every change, and create makes them once`() throws {
        try fill()
        try store.write { tx throws in
            try tx.create(Book.self)
            #expect(try tx.schemaDifferences(of: Book.self).isEmpty)
        }
        #expect(try changes() == [0, 0])
        try fixture.execute("UPDATE book SET shelf = 2 WHERE id = 1")
        #expect(try changes() == [10, 10])
        try fixture.execute("UPDATE book SET title = 'it''s', shelf = 1 WHERE id = 1")
        #expect(try changes() == [10, 10])
        try store.write { tx throws in _ = try tx.delete(Book.self, key: 2) }
        #expect(try changes() == [3, 10])
    }

    private struct OtherBook: Record {
        static let table = "book"
        static var triggers: [Trigger<Self>] {
            [Trigger("book_gone", .after, .delete, sql: "DELETE FROM shelf WHERE id = old.shelf")]
        }
        var id: Int64
        var title: String
        var shelf: Int64
        var price: Double
        var bought: Date?
    }

    @Test func `a trigger with another text is replaced in a migration only`() throws {
        try fill()
        try store.write { tx throws in
            #expect(try tx.schemaDifferences(of: OtherBook.self).count == 1)
            let error = expect(.mismatch) { try tx.create(OtherBook.self) }
            #expect(error?.hint?.contains("migration") == true)
        }
        try fixture.execute("DELETE FROM book WHERE id = 1")
        #expect(try changes() == [3, 0])
        try migrator.run { tx in try tx.create(OtherBook.self) }
        try store.write { tx throws in
            #expect(try tx.schemaDifferences(of: OtherBook.self).isEmpty)
            _ = try tx.delete(Book.self, key: 2)
        }
        #expect(try changes() == [0])
    }

    @Test func `a trigger of another table keeps its name`() throws {
        try fill()
        try fixture.execute("DROP TRIGGER book_gone")
        try fixture.execute(
            "CREATE TRIGGER book_gone AFTER DELETE ON shelf BEGIN DELETE FROM book; END")
        let before = try fixture.values("SELECT sql FROM sqlite_master")
        expect(.mismatch) { try migrator.run { tx in try tx.create(Book.self) } }
        #expect(try fixture.values("SELECT sql FROM sqlite_master") == before)
    }

    private struct BadTrigger: Record {
        @TaskLocal static var made = Trigger<BadTrigger>("t", .after, .insert, sql: "SELECT 1")
        static var triggers: [Trigger<Self>] { [made] }
        var id: Int64
    }

    @Test func `a trigger that cannot run is not made`() throws {
        try fixture.execute("CREATE TABLE there(a)")
        for (code, name, sql) in [
            (.misuse, "coffer:t", "SELECT 1"), (.misuse, "t", "SELECT regexp('a', 'b')"),
            (.misuse, "t", "SELECT 1 FROM there WHERE a REGEXP 'b'"),
            (.sql, "t", "DELETE FROM missing"), (.sql, "t", "UPDATE there SET b = 1"),
            (.sql, "t", "SELEKT 1"), (.sql, "t", "SELECT 1; END; DROP TABLE there"),
            (.misuse, "t", "SELECT ?"), (.misuse, "t", "SELECT 1 -- one"),
            (.misuse, "t", "SELECT 1 /* one"),
            (.misuse, "t", "INSERT OR FAIL INTO there VALUES (1)"),
            (.misuse, "t", "SELECT raise(rollback, 'x')"),
        ] as [(StoreError.Code, String, String)] {
            // A type's declarations are read once, so each one is a trigger's own.
            let plan = try RecordPlan(
                typeName: "Bad", table: "bad",
                columns: RecordPlan.of(BadTrigger.self).columns, key: ["id"], isWithoutRowID: false
            ) { plan throws(StoreError) in
                do {
                    return try BadTrigger.$made.withValue(
                        Trigger(name, .after, .insert, sql: SQL(text: sql))
                    ) { try TableDeclaration(BadTrigger.self, plan) }
                } catch {
                    throw error as? StoreError ?? StoreError(.sql, "\(error)")
                }
            }
            expect(code) {
                try store.write { tx throws in
                    try RecordSchema(plan, tx.connection()).create()
                }
            }
            #expect(
                try fixture.values("SELECT name FROM sqlite_master ORDER BY name") == ["there"],
                "\(sql)")
        }
    }

    private struct Twice: Record {
        static var triggers: [Trigger<Self>] {
            [
                Trigger("t", .after, .insert, sql: "SELECT 1"),
                Trigger("T", .after, .delete, sql: "SELECT 2"),
            ]
        }
        var id: Int64
    }

    private struct OfView: Record {
        static var references: [Reference<Self>] { [Reference(\.sum, to: ShelfSum.self)] }
        var id: Int64
        var sum: Int64
    }

    @Test func `two triggers of a name, and a reference to a view, are refused`() throws {
        try fill()
        let before = try fixture.values("SELECT name FROM sqlite_master")
        expect(.misuse) { try store.write { tx throws in try tx.create(Twice.self) } }
        expect(.misuse) { try store.write { tx throws in try tx.create(OfView.self) } }
        #expect(try fixture.values("SELECT name FROM sqlite_master") == before)
    }

    @Test func `values stay values in the text of a trigger`() throws {
        try fixture.execute("CREATE TABLE there(a)")
        try fixture.execute("CREATE TABLE log(a)")
        func made(_ sql: SQL) throws -> String {
            let statement = SchemaStatement(
                typeName: "T", table: "t",
                connection: try Connection(.memory))
            return try statement.text(sql)
        }
        #expect(try made("SELECT a -\(-5) LIMIT\(1)") == "SELECT a - -5 LIMIT 1")
        for sql: SQL in [
            "SELECT '\(5)'", "SELECT \(Date())", "SELECT 1 -- \(5)",
            SQL(text: "SELECT ?1", arguments: [.integer(5)]),
        ] {
            expect(.misuse) { _ = try made(sql) }
        }
    }

    // MARK: Views

    @Test func `records of a view are found, filtered and ordered`() throws {
        try fill()
        try store.write { tx throws in
            for _ in 0..<2 { try tx.create(ShelfSum.self) }
            #expect(try tx.schemaDifferences(of: ShelfSum.self).isEmpty)
        }
        let first = ShelfSum(id: 1, books: 2, total: 5, note: "it's")
        let second = ShelfSum(id: 2, books: 1, total: 5, note: "it's")
        try store.read { tx throws in
            #expect(try tx.fetch(ShelfSum.all) == [first, second])
            #expect(try tx.find(ShelfSum.self, 2) == second)
            let dear = ShelfSum.where(\.books > 1).order(by: \.total, .descending)
            #expect(try tx.fetch(dear) == [first])
            #expect(try tx.count(ShelfSum.where(\.total == 5.0)) == 2)
        }
    }

    @Test func `a missing view is an error, and not empty`() throws {
        try fill()
        let error = expect(.notFound) {
            try store.read { tx throws in _ = try tx.fetch(ShelfSum.all) }
        }
        #expect(error?.hint?.contains("create(ShelfSum.self)") == true)
        expect(.notFound) { try store.read { tx throws in _ = try tx.find(ShelfSum.self, 1) } }
        expect(.notFound) { try store.read { tx throws in _ = try tx.count(ShelfSum.all) } }
    }

    @Test func `a view is not written, whether the file has it or not`() throws {
        try fill()
        let sum = ShelfSum(id: 7, books: 1, total: 1, note: "")
        defer { #expect((try? fixture.values("SELECT count(*) FROM book")) == [4]) }
        for isMade in [false, true] {
            try store.write { tx throws in
                guard isMade else { return }
                try tx.create(ShelfSum.self)
                try tx.execute(
                    "CREATE TRIGGER i INSTEAD OF DELETE ON shelf_sum BEGIN DELETE FROM book; END")
            }
            expect(.misuse) { try store.write { tx throws in try tx.insert(sum) } }
            expect(.misuse) { try store.write { tx throws in try tx.upsert(sum) } }
            for body in [
                { tx in try tx.update(sum) }, { tx in _ = try tx.delete(sum) },
                { tx in _ = try tx.delete(ShelfSum.all) },
                { tx in try tx.update(ShelfSum.all.set(\.books, to: 2)) },
            ] as [@Sendable (inout WriteTransaction) throws -> Void] {
                do {
                    try store.write { tx throws in try body(&tx) }
                    Issue.record("written")
                } catch let error as StoreError {
                    #expect(error.code == .misuse, "\(isMade) \(error)")
                }
            }
            #expect(
                try fixture.store.read { tx throws in try tx.viewExists("shelf_sum") } == isMade)
        }
    }

    private struct OtherSum: Record {
        static let table = "shelf_sum"
        static var view: SQL? {
            "SELECT shelf AS id, 1 AS books, 2.5 AS total, '' AS note FROM book"
        }
        var id: Int64
        var books: Int
        var total: Double
        var note: String
    }

    private struct NoTotal: Record {
        static let table = "shelf_sum"
        static var view: SQL? { "SELECT id FROM book" }
        var id: Int64
    }

    @Test func `a view with another text is replaced in a migration only`() throws {
        try fill()
        try store.write { tx throws in try tx.create(ShelfSum.self) }
        try store.write { tx throws in
            #expect(try tx.schemaDifferences(of: OtherSum.self).count == 1)
            expect(.mismatch) { try tx.create(OtherSum.self) }
        }
        try migrator.run { tx in try tx.create(OtherSum.self) }
        try store.read { tx throws in
            #expect(try tx.fetch(ShelfSum.all).map(\.total) == [2.5, 2.5, 2.5, 2.5])
        }
        try fixture.execute(
            "CREATE TRIGGER total AFTER INSERT ON book BEGIN SELECT total FROM shelf_sum; END")
        expect(.unsupported) { try migrator.run { tx in try tx.create(NoTotal.self) } }
        #expect(try store.read { tx throws in try tx.fetch(OtherSum.all).count } == 4)
        try fixture.execute(
            "CREATE TRIGGER i INSTEAD OF INSERT ON shelf_sum BEGIN DELETE FROM book; END")
        expect(.mismatch) { try migrator.run { tx in try tx.create(ShelfSum.self) } }
        #expect(try fixture.store.read { tx throws in try tx.triggerExists("i") })
    }

    @Test func `a view of other texts is another view`() throws {
        let texts = ["'a'", "'A'", "\"a\"", "\"A\"", "'\u{e9}'", "'e\u{301}'", "1", "01"]
        for (place, text) in texts.enumerated() {
            for (otherPlace, other) in texts.enumerated() {
                let plan = try RecordPlan.of(ShelfSum.self)
                try fixture.execute("CREATE VIEW shelf_sum AS SELECT \(SQL(text: text)) AS id")
                let object = try store.read { tx throws in
                    let object = DeclaredObject(
                        "create view SHELF_SUM  as select \(other) as id", .view, plan,
                        try tx.connection())
                    return try object.difference()
                }
                #expect((object == nil) == (place == otherPlace), "\(text) \(other)")
                try fixture.execute("DROP VIEW shelf_sum")
            }
        }
    }

    @Test func `a table in a view's place stays`() throws {
        try fill()
        try fixture.execute("CREATE TABLE shelf_sum(id INTEGER PRIMARY KEY, books, total, note)")
        try store.write { tx throws in
            #expect(try tx.schemaDifferences(of: ShelfSum.self).count == 1)
        }
        expect(.mismatch) { try migrator.run { tx in try tx.create(ShelfSum.self) } }
        #expect(try fixture.store.read { tx throws in try tx.tableExists("shelf_sum") })
    }

    private struct NoColumn: Record {
        static var view: SQL? { "SELECT id, title FROM book" }
        var id: Int64
        var name: String
    }

    private struct NoTable: Record {
        static var view: SQL? { "SELECT id FROM missing" }
        var id: Int64
    }

    private struct ForeignFunction: Record {
        static var view: SQL? { "SELECT md5(title) AS id FROM book" }
        var id: String
    }

    private struct IndexedView: Record {
        static var view: SQL? { "SELECT id FROM book" }
        static var indexes: [Index<Self>] { [Index(\.id)] }
        var id: Int64
    }

    @Test func `a view that cannot be read is not made`() throws {
        try fill()
        let before = try fixture.values("SELECT name FROM sqlite_master")
        expect(.mismatch) { try store.write { tx throws in try tx.create(NoColumn.self) } }
        expect(.mismatch) { try store.write { tx throws in try tx.create(NoTable.self) } }
        expect(.misuse) { try store.write { tx throws in try tx.create(ForeignFunction.self) } }
        expect(.misuse) { try store.write { tx throws in try tx.create(IndexedView.self) } }
        #expect(try fixture.values("SELECT name FROM sqlite_master") == before)
    }

    private struct LastBought: Record {
        static var view: SQL? { "SELECT id, bought FROM book" }
        var id: Int64
        var bought: Date?
    }

    private struct Replaced: Record {
        static let table = "last_bought2"
        static var view: SQL? { "SELECT id, bought FROM book" }
        var id: Int64
        var bought: Date?
    }

    private struct LastSum: Record {
        static var view: SQL? {
            "SELECT shelf AS id, max(bought) AS bought FROM book GROUP BY shelf"
        }
        var id: Int64
        var bought: Date?
    }

    @Test func `a view's dates count as its table's, and those of an expression are refused`()
        throws
    {
        try fill()
        let date = Date(timeIntervalSince1970: 1_000_000_000)
        try store.write { tx throws in
            try tx.update(Book.all.set(\.bought, to: date))
            try tx.create(LastBought.self)
            #expect(try tx.fetch(LastBought.all).allSatisfy { $0.bought == date })
        }
        expect(.mismatch) { try store.write { tx throws in try tx.create(LastSum.self) } }
        // One that the file has can be replaced.
        try fixture.execute(
            "CREATE VIEW last_bought2 AS SELECT id, max(bought) AS bought FROM book")
        try migrator.run { tx in try tx.create(Replaced.self) }
        #expect(try store.read { tx throws in try tx.count(Replaced.all) } == 4)
    }

    @Test func `an observer of a view sees the rows of its tables change`() async throws {
        try fill()
        try await store.write { tx in try tx.create(ShelfSum.self) }
        let seen = store.observe { tx in try tx.fetch(ShelfSum.all).map(\.total) }
            .makeAsyncIterator()
        #expect(try await seen.next() == [5, 5])
        try await store.write { tx in try tx.execute("UPDATE book SET price = 9 WHERE id = 4") }
        #expect(try await seen.next() == [5, 9])
    }
}
