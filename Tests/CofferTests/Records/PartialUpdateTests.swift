import Foundation
import Testing

@testable import Coffer

/// Updates of some properties, and of many records.
@Suite(.againstHanging, .onOwnThreads) struct PartialUpdateTests {
    private let fixture: RecordFixture
    private var store: Store { fixture.store }

    init() throws {
        fixture = try RecordFixture()
    }

    struct Entry: Record, Equatable {
        var id: Int64?
        var text: String
    }

    @Test func `insert returns the key that the engine chose`() throws {
        try store.write { tx throws in
            #expect(try tx.insert(Entry(text: "a")) == 1)
            #expect(try tx.insert(Entry(id: 40, text: "b")) == 40)
            let id = try tx.insert(Entry(text: "c"))
            #expect(id == 41)
            #expect(try tx.find(Entry.self, id)?.text == "c")
        }
    }

    @Test func `a trigger's own rows do not change the key that is returned`() throws {
        try store.write { tx throws in
            try tx.create(Entry.self)
            try tx.execute("CREATE TABLE log(id INTEGER PRIMARY KEY, text TEXT)")
            try tx.execute("INSERT INTO log VALUES (500, '')")
            try tx.execute(
                """
                CREATE TRIGGER t AFTER INSERT ON entry
                BEGIN INSERT INTO log(text) VALUES (new.text); END
                """)
            #expect(try tx.insert(Entry(text: "a")) == 1)
            try tx.execute(
                """
                CREATE TRIGGER skip BEFORE INSERT ON entry WHEN new.text = 'skip'
                BEGIN SELECT RAISE(IGNORE); END
                """)
            #expect(try tx.insert(Entry(text: "skip")) == 0)
            #expect(try tx.insert(Entry(text: "b")) == 2)
        }
    }

    @Test func `a table that SQL made without row ids has none to return`() throws {
        try store.write { tx throws in
            try tx.execute("CREATE TABLE person(id TEXT PRIMARY KEY) WITHOUT ROWID")
            try tx.insert(Entry(id: 70, text: "a"))
            #expect(try tx.insert(Person(id: "ada")) == 0)
        }
    }

    private struct Person: Record {
        var id: String
    }

    @Test func `a nil key that the engine cannot choose says so`() throws {
        struct Named: Record {
            static let key = ["name"]
            var name: String?
            var size: Int
        }
        try store.write { tx throws in
            let error = expect(.constraint) { try tx.insert(Named(size: 1)) }
            #expect(error?.table == "named")
            #expect(error?.column == "name")
            #expect(error?.hint?.contains("integer") == true)
            _ = expect(.constraint) { try tx.upsert(Named(size: 1)) }
            #expect(try !tx.updateIfPresent(Named(size: 1)))
            #expect(try !tx.delete(Named(size: 1)))
        }
    }

    @Test func `update sets the chosen properties only`() throws {
        try store.write { tx throws in
            try tx.insert((1...3).map(Note.numbered))
            var note = Note.numbered(2)
            (note.title, note.pinned, note.rank, note.note) = ("new", false, 9, "n")
            #expect(try tx.updateIfPresent(note, only: \.title, \.note))
            var expected = Note.numbered(2)
            (expected.title, expected.note) = ("new", "n")
            #expect(try tx.find(Note.self, 2) == expected)
            #expect(try tx.updateIfPresent(note, only: \.note, \.title))
            note.note = nil
            #expect(try tx.updateIfPresent(note, only: \.note))
            #expect(try tx.find(Note.self, 2)?.note == nil)
            #expect(try tx.updateIfPresent(note, only: \.created))
            #expect(try !tx.updateIfPresent(Note.numbered(9), only: \.title))
            #expect(try tx.fetch(Note.where(\.id != 2)) == [.numbered(1), .numbered(3)])
        }
    }

    struct Partly<P: RecordPathsTests.Path>: Record, Equatable {
        static var access: RecordAccess { P.access }
        static var table: String { "partly" }
        var id: Int
        var rank: Double
        var big: UInt64
        var list: [Double]
        var title: String?
        var piece: String?
    }

    @Test func `a bad value in a property that is not chosen does not matter`() throws {
        try checkPartly(RecordPathsTests.Own.self)
        try checkPartly(RecordPathsTests.Stored.self)
    }

