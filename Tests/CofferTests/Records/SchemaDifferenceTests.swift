import Coffer
import Foundation
import Testing

/// `create` names every difference that it cannot remove, and changes nothing.
@Suite(.againstHanging, .onOwnThreads) struct SchemaDifferenceTests {
    private let fixture: RecordFixture

    init() throws {
        fixture = try RecordFixture()
    }

    struct Author: Record {
        var id: Int
    }

    struct Book: Record {
        static var indexes: [Index<Self>] { [Index(\.isbn, isUnique: true), Index(\.title)] }
        static var references: [Reference<Self>] {
            [Reference(\.author, to: Author.self, onDelete: .cascade)]
        }
        var id: Int
        var isbn: String
        var title: String
        var author: Int
        var note: String?
    }

    private func differences(_ sql: SQL...) throws -> [SchemaDifference] {
        try fixture.store.write { tx throws in
            for sql in sql { try tx.execute(sql) }
            let before = try tx.rows("SELECT sql FROM sqlite_master").map(\.values)
            let found = try tx.schemaDifferences(of: Book.self)
            let error = expect(.mismatch) { try tx.create(Book.self) }
            #expect(error?.table == "book")
            #expect(error?.column == found.first?.column)
            for difference in found {
                #expect(error?.message.contains(difference.description) == true)
            }
            #expect(try tx.rows("SELECT sql FROM sqlite_master").map(\.values) == before)
            return found
        }
    }

    @Test func `every difference of the columns is named, not only the first`() throws {
        let found = try differences(
            """
            CREATE TABLE book(id INT PRIMARY KEY, number TEXT NOT NULL, title INTEGER,
            author INTEGER NOT NULL REFERENCES author(id) ON DELETE CASCADE)
            """)
        #expect(
            found.map(\.description) == [
                "column id: expected INTEGER NOT NULL as part 1 of the key, "
                    + "found INT as part 1 of the key",
                "column isbn: expected TEXT NOT NULL, found no such column",
                "column title: expected TEXT NOT NULL, found INTEGER",
                "column number: expected no such column, found TEXT NOT NULL",
            ])
    }

    private static let columns = """
        id INTEGER PRIMARY KEY, isbn TEXT NOT NULL, title TEXT NOT NULL
        """

    @Test func `a missing, different or superfluous foreign key is named`() throws {
        let expected = "(author) REFERENCES author(id) ON DELETE CASCADE ON UPDATE NO ACTION"
        var found = try differences(
            SQL(text: "CREATE TABLE book(\(Self.columns), author INTEGER NOT NULL)"))
        #expect(
            found.map(\.description) == [
                "column author: expected \(expected), found no foreign key"
            ])
        found = try differences(
            "DROP TABLE book",
            SQL(
                text: "CREATE TABLE book(\(Self.columns), author INTEGER NOT NULL "
                    + "REFERENCES author, FOREIGN KEY (title) REFERENCES word(text))"))
        #expect(
            found.map(\.description) == [
                "column author: expected \(expected), found (author) REFERENCES author "
                    + "ON DELETE NO ACTION ON UPDATE NO ACTION",
                "column title: expected no foreign key, found (title) REFERENCES word(text) "
                    + "ON DELETE NO ACTION ON UPDATE NO ACTION",
            ])
    }

    private static let reference = "author INTEGER NOT NULL REFERENCES author ON DELETE CASCADE"

    @Test func `an unexpected unique index, and an index of that name on something else`() throws {
        let found = try differences(
            SQL(
                text: "CREATE TABLE book(\(Self.columns), \(Self.reference), note TEXT UNIQUE)"),
            "CREATE INDEX index_book_isbn ON book(isbn)",
            "CREATE INDEX INDEX_book_title ON book(title, note)")
        #expect(
            found.map(\.description) == [
                "column isbn: expected a unique index on (isbn), found an index on (isbn)",
                "column title: expected an index on (title), found an index on (title, note)",
                "column note: expected no unique index, found a unique index on (note)",
            ])
    }

    @Test func `a unique index under a declared name is reported though another one does its work`()
        throws
    {
        let found = try differences(
            SQL(text: "CREATE TABLE book(\(Self.columns), \(Self.reference), note TEXT)"),
            "CREATE UNIQUE INDEX by_isbn ON book(isbn)", "CREATE INDEX by_title ON book(title)",
            "CREATE UNIQUE INDEX index_book_title ON book(note)")
        #expect(
            found.map(\.description) == [
                "column note: expected no unique index, found a unique index on (note)"
            ])
    }

    @Test func `a table with and without row ids is not the same`() throws {
        let found = try differences(
            SQL(
                text: "CREATE TABLE book(\(Self.columns), \(Self.reference), note TEXT) "
                    + "WITHOUT ROWID"))
        #expect(found.map(\.column) == [nil])
        #expect(found.map(\.found) == ["a table WITHOUT ROWID"])
    }

    @Test func `constraints that a type cannot declare are ignored`() throws {
        try fixture.store.write { tx throws in
            try tx.execute(
                SQL(
                    text: """
                        CREATE TABLE book(\(Self.columns) COLLATE NOCASE CHECK (title <> ''),
                        \(Self.reference), note TEXT DEFAULT 'x', UNIQUE (isbn))
                        """))
            try tx.execute("CREATE UNIQUE INDEX part ON book(note) WHERE note > 'a'")
            try tx.execute("CREATE UNIQUE INDEX expression ON book(lower(note))")
            try tx.execute("CREATE INDEX more ON book(note)")
            #expect(try tx.schemaDifferences(of: Book.self).isEmpty)
            try tx.create(Book.self)
            #expect(try tx.schemaDifferences(of: Book.self).isEmpty)
            // The UNIQUE constraint replaces the unique index; the other index was missing.
            let names = try tx.rows(
                "SELECT name FROM sqlite_master WHERE name LIKE 'index%'")
            #expect(names.map { $0[0] } == ["index_book_title"])
        }
    }

    @Test func `a new unique index meets rows that it cannot accept`() throws {
        try fixture.store.write { tx throws in
            try tx.execute(
                SQL(text: "CREATE TABLE book(\(Self.columns), \(Self.reference))"))
            try tx.create(Author.self)
            try tx.insert(Author(id: 1))
            try tx.execute("INSERT INTO book VALUES (1, 'a', 'x', 1), (2, 'a', 'y', 1)")
            let error = expect(.constraint) { try tx.create(Book.self) }
            #expect(error?.table == "book")
            // Nothing remains: neither the new column nor an index.
            #expect(try tx.rows("SELECT * FROM book LIMIT 1")[0].values.count == 4)
            try tx.execute("DELETE FROM book WHERE id = 2")
            try tx.create(Book.self)
            #expect(try tx.fetch(Book.all).count == 1)
        }
    }
}
