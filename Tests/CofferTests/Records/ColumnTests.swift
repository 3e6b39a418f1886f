import Coffer
import Foundation
import Testing

/// Every kind of column: what is stored, and that it comes back as it went in.
@Suite(.againstHanging, .onOwnThreads) struct ColumnTests {
    private let fixture: RecordFixture

    init() throws {
        fixture = try RecordFixture()
    }

    enum Colour: String, Codable, CaseIterable {
        case red
        case green = "grün"
    }
    enum Level: Int8, Codable {
        case low = -1
        case high = 100
    }
    enum Shape: Codable, Equatable {
        case circle(radius: Double)
        case point
    }

    struct ID: Codable, Hashable {
        let text: String
        init(_ text: String) { self.text = text }
        init(from decoder: any Decoder) throws {
            text = try decoder.singleValueContainer().decode(String.self)
        }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(text)
        }
    }

    struct Tags: Codable, Equatable {
        var list: [String]
        init(_ list: [String]) { self.list = list }
        init(from decoder: any Decoder) throws {
            list = try decoder.singleValueContainer().decode([String].self)
        }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(list)
        }
    }

    struct Place: Codable, Equatable {
        var name: String
        var spot: [Double]
        var inner: [String: Int]?
    }

    struct Numbers: Record, Equatable {
        var id: Int64
        var int: Int
        var int8: Int8
        var int16: Int16
        var int32: Int32
        var uint: UInt
        var uint8: UInt8
        var uint16: UInt16
        var uint32: UInt32
        var uint64: UInt64
        var double: Double
        var float: Float
        var bool: Bool
    }

    @Test func `integers and reals round-trip at their extremes`() throws {
        let top = UInt64(Int64.max)
        let all = [
            Numbers(
                id: .max, int: .max, int8: .max, int16: .max, int32: .max, uint: UInt(top),
                uint8: .max, uint16: .max, uint32: .max, uint64: top,
                double: .greatestFiniteMagnitude, float: .greatestFiniteMagnitude, bool: true),
            Numbers(
                id: .min, int: .min, int8: .min, int16: .min, int32: .min, uint: 0, uint8: 0,
                uint16: 0, uint32: 0, uint64: 0, double: .leastNonzeroMagnitude,
                float: .leastNonzeroMagnitude, bool: false),
            Numbers(
                id: 0, int: 0, int8: 0, int16: 0, int32: 0, uint: 1, uint8: 1, uint16: 1,
                uint32: 1, uint64: 1, double: -.infinity, float: .infinity, bool: true),
            Numbers(
                id: 1, int: 0, int8: 0, int16: 0, int32: 0, uint: 1, uint8: 1, uint16: 1,
                uint32: 1, uint64: 1, double: 0.1, float: 0.1, bool: true),
        ]
        try fixture.store.write { tx in try tx.insert(all) }
        let found = try fixture.store.read { tx in try tx.fetch(Numbers.order(by: \.id)) }
        #expect(found == all.sorted { $0.id < $1.id })
        let columns = try fixture.columns(of: "numbers")
        #expect(columns.first == "id INTEGER NOT NULL KEY 1")
        #expect(columns.filter { $0.hasSuffix(" INTEGER NOT NULL") }.count == 10)
        #expect(columns.filter { $0.hasSuffix(" REAL NOT NULL") }.count == 2)
    }

    struct Things: Record, Equatable {
        static let key: [String] = []
        var text: String
        var data: Data
        var bytes: [UInt8]
        var date: Date
        var uuid: UUID
        var url: URL
        var decimal: Decimal
        var colour: Colour
        var level: Level?
        var wrapper: ID
        var tags: Tags
        var place: Place
        var list: [Int]
        var shape: Shape?
        var dates: [Date]
    }

    private func things() throws -> Things {
        Things(
            text: "ä\u{0}b🎈", data: Data(0...255), bytes: Array(0...255),
            date: Date(timeIntervalSince1970: 1_234_567.890123), uuid: UUID(),
            url: try #require(URL(string: "https://example.com/a?b=c#d")),
            decimal: try #require(Decimal(string: "12345678901234567890.123456789")),
            colour: .green, level: .low, wrapper: ID("x"), tags: Tags(["a", "b"]),
            place: Place(name: "\"q\"", spot: [0.1, -1e300], inner: ["b": 2, "a": 1]),
            list: [1, 2], shape: .circle(radius: 0.5), dates: [Date(timeIntervalSince1970: 1.5)])
    }

    @Test func `texts, blobs, enums, wrappers and nested values round-trip`() throws {
        var things = try things()
        #expect(try fixture.roundTrip(things) == [things])
        things.level = nil
        things.shape = nil
        things.text = ""
        things.data = Data()
        things.bytes = []
        things.list = []
        things.data = Data(repeating: 3, count: 100_000)
        things.text = String(repeating: "é", count: 20_000)
        #expect(try fixture.roundTrip(things).last == things)
    }

    @Test func `each kind has the storage class that ValueConvertible uses`() throws {
        try fixture.store.write { tx in try tx.insert(try things()) }
        #expect(
            try fixture.columns(of: "things") == [
                "text TEXT NOT NULL", "data BLOB NOT NULL", "bytes BLOB NOT NULL",
                "date REAL_SINCE_2001 NOT NULL", "uuid BLOB NOT NULL", "url TEXT NOT NULL",
                "decimal TEXT NOT NULL", "colour TEXT NOT NULL", "level INTEGER",
                "wrapper TEXT NOT NULL", "tags TEXT NOT NULL", "place TEXT NOT NULL",
                "list TEXT NOT NULL", "shape TEXT", "dates TEXT NOT NULL",
            ])
        let types = try fixture.values(
            """
            SELECT typeof(text), typeof(data), typeof(bytes), typeof(date), length(uuid),
            typeof(url), typeof(decimal), colour, level, wrapper, tags, place FROM things
            """)
        #expect(
            types == [
                "text", "blob", "blob", "real", 16, "text", "text", "grün", -1, "x",
                #"["a","b"]"#,
                #"{"inner":{"a":1,"b":2},"name":"\"q\"","spot":[0.1,-1e+300]}"#,
            ])
    }

    struct Maybe: Record, Equatable {
        var id: Int
        var int: Int?
        var int8: Int8?
        var uint64: UInt64?
        var double: Double?
        var float: Float?
        var bool: Bool?
        var text: String?
        var data: Data?
        var bytes: [UInt8]?
        var date: Date?
        var uuid: UUID?
        var url: URL?
        var decimal: Decimal?
        var colour: Colour?
        var level: Level?
        var wrapper: ID?
        var place: Place?
        var list: [Int]?
    }

    @Test func `every kind may be optional, and empty is not NULL`() throws {
        let none = Maybe(id: 1)
        let some = Maybe(
            id: 2, int: 0, int8: 0, uint64: 0, double: 0, float: 0, bool: false, text: "",
            data: Data(), bytes: [], date: Date(timeIntervalSince1970: 0), uuid: UUID(),
            url: URL(string: "a:b"), decimal: 0, colour: .red, level: .high, wrapper: ID(""),
            place: Place(name: "", spot: []), list: [])
        try fixture.store.write { tx in try tx.insert([some, none, Maybe(id: 3)]) }
        let found = try fixture.store.read { tx in try tx.fetch(Maybe.order(by: \.id)) }
        #expect(found == [none, some, Maybe(id: 3)])
        let nulls = try fixture.values(
            "SELECT text IS NULL, data IS NULL, bytes IS NULL FROM maybe")
        #expect(nulls == [1, 1, 1, 0, 0, 0, 1, 1, 1])
        let columns = try fixture.columns(of: "maybe").dropFirst()
        #expect(columns.allSatisfy { !$0.contains("NOT NULL") })
        #expect(columns.count == 18)
    }

    @Test func `a date keeps its microseconds`() throws {
        var note = Note.numbered(1)
        note.created = Date(timeIntervalSince1970: 4_102_444_799.123457)
        let found = try fixture.roundTrip(note)
        let difference = try #require(found.first).created.timeIntervalSince(note.created)
        #expect(abs(difference) < 0.000_001)
    }

    struct Wide: Record, Equatable {
        var id: Int
        var values: [String: Int]

        init(id: Int, values: [String: Int]) {
            self.id = id
            self.values = values
        }

        struct Key: CodingKey {
            var stringValue: String
            var intValue: Int? { nil }
            init(stringValue: String) { self.stringValue = stringValue }
            init?(intValue: Int) { nil }
        }

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: Key.self)
            id = try container.decode(Int.self, forKey: Key(stringValue: "id"))
            values = [:]
            for number in 0..<200 {
                let key = Key(stringValue: "c\(number)")
                values[key.stringValue] = try container.decodeIfPresent(Int.self, forKey: key)
            }
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Key.self)
            try container.encode(id, forKey: Key(stringValue: "id"))
            for (name, value) in values {
                try container.encode(value, forKey: Key(stringValue: name))
            }
        }
    }

    @Test func `a type of 200 columns whose keys are strings works, and omitted columns are NULL`()
        throws
    {
        let full = Dictionary(uniqueKeysWithValues: (0..<200).map { ("c\($0)", $0) })
        let all = [Wide(id: 1, values: full), Wide(id: 2, values: ["c7": 7, "c199": 9])]
        try fixture.store.write { tx in try tx.insert(all) }
        #expect(try fixture.store.read { tx in try tx.fetch(Wide.order(by: \.id)) } == all)
    }
}
