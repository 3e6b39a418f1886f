import Coffer
import Foundation
import Testing

/// Values that do not fit: both directions refuse them with table and column, never with the value.
@Suite(.againstHanging, .onOwnThreads) struct BadValueTests {
    private let fixture: RecordFixture

    init() throws {
        fixture = try RecordFixture()
    }

    enum Colour: String, Codable, CaseIterable { case red }

    struct Item: Record, Equatable {
        var id: Int
        var big: UInt64 = 0
        var small: Int8 = 0
        var flag = false
        var real = 0.0
        var float: Float = 0
        var text = ""
        var data = Data()
        var uuid = UUID()
        var link: URL?
        var price: Decimal = 0
        var colour = Colour.red
        var list: [Int] = []
    }

    @Test(arguments: [Double.nan, .signalingNaN])
    func `NaN is refused, and the transaction goes on`(nan: Double) throws {
        try fixture.store.write { tx throws in
            try tx.insert(Item(id: 1))
            let error = expect(.mismatch) { try tx.insert(Item(id: 2, real: nan)) }
            #expect(error?.table == "item")
            #expect(error?.column == "real")
            try tx.insert(Item(id: 3))
        }
        #expect(try fixture.values("SELECT id FROM item ORDER BY id") == [1, 3])
    }

    @Test func `an integer above SQLite's largest is refused`() throws {
        try fixture.store.write { tx throws in
            let error = expect(.mismatch) { try tx.insert(Item(id: 1, big: UInt64.max)) }
            #expect(error?.column == "big")
        }
    }

    @Test func `JSON that cannot be written is refused`() throws {
        struct Odd: Record {
            var id: Int
            var list: [Double]
        }
        try fixture.store.write { tx throws in
            let error = expect(.mismatch) { try tx.insert(Odd(id: 1, list: [.nan])) }
            #expect(error?.column == "list")
            #expect(error?.cause != nil)
        }
    }

    /// The column, and SQL for a value that the property cannot hold.
    static let stored: [(String, String)] = [
        ("text", "NULL"), ("text", "5"), ("text", "x'41'"), ("text", "CAST(x'ff' AS TEXT)"),
        ("big", "-1"), ("big", "'5'"), ("big", "NULL"), ("small", "128"), ("small", "1.5"),
        ("flag", "2"), ("flag", "-1"), ("flag", "'true'"), ("flag", "NULL"),
        ("real", "NULL"), ("real", "'x'"), ("real", "9007199254740993"), ("float", "1e300"),
        ("data", "NULL"), ("data", "'text'"), ("data", "0"),
        ("uuid", "x'0011'"), ("uuid", "'00000000-0000-0000-0000-000000000000'"), ("uuid", "NULL"),
        ("link", "5"), ("link", "''"), ("price", "'x'"), ("price", "1.5"),
        ("price", "NULL"),
        ("colour", "'secret'"), ("colour", "3"), ("colour", "NULL"),
        ("list", "'[1,'"), ("list", "'{}'"), ("list", "'[\"secret\"]'"), ("list", "x'5b5d'"),
        ("list", "NULL"), ("list", "CAST(x'5b22ff225d' AS TEXT)"),
    ]

    @Test(arguments: stored)
    func `a stored value that does not fit is a mismatch`(column: String, value: String) throws {
        // A table without column types stores any value unchanged.
        let names = "id, big, small, flag, real, float, text, data, uuid, link, price, colour, list"
        try fixture.execute(SQL(text: "CREATE TABLE item(\(names))"))
        try fixture.store.write { tx in try tx.insert(Item(id: 1)) }
        try fixture.execute(SQL(text: "UPDATE item SET \(column) = \(value)"))
        try fixture.store.read { tx throws in
            for read in [
                { tx in _ = try tx.fetch(Item.all) }, { tx in _ = try tx.find(Item.self, 1) },
                { tx in _ = try tx.fetch(Item.self, sql: "SELECT * FROM item") },
            ] as [(inout ReadTransaction) throws -> Void] {
                let error = expect(.mismatch) { try read(&tx) }
                #expect(error?.table == "item")
                #expect(error?.column == column)
                #expect(error?.message.hasSuffix(", in the row with id 1") == true)
                #expect(error.map { says($0, "secret") } == false)
            }
        }
    }

    /// Whether an error, or its cause, contains a text anywhere.
    private func says(_ error: any Error, _ text: String) -> Bool {
        var dumped = ""
        dump(error, to: &dumped)
        let cause = (error as? StoreError)?.cause
        return "\(error)\(dumped)".contains(text) || cause.map { says($0, text) } == true
    }

    @Test(arguments: [
        ("text", "NULL", "String"), ("big", "'5'", "UInt64"), ("small", "128", "Int8"),
        ("flag", "2", "Bool"), ("real", "'x'", "Double"), ("data", "0", "Data"),
        ("uuid", "x'0011'", "UUID"), ("link", "''", "URL"), ("price", "'x'", "Decimal"),
        ("colour", "'x'", "Colour"), ("list", "'[1,'", "Array<Int>"),
    ])
    func `the error says what was expected`(column: String, value: String, type: String) throws {
        let names = "id, big, small, flag, real, float, text, data, uuid, link, price, colour, list"
        try fixture.execute(SQL(text: "CREATE TABLE item(\(names))"))
        try fixture.store.write { tx in try tx.insert(Item(id: 1)) }
        try fixture.execute(SQL(text: "UPDATE item SET \(column) = \(value)"))
        try fixture.store.read { tx throws in
            let error = expect(.mismatch) { try tx.fetch(Item.all) }
            #expect(error?.column == column)
            #expect(error?.message.contains(type) == true, "\(String(describing: error))")
        }
    }