    private func checkPartly<P: RecordPathsTests.Path>(_ path: P.Type) throws {
        let good = Partly<P>(id: 1, rank: 1, big: 1, list: [1], title: "a", piece: "b")
        let bad = Partly<P>(
            id: 1, rank: .nan, big: .max, list: [.infinity], title: "new", piece: nil)
        try store.write { tx throws in
            try tx.upsert(good)
            #expect(try tx.updateIfPresent(bad, only: \.title))
            var expected = good
            expected.title = "new"
            #expect(try tx.fetch(Partly<P>.all) == [expected])
            // A nil is stored as NULL, not as the previous record's value.
            #expect(try tx.updateIfPresent(bad, only: \.title, \.piece))
            expected.piece = nil
            #expect(try tx.fetch(Partly<P>.all) == [expected])
            for (path, column): (PartialKeyPath<Partly<P>>, String) in [
                (\.rank, "rank"), (\.big, "big"), (\.list, "list"),
            ] {
                let error = expect(.mismatch) { try tx.update(bad, only: path) }
                #expect(error?.column == column)
            }
            #expect(try tx.updateIfPresent(good, only: \.big, \.piece, \.list))
            expected.piece = "b"
            #expect(try tx.fetch(Partly<P>.all) == [expected])
            _ = expect(.mismatch) { try tx.update(bad) }
        }
    }

