import Coffer
import Foundation

/// Finding rows.
enum Queries {
    static let recipes = [pages, groups, children, leftJoin, tree, words, pattern, json]

    struct Author: Record, Equatable {
        var id: Int
        var name: String
    }

    struct Book: Record, Equatable {
        static var references: [Reference<Self>] { [Reference(\.author, to: Author.self)] }
        static var indexes: [Index<Self>] { [Index(\.author), Index(\.year)] }
        var id: Int
        var author: Int?
        var title: String
        var year: Int
    }

    /// A store with three authors and ten books, of which the last has no author.
    static func library(_ kitchen: Kitchen) async throws -> Store {
        let store = try await kitchen.store()
        try await store.write { tx in
            try tx.create(Author.self)
            try tx.create(Book.self)
            try tx.insert(["Ada", "Grace", "Alan"].enumerated().map { Author(id: $0, name: $1) })
            try tx.insert(
                (1...10).map { number in
                    Book(
                        id: number, author: number == 10 ? nil : number % 2,
                        title: "Book \(number)", year: 1950 + number % 4)
                })
        }
        return store
    }

    static let pages = Recipe("pages", "show a long list page by page") { kitchen in
        let store = try await library(kitchen)
        let query = Book.order(by: \.year, .descending).inOrderOfKey().limit(4)
        var titles: [String] = []
        var page = try await store.read { tx in try tx.fetch(query) }
        while let last = page.last {
            titles += page.map(\.title)
            page = try await store.read { tx in try tx.fetch(query.after(last)) }
        }
        try kitchen.check("each book is there once", Set(titles).count == 10 && titles.count == 10)
    }

    static let groups = Recipe("groups", "count and average by group") { kitchen in
        let store = try await library(kitchen)
        let busy = Book.group(by: \.author).having(.count > 1).order(by: .count, .descending)
        let rows = try await store.read { tx in try tx.fetch(busy, .count, .max(\.year)) }
        for (author, count, newest) in rows {
            try kitchen.check("two authors are busy", author != nil && count > 3 && newest > 1950)
        }
        try kitchen.check("and no other", rows.count == 2)
    }

    static let children = Recipe("children", "fetch authors with all their books") { kitchen in
        let store = try await library(kitchen)
        let authors = Author.order(by: \.name)
            .including(all: Book.order(by: \.title), by: \.author)
        let rows = try await store.read { tx in try tx.fetch(authors) }
        let counts = rows.map { author, books in "\(author.name) \(books.count)" }
        try kitchen.check("in two statements", counts == ["Ada 4", "Alan 0", "Grace 5"])
    }

    static let leftJoin = Recipe("left-join", "fetch books with the author, if there is one") {
        kitchen in
        let store = try await library(kitchen)
        let books = Book.order(by: \.id).leftJoining(\.author, to: Author.all)
        let rows = try await store.read { tx in try tx.fetch(books) }
        let names = rows.map { book, author in author?.name ?? "nobody" }
        try kitchen.check("the last has none", names.count == 10 && names.last == "nobody")
    }

    struct Folder: Record {
        static var references: [Reference<Self>] { [Reference(\.parent, to: Folder.self)] }
        static var indexes: [Index<Self>] { [Index(\.parent)] }
        var id: Int
        var name: String
        var parent: Int?
    }

    static let tree = Recipe("tree", "find all that is inside of a folder") { kitchen in
        let store = try await kitchen.store()
        try await store.write { tx in
            try tx.create(Folder.self)
            try tx.insert(Folder(id: 1, name: "home", parent: nil))
            try tx.insert(Folder(id: 2, name: "mail", parent: 1))
            try tx.insert(Folder(id: 3, name: "old", parent: 2))
        }
        let home = Folder.where(\.name == "home")
        let inside = Folder.where(.isDescendant(of: home, by: \.parent)).order(by: \.name)
        let names = try await store.read { tx in try tx.fetch(inside, \.name) }
        try kitchen.check("at any depth", names == ["mail", "old"])
    }

    struct Mail: Record {
        static var fullTextIndex: FullTextIndex<Self>? { FullTextIndex(\.subject, \.body) }
        var id: Int64?
        var subject: String
        var body: String
    }

    static let words = Recipe("words", "search words in texts, as the user types") { kitchen in
        let store = try await kitchen.store()
        try await store.write { tx in
            try tx.create(Mail.self)
            try tx.insert(Mail(subject: "Release notes", body: "Coffer encrypts every page"))
            try tx.insert(Mail(subject: "Lunch", body: "at noon"))
        }
        let input = "encr pag"
        let found = try await store.read { tx in
            try tx.fetch(Mail.where(.matching(.prefixes(of: input))), \.subject)
        }
        try kitchen.check("one mail has both", found == ["Release notes"])
    }

    static let pattern = Recipe("pattern", "find texts by a regular expression") { kitchen in
        let store = try await library(kitchen)
        let even = Book.where(.regexp(\.title, "[02468]$")).order(by: \.id)
        let ids = try await store.read { tx in try tx.fetch(even, \.id) }
        try kitchen.check("in linear time", ids == [2, 4, 6, 8, 10])
    }

    struct Customer: Record {
        struct Address: Codable {
            var city: String
        }
        var id: Int
        var address: Address
        var tags: [String]
        static var jsonPaths: [PartialKeyPath<Customer>: JSONPath] {
            [\.tags[0]: JSONPath("tags", 0)]
        }
    }

    static let json = Recipe("json", "find rows by a value inside of JSON") { kitchen in
        let store = try await kitchen.store()
        try await store.write { tx in
            try tx.create(Customer.self)
            try tx.insert(Customer(id: 1, address: .init(city: "Oslo"), tags: []))
            try tx.insert(Customer(id: 2, address: .init(city: "Rome"), tags: ["new"]))
        }
        let found = Customer.where(\.address.city == "Oslo" || \.tags[0] == "new")
        let count = try await store.read { tx in try tx.count(found) }
        try kitchen.check("both are found", count == 2)
    }
}
