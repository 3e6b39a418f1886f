import Coffer
import Foundation
import Testing

@Suite(.againstHanging, .onOwnThreads) struct QueryTests {
    private let fixture: RecordFixture
    private let notes: [Note]

    init() throws {
        fixture = try RecordFixture()
        notes = (1...8).map { id in
            var note = Note.numbered(id)
            note.note = id % 3 == 0 ? "third" : nil
            note.created = Date(timeIntervalSince1970: Double(id))
            return note
        }
        let notes = notes
        try fixture.store.write { tx in try tx.insert(notes) }
    }

    private func ids(_ query: Query<Note>) throws -> [Int] {
        try fixture.store.read { tx throws in
            let found = try tx.fetch(query)
            #expect(try tx.count(query) == found.count)
            #expect(try tx.first(query) == found.first)
            return found.map(\.id)
        }
    }

    private func ids(where condition: Condition<Note>) throws -> [Int] {
        try ids(Note.where(condition).order(by: \.id))
    }

    @Test func `comparisons select what Swift would select`() throws {
        #expect(try ids(where: \.id == 3) == [3])
        #expect(try ids(where: \.id != 3) == [1, 2, 4, 5, 6, 7, 8])
        #expect(try ids(where: \.id < 3) == [1, 2])
        #expect(try ids(where: \.id <= 3) == [1, 2, 3])
        #expect(try ids(where: \.id > 6) == [7, 8])
        #expect(try ids(where: \.id >= 6) == [6, 7, 8])
        #expect(try ids(where: \.title == "n4") == [4])
        #expect(try ids(where: \.pinned == true) == [2, 4, 6, 8])
        #expect(try ids(where: \.rank > 3) == [7, 8])
        #expect(try ids(where: \.created <= Date(timeIntervalSince1970: 2)) == [1, 2])
    }

    @Test func `conditions are only true or false, also where there is NULL`() throws {
        let text: String? = "third"
        #expect(try ids(where: \.note == nil) == [1, 2, 4, 5, 7, 8])
        #expect(try ids(where: \.note != nil) == [3, 6])
        #expect(try ids(where: \.note == "third") == [3, 6])
        #expect(try ids(where: \.note == text) == [3, 6])
        #expect(try ids(where: \.note != "third") == [1, 2, 4, 5, 7, 8])
        #expect(try ids(where: !(\.note == "third")) == [1, 2, 4, 5, 7, 8])
        #expect(try ids(where: !(\.note > "a")) == [1, 2, 4, 5, 7, 8])
        #expect(try ids(where: !(!(\.note > "a"))) == [3, 6])
        #expect(try ids(where: ["third"].contains(\.note)) == [3, 6])
        #expect(try ids(where: !["third"].contains(\.note)) == [1, 2, 4, 5, 7, 8])
        #expect(try ids(where: [nil, "x"].contains(\.note)) == [1, 2, 4, 5, 7, 8])
    }

