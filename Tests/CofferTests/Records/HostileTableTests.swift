import Coffer
import Foundation
import Testing

/// Tables and views that others made, under the names of record types.
@Suite(.againstHanging, .onOwnThreads) struct HostileTableTests {
    private let fixture: RecordFixture

    init() throws {
        fixture = try RecordFixture()
    }

    struct Sheet: Record {
        static var isWithoutRowID: Bool { true }
        static let key = ["code"]
        var code: String
        var title: String
    }

    @Test func `a key that the table lacks names no row, and none is changed`() throws {
        try fixture.execute("CREATE TABLE sheet(id TEXT PRIMARY KEY, title) WITHOUT ROWID")
        try fixture.execute("INSERT INTO sheet VALUES ('a', 'x'), ('b', 'y'), ('c', 'z')")
        try fixture.store.write { tx in
            expect(.mismatch) { try tx.delete(Sheet.limit(1)) }
            expect(.mismatch) { try tx.update(Sheet.limit(1).set(\.title, to: "lost")) }
        }
        #expect(try fixture.values("SELECT title FROM sheet ORDER BY id") == ["x", "y", "z"])
    }

    struct Page: Record {
        var title: String
    }

    @Test func `a column named rowid that the type lacks does not widen a limit`() throws {
        try fixture.execute("CREATE TABLE page(title TEXT NOT NULL, rowid TEXT)")
        try fixture.execute("INSERT INTO page VALUES ('a', 'x'), ('b', 'x'), ('c', 'x')")
        try fixture.store.write { tx throws in
            #expect(try tx.update(Page.order(by: \.title).limit(1).set(\.title, to: "z")) == 1)
            #expect(try tx.delete(Page.order(by: \.title).limit(1)) == 1)
        }
        #expect(try fixture.values("SELECT title FROM page ORDER BY title") == ["c", "z"])
    }

    @Test func `a limit treats a missing table and a view as the verbs without one do`() throws {
        let changes: [(inout WriteTransaction) throws -> Int] = [
            { tx in try tx.delete(Page.all) },
            { tx in try tx.delete(Page.limit(1)) },
            { tx in try tx.update(Page.all.set(\.title, to: "lost")) },
            { tx in try tx.update(Page.limit(1).set(\.title, to: "lost")) },
        ]
        func expectAll(_ code: StoreError.Code) throws {
            for change in changes {
                try fixture.store.write { tx in
                    let error = expect(code) { try change(&tx) }
                    #expect(error?.table == "page")
                }
            }
        }
        for change in changes {
            #expect(try fixture.store.write { tx in try change(&tx) } == 0)
        }
        try fixture.execute("CREATE VIEW page AS SELECT 'a' AS title")
        try expectAll(.mismatch)
    }

    @Test(arguments: [
        "code TEXT NOT NULL COLLATE NOCASE, title TEXT)",
        "code TEXT PRIMARY KEY COLLATE BINARY, title TEXT COLLATE NOCASE)",
        "code TEXT NOT NULL COLLATE NOCASE, title TEXT PRIMARY KEY) WITHOUT ROWID",
        "code TEXT COLLATE NOCASE, title TEXT, PRIMARY KEY (title, code)) WITHOUT ROWID",
        "code TEXT COLLATE NOCASE, title TEXT, PRIMARY KEY (code COLLATE BINARY)) WITHOUT ROWID",
    ])
    func `a limit changes one row of a table with another key than the type's`(
        definition: String
    ) throws {
        try fixture.execute(SQL(text: "CREATE TABLE sheet(\(definition)"))
        try fixture.execute("INSERT INTO sheet VALUES ('a', 'x'), ('A', 'y'), ('b', 'z')")
        try fixture.store.write { tx throws in
            let first = Sheet.order(by: \.title).limit(1)
            #expect(try tx.update(first.set(\.title, to: "w")) == 1)
            #expect(try tx.delete(first) == 1)
        }
        #expect(try fixture.values("SELECT title FROM sheet ORDER BY title") == ["y", "z"])
    }

