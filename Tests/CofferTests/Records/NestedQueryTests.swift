import Foundation
import Testing
import Workload

@testable import Coffer

/// Rows together with all rows that refer to them.
@Suite(.againstHanging, .onOwnThreads) struct NestedQueryTests {
    private let fixture: RecordFixture
    private let authors: [Author]
    private let books: [Book]
    private let pages: [Page]

    struct Author: Record, Equatable {
        static var indexes: [Index<Self>] { [Index(\.email, isUnique: true)] }
        static var references: [Reference<Self>] { [Reference(\.teacher, to: Author.self)] }
        var id: Int
        var email: String?
        var teacher: Int?
    }

    struct Book: Record, Equatable {
        static var access: RecordAccess { .storedProperties }
        static var indexes: [Index<Self>] { [Index(\.author)] }
        static var references: [Reference<Self>] {
            [Reference(\.author, to: Author.self), Reference(\.editor, to: \Author.email)]
        }
        var id: UUID
        var author: Int?
        var editor: String?
        var year: Int
        var printed: Date?
    }

    struct Page: Record, Equatable {
        static var references: [Reference<Self>] { [Reference(\.book, to: Book.self)] }
        var id: Int
        var book: UUID
        var text: String
    }

    init() throws {
        fixture = try RecordFixture()
        var random = SeededGenerator(for: "rows")
        authors = (1...30).map { id in
            Author(
                id: id * 3, email: id % 4 == 0 ? nil : "e\(id)",
                teacher: id < 3 ? nil : Int.random(in: 1..<id, using: &random) * 3)
        }
        books = (1...100).map { number in
            let author = Int.random(in: 1...20, using: &random) * 3
            let editor = "e\(Int.random(in: 0...2, using: &random) * 4 + 1)"
            let date = Date(timeIntervalSinceReferenceDate: Double(number))
            return Book(
                id: UUID(), author: number % 9 == 0 ? nil : author,
                editor: number % 5 == 0 ? nil : editor,
                year: Int.random(in: 1900...1910, using: &random),
                printed: Bool.random(using: &random) ? date : nil)
        }
        let books = books
        pages = (1...300).map { id in
            let book = books[Int.random(in: 0..<80, using: &random)]
            return Page(id: id, book: book.id, text: "t\(id)")
        }
        let (authors, pages) = (authors, pages)
        try fixture.store.write { tx in
            try tx.insert(authors)
            try tx.insert(books)
            try tx.insert(pages)
        }
    }

    private func fetch<R: Record, each Children: Sendable>(
        _ query: NestedQuery<R, repeat each Children>
    ) throws -> [(R, repeat each Children)] {
        try fixture.store.read { tx in try tx.fetch(query) }
    }

    @Test func `each row has all rows that refer to it, in the order of the included query`()
        throws
    {
        let query = Author.order(by: \.id, .descending).limit(20, offset: 2).including(
            all: Book.where(\.year > 1903).order(by: \.year).order(by: \.id), by: \.author)
        let found = try fetch(query)
        let expected = authors.reversed().dropFirst(2).prefix(20)
        #expect(found.map(\.0) == Array(expected))
        for (author, books) in found {
            let own = self.books.filter { $0.author == author.id && $0.year > 1903 }
            #expect(books.map(\.year) == own.map(\.year).sorted())
            #expect(Set(books.map(\.id)) == Set(own.map(\.id)) && books.count == own.count)
            #expect(books.allSatisfy(own.contains))
        }
        #expect(found.contains { $0.1.isEmpty } && found.contains { $0.1.count > 2 })
    }

