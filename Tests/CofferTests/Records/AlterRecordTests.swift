import Foundation
import Testing

@testable import Coffer

/// Tables that a migration makes again as a record type wants them.
@Suite(.againstHanging, .onOwnThreads) struct AlterRecordTests {
    private let fixture: RecordFixture
    private let migrator: Migrator
    private var store: Store { fixture.store }

    init() throws {
        fixture = try RecordFixture()
        migrator = Migrator(fixture.store)
    }

    private func dump() throws -> [String] {
        try store.write { tx throws in
            let handle = try tx.connection().current()
            return try handle.authorizer.asCoffer { Result { try Dump.lines(handle.db) } }.get()
        }
    }

    /// As the first version of a program had them.
    private enum First {
        struct Author: Record {
            var id: Int64?
            var name: String
        }

        struct Book: Record {
            static var indexes: [Index<Self>] { [Index(\.number, isUnique: true), Index(\.title)] }
            static var references: [Reference<Self>] {
                [Reference(\.author, to: Author.self, onDelete: .cascade)]
            }
            var id: Int64?
            var number: Int
            var title: String
            var author: Int64
            var note: String?
        }

        struct Loan: Record {
            static var references: [Reference<Self>] { [Reference(\.book, to: \Book.number)] }
            var id: Int64?
            var book: Int
        }
    }

    private struct Author: Record, Equatable {
        var id: Int64?
        var name: String
    }

    /// With a renamed, a changed, a new and a dropped column, and without NOT NULL for the title.
    private struct Book: Record, Equatable {
        static var indexes: [Index<Self>] { [Index(\.isbn, isUnique: true), Index(\.title)] }
        static var references: [Reference<Self>] {
            [Reference(\.writer, to: Author.self, onDelete: .cascade)]
        }
        static var defaults: [Default<Self>] { [Default(\.pinned, true)] }
        var id: Int64?
        var isbn: Int
        var title: String?
        var writer: Int64
        var pinned: Bool
        var pages: String
    }

    private func makeFirst() throws {
        try store.write { tx throws in
            let ada = try tx.insert(First.Author(name: "ada"))
            try tx.insert(First.Book(id: 7, number: 70, title: "t", author: ada, note: "n"))
            try tx.insert(First.Book(id: 9, number: 90, title: "u", author: ada, note: nil))
            try tx.insert(First.Loan(id: 1, book: 90))
            try tx.execute("CREATE TABLE log(line)")
            try tx.execute(
                """
                CREATE TRIGGER logged AFTER DELETE ON book BEGIN
                    INSERT INTO log VALUES (old.id); END
                """)
        }
    }

    private static func alter(_ table: inout TableAlteration<Book>) {
        table.rename("number", to: \.isbn)
        table.rename("author", to: \.writer)
        table.set(\.pages, sql: "CAST(id * 2 AS TEXT) || \("p")")
        table.drop("note")
    }

