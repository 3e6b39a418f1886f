import Coffer
import Foundation
import Testing

/// RETURNING, which SQLite has since 3.35: SQLCipher 4.6.1 has it, 3.4.1 does not.
@Suite(.againstHanging, .onOwnThreads) struct ReturningTests {
    private let fixture: RecordFixture
    private var store: Store { fixture.store }

    init() throws {
        fixture = try RecordFixture()
    }

    struct Stored: Record, Equatable {
        static var access: RecordAccess { .storedProperties }
        static let table = "note"
        var id: Int
        var title: String
    }

    private static let insert: SQL =
        "INSERT INTO note SELECT id + 10, title, pinned, rank, note, created FROM note RETURNING *"

    @Test(.disabled(if: isEngine4))
    func `an engine without RETURNING says that it does not know the SQL`() throws {
        try store.write { tx throws in
            try tx.insert(Note.numbered(1))
            _ = expect(.sql) { try tx.fetch(Note.self, sql: Self.insert) }
            #expect(try tx.count(Note.all) == 1)
        }
    }

    @Test(.enabled(if: isEngine4))
    func `rows that a statement wrote are fetched, and written once`() throws {
        try store.write { tx throws in
            try tx.insert([1, 2, 3].map(Note.numbered))
            #expect(try tx.fetch(Note.self, sql: Self.insert).map(\.id) == [11, 12, 13])
            #expect(try tx.count(Note.all) == 6)
            let changed = try tx.fetch(
                Stored.self, sql: "UPDATE note SET id = id + 100 WHERE id > 11 RETURNING title, id")
            #expect(changed == [Stored(id: 112, title: "n2"), Stored(id: 113, title: "n3")])
            #expect(
                try tx.fetch(Stored.self, sql: "DELETE FROM note WHERE id = 5 RETURNING *") == [])
            #expect(
                try tx.fetch(Stored.self, sql: "DELETE FROM note WHERE id = 11 RETURNING *")
                    == [Stored(id: 11, title: "n1")])
            #expect(try tx.count(Note.all) == 5)
        }
        #expect(try store.read { tx in try tx.count(Note.all) } == 5)
        try store.read { tx throws in
            _ = expect(.readOnly) {
                try tx.fetch(Note.self, sql: "DELETE FROM note RETURNING *")
            }
        }
        #expect(try store.read { tx in try tx.count(Note.all) } == 5)
    }

    /// The engine compiles the statement again at its first step, so names read before that are
    /// outdated.
    @Test(.enabled(if: isEngine4))
    func `after the table was made again, values go by the names that it has now`() throws {
        try store.write { tx throws in
            let sql: SQL = "UPDATE pair SET a = a RETURNING *"
            for columns in ["a, b", "b, a"] {
                try tx.execute(SQL(text: "CREATE TABLE pair(\(columns))"))
                try tx.execute("INSERT INTO pair(a, b) VALUES ('a1', 'b1')")
                #expect(try tx.fetch(Pair.self, sql: sql) == [Pair(a: "a1", b: "b1")])
                #expect(try tx.fetch(StoredPair.self, sql: sql) == [StoredPair(a: "a1", b: "b1")])
                try tx.execute("DROP TABLE pair")
            }
        }
    }

    struct Pair: Record, Equatable {
        var a: String
        var b: String
    }

    struct StoredPair: Record, Equatable {
        static var access: RecordAccess { .storedProperties }
        static let table = "pair"
        var a: String
        var b: String
    }
}