    @Test func `several types and levels are included`() throws {
        let query = Author.order(by: \.id)
            .including(
                all: Book.order(by: \.id).including(all: Page.order(by: \.id), by: \.book),
                by: \.author
            )
            .including(all: Book.order(by: \.id), by: \.editor)
            .including(all: Author.order(by: \.id), by: \.teacher)
        let found = try fetch(query)
        #expect(found.map(\.0) == authors)
        let sorted = books.sorted { ($0.id.uuidString) < ($1.id.uuidString) }
        for (author, written, edited, pupils) in found {
            #expect(written.map(\.0) == sorted.filter { $0.author == author.id })
            for (book, pages) in written {
                #expect(pages == self.pages.filter { $0.book == book.id })
            }
            let mine = sorted.filter { $0.editor != nil && $0.editor == author.email }
            #expect(edited == mine)
            #expect(pupils == authors.filter { $0.teacher == author.id })
        }
        #expect(found.contains { !$0.1.isEmpty && !$0.2.isEmpty && !$0.3.isEmpty })
    }

    @Test func `one statement reads each type, however many rows there are`() throws {
        let books = Book.all.including(all: Page.all, by: \.book)
        let query = Author.all.including(all: books, by: \.author)
        try fixture.store.read { tx throws in
            let connection = try tx.connection()
            var count = 0
            try connection.trace { event in
                if case .begin = event.kind { count += 1 }
            }
            defer { try? connection.trace(nil) }
            _ = try tx.fetch(query)
            let first = count
            _ = try tx.fetch(query)
            #expect(count - first == 3)
        }
    }

    @Test func `more parents than the engine takes values`() throws {
        let many = (1...5000).map { Author(id: 1000 + $0, email: nil, teacher: 3) }
        try fixture.store.write { tx in try tx.insert(many) }
        let found = try fetch(
            Author.order(by: \.id).including(all: Author.order(by: \.id), by: \.teacher))
        #expect(found.count == 5030)
        #expect(found[0].1.filter { $0.id > 1000 } == many)
        #expect(found.dropFirst(30).allSatisfy { $0.1.isEmpty })
    }

    @Test func `a type without rows or without a table is included as empty arrays`() throws {
        try fixture.execute("DROP TABLE page")
        let books = Book.all.including(all: Page.all, by: \.book)
        #expect(try fetch(books).count == 100)
        #expect(try fetch(books).allSatisfy { $0.1.isEmpty })
        let none = Author.where(\.id < 0)
        #expect(try fetch(none.including(all: books, by: \.author)).isEmpty)
    }

    struct Seat: Record, Equatable {
        static var key: [String] { ["row", "number"] }
        var row: String
        var number: Int
    }

    struct Ticket: Record, Equatable {
        static var table: String { "coffer_parent" }
        static var references: [Reference<Self>] { [Reference(\.row, \.number, to: Seat.self)] }
        var id: Int
        var row: String?
        var number: Int?
    }

    @Test func `a reference of two columns, in a table of the name that the SQL gives to keys`()
        throws
    {
        let seats = ["a", "b"].flatMap { row in (1...3).map { Seat(row: row, number: $0) } }
        let tickets = [
            Ticket(id: 1, row: "a", number: 2), Ticket(id: 2, row: "b", number: 2),
            Ticket(id: 3, row: "b", number: 2), Ticket(id: 4, row: "b", number: nil),
        ]
        try fixture.store.write { tx throws in
            try tx.insert(seats)
            try tx.insert(tickets)
        }
        let query = Seat.order(by: \.row).order(by: \.number)
            .including(all: Ticket.order(by: \.id), by: \.row, \.number)
        #expect(try fetch(query).map(\.0) == seats)
        #expect(try fetch(query).map { $0.1.map(\.id) } == [[], [1], [], [], [2, 3], []])
        // Where a table of the file hides that of the keys.
        try fixture.execute("CREATE TABLE coffer_keys(value)")
        let reopened = try Store(
            path: fixture.folder.path("copy"), key: .numbered(8), configuration: .testing())
        try reopened.write { tx throws in
            try tx.execute("CREATE TABLE coffer_keys(value)")
            try tx.insert(seats)
            try tx.insert(tickets)
        }
        let found = try reopened.read { tx in try tx.fetch(query) }
        #expect(found.map { $0.1.map(\.id) } == [[], [1], [], [], [2, 3], []])
    }

