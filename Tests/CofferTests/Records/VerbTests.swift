import Coffer
import Foundation
import Testing

@Suite(.againstHanging, .onOwnThreads) struct VerbTests {
    private let fixture: RecordFixture

    init() throws {
        fixture = try RecordFixture()
    }

    private var store: Store { fixture.store }

    @Test func `insert makes the table, and find, first, count and fetch read it`() throws {
        try store.write { tx in try tx.insert((1...5).map(Note.numbered)) }
        try store.read { tx throws in
            #expect(try tx.count(Note.all) == 5)
            #expect(try tx.find(Note.self, 3) == .numbered(3))
            #expect(try tx.find(Note.self, 6) == nil)
            #expect(try tx.first(Note.order(by: \.id, .descending)) == .numbered(5))
            #expect(try tx.first(Note.where(\.id > 5)) == nil)
            #expect(try tx.fetch(Note.order(by: \.id)) == (1...5).map(Note.numbered))
            #expect(
                try tx.fetch(Note.self, sql: "SELECT * FROM note WHERE id < \(3) ORDER BY id")
                    == [.numbered(1), .numbered(2)])
        }
    }

    @Test func `records of any sequence are inserted, an empty one too`() throws {
        try store.write { tx throws in
            try tx.create(Note.self)
            try tx.insert([Note]())
            try tx.insert((1...70).lazy.map(Note.numbered))
            try tx.insert(AnySequence((71...200).map(Note.numbered)))
            try tx.upsert(EmptyCollection<Note>())
            #expect(try tx.count(Note.all) == 200)
            #expect(try tx.updateIfPresent((1...3).lazy.map(Note.numbered)) == 3)
            #expect(try tx.delete((1...9).lazy.map(Note.numbered)) == 9)
        }
    }

    @Test func `a duplicate key is a constraint, and statement and transaction go on`() throws {
        try store.write { tx throws in
            try tx.insert(Note.numbered(1))
            let error = expect(.constraint) { try tx.insert(Note.numbered(1)) }
            #expect(error?.table == "note")
            try tx.insert(Note.numbered(2))
        }
        #expect(try store.read { tx in try tx.count(Note.all) } == 2)
    }

    @Test func `a loop that stops leaves the records before it in the transaction`() throws {
        try store.write { tx throws in
            _ = expect(.constraint) { try tx.insert([1, 2, 2, 3].map(Note.numbered)) }
            #expect(try tx.count(Note.all) == 2)
            _ = expect(.constraint) {
                try tx.savepoint { part in try part.insert([4, 4].map(Note.numbered)) }
            }
            #expect(try tx.count(Note.all) == 2)
        }
    }

    @Test func `update and delete report whether the row existed`() throws {
        try store.write { tx throws in
            try tx.insert((1...3).map(Note.numbered))
            var note = Note.numbered(2)
            note.title = "changed"
            note.note = "new"
            #expect(try tx.updateIfPresent(note))
            #expect(try tx.find(Note.self, 2) == note)
            #expect(try tx.find(Note.self, 1) == .numbered(1))
            #expect(try !tx.updateIfPresent(Note.numbered(9)))
            #expect(try tx.delete(note))
            #expect(try !tx.delete(note))
            #expect(try tx.delete(Note.self, key: 1))
            #expect(try !tx.delete(Note.self, key: 1))
            #expect(try tx.fetch(Note.all) == [.numbered(3)])
        }
    }

    @Test func `upsert keeps the row, so references to it stay`() throws {
        try store.write { tx throws in
            try tx.upsert(Note.numbered(1))
            try tx.execute(
                """
                CREATE TABLE page(note INTEGER REFERENCES note(id) ON DELETE CASCADE, text TEXT)
                """)
            try tx.execute("INSERT INTO page VALUES (1, 'first')")
            try tx.execute("CREATE TABLE log(what TEXT)")
            for verb in ["INSERT", "UPDATE", "DELETE"] {
                try tx.execute(
                    SQL(
                        text: "CREATE TRIGGER log_\(verb) AFTER \(verb) ON note BEGIN "
                            + "INSERT INTO log VALUES ('\(verb)'); END"))
            }
            var note = Note.numbered(1)
            note.title = "changed"
            try tx.upsert(note)
            try tx.upsert(Note.numbered(2))
            #expect(try tx.fetch(Note.order(by: \.id)) == [note, .numbered(2)])
            #expect(try tx.rows("SELECT text FROM page").count == 1)
            #expect(try tx.rows("SELECT what FROM log").map { $0[0] } == ["UPDATE", "INSERT"])
        }
    }

    @Test func `delete by query counts its rows and keeps the others`() throws {
        try store.write { tx throws in
            try tx.insert((1...10).map(Note.numbered))
            #expect(try tx.delete(Note.where(\.pinned == true)) == 5)
            #expect(try tx.delete(Note.order(by: \.id, .descending).limit(2)) == 2)
            #expect(try tx.fetch(Note.order(by: \.id)).map(\.id) == [1, 3, 5])
            #expect(try tx.delete(Note.all) == 3)
            #expect(try tx.delete(Note.all) == 0)
        }
    }

    struct Seat: Record, Equatable {
        static let key = ["row", "number"]
        var number: Int
        var row: String
        var guest: String?
    }

    @Test func `a key of two columns identifies a row`() throws {
        try store.write { tx throws in
            try tx.insert([Seat(number: 1, row: "a"), Seat(number: 1, row: "b")])
            _ = expect(.constraint) { try tx.insert(Seat(number: 1, row: "a", guest: "x")) }
            #expect(try tx.updateIfPresent(Seat(number: 1, row: "b", guest: "ada")))
            #expect(try tx.first(Seat.where(\.row == "b"))?.guest == "ada")
            #expect(try tx.first(Seat.where(\.row == "a")) == Seat(number: 1, row: "a"))
            try tx.upsert(Seat(number: 2, row: "a", guest: "bob"))
            #expect(try tx.delete(Seat(number: 1, row: "a")))
            #expect(try tx.count(Seat.all) == 2)
            let error = expect(.misuse) { try tx.find(Seat.self, "a") }
            #expect(error?.message.contains("static var key") == true)
            _ = expect(.misuse) { try tx.delete(Seat.self, key: "a") }
        }
        #expect(
            try fixture.columns(of: "seat") == [
                "number INTEGER NOT NULL KEY 2", "row TEXT NOT NULL KEY 1", "guest TEXT",
            ])
    }

    struct Line: Record, Equatable {
        var text: String
    }

    @Test func `a type without a key can be inserted and queried, and its other verbs say so`()
        throws
    {
        try store.write { tx throws in
            try tx.insert([Line(text: "a"), Line(text: "a")])
            #expect(try tx.fetch(Line.all).count == 2)
            for verb in [
                { tx in _ = try tx.find(Line.self, 1) }, { tx in try tx.update(Line(text: "a")) },
                { tx in try tx.delete(Line(text: "a")) },
                { tx in try tx.delete(Line.self, key: 1) },
                { tx in try tx.upsert(Line(text: "a")) },
            ] as [(inout WriteTransaction) throws -> Void] {
                let error = expect(.misuse) { try verb(&tx) }
                #expect(error?.hint?.contains("static var key") == true)
            }
        }
    }

    struct Tag: Record, Equatable {
        static let key = ["name"]
        var name: String
    }

    @Test func `a record whose only column is its key can be updated`() throws {
        try store.write { tx throws in
            try tx.upsert(Tag(name: "a"))
            try tx.upsert(Tag(name: "a"))
            #expect(try tx.updateIfPresent(Tag(name: "a")))
            #expect(try !tx.updateIfPresent(Tag(name: "b")))
            #expect(try tx.fetch(Tag.all) == [Tag(name: "a")])
            #expect(try tx.find(Tag.self, "a") == Tag(name: "a"))
        }
    }

    struct Entry: Record, Equatable {
        var id: Int64?
        var text: String
    }

    @Test func `an optional integer key is chosen by the engine`() throws {
        try store.write { tx throws in
            try tx.insert([Entry(text: "a"), Entry(text: "b"), Entry(id: 9, text: "c")])
            #expect(try !tx.updateIfPresent(Entry(text: "x")))
        }
        let found = try store.read { tx in try tx.fetch(Entry.order(by: \.id)) }
        #expect(found.map(\.id) == [1, 2, 9])
    }

    @Test func `a key of another storage class is a mismatch, not another row`() throws {
        try store.write { tx throws in
            try tx.insert(Note.numbered(5))
            let error = expect(.mismatch) { try tx.find(Note.self, "5") }
            #expect(error?.column == "id")
            _ = expect(.mismatch) { try tx.delete(Note.self, key: 5.0) }
            #expect(try tx.find(Note.self, Int?.none) == nil)
            #expect(try tx.find(Note.self, UInt8(5)) != nil)
        }
    }

    struct Person: Record, Equatable {
        var id: UUID
        var name: String
    }

    @Test func `a UUID is a key`() throws {
        let people = (0..<20).map { Person(id: UUID(), name: "p\($0)") }
        try store.write { tx in try tx.insert(people) }
        try store.read { tx throws in
            for person in people { #expect(try tx.find(Person.self, person.id) == person) }
            #expect(try tx.fetch(Person.where(\.id == people[3].id)) == [people[3]])
        }
    }

    @Test func `a type without a table has no rows`() throws {
        try store.read { tx throws in
            #expect(try tx.fetch(Note.all) == [])
            #expect(try tx.fetch(Note.order(by: \.title)) == [])
            #expect(try tx.first(Note.all) == nil)
            #expect(try tx.find(Note.self, 1) == nil)
            #expect(try tx.find(Note.self, keys: [1, 2]) == [])
            #expect(try tx.count(Note.where(\.title == "a")) == 0)
            #expect(try !tx.exists(Note.all))
            #expect(try tx.max(\Note.id) == nil)
            #expect(try tx.sum(\Note.id) == 0)
            #expect(try tx.average(\Note.id) == nil)
            #expect(try tx.distinct(\Note.title) == [])
            #expect(try tx.counts(by: \Note.title) == [:])
            #expect(try tx.fetch(Note.all, as: Note.self) == [])
            try tx.forEach(Note.all) { Issue.record("there is \($0)") }
            // SQL of the program's own names a table that does not exist.
            let error = expect(.notFound) { try tx.fetch(Note.self, sql: "SELECT * FROM note") }
            #expect(error?.table == "note")
            #expect(error?.hint?.contains("tx.create(Note.self)") == true)
            // A mistake remains one.
            _ = expect(.misuse) { try tx.fetch(Note.where(\.title.count == 1)) }
        }
        try store.write { tx throws in
            #expect(try !tx.delete(Note.numbered(1)))
            #expect(try !tx.delete(Note.self, key: 1))
            #expect(try tx.delete(Note.all) == 0)
            #expect(try tx.update(Note.all.set(\.title, to: "")) == 0)
            #expect(try !tx.updateIfPresent(Note.numbered(1)))
            #expect(try !tx.updateIfPresent(Note.numbered(1), only: \.title))
            _ = expect(.notFound) { try tx.update(Note.numbered(1)) }
            #expect(try tx.rows("SELECT name FROM sqlite_master").isEmpty)
            try tx.create(Note.self)
            #expect(try tx.count(Note.all) == 0)
            #expect(try !tx.updateIfPresent(Note.numbered(1)))
        }
        #expect(try store.read { tx in try tx.count(Note.all) } == 0)
    }

    @Test func `SQL that returns no rows, or does not compile, is refused`() throws {
        try store.write { tx throws in
            try tx.create(Note.self)
            _ = expect(.misuse) { try tx.fetch(Note.self, sql: "DELETE FROM note") }
            _ = expect(.sql) { try tx.fetch(Note.self, sql: "SELEC") }
            _ = expect(.sql) { try tx.fetch(Note.where(.sql("nothing = 1"))) }
        }
    }

    @Test func `the writer sees its own rows before they are committed`() throws {
        struct Undo: Error {}
        try store.write { tx in try tx.insert(Note.numbered(1)) }
        #expect(throws: Undo.self) {
            try store.write { tx throws in
                try tx.insert(Note.numbered(2))
                #expect(try tx.count(Note.all) == 2)
                throw Undo()
            }
        }
        #expect(try store.read { tx in try tx.count(Note.all) } == 1)
    }
}
