import Foundation
import Testing

@testable import Coffer

/// Conditions over types that have no table yet, and so no rows.
@Suite(.againstHanging, .onOwnThreads) struct MissingParentTests {
    private let fixture: RecordFixture
    private var store: Store { fixture.store }

    struct Country: Record {
        var id: Int
        var name: String
    }

    struct Author: Record {
        static var references: [Reference<Self>] { [Reference(\.country, to: Country.self)] }
        var id: Int
        var name: String
        var country: Int?
    }

    struct Article: Record, Equatable {
        static var references: [Reference<Self>] {
            [Reference(\.author, to: Author.self), Reference(\.answer, to: Article.self)]
        }
        var id: Int
        var author: Int?
        var answer: Int?
        var title: String
    }

    private static let adas = Author.where(\.name == "Ada")
    private static let ofAda: Condition<Article> = adas.contains(\.author)
    private static let ofFrance: Condition<Article> = Author.where(
        Country.where(\.name == "France").contains(\.country)
    ).contains(\.author)

    init() throws {
        fixture = try RecordFixture()
        try store.write { tx throws in
            // References without tables: SQLite refuses inserts, unless it checks no foreign keys.
            try tx.execute(
                """
                CREATE TABLE article(id INTEGER PRIMARY KEY, author INTEGER, answer INTEGER,
                title TEXT NOT NULL)
                """)
            try tx.insert(Article(id: 1, author: 1, answer: nil, title: "a"))
            try tx.insert(Article(id: 2, author: nil, answer: 1, title: "b"))
        }
    }

    @Test(arguments: [ofAda, ofFrance, adas.limit(3).contains(\.author)])
    func `a query over a missing table finds nothing`(condition: Condition<Article>) throws {
        let query = Article.where(condition)
        try store.read { tx throws in
            #expect(try tx.fetch(query) == [])
            #expect(try tx.first(query) == nil)
            #expect(try tx.count(query) == 0)
            #expect(try !tx.exists(query))
            #expect(try tx.min(\.id, query) == nil)
            #expect(try tx.sum(\.id, query) == 0)
            #expect(try tx.average(\.id, query) == nil)
            #expect(try tx.distinct(\.id, query) == [])
            #expect(try tx.counts(by: \.id, query) == [:])
            try tx.forEach(query) { _ in Issue.record("there is no row") }
        }
        try store.write { tx throws in
            #expect(try tx.update(query.set(\.title, to: "x")) == 0)
            #expect(try tx.update(query.limit(1).set(\.title, to: "x")) == 0)
            #expect(try tx.delete(query) == 0)
            #expect(try tx.delete(query.limit(1)) == 0)
            let first = try #require(try tx.find(Article.self, 1))
            expect(.conflict) { try tx.update(first, expecting: condition) }
            #expect(try tx.count(Article.all) == 2)
        }
    }

    @Test func `the other conditions of the query still count`() throws {
        func ids(_ condition: Condition<Article>) throws -> [Int] {
            try store.read { tx in
                try tx.fetch(Article.where(condition).order(by: \.id)).map(\.id)
            }
        }
        #expect(try ids(!Self.ofAda) == [1, 2])
        #expect(try ids(Self.ofAda || \.id == 2) == [2])
        #expect(try ids(!Self.ofAda && !Self.ofFrance && \.title == "a") == [1])
        let answers: Condition<Article> = Article.where(!Self.ofAda).contains(\.answer)
        #expect(try ids(answers) == [2])
        let many = Author.where(Array(1...2000).contains(\.id))
        #expect(try ids(many.contains(\.author)) == [])
        try store.write { tx throws in
            #expect(try tx.update(Article.where(!Self.ofAda).set(\.title, to: "x")) == 2)
            let first = try #require(try tx.find(Article.self, 1))
            try tx.update(first, expecting: !Self.ofAda)
            #expect(try tx.delete(Article.where(!Self.ofAda).order(by: \.id).limit(1)) == 1)
        }
        #expect(try ids(!Self.ofAda) == [2])
    }

    @Test func `a query finds nothing if all of its tables are missing`() throws {
        let answers = Article.where(Article.where(!Self.ofFrance).contains(\.answer))
        try store.write { tx throws in
            try tx.execute("DROP TABLE article")
            for query in [Article.where(Self.ofFrance), Article.where(!Self.ofAda), answers] {
                #expect(try tx.fetch(query) == [])
                #expect(try tx.count(query) == 0)
                #expect(try tx.update(query.set(\.title, to: "x")) == 0)
                #expect(try tx.delete(query) == 0)
            }
        }
    }

    @Test func `a join with a condition over a missing table`() throws {
        let ofFrance: Condition<Author> = Country.where(\.name == "France").contains(\.country)
        let join = Article.all.joining(\.author, to: Author.where(ofFrance))
        let others = Article.all.joining(\.author, to: Author.where(!ofFrance))
        #expect(try store.read { tx in try tx.fetch(join).count } == 0)
        try fixture.execute(
            "CREATE TABLE author(id INTEGER PRIMARY KEY, name TEXT NOT NULL, country INTEGER)")
        try fixture.execute("INSERT INTO author VALUES (1, 'Ada', NULL)")
        #expect(try store.read { tx in try tx.fetch(join).count } == 0)
        #expect(try store.read { tx in try tx.fetch(others).count } == 1)
    }

    @Test func `a table that comes later is found, and a query that is wrong fails`() async throws {
        let query = Article.where(Self.ofAda)
        #expect(try await store.read { tx in try tx.fetch(query) } == [])
        let own: SQL = "SELECT * FROM article WHERE author IN (SELECT id FROM author)"
        await expect(.sql) {
            try await store.read { tx in try tx.fetch(Article.self, sql: own) }
        }
        let counts = store.observe { tx in try tx.count(query) }.makeAsyncIterator()
        #expect(try await counts.next() == 0)
        try await store.write { tx throws in
            try tx.insert(Author(id: 1, name: "Ada", country: nil))
        }
        #expect(try await counts.next() == 1)
        #expect(try await store.read { tx in try tx.fetch(query).map(\.id) } == [1])
        let wrong = Article.where(Self.ofFrance && .sql("nothing(1)"))
        let error = await expect(.sql) { try await store.read { tx in try tx.fetch(wrong) } }
        #expect(error?.table == "article" && error?.message.contains("nothing") == true)
        try await store.write { tx throws in
            try tx.execute("ALTER TABLE author RENAME TO writer")
            try tx.execute("CREATE VIEW author AS SELECT id, name, country FROM writer")
        }
        #expect(try await store.read { tx in try tx.fetch(query).map(\.id) } == [1])
        try await store.write { tx throws in try tx.execute("DROP VIEW author") }
        #expect(try await store.read { tx in try tx.fetch(query) } == [])
        let first = try #require(try await store.read { tx in try tx.find(Article.self, 1) })
        await expect(.conflict) {
            try await store.write { tx throws in try tx.update(first, expecting: Self.ofAda) }
        }
    }
}