    @Test func `references match as the engine matches them, not as texts`() throws {
        try fixture.store.write { tx throws in
            try tx.execute(
                """
                CREATE TABLE seat(row TEXT NOT NULL COLLATE NOCASE, number INTEGER NOT NULL,
                PRIMARY KEY (row, number))
                """)
            try tx.execute(
                """
                CREATE TABLE coffer_parent(id INTEGER PRIMARY KEY, row TEXT COLLATE RTRIM,
                number INTEGER, FOREIGN KEY (row, number) REFERENCES seat (row, number))
                """)
            try tx.insert(Seat(row: "A", number: 1))
            try tx.insert(Ticket(id: 1, row: "a", number: 1))
        }
        let query = Seat.all.including(all: Ticket.all, by: \.row, \.number)
        #expect(try fetch(query).map { $0.1.map(\.id) } == [[1]])
        let join = Ticket.all.joining(\.row, \.number, to: Seat.all)
        #expect(try fixture.store.read { tx in try tx.fetch(join).count } == 1)
    }

    @Test func `what is wrong with a nested query is told`() throws {
        let limited = expect(.misuse) {
            try fetch(Author.all.including(all: Book.limit(3), by: \.author))
        }
        #expect(limited?.message.contains("limit") == true)
        let undeclared = expect(.misuse) {
            try fetch(Author.all.including(all: Book.all, by: \.year))
        }
        #expect(undeclared?.hint?.contains("Reference") == true)
    }

    struct Box: Record {
        var id: Int
    }

    struct Thing: Record {
        static var references: [Reference<Self>] { [Reference(\.box, to: Box.self)] }
        var id: Int
        var box: Int
        var value: Int
        var number: Int
    }

    @Test func `columns of any name are those of the included type`() throws {
        try fixture.store.write { tx throws in
            try tx.insert(Box(id: 1))
            try tx.insert(Thing(id: 1, box: 1, value: 3, number: 4))
            let things = Thing.where(.sql("value + number > \(6)"))
            let found = try tx.fetch(Box.all.including(all: things, by: \.box))
            #expect(found.map(\.1.count) == [1])
        }
    }

    @Test func `a type without a table refers to no row`() throws {
        try fixture.store.write { tx throws in
            try tx.insert(Box(id: 1))
            let without = Box.where(!.exists(Thing.all, by: \.box))
            #expect(try tx.count(without) == 1)
            #expect(try tx.fetch(Box.where(.exists(Thing.all, by: \.box))).isEmpty)
            #expect(try tx.delete(without) == 1)
        }
    }

    struct Site: Record {
        static var indexes: [Index<Self>] { [Index(\.url, isUnique: true)] }
        var id: Int
        var url: Lazy<String>
    }

    struct Link: Record {
        static var references: [Reference<Self>] { [Reference(\.page, to: \Site.url)] }
        var id: Int
        var page: String
    }

    @Test func `nothing refers to a value that stays in the file`() throws {
        let query = Site.all.including(all: Link.all, by: \.page)
        #expect(expect(.misuse) { try fetch(query) }?.column == "url")
    }

    @Test func `rows that another row of the type is referred to by are found by a condition`()
        throws
    {
        let recent = Book.where(\.year > 1905)
        let written = Set(books.filter { $0.year > 1905 }.compactMap(\.author))
        let edited = Set(books.compactMap(\.editor))
        try fixture.store.read { tx throws in
            let wanted = try tx.fetch(Author.where(.exists(recent, by: \.author)).order(by: \.id))
            #expect(wanted == authors.filter { written.contains($0.id) })
            let others = try tx.fetch(Author.where(!.exists(recent, by: \.author)).order(by: \.id))
            #expect(others == authors.filter { !written.contains($0.id) })
            let editors = try tx.fetch(
                Author.where(.exists(Book.all, by: \.editor) && \.id > 5).order(by: \.id))
            #expect(
                editors
                    == authors.filter { $0.id > 5 && $0.email.map(edited.contains) ?? false })
            #expect(!editors.isEmpty)
            let taught = try tx.count(Author.where(.exists(Author.all, by: \.teacher)))
            #expect(taught == Set(authors.compactMap(\.teacher)).count)
            _ = expect(.misuse) { try tx.count(Author.where(.exists(recent, by: \.year))) }
        }
    }
}
