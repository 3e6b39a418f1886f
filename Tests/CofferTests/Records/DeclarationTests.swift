import Foundation
import Testing

@testable import Coffer

/// A type's declarations for its table: indexes, foreign keys, defaults, WITHOUT ROWID.
@Suite(.againstHanging, .onOwnThreads) struct DeclarationTests {
    private let fixture: RecordFixture
    private var store: Store { fixture.store }

    init() throws {
        fixture = try RecordFixture()
    }

    struct Author: Record, Equatable {
        static var indexes: [Index<Self>] { [Index(\.email, isUnique: true)] }
        var id: Int64?
        var name: String
        var email: String?
    }

    struct Article: Record, Equatable {
        static var indexes: [Index<Self>] {
            [Index(\.created), Index(\.author, \.title, isUnique: true, name: "by author")]
        }
        static var references: [Reference<Self>] {
            [
                Reference(\.author, to: Author.self, onDelete: .cascade),
                Reference(\.editor, to: \Author.email, onUpdate: .cascade, isDeferred: true),
                Reference(\.answer, to: Article.self, onDelete: .setNull),
            ]
        }
        var id: Int
        var author: Int64
        var editor: String?
        var title: String
        var created: Date
        var answer: Int?
    }

    private func article(_ id: Int, _ author: Int64, editor: String? = nil) -> Article {
        Article(
            id: id, author: author, editor: editor, title: "t\(id)",
            created: Date(timeIntervalSince1970: 1))
    }

