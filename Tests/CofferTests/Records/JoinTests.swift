import Coffer
import Foundation
import Testing

/// Rows together with the rows that they refer to, by declared references.
@Suite(.againstHanging, .onOwnThreads) struct JoinTests {
    private let fixture: RecordFixture
    private let authors: [Author]
    private let articles: [Article]

    struct Author: Record, Equatable {
        static var indexes: [Index<Self>] { [Index(\.email, isUnique: true)] }
        var id: Int
        var name: String
        var email: String?
    }

    struct Article: Record, Equatable {
        static var references: [Reference<Self>] {
            [
                Reference(\.author, to: Author.self),
                Reference(\.editor, to: \Author.email),
                Reference(\.answer, to: Article.self),
            ]
        }
        var id: Int
        var name: String
        var author: Int?
        var editor: String?
        var answer: Int?
        var length: Double
    }

    init() throws {
        fixture = try RecordFixture()
        authors = (1...5).map { id in
            Author(id: id, name: "a\(id % 3)", email: id == 5 ? nil : "e\(id)")
        }
        articles = (1...30).map { id in
            Article(
                id: id, name: "n\(id)", author: id % 6 == 0 ? nil : id % 6,
                editor: id % 4 == 0 ? nil : "e\(id % 4)", answer: id > 20 ? id - 20 : nil,
                length: Double(id % 7))
        }
        let (authors, articles) = (authors, articles)
        try fixture.store.write { tx in
            try tx.insert(authors)
            try tx.insert(articles)
        }
    }

    private func pairs(_ join: Join<Article, Author>) throws -> [String] {
        try fixture.store.read { tx throws in
            try tx.fetch(join).map { article, author in
                #expect(articles.contains(article) && authors.contains(author))
                return "\(article.id) \(author.id)"
            }
        }
    }

    /// The same, from rows that are read where they are.
    private func borrowedPairs(_ join: Join<Article, Author>) throws -> [String] {
        let (id, editor) = (try Article.column(\.id), try Article.column(\.editor))
        let (author, name) = (try Author.column(\.id), try Author.column(\.name))
        var pairs: [String] = []
        try fixture.store.read { tx throws in
            try tx.forEachRow(join) { child, parent in
                let (article, key) = (articles[try child[id] - 1], try parent[author])
                let texts = [try child[editor], try parent[name]]
                #expect(texts == [article.editor, authors[key - 1].name])
                pairs.append("\(article.id) \(key)")
            }
        }
        return pairs
    }

    @Test func `a loop over the rows of a join has the pairs of its records`() throws {
        let join = Article.where(\.length > 1).order(by: \.id)
            .joining(\.author, to: Author.where(\.name == "a1" || \.email == nil))
        #expect(try borrowedPairs(join) == pairs(join))
        #expect(try !pairs(join).isEmpty)
        // A foreign key forbids to drop a table that rows refer to.
        try fixture.execute("DELETE FROM article")
        try fixture.execute("DROP TABLE author")
        #expect(try borrowedPairs(Article.all.joining(\.author, to: Author.all)) == [])
        let own = StoreError(.notFound, "mine", table: "article")
        try fixture.store.write { tx throws in
            try tx.insert(authors)
            try tx.insert(articles)
        }
        let error = expect(.notFound) {
            try fixture.store.read { tx throws in
                try tx.forEachRow(join) { _, _ in throw own }
            }
        }
        #expect(error?.message == "mine")
    }

    private func ids(_ condition: Condition<Article>) throws -> [Int] {
        try fixture.store.read { tx in
            try tx.fetch(Article.where(condition).order(by: \.id))
        }.map(\.id)
    }

    /// The result computed in Swift: each article and its author.
    private func expected(_ isWanted: (Article, Author) -> Bool) -> [String] {
        articles.flatMap { article in
            authors.filter { $0.id == article.author && isWanted(article, $0) }
                .map { "\(article.id) \($0.id)" }
        }
    }

    @Test func `pairs are the referring rows, each with the row that it refers to`() throws {
        let all = Article.order(by: \.id).joining(\.author, to: Author.all)
        #expect(try pairs(all) == expected { _, _ in true })
        #expect(try pairs(all).count == 25)
    }