    @Test func `a limit finds rows of a table that has no row ids though the type expects them`()
        throws
    {
        try fixture.execute("CREATE TABLE page(title TEXT PRIMARY KEY) WITHOUT ROWID")
        try fixture.execute("INSERT INTO page VALUES ('a'), ('b')")
        try fixture.store.write { tx throws in
            #expect(try tx.delete(Page.order(by: \.title).limit(1)) == 1)
        }
        #expect(try fixture.values("SELECT title FROM page") == ["b"])
    }

    @Test func `a limit changes one row of a temporary table that hides the type's`() throws {
        try fixture.execute("CREATE TABLE page(title TEXT NOT NULL)")
        try fixture.execute("INSERT INTO page VALUES ('a'), ('b')")
        try fixture.store.write { tx throws in
            _ = try tx.execute("CREATE TEMP TABLE page(title TEXT NOT NULL, rowid TEXT)")
            _ = try tx.execute("INSERT INTO page VALUES ('a', 'x'), ('b', 'x'), ('c', 'x')")
            #expect(try tx.update(Page.order(by: \.title).limit(1).set(\.title, to: "z")) == 1)
            #expect(try tx.delete(Page.order(by: \.title).limit(1)) == 1)
            let titles = try tx.rows("SELECT title FROM page ORDER BY title")
            #expect(titles.flatMap(\.values) == ["c", "z"])
            #expect(try tx.rows("SELECT title FROM main.page").flatMap(\.values) == ["a", "b"])
        }
    }

    struct Card: Record {
        var id: Int
        var title: String
        var rank: Double
    }

    struct Rank: Decodable { let rank: Double }

    private typealias Verb = (name: String, run: @Sendable (inout WriteTransaction) throws -> Void)

    private static let verbs: [Verb] = [
        ("insert", { tx in try tx.insert(card) }),
        ("insert many", { tx in try tx.insert([card, card]) }),
        ("upsert", { tx in try tx.upsert(card) }),
        ("update", { tx in try tx.update(card) }),
        ("update only", { tx in try tx.update(card, only: \.rank) }),
        ("update where", { tx in try tx.update(Card.all.set(\.rank, to: 1)) }),
        ("delete where", { tx in try tx.delete(Card.where(\.rank > 0)) }),
        ("find", { tx in _ = try tx.find(Card.self, 1) }),
        ("find keys", { tx in _ = try tx.find(Card.self, keys: [1, 2]) }),
        ("first", { tx in _ = try tx.first(Card.all) }),
        ("fetch", { tx in _ = try tx.fetch(Card.all) }),
        ("fetch SQL", { tx in _ = try tx.fetch(Card.self, sql: "SELECT * FROM card") }),
        ("fetch as", { tx in _ = try tx.fetch(Card.all, as: Rank.self) }),
        ("forEach", { tx in try tx.forEach(Card.all) { _ in } }),
        ("condition", { tx in _ = try tx.count(Card.where(\.rank > 0)) }),
        ("order", { tx in _ = try tx.fetch(Card.order(by: \.rank)) }),
        ("max", { tx in _ = try tx.max(\Card.rank) }),
        ("sum", { tx in _ = try tx.sum(\Card.rank) }),
        ("distinct", { tx in _ = try tx.distinct(\Card.rank) }),
        ("counts", { tx in _ = try tx.counts(by: \Card.rank) }),
        ("groups", { tx in _ = try tx.fetch(Card.group(by: \.rank), .count) }),
        ("aggregate", { tx in _ = try tx.aggregate(Card.all, .sum(\.rank)) }),
    ]

    private static let card = Card(id: 1, title: "a", rank: 0.5)

    @Test func `every verb names the column that the table lacks`() throws {
        try fixture.execute("CREATE TABLE card(id INTEGER PRIMARY KEY, title TEXT, ranking REAL)")
        try fixture.execute("INSERT INTO card VALUES (1, 'a', 0.5)")
        for verb in Self.verbs {
            try fixture.store.write { tx in
                let error = expect(.mismatch) { try verb.run(&tx) }
                #expect(error?.table == "card" && error?.column == "rank", "\(verb.name)")
            }
        }
        #expect(try fixture.values("SELECT * FROM card") == [1, "a", 0.5])
    }

    struct Row: Record, Equatable {
        static var access: RecordAccess { .storedProperties }
        var id: Int
        var title: Int
    }