    @Test func `create makes indexes, foreign keys and the tables that they refer to`() throws {
        try store.write { tx throws in
            try tx.create(Article.self)
            try tx.create(Article.self)
            try tx.create(Author.self)
            #expect(try tx.schemaDifferences(of: Article.self).isEmpty)
        }
        let names: [Value] = try fixture.values(
            "SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite%' ORDER BY name")
        #expect(
            names == [
                "article", "author", "by author", "index_article_created", "index_author_email",
            ])
        try store.write { tx throws in
            let ada = try tx.insert(Author(name: "ada", email: "a@b"))
            _ = expect(.constraint) { try tx.insert(Author(name: "eve", email: "a@b")) }
            try tx.insert(article(1, ada, editor: "a@b"))
            _ = expect(.constraint) { try tx.insert(article(2, 99)) }
            var twin = article(3, ada)
            twin.title = "t1"
            _ = expect(.constraint) { try tx.insert(twin) }
            var answer = article(4, ada)
            answer.answer = 1
            try tx.insert(answer)
            try tx.delete(Article.self, key: 1)
            #expect(try tx.find(Article.self, 4)?.answer == nil)
            try tx.delete(Author.self, key: ada)
            #expect(try tx.count(Article.all) == 0)
        }
    }

    struct LongName: Record {
        static let table = "page_part"
        static var indexes: [Index<Self>] { [Index(\.number, isUnique: true)] }
        var id: Int
        var number: Int
    }

    struct ShortName: Record {
        static let table = "page"
        static var indexes: [Index<Self>] {
            [Index(\.part_number), Index(\.part, \.number), Index(\.part)]
        }
        var id: Int
        var part: Int
        var number: Int
        var part_number: Int
    }

    @Test func `indexes whose tables and columns give the same name get different names`() throws {
        for isShortFirst in [true, false] {
            let fixture = try RecordFixture()
            try fixture.store.write { tx throws in
                try tx.execute("CREATE TABLE index_page_part(a)")
                if isShortFirst { try tx.create(ShortName.self) }
                try tx.create(LongName.self)
                for _ in 0..<2 {
                    try tx.create(ShortName.self)
                    try tx.create(LongName.self)
                    #expect(try tx.schemaDifferences(of: ShortName.self).isEmpty)
                    #expect(try tx.schemaDifferences(of: LongName.self).isEmpty)
                }
                let names = try tx.rows(
                    "SELECT name FROM sqlite_master WHERE type = 'index' ORDER BY name"
                ).map { $0[0] }
                #expect(
                    names == [
                        "index_page_part_2", "index_page_part_number", "index_page_part_number_2",
                        "index_page_part_number_3",
                    ])
            }
        }
    }

    struct Twin: Record {
        static var indexes: [Index<Self>] { [Index(\.title, name: "By Author")] }
        var id: Int
        var title: String
    }

    @Test func `a name that a type gives and another table has is misuse, and nothing is made`()
        throws
    {
        try store.write { tx throws in
            try tx.create(Article.self)
            let error = expect(.misuse) { try tx.create(Twin.self) }
            #expect(error?.message.contains("table article") == true)
            #expect(error?.table == "twin")
            #expect(error?.column == "title")
            #expect(try tx.rows("SELECT 1 FROM sqlite_master WHERE name = 'twin'").isEmpty)
        }
    }

    @Test func `the first insert makes them too, and a deferred key is checked at the end`() throws
    {
        try store.write { tx throws in
            let ada = try tx.insert(Author(name: "ada"))
            try tx.insert(article(1, ada, editor: "later"))
            try tx.insert(Author(name: "bob", email: "later"))
        }
        let error = expect(.constraint) {
            try store.write { tx in try tx.insert(article(2, 1, editor: "never")) }
        }
        #expect(error != nil)
        #expect(try store.read { tx in try tx.fetch(Article.all).map(\.id) } == [1])
        let sql = try fixture.values("SELECT sql FROM sqlite_master WHERE name = 'article'")
        #expect("\(sql)".contains("DEFERRABLE INITIALLY DEFERRED"))
    }

    enum Older {
        struct Article: Record {
            static let table = "article"
            var id: Int
            var author: Int64
            var title: String
        }
    }

    enum Kind: String, Codable, CaseIterable {
        case plain
        case odd = "it's"
    }

    struct Grown: Record, Equatable {
        static let table = "article"
        static var indexes: [Index<Self>] { [Index(\.title), Index(\.mark, isUnique: true)] }
        static var references: [Reference<Self>] {
            [Reference(\.editor, to: Author.self, onDelete: .setNull)]
        }
        static var defaults: [Default<Self>] {
            [
                Default(\.pinned, true), Default(\.count, .min), Default(\.rank, -1.5e-7),
                Default(\.text, "it's; \"é\"\n"), Default(\.data, Data([0, 255])),
                Default(\.uuid, Self.uuid), Default(\.kind, .odd), Default(\.tags, ["a'b"]),
                Default(\.created, Date(timeIntervalSince1970: 1_700_000_000.123456)),
                Default(\.maybe, 7),
            ]
        }
        static let uuid = UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16))
        var id: Int
        var author: Int64
        var title: String
        var editor: Int64?
        var mark: String?
        var pinned: Bool
        var count: Int64
        var rank: Double
        var text: String
        var data: Data
        var uuid: UUID
        var kind: Kind
        var tags: [String]
        var created: Date
        var maybe: Int?
    }

    @Test func `columns with a default, with a reference, and indexes are added`() throws {
        try store.write { tx in try tx.insert(Older.Article(id: 1, author: 1, title: "t")) }
        try store.write { tx throws in
            let error = expect(.mismatch) {
                _ = try tx.fetch(Grown.all)
            }
            #expect(error?.hint?.contains("create") == true)
            try tx.create(Grown.self)
            try tx.create(Grown.self)
            let expected = Grown(
                id: 1, author: 1, title: "t", pinned: true, count: .min, rank: -1.5e-7,
                text: "it's; \"é\"\n", data: Data([0, 255]), uuid: Grown.uuid, kind: .odd,
                tags: ["a'b"], created: Date(timeIntervalSince1970: 1_700_000_000.123456),
                maybe: 7)
            #expect(try tx.fetch(Grown.all) == [expected])
            var second = expected
            second.id = 2
            second.pinned = false
            try tx.insert(second)
            #expect(try tx.find(Grown.self, 2) == second)
            second.editor = 5
            _ = expect(.constraint) { try tx.update(second) }
            let ada = try tx.insert(Author(name: "ada"))
            second.editor = ada
            #expect(try tx.updateIfPresent(second))
        }
        // A table that is made at once is the same.
        try store.write { tx throws in
            try tx.execute("DROP TABLE article")
            try tx.create(Grown.self)
            try tx.execute("INSERT INTO article (id, author, title) VALUES (1, 2, 'x')")
            #expect(try tx.fetch(Grown.all).map(\.kind) == [.odd])
        }
    }

    @Test func `a default that cannot be written exactly is refused`() throws {
        struct Bad: Record {
            static let table = "article"
            static var defaults: [Default<Self>] { [Default(\.extra, "a\0b")] }
            var id: Int
            var author: Int64
            var title: String
            var extra: String
        }
        try store.write { tx throws in
            try tx.create(Older.Article.self)
            let error = expect(.mismatch) { try tx.create(Bad.self) }
            #expect(error?.table == "article")
            #expect(error?.column == "extra")
            #expect(try tx.rows("PRAGMA table_info(article)").count == 3)
        }
    }

    struct Word: Record, Equatable {
        static let isWithoutRowID = true
        static let key = ["language", "text"]
        var text: String
        var language: String
        var count: Int
    }

    @Test func `a table without row ids can do everything`() throws {
        let words = (1...9).map { Word(text: "w\($0)", language: "en", count: $0) }
        try store.write { tx throws in
            #expect(try tx.insert(words[0]) == 0)
            try tx.insert(words.dropFirst())
            try tx.create(Word.self)
            #expect(try tx.delete(Word.order(by: \.count, .descending).limit(2)) == 2)
            let query = Word.order(by: \.count).limit(3).set(\.count, to: 100)
            #expect(try tx.update(query) == 3)
            try tx.upsert(Word(text: "w4", language: "en", count: 50))
            try tx.upsert(Word(text: "w4", language: "de", count: 51))
            #expect(try tx.delete(words[4]))
            #expect(
                try tx.fetch(Word.order(by: \.language).order(by: \.text)).map(\.count)
                    == [51, 100, 100, 100, 50, 6, 7])
        }
        let sql = try fixture.values("SELECT sql FROM sqlite_master WHERE name = 'word'")
        #expect("\(sql)".contains("WITHOUT ROWID"))
    }

    @Test func `the program chooses an integer key without row ids`() throws {
        struct Plain: Record {
            static let isWithoutRowID = true
            var id: Int
        }
        struct Chosen: Record {
            static let isWithoutRowID = true
            var id: Int?
        }
        struct Keyless: Record {
            static let isWithoutRowID = true
            var name: String
        }
        try store.write { tx throws in
            #expect(try tx.insert(Plain(id: 4)) == 0)
            try tx.create(Plain.self)
            let error = expect(.misuse) { try tx.create(Chosen.self) }
            #expect(error?.column == "id")
            #expect(error?.hint?.contains("non-optional") == true)
            let other = expect(.misuse) { try tx.create(Keyless.self) }
            #expect(other?.hint?.contains("static var key") == true)
        }
    }

    @Test func `properties named as the row id do not stand in for it`() throws {
        struct Odd: Record {
            var rowid: String
            var _rowid_: Int
        }
        try store.write { tx throws in
            try tx.insert([Odd(rowid: "a", _rowid_: 1), Odd(rowid: "a", _rowid_: 2)])
            #expect(try tx.delete(Odd.order(by: \._rowid_).limit(1)) == 1)
            #expect(try tx.fetch(Odd.all).map(\._rowid_) == [2])
        }
    }

    @Test func `a limit refuses a table whose columns take all names of the row id`() throws {
        struct Odd: Record {
            var rowid: String
            var _rowid_: Int
            var oid: Int
        }
        try store.write { tx throws in
            try tx.insert((1...3).map { Odd(rowid: "same", _rowid_: $0, oid: $0) })
            let limited = Odd.order(by: \.oid).limit(1)
            let error = expect(.unsupported) { try tx.delete(limited) }
            #expect(error?.hint?.contains("by their key") == true)
            expect(.unsupported) { try tx.update(limited.set(\.oid, to: 9)) }
            #expect(try tx.fetch(Odd.order(by: \.oid)).map(\.oid) == [1, 2, 3])
            #expect(try tx.delete(Odd.where(\.oid == 1)) == 1)
        }
    }

    struct Team: Record {
        static var references: [Reference<Self>] { [Reference(\.captain, to: Player.self)] }
        var id: Int
        var captain: Int?
    }

    struct Player: Record {
        static var references: [Reference<Self>] {
            [Reference(\.team, to: Team.self), Reference(\.language, \.word, to: Word.self)]
        }
        var id: Int
        var team: Int
        var word: String?
        var language: String?
    }

    @Test func `types refer to each other, and to keys of two columns`() throws {
        try store.write { tx throws in
            try tx.insert(Team(id: 1))
            try tx.insert(Player(id: 7, team: 1))
            #expect(try tx.updateIfPresent(Team(id: 1, captain: 7)))
            _ = expect(.constraint) { try tx.update(Team(id: 1, captain: 8)) }
            let player = Player(id: 8, team: 1, word: "a", language: "en")
            _ = expect(.constraint) { try tx.insert(player) }
            try tx.insert(Word(text: "a", language: "en", count: 1))
            try tx.insert(player)
            try tx.create(Player.self)
            try tx.create(Team.self)
        }
    }

    final class Sealed: Record {
        static var indexes: [Index<Sealed>] { [Index(\.name)] }
        let id: Int
        let name: String
        init(id: Int, name: String) { (self.id, self.name) = (id, name) }
    }

    @Test func `a class, whose key paths have no offset, says what to declare`() throws {
        try store.write { tx throws in
            let error = expect(.misuse) { try tx.create(Sealed.self) }
            #expect(error?.hint?.contains("static var columns") == true)
        }
    }

    @Test func `contradictory declarations are refused with an explanation`() throws {
        struct NoIndex: Record {
            static var indexes: [Index<Self>] { [Index()] }
            var id: Int
        }
        struct NoColumn: Record {
            static var indexes: [Index<Self>] { [Index(\.twice)] }
            var id: Int
            var twice: Int { id * 2 }
        }
        struct OtherType: Record {
            static var references: [Reference<Self>] { [Reference(\.author, to: Author.self)] }
            var id: Int
            var author: String
        }
        struct NotUnique: Record {
            static var references: [Reference<Self>] { [Reference(\.author, to: \Author.name)] }
            var id: Int
            var author: String
        }
        try store.write { tx throws in
            _ = expect(.misuse) { try tx.create(NoIndex.self) }
            _ = expect(.misuse) { try tx.insert(NoColumn(id: 1)) }
            let error = expect(.misuse) { try tx.create(OtherType.self) }
            #expect(error?.table == "other_type")
            let other = expect(.misuse) { try tx.create(NotUnique.self) }
            #expect(other?.hint?.contains("isUnique: true") == true)
        }
        #expect(try fixture.values("SELECT name FROM sqlite_master").isEmpty)
    }
}