    @Test func `a table becomes what the type declares, with its rows and what refers to it`()
        throws
    {
        try makeFirst()
        try migrator.run { tx in
            try tx.alter(Book.self, Self.alter)
            #expect(try tx.schemaDifferences(of: Book.self).isEmpty)
        }
        let books = try store.read { tx in try tx.fetch(Book.all) }
        #expect(
            books == [
                Book(id: 7, isbn: 70, title: "t", writer: 1, pinned: true, pages: "14p"),
                Book(id: 9, isbn: 90, title: "u", writer: 1, pinned: true, pages: "18p"),
            ])
        try store.write { tx throws in
            // The child refers to the renamed column, the indexes are unique, the trigger fires.
            expect(.constraint) { try tx.insert(First.Loan(id: 2, book: 91)) }
            expect(.constraint) { try tx.delete(Book.self, key: 9 as Int64) }
            try tx.execute("DELETE FROM loan")
            try tx.delete(Author(id: 1, name: "ada"))
            #expect(try tx.count(Book.all) == 0)
            #expect(try tx.rows("SELECT line FROM log ORDER BY 1").map { $0[0] } == [7, 9])
        }
    }

    @Test func `a column without a place, or without values, is an error`()
        throws
    {
        try makeFirst()
        let before = try dump()
        func expectMismatch(
            _ column: String, _ body: @escaping @Sendable (inout TableAlteration<Book>) -> Void
        ) {
            let error = expect(.mismatch) {
                try migrator.run { tx in try tx.alter(Book.self, body) }
            }
            #expect(error?.column == column)
        }
        expectMismatch("isbn") { _ in }
        expectMismatch("note") { table in
            table.rename("number", to: \.isbn)
            table.rename("author", to: \.writer)
            table.set(\.pages, to: "")
        }
        expectMismatch("pages") { table in
            table.rename("number", to: \.isbn)
            table.rename("author", to: \.writer)
            table.drop("note")
        }
        #expect(try dump() == before)
    }

    @Test func `columns named twice, unknown or of the type are refused`() throws {
        try makeFirst()
        let before = try dump()
        func refuse(
            _ code: StoreError.Code,
            _ body: @escaping @Sendable (inout TableAlteration<Book>) -> Void
        ) {
            expect(code) { try migrator.run { tx in try tx.alter(Book.self, body) } }
        }
        refuse(.notFound) { $0.rename("nothing", to: \.isbn) }
        refuse(.notFound) { $0.drop("nothing") }
        refuse(.misuse) { $0.drop("title") }
        refuse(.misuse) { $0.rename("title", to: \.pages) }
        refuse(.misuse) { table in
            table.set(\.pages, to: "a")
            table.set(\.pages, to: "b")
        }
        refuse(.misuse) { table in
            table.rename("number", to: \.isbn)
            table.rename("number", to: \.writer)
        }
        refuse(.sql) { table in
            Self.alter(&table)
            table.set(\.title, sql: "no such function(1)")
        }
        expect(.misuse) { try store.write { tx in try tx.alter(Book.self, Self.alter) } }
        expect(.notFound) {
            try migrator.run { tx in
                try tx.execute("DROP TABLE book")
                try tx.alter(Book.self, Self.alter)
            }
        }
        #expect(try dump() == before)
    }

    @Test func `a view in the table's place is refused`() throws {
        try fixture.execute("CREATE VIEW book AS SELECT 1 AS id, 2 AS number")
        expect(.mismatch) { try migrator.run { tx in try tx.alter(Book.self, Self.alter) } }
    }

    private struct Strict: Record, Equatable {
        static let table = "loose"
        var id: Int64?
        var number: Int
    }

    @Test func `the last of many rows that does not fit leaves the old table exactly`() throws {
        let count = isLongRun ? 1_000_000 : 20_000
        try fixture.execute("CREATE TABLE loose(id INTEGER PRIMARY KEY, number TEXT)")
        try fixture.execute(
            """
            INSERT INTO loose(number) WITH RECURSIVE n(i) AS
                (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT \(count)) SELECT i FROM n
            """)
        try fixture.execute("CREATE INDEX numbers ON loose(number)")
        for (value, code) in [
            ("NULL", StoreError.Code.constraint), ("'no number'", .mismatch), ("x'00'", .mismatch),
        ] {
            try fixture.execute(SQL(text: "UPDATE loose SET number = \(value) WHERE id = \(count)"))
            let before = try dump()
            let error = expect(code) {
                try migrator.run { tx in try tx.alter(Strict.self) }
            }
            #expect(error?.message.contains("coffer:") == false)
            #expect(try dump() == before)
        }
        try fixture.execute("UPDATE loose SET number = 5 WHERE id = \(count)")
        try migrator.run { tx in try tx.alter(Strict.self) }
        let sum = try fixture.values(
            "SELECT total(number) FROM loose WHERE typeof(number) = 'integer'")
        #expect(sum == [.real(Double(count - 1) * Double(count) / 2 + 5)])
    }

    @Test func `a constraint that drops rows in silence is an error`() throws {
        try fixture.execute("CREATE TABLE loose(id INTEGER, number INTEGER)")
        try fixture.execute("INSERT INTO loose VALUES (1, 1), (1, 2)")
        let error = expect(.constraint) {
            try migrator.run { tx in
                try tx.connection().altering("loose") { remake throws(StoreError) in
                    try remake.run(
                        TableRemake.Changes(),
                        [TableRemake.Copy(column: "id", value: "id")]
                    ) { name in
                        "CREATE TABLE \(name) (id INTEGER UNIQUE ON CONFLICT IGNORE)"
                    }
                }
            }
        }
        #expect(error?.message.contains("1 of 2 rows") == true)
        #expect(try fixture.values("SELECT count(*) FROM loose") == [2])
    }

    // MARK: Keys

    private struct Word: Record, Equatable {
        static let isWithoutRowID = true
        static let key = ["text"]
        var text: String
        var count: Int
    }

    private struct Numbered: Record, Equatable {
        static let table = "word"
        var id: Int64?
        var text: String
        var count: Int
    }

    @Test func `a key can be added, changed and taken away`() throws {
        try fixture.execute("CREATE TABLE word(text TEXT NOT NULL, count INTEGER NOT NULL)")
        try fixture.execute("INSERT INTO word(rowid, text, count) VALUES (5, 'a', 1), (9, 'b', 2)")
        try migrator.run { tx in try tx.alter(Numbered.self) }
        // The new key is the row id that the rows had.
        #expect(
            try store.read { tx in try tx.fetch(Numbered.all) } == [
                Numbered(id: 5, text: "a", count: 1), Numbered(id: 9, text: "b", count: 2),
            ])
        try migrator.run { tx in
            try tx.alter(Word.self) { table in table.drop("id") }
        }
        #expect(
            try store.read { tx in try tx.fetch(Word.all) } == [
                Word(text: "a", count: 1), Word(text: "b", count: 2),
            ])
        try fixture.execute("INSERT INTO word VALUES ('c', 3)")
        try migrator.run { tx in try tx.alter(Numbered.self) }
        #expect(try store.read { tx in try tx.fetch(Numbered.all).map(\.id) } == [1, 2, 3])
    }

    private struct Tree: Record, Equatable {
        static var references: [Reference<Self>] {
            [Reference(\.parent, to: Tree.self, onDelete: .cascade)]
        }
        static let key = ["number"]
        var number: Int
        var parent: Int?
    }

    @Test func `a table that refers to itself does so by the new name of its key`() throws {
        try fixture.execute(
            """
            CREATE TABLE tree(id INTEGER PRIMARY KEY NOT NULL, parent INTEGER
                REFERENCES tree(id) ON DELETE CASCADE)
            """)
        try fixture.execute("INSERT INTO tree VALUES (1, NULL), (2, 1)")
        try migrator.run { tx in
            try tx.alter(Tree.self) { table in table.rename("id", to: \.number) }
        }
        try store.write { tx throws in
            expect(.constraint) { try tx.insert(Tree(number: 3, parent: 9)) }
            try tx.delete(Tree.self, key: 1)
            #expect(try tx.count(Tree.all) == 0)
        }
    }

    // MARK: Values

    private struct Dated: Record, Equatable {
        var id: Int
        var created: Date?
        var seen: Date
    }

    @Test func `dates that counted from 1970 are the same dates afterwards`() throws {
        let date = Date(timeIntervalSince1970: 1_700_000_000.25)
        try fixture.execute("CREATE TABLE dated(id INTEGER PRIMARY KEY, created REAL, at REAL)")
        try fixture.execute(
            "INSERT INTO dated VALUES (1, \(1_700_000_000.25), 0), (2, NULL, \(1_700_000_000.25))")
        try migrator.run { tx in
            try tx.alter(Dated.self) { table in table.rename("at", to: \.seen) }
        }
        #expect(
            try store.read { tx in try tx.fetch(Dated.all) } == [
                Dated(id: 1, created: date, seen: Date(timeIntervalSince1970: 0)),
                Dated(id: 2, created: nil, seen: date),
            ])
        #expect(try fixture.columns(of: "dated")[1] == "created REAL_SINCE_2001")
        // Once they count from 2001 they are copied as they are.
        try migrator.run { tx in try tx.alter(Dated.self) }
        #expect(try store.read { tx in try tx.find(Dated.self, 2)?.seen } == date)
    }

    @Test func `a clause that the type does not declare is given up only if asked`() throws {
        try fixture.execute(
            "CREATE TABLE loose(id INTEGER PRIMARY KEY, number INTEGER NOT NULL CHECK (number > 0))"
        )
        let error = expect(.mismatch) { try migrator.run { tx in try tx.alter(Strict.self) } }
        #expect(error?.message.contains("CHECK") == true)
        try migrator.run { tx in
            try tx.alter(Strict.self) { table in table.dropUndeclaredClauses() }
        }
        try fixture.execute("INSERT INTO loose VALUES (1, -1)")
    }

    @Test func `every value of another value is read back, and arguments are bound`() throws {
        try fixture.execute("CREATE TABLE loose(id INTEGER PRIMARY KEY, number BLOB)")
        try fixture.execute("INSERT INTO loose VALUES (1, '7'), (2, x'39'), (3, 8.0)")
        let factor = 10
        try migrator.run { tx in
            try tx.alter(Strict.self) { table in
                table.set(\.number, sql: "CAST(CAST(number AS TEXT) AS INTEGER) * \(factor)")
            }
        }
        #expect(try store.read { tx in try tx.fetch(Strict.all).map(\.number) } == [70, 90, 80])
    }

    // MARK: Attachments

    @Test func `attachments stay with the records of a table that is altered or renamed`()
        async throws
    {
        try makeFirst()
        let covers = AttachmentBucket("covers", of: \Book.id)
        let first = AttachmentBucket("covers", of: \First.Book.id)
        try await store.set(contentsOf: AttachmentFixture.source(Data([1, 2])), for: 7, in: first)
        try migrator.run { tx in
            try tx.alter(Book.self, Self.alter)
            try tx.create(covers)
        }
        try await store.set(contentsOf: AttachmentFixture.source(Data([3])), for: 9, in: covers)
        try await store.write { tx throws in
            try tx.execute("DELETE FROM loan")
            try tx.delete(Book.self, key: 7 as Int64)
        }
        let keys = try fixture.values("SELECT key FROM \"bucket:covers\"")
        #expect(keys == [9])
    }
}