    @Test(arguments: ["a", "a, a", "a, a, a"])
    func `a view that calls the collector gives no rows`(arguments: String) throws {
        try fixture.execute("CREATE TABLE t(a)")
        try fixture.execute("INSERT INTO t VALUES (1), (2)")
        let call = "coffer_collect(\(arguments))"
        let view = SQL(text: "CREATE VIEW row AS SELECT \(call) AS id, 7 AS title FROM t")
        try fixture.execute(view)
        let rows = try? fixture.store.read { tx in try tx.fetch(Row.all) }
        #expect(rows == nil)
    }

    @Test func `a condition that calls the collector gives no rows`() throws {
        try fixture.store.write { tx in try tx.insert([Row(id: 1, title: 2), Row(id: 3, title: 4)])
        }
        for arguments in ["1", "1, 2", "1, 2, 3"] {
            let text = SQL(text: "EXISTS (SELECT coffer_collect(\(arguments)) FROM row)")
            let rows = try? fixture.store.read { tx in try tx.fetch(Row.where(.sql(text))) }
            #expect(rows == nil)
        }
        #expect(try fixture.store.read { tx in try tx.fetch(Row.all) }.count == 2)
    }

    struct Filling: Record {
        static var access: RecordAccess { .storedProperties }
        var id: Int
        var rank: Int?
        enum CodingKeys: CodingKey { case id, rank }
        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            id = try container.decode(Int.self, forKey: .id)
            rank = try container.decodeIfPresent(Int.self, forKey: .rank) ?? 5
        }
    }

    struct Omitting: Record {
        static var access: RecordAccess { .storedProperties }
        var id: Int
        var rank: Int?
        enum CodingKeys: CodingKey { case id, rank }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(id, forKey: .id)
            if rank != 0 { try container.encodeIfPresent(rank, forKey: .rank) }
        }
    }

    struct Excusing: Record {
        static var access: RecordAccess { .storedProperties }
        var id: Int
        var rank: Int
        enum CodingKeys: CodingKey { case id, rank }
        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            id = try container.decode(Int.self, forKey: .id)
            rank = (try? container.decode(Int.self, forKey: .rank)) ?? 0
        }
    }

    struct Rounding: Record {
        static var access: RecordAccess { .storedProperties }
        var ratio: Double
        var when: Date
        enum CodingKeys: CodingKey { case ratio, when }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(ratio, forKey: .ratio)
            let seconds = (when.timeIntervalSince1970 * 1000).rounded() / 1000
            try container.encode(Date(timeIntervalSince1970: seconds), forKey: .when)
        }
    }

    @Test func `a coding that fills, omits, tolerates or rounds values keeps its own way`() throws {
        #expect(try Filling.accessReport().reason != nil)
        #expect(try Omitting.accessReport().reason != nil)
        #expect(try Excusing.accessReport().reason != nil)
        #expect(try Rounding.accessReport().reason != nil)
    }

    struct Word: Record {
        var id: Int
        var text: String
    }

    @Test func `prefixes and suffixes are compared as bytes, whatever the column's collation`()
        throws
    {
        try fixture.execute(
            "CREATE TABLE word(id INTEGER PRIMARY KEY, text TEXT NOT NULL COLLATE NOCASE)")
        try fixture.execute(
            "INSERT INTO word(text) VALUES ('Zebra'), ('zoo'), ('Re: a'), ('RE: b')")
        func found(_ condition: Condition<Word>) throws -> [String] {
            try fixture.store.read { tx in try tx.fetch(Word.where(condition)) }.map(\.text)
        }
        #expect(try found(.hasPrefix(\.text, "Z")) == ["Zebra"])
        #expect(try found(.hasPrefix(\.text, "Re: ")) == ["Re: a"])
        #expect(try found(.hasSuffix(\.text, "a")) == ["Zebra", "Re: a"])
        // Comparisons use the column's collation, which an index of the column has too.
        #expect(try found(\.text == "zebra") == ["Zebra"])
        #expect(try found(["ZOO"].contains(\.text)) == ["zoo"])
        #expect(try found(\.text < "s") == ["Re: a", "RE: b"])
    }
}