    struct Pieces: Record {
        var id: Int
        var place: String
        var title: String
        enum CodingKeys: CodingKey { case id, place, title }
        enum Part: CodingKey { case name, size }
        init(id: Int, place: String, title: String) {
            (self.id, self.place, self.title) = (id, place, title)
        }
        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            id = try container.decode(Int.self, forKey: .id)
            let part = try container.nestedContainer(keyedBy: Part.self, forKey: .place)
            place = try part.decode(String.self, forKey: .name)
            title = try container.decode(String.self, forKey: .title)
        }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(id, forKey: .id)
            var part = container.nestedContainer(keyedBy: Part.self, forKey: .place)
            try part.encode(place, forKey: .name)
            if place == "bad" { try part.encode(Double.nan, forKey: .size) }
            try container.encode(title, forKey: .title)
        }
        static var columns: [PartialKeyPath<Pieces>: String] { [\.place: "place"] }
    }

    @Test func `a bad value in a property encoded piece by piece does not matter either`() throws {
        try store.write { tx throws in
            try tx.insert(Pieces(id: 1, place: "here", title: "a"))
            let bad = Pieces(id: 1, place: "bad", title: "b")
            #expect(try tx.updateIfPresent(bad, only: \.title))
            #expect(try tx.fetch(Pieces.all).map { "\($0.place) \($0.title)" } == ["here b"])
            _ = expect(.mismatch) { try tx.update(bad, only: \.place) }
            try tx.update(Pieces(id: 1, place: "there", title: "c"), only: \.place)
            #expect(try tx.fetch(Pieces.all).map { "\($0.place) \($0.title)" } == ["there b"])
        }
    }

    @Test func `a partial update cannot set the key, a computed property, or nothing`() throws {
        try store.write { tx throws in
            try tx.insert(Note.numbered(1))
            let error = expect(.misuse) { try tx.update(Note.numbered(1), only: \.id) }
            #expect(error?.column == "id")
            _ = expect(.misuse) { try tx.update(Note.numbered(1), only: \.title.count) }
        }
    }

    @Test func `after a rollback removed the table, the next update finds it again`() throws {
        struct Undo: Error {}
        #expect(throws: Undo.self) {
            try store.write { tx throws in
                try tx.insert(Note.numbered(1))
                try tx.update(Note.numbered(1), only: \.title)
                throw Undo()
            }
        }
        try store.write { tx throws in
            _ = expect(.notFound) { try tx.update(Note.numbered(1), only: \.title) }
            try tx.insert(Note.numbered(1))
            #expect(try tx.updateIfPresent(Note.numbered(1), only: \.title))
        }
    }

    @Test func `a second write compiles nothing again`() throws {
        try store.write { tx throws in
            try tx.insert(Note.numbered(1))
            let table = try RecordTable.of(Note.self, tx.connection())
            let insertion = try table.insertStatement(tx.connection())
            for number in 2...9 {
                try tx.insert(Note.numbered(number))
                try tx.upsert(Note.numbered(number))
                try tx.update(Note.numbered(number), only: \.title, \.note)
                try tx.upsert(Note.numbered(number), conflictingOn: \.id)
            }
            #expect(try RecordTable.of(Note.self, tx.connection()) === table)
            #expect(try table.insertStatement(tx.connection()) === insertion)
            #expect(table.partialUpdates.count == 2)
        }
    }

    @Test func `a query's rows are updated in one statement`() throws {
        try store.write { tx throws in
            try tx.insert((1...10).map(Note.numbered))
            let pinned = Note.where(\.pinned == true)
            #expect(try tx.update(pinned.set(\.pinned, to: false).set(\.note, to: "was")) == 5)
            #expect(try tx.count(Note.where(\.note == "was" && \.pinned == false)) == 5)
            #expect(try tx.update(Note.where(\.id > 9).set(\.note, to: nil)) == 1)
            #expect(try tx.count(Note.where(\.note == "was")) == 4)
            let top = Note.order(by: \.id, .descending).limit(2)
            #expect(try tx.update(top.set(\.title, to: "top")) == 2)
            #expect(try tx.fetch(Note.where(\.title == "top")).map(\.id) == [9, 10])
            let one = 1
            #expect(try tx.update(Note.where(\.id <= 2).set(\.rank, sql: "rank + \(one)")) == 2)
            #expect(try tx.find(Note.self, 2)?.rank == 2)
            #expect(try tx.update(Note.where(\.id == 77).set(\.title, to: "x")) == 0)
            #expect(try tx.update(Note.all.set(\.title, to: "all")) == 10)
        }
    }

    @Test func `a query's update that a constraint refuses changes no row`() throws {
        try store.write { tx throws in
            try tx.insert((1...3).map(Note.numbered))
            let error = expect(.constraint) { try tx.update(Note.all.set(\.id, to: 7)) }
            #expect(error?.table == "note")
            #expect(try tx.fetch(Note.order(by: \.id)).map(\.id) == [1, 2, 3])
            _ = expect(.misuse) { try tx.update(Note.all.set(\.title.count, to: 7)) }
            _ = expect(.mismatch) { try tx.update(Note.all.set(\.rank, to: .nan)) }
        }
        try store.write { tx throws in
            try tx.execute("DROP TABLE note")
            #expect(try tx.update(Note.all.set(\.title, to: "")) == 0)
        }
    }

    struct Download: Record, Equatable {
        static var indexes: [Index<Self>] { [Index(\.url, isUnique: true)] }
        var id: UUID
        var url: String?
        var done: Int
    }

    @Test func `upsert finds the row by unique properties and keeps its key`() throws {
        let first = Download(id: UUID(), url: "u", done: 1)
        try store.write { tx throws in
            try tx.upsert(first, conflictingOn: \.url)
            try tx.execute(
                """
                CREATE TABLE part(
                download BLOB REFERENCES download(id) ON DELETE CASCADE ON UPDATE CASCADE)
                """)
            try tx.execute("INSERT INTO part VALUES (\(first.id))")
            try tx.execute("CREATE TABLE log(what TEXT)")
            for verb in ["INSERT", "UPDATE", "DELETE"] {
                try tx.execute(
                    SQL(
                        text: "CREATE TRIGGER log_\(verb) AFTER \(verb) ON download BEGIN "
                            + "INSERT INTO log VALUES ('\(verb)'); END"))
            }
            try tx.upsert(Download(id: UUID(), url: "u", done: 2), conflictingOn: \.url)
            #expect(try tx.fetch(Download.all) == [Download(id: first.id, url: "u", done: 2)])
            #expect(try tx.rows("SELECT * FROM part").count == 1)
            // NULL conflicts with nothing.
            for _ in 0..<2 {
                try tx.upsert(
                    Download(id: UUID(), url: nil, done: 3), conflictingOn: \.url)
            }
            #expect(try tx.count(Download.all) == 3)
            #expect(
                try tx.rows("SELECT what FROM log").map { $0[0] } == ["UPDATE", "INSERT", "INSERT"])
            // A further conflict is a failure.
            let twin = Download(id: first.id, url: "other", done: 4)
            _ = expect(.constraint) { try tx.upsert(twin, conflictingOn: \.url) }
            #expect(try tx.count(Download.all) == 3)
        }
    }

    @Test func `upsert needs something unique, in the type and in the table`() throws {
        try store.write { tx throws in
            try tx.insert(Note.numbered(1))
            let error = expect(.misuse) {
                try tx.upsert(Note.numbered(1), conflictingOn: \.title)
            }
            #expect(error?.hint?.contains("isUnique: true") == true)
            var note = Note.numbered(1)
            note.title = "by key"
            try tx.upsert(note, conflictingOn: \.id)
            #expect(try tx.fetch(Note.all) == [note])
            try tx.execute("CREATE TABLE download(id BLOB PRIMARY KEY, url TEXT, done INTEGER)")
            let download = Download(id: UUID(), url: "u", done: 1)
            let other = expect(.mismatch) {
                try tx.upsert(download, conflictingOn: \.url)
            }
            #expect(other?.column == "url")
        }
    }

    @Test func `batches count the rows that existed`() throws {
        try store.write { tx throws in
            let notes = (1...2_000).map(Note.numbered)
            try tx.upsert(notes)
            try tx.upsert(notes.prefix(10))
            #expect(try tx.count(Note.all) == 2_000)
            #expect(try tx.updateIfPresent((1_991...2_010).map(Note.numbered)) == 10)
            #expect(try tx.delete((1_901...2_100).map(Note.numbered)) == 100)
            #expect(try tx.delete(Note.self, keys: 1...1_500) == 1_500)
            #expect(try tx.delete(Note.self, keys: [Int]()) == 0)
            #expect(try tx.count(Note.all) == 400)
        }
    }
}
