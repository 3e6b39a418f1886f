import Foundation
import Testing

@testable import Coffer

/// Keys of every kind: typed identifiers, several columns, JSON; and references to them.
@Suite(.againstHanging, .onOwnThreads) struct KeyTests {
    private let fixture: RecordFixture
    private var store: Store { fixture.store }

    init() throws {
        fixture = try RecordFixture()
    }

    // MARK: Typed identifiers

    struct LetterID: RawRepresentable, Codable, Hashable, ValueConvertible {
        var rawValue: Int64
    }

    /// An identifier that belongs to a type.
    struct Tagged<Owner, Raw: Codable & Hashable & ValueConvertible>: Codable, Hashable,
        ValueConvertible
    {
        var raw: Raw
        init(_ raw: Raw) { self.raw = raw }
        init(from decoder: any Decoder) throws {
            raw = try decoder.singleValueContainer().decode(Raw.self)
        }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(raw)
        }
        init(_ value: Value) throws(StoreError) { raw = try Raw(value) }
        func asValue() throws(StoreError) -> Value { try raw.asValue() }
    }

    struct Person: Record, Equatable {
        var id: Tagged<Person, UUID>
        var name: String
    }

    struct Letter: Record, Equatable {
        static var references: [Reference<Self>] {
            [
                Reference(\.sender, to: Person.self, onDelete: .cascade),
                Reference(\.answered, to: Letter.self, onDelete: .setNull),
            ]
        }
        var id: LetterID?
        var sender: Tagged<Person, UUID>
        var answered: LetterID?
        var text: String
    }

    @Test func `typed identifiers are keys and foreign keys in every verb`() throws {
        let people = ["ada", "bob"].map { Person(id: Tagged(UUID()), name: $0) }
        let (ada, bob) = (people[0], people[1])
        try store.write { tx throws in
            try tx.insert(people)
            #expect(try tx.insert(Letter(sender: ada.id, text: "a")) == 1)
            let first = LetterID(rawValue: 1)
            #expect(try tx.insert(Letter(sender: bob.id, answered: first, text: "b")) == 2)
            try tx.upsert(Letter(id: LetterID(rawValue: 9), sender: ada.id, text: "c"))
            let ghost = Tagged<Person, UUID>(UUID())
            _ = expect(.constraint) { try tx.insert(Letter(sender: ghost, text: "x")) }

            #expect(try tx.find(Person.self, bob.id) == bob)
            #expect(try tx.find(Letter.self, first)?.text == "a")
            let keys = [9, 4, 1].map { LetterID(rawValue: $0) }
            #expect(try tx.find(Letter.self, keys: keys).map(\.text) == ["c", "a"])
            #expect(try tx.fetch(Letter.where(\.answered == first)).map(\.text) == ["b"])
            let many = (1...500).map { LetterID(rawValue: $0) }
            #expect(try tx.count(Letter.where(many.contains(\.id))) == 3)
            #expect(try tx.counts(by: \Letter.sender) == [ada.id: 2, bob.id: 1])
            #expect(try tx.distinct(\Letter.answered) == [nil, first])
            #expect(try tx.max(\Letter.id) == LetterID(rawValue: 9))
            let ofAda = Person.where(\.name == "ada").contains(\Letter.sender)
            #expect(try tx.fetch(Letter.where(ofAda).order(by: \.id)).map(\.text) == ["a", "c"])
            let join = Letter.order(by: \.id).joining(\.sender, to: Person.all)
            #expect(
                try tx.fetch(join).map { "\($0.text) \($1.name)" } == ["a ada", "b bob", "c ada"])

            #expect(try tx.delete(Letter.self, key: first))
            #expect(try tx.find(Letter.self, LetterID(rawValue: 2))?.answered == nil)
            #expect(try tx.delete(ada))
            #expect(try tx.fetch(Letter.all).map(\.text) == ["b"])
        }
        #expect(
            try fixture.columns(of: "letter")[0...1] == [
                "id INTEGER KEY 1", "sender BLOB NOT NULL",
            ])
    }

    // MARK: Several columns

    protocol Layout: Sendable { static var isWithoutRowID: Bool { get } }
    enum RowIDs: Layout { static let isWithoutRowID = false }
    enum NoRowIDs: Layout { static let isWithoutRowID = true }

    struct Cell<P: RecordPathsTests.Path, L: Layout>: Record, Equatable {
        static var access: RecordAccess { P.access }
        static var table: String { "cell" }
        static var key: [String] { ["sheet", "row", "column"] }
        static var isWithoutRowID: Bool { L.isWithoutRowID }
        var note: String?
        var column: Int
        var sheet: String
        var value: Double
        var row: Int

        init(_ sheet: String, _ row: Int, _ column: Int, note: String? = nil) {
            (self.sheet, self.row, self.column, self.note) = (sheet, row, column, note)
            value = Double(row * column % 3)
        }
    }

    @Test func `a key of three columns works in every verb`() throws {
        try checkCells(Cell<RecordPathsTests.Own, RowIDs>.self)
        try checkCells(Cell<RecordPathsTests.Stored, RowIDs>.self)
        try checkCells(Cell<RecordPathsTests.Own, NoRowIDs>.self)
        try checkCells(Cell<RecordPathsTests.Stored, NoRowIDs>.self)
    }

    private func checkCells<P, L>(_ type: Cell<P, L>.Type) throws {
        typealias One = Cell<P, L>
        var cells: [One] = []
        for sheet in ["a", "b"] {
            for row in 1...4 {
                for column in 1...5 { cells.append(One(sheet, row, column)) }
            }
        }
        let ordered = type.order(by: \.sheet).order(by: \.row).order(by: \.column)
        try store.write { tx throws in
            try tx.execute("DROP TABLE IF EXISTS cell")
            try tx.insert(cells.reversed())
            _ = expect(.constraint) { try tx.insert(One("b", 2, 3)) }
            _ = expect(.misuse) { try tx.find(type, "a") }
            _ = expect(.misuse) { try tx.find(type, keys: ["a"]) }
            _ = expect(.misuse) { try tx.delete(type, key: "a") }
            #expect(try tx.fetch(ordered) == cells)
            try checkPages(of: type, cells, &tx)

            var other = One("a", 2, 3, note: "n")
            other.value = 77
            #expect(try tx.updateIfPresent(other, only: \.note))
            #expect(try tx.first(type.where(\.note == "n")) == One("a", 2, 3, note: "n"))
            _ = expect(.misuse) { try tx.update(other, only: \.row) }
            #expect(try tx.updateIfPresent(other))
            #expect(try tx.fetch(type.where(\.value == 77)) == [other])
            other.note = "again"
            try tx.upsert(other)
            try tx.upsert(One("c", 1, 1))
            other.note = "once more"
            try tx.upsert(other, conflictingOn: \.column, \.sheet, \.row)
            #expect(try tx.fetch(type.where(\.note != nil)) == [other])
            #expect(try tx.count(type.all) == 41)
            _ = expect(.misuse) { try tx.upsert(other, conflictingOn: \.sheet, \.row) }

            #expect(try tx.delete(other))
            #expect(try !tx.delete(other))
            #expect(try !tx.updateIfPresent(other))
            #expect(try tx.delete([One("a", 1, 1), One("a", 1, 2), other]) == 2)
            #expect(try tx.delete(ordered.limit(3)) == 3)
            #expect(try tx.update(ordered.limit(2, offset: 1).set(\.note, to: "set")) == 2)
            #expect(
                try tx.fetch(ordered.where(\.note == "set"))
                    == [One("a", 2, 2, note: "set"), One("a", 2, 4, note: "set")])
            #expect(try tx.count(type.all) == 35)
        }
    }

    private func checkPages<P, L>(
        of type: Cell<P, L>.Type, _ cells: [Cell<P, L>], _ tx: inout WriteTransaction
    ) throws {
        for query in [
            type.all, type.order(by: \.value, .descending), type.order(by: \.row),
            type.order(by: \.note).order(by: \.column, .descending),
        ].map({ $0.inOrderOfKey() }) {
            let all = try tx.fetch(query)
            #expect(all.count == cells.count)
            var pages: [Cell<P, L>] = []
            var next = query.limit(7)
            while pages.count <= all.count {
                let page = try tx.fetch(next)
                guard let last = page.last else { break }
                pages += page
                next = query.limit(7).after(last)
            }
            #expect(pages == all)
        }
    }

    // MARK: Odd keys

    struct Spot: Codable, Hashable {
        var x: Int
        var y: Int?
    }

    struct Tile: Record, Equatable {
        var id: Spot
        var kind: String
    }

    @Test func `a key that is stored as JSON identifies its row`() throws {
        try store.write { tx throws in
            let spots = [Spot(x: 1, y: 2), Spot(x: 1, y: nil), Spot(x: 2, y: 1)]
            try tx.insert(spots.map { Tile(id: $0, kind: "a") })
            _ = expect(.constraint) { try tx.insert(Tile(id: spots[0], kind: "b")) }
            #expect(try tx.updateIfPresent(Tile(id: spots[1], kind: "b")))
            try tx.upsert(Tile(id: spots[2], kind: "c"))
            #expect(try tx.fetch(Tile.where(\.id == spots[1])).map(\.kind) == ["b"])
            #expect(try tx.count(Tile.where(spots.contains(\.id))) == 3)
            #expect(try tx.delete(Tile(id: spots[0], kind: "")))
            #expect(try tx.fetch(Tile.order(by: \.kind)).map(\.id) == [spots[1], spots[2]])
            _ = expect(.misuse) { try tx.fetch(Tile.all.after(Tile(id: spots[0], kind: ""))) }
        }
    }

    struct Doubled: Record {
        static var key: [String] { ["id", "id"] }
        var id: Int
    }

    @Test func `a key that names a column twice is misuse`() throws {
        let error = expect(.misuse) { try store.write { tx in try tx.create(Doubled.self) } }
        #expect(error?.column == "id")
        #expect(error?.hint?.contains("static var key") == true)
    }

    struct Only: Record, Equatable {
        var id: Int64?
    }

    @Test func `a record of one column can do everything that others do`() throws {
        try store.write { tx throws in
            #expect(try tx.insert(Only()) == 1)
            #expect(try tx.insert(Only(id: 5)) == 5)
            try tx.upsert([Only(id: 5), Only(id: nil), Only(id: 9)])
            #expect(try tx.fetch(Only.order(by: \.id)).map(\.id) == [1, 5, 6, 9])
            #expect(try tx.updateIfPresent(Only(id: 6)))
            #expect(try !tx.updateIfPresent(Only(id: 7)))
            #expect(try tx.update(Only.where(\.id == 9).set(\.id, to: 8)) == 1)
            #expect(try tx.fetch(Only.all.inOrderOfKey().limit(2).after(Only(id: 1))).count == 2)
            #expect(try tx.find(Only.self, 8) == Only(id: 8))
            #expect(try tx.delete(Only.self, keys: [1, 2, 5]) == 2)
            #expect(try tx.delete(Only.all) == 2)
        }
    }
}
