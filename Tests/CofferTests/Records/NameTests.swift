import Foundation
import Testing

@testable import Coffer

/// Names of tables and columns that have another meaning in SQL, or in Coffer's own SQL.
@Suite(.againstHanging, .onOwnThreads) struct NameTests {
    private let fixture: RecordFixture
    private var store: Store { fixture.store }

    init() throws {
        fixture = try RecordFixture()
    }

    struct Group: Record, Equatable {
        static let table = "group"
        static var indexes: [Index<Self>] { [Index(\.order, isUnique: true)] }
        var id: Int
        var order: String
        enum CodingKeys: String, CodingKey {
            case id = "select"
            case order = "order \"by\" '; --"
        }
        static let key = ["select"]
    }

    /// The table's name, `i` and `value` also occur in Coffer's own statements.
    struct Odd<P: RecordPathsTests.Path>: Record, Equatable {
        static var access: RecordAccess { P.access }
        static var table: String { "coffer_list" }
        static var key: [String] { ["i"] }
        static var indexes: [Index<Self>] {
            [Index(\.value, isUnique: true), Index(\.comma, \.quote)]
        }
        static var references: [Reference<Self>] {
            [Reference(\.table, to: Group.self), Reference(\.comma, to: \Group.order)]
        }
        static var defaults: [Default<Self>] { [Default(\.quote, "it's \"x\"")] }
        var i: Int
        var value: String
        var table: Int?
        var quote: String
        var comma: String?
        var emoji: Double
        enum CodingKeys: String, CodingKey {
            case i, value, table
            case quote = "a\"b'c`d"
            case comma = "[x], y"
            case emoji = "é🎈 ?1 :a"
        }
    }

    @Test func `they are names like any other, for every verb`() throws {
        try check(Odd<RecordPathsTests.Own>.self)
        try check(Odd<RecordPathsTests.Stored>.self)
    }

    private func check<P>(_ type: Odd<P>.Type) throws {
        let all = (1...6).map { id in
            Odd<P>(
                i: id, value: "v\(id)", table: id % 2 == 0 ? 1 : nil, quote: "q", comma: nil,
                emoji: Double(id))
        }
        try store.write { tx throws in
            try tx.execute("DROP TABLE IF EXISTS coffer_list")
            try tx.upsert(Group(id: 1, order: "o"))
            try tx.create(type)
            try tx.create(type)
            #expect(try tx.schemaDifferences(of: type).isEmpty)
            try tx.insert(all)
            #expect(try tx.fetch(type.all) == all)
            #expect(try tx.fetch(type, sql: "SELECT * FROM coffer_list") == all)
            #expect(try tx.find(type, keys: [6, 2]) == [all[5], all[1]])
            let long = Array(-500...3)
            #expect(try tx.fetch(type.where(long.contains(\.i)).order(by: \.emoji)).count == 3)
            #expect(try tx.distinct(\.value, type.order(by: \.i).limit(2)) == ["v1", "v2"])
            #expect(try tx.counts(by: \.table, type.all) == [nil: 3, 1: 3])
            #expect(try tx.sum(\.emoji, type.order(by: \.quote).order(by: \.i).limit(2)) == 3)
            #expect(try tx.max(\.value, type.where(!long.contains(\.i))) == "v6")
            let query = type.order(by: \.quote).order(by: \.emoji, .descending).limit(4)
            let page = try tx.fetch(query.inOrderOfKey())
            let last = try #require(page.last)
            #expect(try tx.fetch(query.after(last)).map(\.i) == [2, 1])

            var first = all[0]
            (first.comma, first.emoji) = ("o", 70)
            #expect(try tx.updateIfPresent(first, only: \.comma))
            _ = expect(.constraint) {
                try tx.update(type.where(\.i == 2).set(\.comma, to: "nothing"))
            }
            first.quote = "by value"
            try tx.upsert(first, conflictingOn: \.value)
            #expect(try tx.fetch(type.where(\.comma == "o")) == [first])
            let ofGroup = Group.where(\.order == "o")
            let join = type.order(by: \.i).joining(\.table, to: ofGroup)
            #expect(try tx.fetch(join).map(\.0.i) == [2, 4, 6])
            #expect(try tx.count(type.where(ofGroup.contains(\.comma))) == 1)
            #expect(try tx.update(type.order(by: \.emoji).limit(1).set(\.quote, to: "'")) == 1)
            #expect(try tx.delete(type.where(\.quote == "'")) == 1)
            try tx.delete(type.order(by: \.i).limit(2))
            #expect(try tx.delete(all[5]))
        }
    }

    struct Shouting: Record, Equatable {
        var id: Int
        var title: String?
        var size: Double?
    }