    @Test func `conditions of both types apply, also where both have a column of the name`() throws
    {
        let join = Article.where(\.length > 1 && \.name != "n2").order(by: \.id)
            .joining(\.author, to: Author.where(\.name == "a1" || \.email == nil))
        let wanted = expected { article, author in
            article.length > 1 && article.name != "n2"
                && (author.name == "a1" || author.email == nil)
        }
        #expect(try pairs(join) == wanted && !wanted.isEmpty)
        let fragment: Condition<Author> = .sql("length(author.name) + article.id > \(28)")
        let mixed = Article.order(by: \.id).joining(\.author, to: Author.where(fragment))
        #expect(try pairs(mixed) == expected { article, _ in article.id > 26 })
    }

    @Test func `pairs are in the order of the parents, then of the children`() throws {
        let join = Article.order(by: \.length, .descending).order(by: \.id)
            .joining(\.author, to: Author.order(by: \.name).order(by: \.id))
        let found = try fixture.store.read { tx in try tx.fetch(join) }
        let sorted = found.sorted { left, right in
            if left.1.name != right.1.name { return left.1.name < right.1.name }
            if left.1.id != right.1.id { return left.1.id < right.1.id }
            if left.0.length != right.0.length { return left.0.length > right.0.length }
            return left.0.id < right.0.id
        }
        #expect(found.map(\.0.id) == sorted.map(\.0.id) && found.count == 25)
    }

    @Test func `a limit counts pairs`() throws {
        let join = Article.order(by: \.id).limit(3, offset: 4).joining(\.author, to: Author.all)
        #expect(try pairs(join) == ["5 5", "7 1", "8 2"])
    }

    @Test func `a reference to a property other than the key`() throws {
        let join = Article.where(\.id < 6).order(by: \.id)
            .joining(\.editor, to: Author.where(\.id < 3))
        #expect(try pairs(join) == ["1 1", "2 2", "5 1"])
        #expect(try ids(Author.where(\.id == 3).contains(\.editor)) == [3, 7, 11, 15, 19, 23, 27])
    }

