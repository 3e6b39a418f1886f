import Coffer
import Foundation
import Testing

/// Tables that exist already, and do not quite fit.
@Suite(.againstHanging, .onOwnThreads) struct SchemaTests {
    private let fixture: RecordFixture

    init() throws {
        fixture = try RecordFixture()
    }

    enum Before {
        struct Item: Record {
            static let table = "item"
            var id: Int
            var name: String
        }
    }

    enum After {
        struct Item: Record, Equatable {
            static let table = "item"
            var id: Int
            var name: String
            var note: String?
            var size: Int?
        }
    }

    @Test func `create adds the optional columns that a type gained`() throws {
        try fixture.store.write { tx in try tx.insert(Before.Item(id: 1, name: "a")) }
        try fixture.store.write { tx throws in
            let error = expect(.mismatch) {
                try tx.insert(After.Item(id: 2, name: "b", note: "n", size: 3))
            }
            #expect(error?.column == "note")
            #expect(error?.hint?.contains("create") == true)
            _ = expect(.mismatch) { try tx.fetch(After.Item.all) }
            try tx.create(After.Item.self)
            try tx.create(After.Item.self)
            try tx.insert(After.Item(id: 2, name: "b", note: "n", size: 3))
        }
        let found = try fixture.store.read { tx in try tx.fetch(After.Item.order(by: \.id)) }
        #expect(
            found == [
                After.Item(id: 1, name: "a"), After.Item(id: 2, name: "b", note: "n", size: 3),
            ])
        #expect(try fixture.columns(of: "item").suffix(2) == ["note TEXT", "size INTEGER"])
    }

    struct Thing: Record {
        var id: Int
        var name: String
        var size: Double?
    }

    static let drifts: [(String, String)] = [
        ("id INTEGER PRIMARY KEY, size REAL", "name"),  // a column that is needed
        ("id INTEGER PRIMARY KEY, name INTEGER NOT NULL, size REAL", "name"),
        ("id INTEGER PRIMARY KEY, name TEXT, size REAL", "name"),
        ("id INTEGER PRIMARY KEY, name TEXT NOT NULL, size REAL NOT NULL", "size"),
        ("id INTEGER, name TEXT NOT NULL, size REAL", "id"),
        ("id INTEGER, name TEXT NOT NULL PRIMARY KEY, size REAL", "id"),
        ("id INTEGER PRIMARY KEY, name TEXT NOT NULL, size REAL, old TEXT", "old"),
        ("id INTEGER, name TEXT NOT NULL, size REAL, PRIMARY KEY (id, name)", "name"),
    ]

    @Test(arguments: drifts)
    func `create names any other difference`(columns: String, column: String) throws {
        try fixture.execute(SQL(text: "CREATE TABLE thing(\(columns))"))
        try fixture.store.write { tx throws in
            let error = expect(.mismatch) { try tx.create(Thing.self) }
            #expect(error?.table == "thing")
            #expect(error?.column == column)
            #expect(error?.message.contains("expected") == true)
            #expect(error?.message.contains("found") == true)
        }
    }

    @Test func `create accepts a table of the same meaning in other words`() throws {
        try fixture.execute(
            "CREATE TABLE Thing(ID integer PRIMARY KEY, Size DOUBLE, name VARCHAR(20) NOT NULL)")
        try fixture.store.write { tx throws in
            try tx.create(Thing.self)
            try tx.insert(Thing(id: 1, name: "a", size: 2))
            #expect(try tx.find(Thing.self, 1)?.size == 2)
        }
    }

    @Test func `a view is not a table`() throws {
        try fixture.execute("CREATE VIEW thing AS SELECT 1 AS id, 'a' AS name, 2.0 AS size")
        try fixture.store.write { tx throws in
            let error = expect(.mismatch) { try tx.create(Thing.self) }
            #expect(error?.message.contains("a view") == true)
            let note = expect(.mismatch) { try tx.insert(Thing(id: 1, name: "a")) }
            #expect(note?.message.contains("a view") == true)
            let thing = Thing(id: 1, name: "b")
            for verb in [
                { tx in try tx.insert([thing]) }, { tx in try tx.upsert(thing) },
                { tx in try tx.upsert(thing, conflictingOn: \.id) },
                { tx in try tx.update(thing) }, { tx in try tx.update(thing, only: \.name) },
                { tx in try tx.update(Thing.all.set(\.name, to: "b")) },
                { tx in try tx.delete(thing) }, { tx in try tx.delete(Thing.self, key: 1) },
                { tx in try tx.delete(Thing.all) },
            ] as [(inout WriteTransaction) throws -> Void] {
                let error = expect(.mismatch) { try verb(&tx) }
                #expect(error?.table == "thing" && error?.message.contains("a view") == true)
            }
            #expect(try tx.schemaDifferences(of: Thing.self).map(\.found) == ["a view"])
            #expect(try tx.find(Thing.self, 1)?.size == 2)
            #expect(try tx.fetch(Thing.all).map(\.name) == ["a"])
        }
    }

    @Test func `insert refuses a table that would change its values`() throws {
        try fixture.execute("CREATE TABLE thing(id INTEGER PRIMARY KEY, name NUMERIC, size REAL)")
        try fixture.store.write { tx throws in
            // "007" would become the number 7.
            let error = expect(.mismatch) { try tx.insert(Thing(id: 1, name: "007")) }
            #expect(error?.column == "name")
        }
    }

    struct Order: Record, Equatable {
        static let table = "select \"from\""
        static let key = ["group", "a\"b"]
        var group: Int
        var index: String
        var where_: String?
        var `default`: Bool

        enum CodingKeys: String, CodingKey {
            case group
            case index = "a\"b"
            case where_ = "where a.b [c] `d`"
            case `default`
        }
    }

    @Test func `reserved words and quotes are names like any other`() throws {
        let order = Order(group: 1, index: "x", where_: nil, default: true)
        var other = order
        other.where_ = "y"
        try fixture.store.write { tx throws in
            try tx.create(Order.self)
            try tx.insert(order)
            #expect(try tx.fetch(Order.where(\.where_ == nil).order(by: \.group)) == [order])
            #expect(try tx.updateIfPresent(other))
            try tx.upsert(other)
            #expect(try tx.fetch(Order.where(\.default == true && \.index == "x")) == [other])
            #expect(try tx.delete(Order.where(\.where_ == "y").limit(1)) == 1)
            try tx.create(Order.self)
        }
    }

    struct Box<Content: Codable & Sendable & Equatable>: Record, Equatable {
        var id: Int
        var content: Content
    }

    struct HTTPServer2: Record { var id: Int }

    @Test func `the table is the type's name in snake case`() {
        #expect(Note.table == "note")
        #expect(Before.Item.table == "item")
        #expect(HTTPServer2.table == "http_server2")
        #expect(Box<Int>.table == "box_int")
        #expect(Box<[String: Int]>.table == "box_dictionary_string_int")
        struct DownloadItem: Record { var id: Int }
        #expect(DownloadItem.table == "download_item")
    }

    @Test func `a generic type has a table for each of its types`() throws {
        try fixture.store.write { tx throws in
            try tx.insert(Box(id: 1, content: "a"))
            try tx.insert(Box(id: 1, content: [1, 2]))
            #expect(try tx.fetch(Box<String>.all) == [Box(id: 1, content: "a")])
            #expect(try tx.fetch(Box.where(\.content == [1, 2])) == [Box(id: 1, content: [1, 2])])
        }
    }
}