    @Test func `conditions combine`() throws {
        #expect(try ids(where: \.pinned == true && \.note == nil) == [2, 4, 8])
        #expect(try ids(where: \.id == 1 || \.id == 2 && \.pinned == false) == [1])
        #expect(try ids(where: (\.id == 1 || \.id == 2) && \.pinned == true) == [2])
        #expect(
            try ids(where: [1, 2, 30].contains(\.id) || .sql("id % \(4) = 0")) == [1, 2, 4, 8])
        #expect(try ids(where: [Int]().contains(\.id)) == [])
        let query = Note.where(\.id > 2).where(\.id < 6 || \.id == 8).order(by: \.id)
        #expect(try ids(query) == [3, 4, 5, 8])
    }

    @Test func `a query of five terms is checked quickly by the compiler`() throws {
        let limit = 7
        let query = Note.where(
            \.pinned == true && \.title != "x" && \.id < limit && \.note == nil && \.rank >= 0.5
        ).order(by: \.created, .descending).order(by: \.id).limit(20)
        #expect(try ids(query) == [4, 2])
    }

    @Test func `order, limit and offset`() throws {
        #expect(try ids(Note.order(by: \.id, .descending).limit(3)) == [8, 7, 6])
        #expect(try ids(Note.order(by: \.id).limit(2, offset: 3)) == [4, 5])
        #expect(
            try ids(Note.order(by: \.pinned).order(by: \.id, .descending).limit(3)) == [7, 5, 3])
        #expect(try ids(Note.order(by: \.note).order(by: \.id).limit(1)) == [1])
        #expect(try ids(Note.order(by: \.note, .descending).order(by: \.id).limit(1)) == [3])
        #expect(try ids(Note.limit(0)) == [])
        expect(.misuse) { try ids(Note.limit(-5)) }
        expect(.misuse) { try ids(Note.limit(5, offset: -1)) }
        // An ellipsis stands for the part that could not be made.
        let error = expect(.misuse) { try ids(Note.order(by: \.id).limit(-1)) }
        #expect(error?.sql?.contains("WHERE … ORDER BY") == true)
        #expect(try ids(Note.limit(100, offset: 7)).count == 1)
        #expect(try ids(Note.all).count == 8)
    }

    @Test func `values are bound, never spliced`() throws {
        let evil = "' OR 1 = 1 --"
        #expect(try ids(where: \.title == evil) == [])
        #expect(try ids(where: .sql("title = \(evil)")) == [])
        #expect(try ids(where: \.title != evil).count == 8)
    }

    @Test func `more values than the engine binds are refused`() throws {
        func isOne(of count: Int) -> Condition<Note> {
            let places = repeatElement("?", count: count).joined(separator: ", ")
            let values = (1...count).map { Value.integer(Int64($0)) }
            return .sql(SQL(text: "id IN (\(places))", arguments: values))
        }
        try fixture.store.read { tx throws in
            #expect(try tx.count(Note.where(isOne(of: 999))) == 8)
            let error = expect(.tooBig) { try tx.count(Note.where(isOne(of: 40_000))) }
            #expect(error?.hint != nil)
        }
    }

    enum Colour: String, Codable, CaseIterable { case red, green }

    struct Item: Record, Equatable {
        var id: UUID
        var colour: Colour
        var link: URL
        var price: Decimal
        var data: Data
        var tags: [String]
    }

    @Test func `enums, UUIDs, URLs, blobs and nested values can be compared`() throws {
        let items = try [Colour.red, .green].map { colour in
            Item(
                id: UUID(), colour: colour, link: try #require(URL(string: "a:\(colour)")),
                price: colour == .red ? 1.5 : 2, data: Data([colour == .red ? 1 : 2]),
                tags: [colour.rawValue])
        }
        try fixture.store.write { tx throws in
            try tx.insert(items)
            for item in items {
                #expect(try tx.fetch(Item.where(\.id == item.id)) == [item])
                #expect(try tx.fetch(Item.where(\.colour == item.colour)) == [item])
                #expect(try tx.fetch(Item.where(\.link == item.link)) == [item])
                #expect(try tx.fetch(Item.where(\.price == item.price)) == [item])
                #expect(try tx.fetch(Item.where(\.data == item.data)) == [item])
                #expect(try tx.fetch(Item.where(\.tags == item.tags)) == [item])
                #expect(try tx.fetch(Item.where([item.colour].contains(\.colour))) == [item])
            }
            #expect(try tx.fetch(Item.where(\.data < Data([2]))) == [items[0]])
        }
    }

    struct Amount: Codable, Comparable {
        var value: Decimal

        init(from decoder: any Decoder) throws {
            value = try decoder.singleValueContainer().decode(Decimal.self)
        }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(value)
        }
        init(_ value: Decimal) { self.value = value }
        static func < (left: Self, right: Self) -> Bool { left.value < right.value }
    }

    struct Bill: Record {
        var id: Int
        var amount: Amount
        var discount: Amount?
    }

    @Test func `a column whose encoding has no order is not compared by it`() throws {
        try fixture.store.write { tx throws in
            try tx.create(Item.self)
            try tx.insert([Bill(id: 1, amount: Amount(9)), Bill(id: 2, amount: Amount(10))])
            _ = expect(.misuse) { try tx.fetch(Bill.where(\.amount < Amount(10))) }
            _ = expect(.misuse) { try tx.fetch(Bill.order(by: \.amount)) }
            _ = expect(.misuse) { try tx.fetch(Bill.order(by: \.discount)) }
            #expect(try tx.fetch(Bill.where(\.amount == Amount(10))).map(\.id) == [2])
            _ = expect(.misuse) { try tx.fetch(Item.where(\.price < 2)) }
            _ = expect(.misuse) { try tx.fetch(Item.where(\.tags > ["a"])) }
            _ = expect(.misuse) { try tx.fetch(Note.where(\.note < nil)) }
            _ = expect(.mismatch) { try tx.fetch(Note.where(\.rank == .nan)) }
            _ = expect(.mismatch) { try tx.delete(Note.where(\.rank == .nan)) }
            #expect(try tx.count(Note.all) == 8)
        }
    }
}