    @Test func `a condition on the row that is referred to`() throws {
        let ones = Author.where(\.name == "a1")
        func wanted(_ isWanted: (Article, Bool) -> Bool) -> [Int] {
            articles.filter { isWanted($0, [1, 4].contains($0.author)) }.map(\.id)
        }
        #expect(try ids(ones.contains(\.author)) == wanted { $1 })
        #expect(try ids(!ones.contains(\.author)) == wanted { !$1 })
        #expect(
            try ids(ones.contains(\.author) && \.length > 3) == wanted { $1 && $0.length > 3 })
        #expect(try ids(ones.contains(\.author) || \.id == 6) == wanted { $1 || $0.id == 6 })
        let last = Author.order(by: \.id, .descending).limit(1)
        #expect(try ids(last.contains(\.author)) == [5, 11, 17, 23, 29])
        let many = Author.where(Array(3...4000).contains(\.id))
        #expect(try ids(many.contains(\.author) && \.id < 6) == [3, 4, 5])
        // A type that refers to itself, and a condition in a condition.
        let answers = Article.where(ones.contains(\.author))
        #expect(try ids(answers.contains(\.answer)) == [21, 24, 27, 30])
        let changed = try fixture.store.write { tx in
            try tx.delete(Article.where(answers.contains(\.answer)))
        }
        #expect(changed == 4)
    }

    struct Seat: Record, Equatable {
        static var access: RecordAccess { .storedProperties }
        static var key: [String] { ["row \"of\" seats", "number"] }
        static var table: String { "se\"at" }
        var number: Int
        var row: String
        var price: Double

        enum CodingKeys: String, CodingKey {
            case number, price
            case row = "row \"of\" seats"
        }
    }

    struct Ticket: Record, Equatable {
        static var access: RecordAccess { .storedProperties }
        static var references: [Reference<Self>] { [Reference(\.row, \.number, to: Seat.self)] }
        var id: Int
        var number: Int?
        var row: String
        var price: Double
    }

    struct Country: Record {
        static var key: [String] { ["code"] }
        var code: String
    }

    struct City: Record {
        static var references: [Reference<Self>] { [Reference(\.country, to: Country.self)] }
        var id: Int
        var country: String
    }

    @Test func `pairs are those that the foreign key accepts`() throws {
        try fixture.store.write { tx throws in
            try tx.execute("CREATE TABLE country(code TEXT NOT NULL COLLATE NOCASE PRIMARY KEY)")
            try tx.insert(Country(code: "fr"))
            try tx.insert(City(id: 1, country: "FR"))
            let found = try tx.fetch(City.all.joining(\.country, to: Country.all))
            #expect(found.map(\.1.code) == ["fr"])
        }
    }

    @Test func `a reference of two columns, with names that need quotes`() throws {
        #expect(try Ticket.accessReport().reason == nil)
        let seats = [("a", 1), ("a", 2), ("b", 1)].map { Seat(number: $1, row: $0, price: 7) }
        let tickets = [
            Ticket(id: 1, number: 1, row: "a", price: 1),
            Ticket(id: 2, number: 1, row: "b", price: 2),
            Ticket(id: 3, number: nil, row: "b", price: 3),
        ]
        let evil = "' OR 1 = 1 --"
        try fixture.store.write { tx throws in
            try tx.insert(seats)
            try tx.insert(tickets)
            let all = Ticket.order(by: \.id)
            let found = try tx.fetch(all.joining(\.row, \.number, to: Seat.all))
            #expect(found.map(\.0) == [tickets[0], tickets[1]])
            #expect(found.map(\.1) == [seats[0], seats[2]])
            let ones = Seat.where(\.row == "b" && \.price == 7)
            #expect(try tx.fetch(all.where(ones.contains(\.row, \.number))) == [tickets[1]])
            let none = Seat.where(\.row == evil)
            #expect(try tx.fetch(all.joining(\.row, \.number, to: none)).isEmpty)
        }
    }

    @Test func `a reference that is not declared, or ambiguous, is misuse`() throws {
        try fixture.store.read { tx throws in
            let undeclared = expect(.misuse) {
                try tx.fetch(Article.all.joining(\.id, to: Author.all))
            }
            #expect(undeclared?.hint?.contains("Reference") == true)
            _ = expect(.misuse) { try tx.fetch(Article.where(Author.all.contains(\.length))) }
            _ = expect(.misuse) {
                try tx.fetch(Article.where(Author.all.contains(\.author, \.id)))
            }
            _ = expect(.misuse) { try tx.fetch(Article.all.joining(to: Author.all)) }
            _ = expect(.misuse) {
                try tx.fetch(Article.all.joining(\.author, to: Author.limit(1)))
            }
            _ = expect(.misuse) {
                try tx.fetch(
                    Article.all.joining(\.author, to: Author.where(\.name.utf8.count == 1)))
            }
        }
    }

    struct Owner: Record {
        var id: Int
    }

    struct Dog: Record {
        static var references: [Reference<Self>] { [Reference(\.owner, to: Owner.self)] }
        var id: Int
        var owner: Int
    }

    @Test func `errors name the table concerned, and not the value`() throws {
        let join = Dog.all.joining(\.owner, to: Owner.all)
        #expect(try fetch(join) == 0)
        try fixture.execute("CREATE TABLE dog(id INTEGER PRIMARY KEY, owner)")
        try fixture.execute("INSERT INTO dog VALUES (1, 1)")
        #expect(try fetch(join) == 0)
        try fixture.execute("DELETE FROM dog")
        try fixture.execute("CREATE TABLE owner(id)")
        try fixture.execute("INSERT INTO owner VALUES (1), ('secret')")
        try fixture.execute("INSERT INTO dog VALUES (7, 1), (8, 'secret')")
        let error = expect(.mismatch) { try fetch(join) }
        #expect(error?.column == "owner" && !String(describing: error).contains("secret"))
    }

    private func fetch(_ join: Join<Dog, Owner>) throws -> Int {
        try fixture.store.read { tx in try tx.fetch(join).count }
    }

    @Test func `a join prints its SQL without values`() {
        let join = Article.where(\.name == "secret").joining(\.author, to: Author.all)
        #expect("\(join)".contains(#"JOIN "author" ON "author"."id" = "article"."author""#))
        #expect(!"\(join)".contains("secret"))
    }
}