    struct StoredShouting: Record, Equatable {
        static var access: RecordAccess { .storedProperties }
        static let table = "shouting"
        var id: Int
        var title: String?
        var size: Double?
    }

    @Test
    func `a column that the table spells in other letters is found in the program's own SELECT`()
        throws
    {
        try store.write { tx throws in
            try tx.execute("CREATE TABLE Shouting(ID INTEGER PRIMARY KEY, TITLE TEXT, Size REAL)")
            try tx.insert(Shouting(id: 1, title: "a", size: 2))
            #expect(try tx.fetch(Shouting.all) == [Shouting(id: 1, title: "a", size: 2)])
            for sql: SQL in ["SELECT * FROM shouting", "SELECT SIZE, iD, tItLe FROM shouting"] {
                #expect(
                    try tx.fetch(Shouting.self, sql: sql) == [Shouting(id: 1, title: "a", size: 2)])
                #expect(
                    try tx.fetch(StoredShouting.self, sql: sql)
                        == [StoredShouting(id: 1, title: "a", size: 2)])
            }
            // If there are two, the one that is spelled as the property counts.
            let both: SQL = "SELECT ID, 'x' AS TITLE, title AS title FROM shouting"
            #expect(try tx.fetch(Shouting.self, sql: both).first?.title == "a")
        }
    }

    struct Reserved: Record {
        static let table = "sqlite_notes"
        var id: Int
    }

    @Test func `a name that the engine reserves is an error that names the table`() throws {
        try store.write { tx throws in
            let error = expect(.sql) { try tx.create(Reserved.self) }
            #expect(error?.table == "sqlite_notes")
        }
    }

    // MARK: Many columns

    protocol Many: Sendable { static var count: Int { get } }
    enum Most: Many { static let count = 999 }
    enum TooMany: Many { static let count = 1_000 }
    enum Endless: Many { static let count = 2_001 }

    /// A column for each number, with keys that are made when they are needed.
    struct Wide<M: Many>: Record, Equatable {
        static var table: String { "wide" }
        static var key: [String] { ["c0"] }
        var values: [Int?]

        init(_ first: Int) {
            values = (0..<M.count).map { $0 == 0 ? first : $0 % 7 == 3 ? nil : $0 }
        }

        struct Key: CodingKey {
            let stringValue: String
            var intValue: Int? { nil }
            init(_ number: Int) { stringValue = "c\(number)" }
            init?(stringValue: String) { self.stringValue = stringValue }
            init?(intValue: Int) { nil }
        }

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: Key.self)
            values = try (0..<M.count).map {
                try container.decodeIfPresent(Int.self, forKey: Key($0))
            }
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Key.self)
            for (number, value) in values.enumerated() {
                try container.encodeIfPresent(value, forKey: Key(number))
            }
        }
    }

    private func write<M>(_ type: Wide<M>.Type) throws {
        try store.write { tx throws in
            try tx.insert([Wide<M>(1), Wide<M>(2)])
            var second = Wide<M>(2)
            second.values[M.count - 1] = 5
            #expect(try tx.updateIfPresent(second))
            try tx.upsert([second, Wide<M>(3)])
            #expect(try tx.find(type, 2) == second)
            #expect(try tx.fetch(type.all) == [Wide<M>(1), second, Wide<M>(3)])
            #expect(try tx.delete(second))
            #expect(try tx.delete(type, keys: [1, 3]) == 2)
        }
    }

    @Test func `a record has at most as many columns as the engine takes arguments`() throws {
        try write(Wide<Most>.self)
        try fixture.execute("DROP TABLE wide")
        if isEngine4 { return try write(Wide<TooMany>.self) }
        try store.write { tx throws in
            try tx.create(Wide<TooMany>.self)
            for verb in [
                { tx in try tx.insert(Wide<TooMany>(1)) },
                { tx in try tx.update(Wide<TooMany>(1)) },
                { tx in try tx.upsert(Wide<TooMany>(1)) },
                { tx in try tx.delete(Wide<TooMany>(1)) },
            ] as [(inout WriteTransaction) throws -> Void] {
                let error = expect(.tooBig) { try verb(&tx) }
                #expect(error?.table == "wide" && error?.message.contains("999") == true)
            }
            // Reading binds only the key.
            try tx.execute("INSERT INTO wide (c0, c999) VALUES (1, 2)")
            #expect(try tx.find(Wide<TooMany>.self, 1)?.values.last == 2)
        }
    }

    @Test func `a table that the engine cannot have is an error that names it`() throws {
        try store.write { tx throws in
            let error = expect(.sql) { try tx.create(Wide<Endless>.self) }
            #expect(error?.table == "wide")
        }
    }
}
