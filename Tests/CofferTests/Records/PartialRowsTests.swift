import CSQLCipher
import Foundation
import Synchronization
import Testing

@testable import Coffer

/// Rows of a record's table as another type: only its columns are read, and never too few.
@Suite(.againstHanging, .onOwnThreads) struct PartialRowsTests {
    private let fixture: RecordFixture

    init() throws {
        fixture = try RecordFixture()
        try fixture.store.write { tx in try tx.insert((1...20).map(Wide.numbered)) }
    }

    struct Wide: Record {
        static let table = "wide"
        static var encodings: [PartialKeyPath<Self>: ColumnEncoding] { [\.tag: .uuidText] }
        var id: Int
        var kind: Int
        var title: String
        var body: String?
        var created: Date
        var tag: UUID
        var list: [Int]

        static func numbered(_ id: Int) -> Wide {
            Wide(
                id: id, kind: id % 3, title: "t\(id)", body: id % 2 == 0 ? "b\(id)" : nil,
                created: Date(timeIntervalSinceReferenceDate: Double(id)),
                tag: UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, UInt8(id))),
                list: [id])
        }
    }

    /// The result, and the columns that SQLite was asked for.
    private func fetch<T: Decodable>(
        _ query: Query<Wide> = Wide.order(by: \.id), as type: T.Type
    ) throws -> (rows: [T], columns: [String]) {
        try fixture.store.read { tx throws in
            // Making the table's plan reads the schema, which names columns too.
            let connection = try tx.connection()
            _ = try RecordTable.of(Wide.self, connection)
            let handle = try connection.current()
            let columns = ReadColumns()
            sqlite3_set_authorizer(
                handle.db,
                { columns, action, table, column, _, _ in
                    guard action == SQLITE_READ, let columns, let table, let column,
                        String(cString: table) == "wide"
                    else { return SQLITE_OK }
                    let name = String(cString: column)
                    // SQLCipher 4 tells of a table without a name of a column, too.
                    guard !name.isEmpty else { return SQLITE_OK }
                    Unmanaged<ReadColumns>.fromOpaque(columns).takeUnretainedValue()
                        .names.append(name)
                    return SQLITE_OK
                }, Unmanaged.passUnretained(columns).toOpaque())
            defer { handle.authorizer.install(on: handle.db) }
            let rows = try tx.fetch(query, as: type)
            return (rows, Set(columns.names).sorted())
        }
    }

    private final class ReadColumns {
        var names: [String] = []
    }

    struct Title: Decodable, Equatable {
        let id: Int
        let title: String
    }

    private static let all = ["body", "created", "id", "kind", "list", "tag", "title"]

    @Test func `only the columns of the type are read, and the key that errors name`() throws {
        #expect(try fetch(as: Title.self).columns == Self.all, "the first rows tell which")
        let found = try fetch(as: Title.self)
        #expect(found.rows == (1...20).map { Title(id: $0, title: "t\($0)") })
        #expect(found.columns == ["id", "title"])
        struct Body: Decodable { let body: String? }
        _ = try fetch(as: Body.self)
        let bodies = try fetch(as: Body.self)
        #expect(bodies.rows.map(\.body) == (1...20).map { Wide.numbered($0).body })
        #expect(bodies.columns == ["body", "id"])
        struct Encoded: Decodable {
            let tag: UUID
            let created: Date
            let list: [Int]
        }
        _ = try fetch(as: Encoded.self)
        let encoded = try fetch(as: Encoded.self).rows
        #expect(encoded.map(\.tag) == (1...20).map { Wide.numbered($0).tag })
        #expect(encoded.map(\.created) == (1...20).map { Wide.numbered($0).created })
        #expect(encoded.map(\.list) == (1...20).map { [$0] })
        let some = Wide.where(\.kind == 1).order(by: \.created, .descending).limit(3)
        #expect(try fetch(some, as: Title.self).rows.map(\.id) == [19, 16, 13])
    }

    /// An index over fewer columns would lead to other rows.
    @Test func `a limit without an order leaves the rows that it leaves of the records`() throws {
        try fixture.execute("UPDATE wide SET title = 't' || (100 - id)")
        try fixture.execute("CREATE INDEX by_title ON wide(title)")
        for _ in 0..<2 {
            let titles = try fetch(Wide.limit(3), as: Title.self).rows
            let records = try fixture.store.read { tx in try tx.fetch(Wide.limit(3)) }
            #expect(titles.map(\.id) == records.map(\.id))
        }
    }

    /// Asks some rows for a column that it does not ask the first ones for, in many ways.
    struct Choosy: Decodable, Equatable {
        @TaskLocal static var way = 0
        static let counts = Mutex<[Int: Int]>([:])
        var id: Int
        var other: String?

        enum CodingKeys: CodingKey { case id, title, body, list }

        init(from decoder: any Decoder) throws {
            Self.counts.withLock { $0[Self.way, default: 0] += 1 }
            let row = try decoder.container(keyedBy: CodingKeys.self)
            id = try row.decode(Int.self, forKey: .id)
            guard id > 10 else { return }
            switch Self.way {
            case 0: other = try row.decode(String.self, forKey: .title)
            case 1: other = try row.decodeIfPresent(String.self, forKey: .body)
            case 2: other = row.contains(.body) ? "there" : nil
            case 3: other = (try? row.decode(String.self, forKey: .title)) ?? "wrong"
            case 4: other = "\(row.allKeys.count)"
            case 5: other = try row.decodeNil(forKey: .body) ? "nil" : "there"
            case 6: other = "\((try? row.nestedUnkeyedContainer(forKey: .list).count) ?? -1)"
            default:
                let again = try decoder.container(keyedBy: OtherKey.self)
                other = try again.decode(String.self, forKey: OtherKey(stringValue: "title"))
            }
        }

        static func expected(_ id: Int, way: Int) -> String? {
            guard id > 10 else { return nil }
            let wide = Wide.numbered(id)
            return switch way {
            case 1: wide.body
            case 2: wide.body == nil ? nil : "there"
            case 4: wide.body == nil ? "3" : "4"
            case 5: wide.body == nil ? "nil" : "there"
            case 6: "1"
            default: wide.title
            }
        }
    }

    struct OtherKey: CodingKey {
        var stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    @Test(arguments: 0...7)
    func `a type that asks rows for more columns gets them, whatever rows came first`(
        way: Int
    ) throws {
        try Choosy.$way.withValue(way) {
            let first = try fetch(Wide.where(\.id <= 10).order(by: \.id), as: Choosy.self)
            #expect(first.columns == Self.all && first.rows.count == 10)
            let second = try fetch(Wide.where(\.id <= 10).order(by: \.id), as: Choosy.self)
            #expect(second.columns == ["id"] && second.rows == first.rows)
            let found = try fetch(as: Choosy.self)
            #expect(found.rows.map(\.other) == (1...20).map { Choosy.expected($0, way: way) })
            #expect(found.columns == Self.all)
            let before = Choosy.counts.withLock { $0[way] ?? 0 }
            let again = try fetch(as: Choosy.self)
            #expect(again.rows == found.rows && again.columns == Self.all)
            #expect(Choosy.counts.withLock { $0[way] } == before + 20)
        }
    }

    /// Ends the program if its title is empty.
    struct Picky: Decodable {
        let title: String
        init(from decoder: any Decoder) throws {
            let row = try decoder.container(keyedBy: Title.Keys.self)
            title = try row.decode(String.self, forKey: .title)
            precondition(title.hasPrefix("t"))
        }
    }

    @Test func `a type is made of rows alone, and odd types get all columns`() throws {
        let found = try fetch(as: Picky.self)
        #expect(found.rows.map(\.title) == (1...20).map { "t\($0)" } && found.columns == Self.all)
        struct Everything: Decodable {
            let keys: [String]
            init(from decoder: any Decoder) throws {
                keys = try decoder.container(keyedBy: OtherKey.self).allKeys.map(\.stringValue)
            }
        }
        let keys = try fetch(as: Everything.self)
        #expect(
            keys.columns == Self.all && keys.rows.map(\.keys.count) == (1...20).map { 7 - $0 % 2 })
        struct Number: Decodable {
            init(from decoder: any Decoder) throws {
                _ = try decoder.singleValueContainer().decode(Int.self)
            }
        }
        expect(.unsupported) { try fetch(as: Number.self) }
        struct Nothing: Decodable {}
        #expect(try fetch(as: Nothing.self).rows.count == 20)
        struct Strange: Decodable { let none: Int? }
        #expect(try fetch(as: Strange.self).rows.allSatisfy { $0.none == nil })
        struct Missing: Decodable { let none: Int }
        expect(.mismatch) { try fetch(as: Missing.self) }
    }

    struct Fast: Record, Equatable {
        static let access = RecordAccess.storedProperties
        static let table = "other"
        @TaskLocal static var isForbidden = false
        var title: String
        var created: Date
        var none: Int?

        enum CodingKeys: CodingKey { case title, created, none }

        init(from decoder: any Decoder) throws {
            let row = try decoder.container(keyedBy: CodingKeys.self)
            if Self.isForbidden { throw StoreError(.misuse, "the layout is proven") }
            title = try row.decode(String.self, forKey: .title)
            created = try row.decode(Date.self, forKey: .created)
            none = try row.decodeIfPresent(Int.self, forKey: .none)
        }
    }

    struct FastTag: Record {
        static let access = RecordAccess.storedProperties
        static let key: [String] = []
        var tag: UUID
    }

    @Test func `a record with stored properties is made by them`() throws {
        _ = try fetch(as: Fast.self)
        try Fast.$isForbidden.withValue(true) {
            for query in [Wide.order(by: \.id), Wide.all] {
                let found = try fetch(query, as: Fast.self)
                #expect(found.rows.map(\.title) == (1...20).map { "t\($0)" })
                #expect(found.rows.map(\.created) == (1...20).map { Wide.numbered($0).created })
                #expect(found.rows.allSatisfy { $0.none == nil })
            }
        }
        // The column holds its UUIDs as texts, which only the other way knows.
        let tags = try fetch(as: FastTag.self)
        #expect(tags.rows.map(\.tag) == (1...20).map { Wide.numbered($0).tag })
        try fixture.execute("UPDATE wide SET title = x'00' WHERE id = 5")
        for query in [Wide.order(by: \.id), Wide.all] {
            let error = expect(.mismatch) { try fetch(query, as: Fast.self) }
            #expect(error?.column == "title" && error?.message.contains("id 5") == true)
        }
    }

    /// Reads its own type while it is decoded.
    struct Nesting: Decodable {
        @TaskLocal static var inner: (@Sendable () throws -> Int)?
        var id: Int
        var count: Int
        enum CodingKeys: CodingKey { case id }
        init(from decoder: any Decoder) throws {
            id = try decoder.container(keyedBy: CodingKeys.self).decode(Int.self, forKey: .id)
            count = try Self.inner?() ?? 0
        }
    }

    @Test func `a type may be read while it is decoded`() throws {
        try fixture.store.read { tx throws in
            let connection = try tx.connection()
            nonisolated(unsafe) let table = try RecordTable.of(Wide.self, connection)
            nonisolated(unsafe) let inside = connection
            let inner: @Sendable () throws -> Int = {
                try Nesting.$inner.withValue(nil) {
                    try table.fetch(
                        Wide.order(by: \.id).limit(7), as: Nesting.self, inside
                    ).count
                }
            }
            // The first time no row has told of the columns.
            for _ in 0..<2 {
                let found = try Nesting.$inner.withValue(inner) {
                    try tx.fetch(Wide.order(by: \.id), as: Nesting.self)
                }
                #expect(found.map(\.count) == Array(repeating: 7, count: 20))
            }
            #expect(try tx.fetch(Wide.all, as: Nesting.self).map(\.id) == Array(1...20))
        }
    }

    /// Reads the rows behind its own, which do the same, to the last one.
    struct Tree: Decodable {
        @TaskLocal static var rows: (@Sendable (Int) throws -> [Tree])?
        var count: Int
        enum CodingKeys: CodingKey { case id }
        init(from decoder: any Decoder) throws {
            let id = try decoder.container(keyedBy: CodingKeys.self).decode(Int.self, forKey: .id)
            count = try Self.rows?(id).reduce(1) { $0 + $1.count } ?? 0
        }
    }

    @Test func `a type that reads rows of itself as a tree comes to an end`() throws {
        try fixture.store.read { tx throws in
            let connection = try tx.connection()
            nonisolated(unsafe) let table = try RecordTable.of(Wide.self, connection)
            nonisolated(unsafe) let inside = connection
            let rows: @Sendable (Int) throws -> [Tree] = { id in
                try table.fetch(
                    Wide.where(\.id == id + 1 && \.id <= 5), as: Tree.self, inside)
            }
            let found = try Tree.$rows.withValue(rows) {
                try tx.fetch(Wide.order(by: \.id), as: Tree.self)
            }
            #expect(found.prefix(6).map(\.count) == [5, 4, 3, 2, 1, 1])
        }
    }

    @Test func `a type without a table has no rows, and gets them when there are some`() throws {
        struct Late: Record {
            var id: Int
            var when: Date
        }
        struct When: Decodable { let when: Date }
        try fixture.store.write { tx throws in
            #expect(try tx.fetch(Late.all, as: When.self).isEmpty)
            let date = Date(timeIntervalSince1970: 7)
            try tx.insert(Late(id: 1, when: date))
            #expect(try tx.fetch(Late.all, as: When.self).map(\.when) == [date])
        }
    }
}

extension PartialRowsTests.Title {
    enum Keys: CodingKey { case title }
}