    struct Measured: Record {
        var id: Int
        var number: [Int8]
        var maybe: Double?
        var float: Float?
        var date: Date?
    }

    @Test func `the cause of an error does not reveal the value either`() throws {
        try fixture.store.write { tx throws in
            try tx.insert(Item(id: 1))
            try tx.insert(Measured(id: 1, number: []))
            try tx.execute("UPDATE item SET colour = 'secret'")
            try tx.execute("UPDATE measured SET number = '[271828]'")
            var error = expect(.mismatch) { try tx.fetch(Item.all) }
            #expect(error.map { says($0, "secret") } == false)
            error = expect(.mismatch) { try tx.fetch(Item.all, as: Coloured.self) }
            #expect(error.map { says($0, "secret") } == false)
            error = expect(.mismatch) { try tx.distinct(\Item.colour) }
            #expect(error.map { says($0, "secret") } == false)
            error = expect(.mismatch) { try tx.fetch(Measured.all) }
            #expect(error.map { says($0, "271828") } == false)
            #expect(error?.cause is DecodingError)
        }
    }

    struct Coloured: Decodable {
        var colour: Colour
    }

    @Test func `NaN is refused for every type that has it`() throws {
        try fixture.store.write { tx throws in
            for (bad, column) in [
                (Measured(id: 1, number: [], maybe: .nan), "maybe"),
                (Measured(id: 1, number: [], float: .nan), "float"),
                (Measured(id: 1, number: [], date: Date(timeIntervalSince1970: .nan)), "date"),
            ] {
                let error = expect(.mismatch) { try tx.insert(bad) }
                #expect(error?.column == column)
            }
            #expect(try tx.count(Measured.all) == 0)
        }
    }

    @Test func `an integer is read as a real where it is exact`() throws {
        try fixture.store.write { tx in try tx.insert(Item(id: 1)) }
        let found = try fixture.store.read { tx throws in
            try tx.fetch(Item.self, sql: "SELECT *, 1 FROM (SELECT item.*, 1 FROM item)")
        }
        #expect(found.count == 1)
        let note = try fixture.store.write { tx throws in
            try tx.insert(Note.numbered(1))
            return try tx.fetch(
                Note.self, sql: "SELECT id, title, pinned, 3 AS rank, 5 AS created FROM note")
        }
        #expect(note.first?.rank == 3)
        #expect(note.first?.note == nil)
    }

    @Test func `a column that the SELECT leaves out is nil, or a mismatch that names it`() throws {
        try fixture.store.write { tx throws in
            var note = Note.numbered(1)
            note.note = "x"
            try tx.insert(note)
            let found = try tx.fetch(
                Note.self, sql: "SELECT created, rank, pinned, title, id FROM note")
            #expect(found.first?.note == nil)
            #expect(found.first?.title == "n1")
            let error = expect(.mismatch) {
                try tx.fetch(Note.self, sql: "SELECT id, pinned, rank, created FROM note")
            }
            #expect(error?.column == "title")
        }
    }

    struct Failing: Error {}

    struct Strict: Record {
        var id: Int
        init(id: Int) { self.id = id }
        enum CodingKeys: CodingKey { case id }
        init(from decoder: any Decoder) throws {
            id = try decoder.container(keyedBy: CodingKeys.self).decode(Int.self, forKey: .id)
            if id == 13 { throw Failing() }
        }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(id, forKey: .id)
            if id == 12 { throw Failing() }
        }
    }

    @Test func `an error of the type's own coding is a mismatch with its cause`() throws {
        try fixture.store.write { tx throws in
            let error = expect(.mismatch) { try tx.insert(Strict(id: 12)) }
            #expect(error?.cause is Failing)
            try tx.insert([Strict(id: 11), Strict(id: 13), Strict(id: 14)])
        }
        try fixture.store.read { tx throws in
            let error = expect(.mismatch) { try tx.fetch(Strict.all) }
            #expect(error?.cause is Failing)
            #expect(error?.table == "strict")
            #expect(error?.message.hasSuffix(", in the row with id 13") == true)
            // The statement is usable afterwards.
            #expect(try tx.find(Strict.self, 14)?.id == 14)
            #expect(try tx.fetch(Strict.where(\.id == 11)).count == 1)
        }
    }

    struct Extra: Record {
        var id: Int
        var more: Int?
        init(id: Int, more: Int?) { (self.id, self.more) = (id, more) }
        enum CodingKeys: CodingKey { case id, more }
        init(from decoder: any Decoder) throws {
            id = try decoder.container(keyedBy: CodingKeys.self).decode(Int.self, forKey: .id)
        }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(id, forKey: .id)
            try container.encodeIfPresent(more, forKey: .more)
        }
    }

    @Test func `a key that is encoded but not decoded is a mismatch that names it`() throws {
        try fixture.store.write { tx throws in
            try tx.insert(Extra(id: 1, more: nil))
            let error = expect(.mismatch) { try tx.insert(Extra(id: 2, more: 3)) }
            #expect(error?.column == "more")
            try tx.insert(Extra(id: 3, more: nil))
        }
    }

    struct Changing: Record {
        var id: Int
        init(id: Int) { self.id = id }
        enum CodingKeys: CodingKey { case id, value }
        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            id = try container.decode(Int.self, forKey: .id)
            _ = try container.decode(String.self, forKey: .value)
        }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(id, forKey: .id)
            try container.encode(id, forKey: .value)
        }
    }

    @Test func `a value that SQLite would convert to the column's type is a mismatch`() throws {
        try fixture.store.write { tx throws in
            let error = expect(.mismatch) { try tx.insert(Changing(id: 1)) }
            #expect(error?.column == "value")
            #expect(try tx.count(Changing.all) == 0)
        }
    }
}
