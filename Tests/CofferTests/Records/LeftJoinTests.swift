import Coffer
import Foundation
import Testing
import Workload

/// Joins that keep rows without a partner, join a type with itself, or join several types.
@Suite(.againstHanging, .onOwnThreads) struct LeftJoinTests {
    private let fixture: RecordFixture
    private let countries: [Country]
    private let people: [Person]
    private let books: [Book]

    struct Country: Record, Equatable {
        static var access: RecordAccess { .storedProperties }
        static var key: [String] { ["code"] }
        var code: String
        var founded: Date
    }

    struct Person: Record, Equatable {
        static var references: [Reference<Self>] {
            [Reference(\.country, to: Country.self), Reference(\.teacher, to: Person.self)]
        }
        var id: Int
        var name: String
        var country: String?
        var teacher: Int?
        var born: Date
    }

    struct Book: Record, Equatable {
        static var references: [Reference<Self>] {
            [Reference(\.author, to: Person.self), Reference(\.editor, to: Person.self)]
        }
        var id: Int
        var name: String
        var author: Int?
        var editor: Int?
        var cover: Lazy<Data>
    }

    struct Shop: Record {
        static var references: [Reference<Self>] { [Reference(\.country, to: Country.self)] }
        var id: Int
        var country: String
    }

    init() throws {
        fixture = try RecordFixture()
        var random = SeededGenerator(for: "rows")
        let codes = ["no", "se", "dk"]
        countries = codes.enumerated().map {
            Country(code: $1, founded: Date(timeIntervalSince1970: Double($0) * -1e9))
        }
        people = (1...20).map { (id: Int) -> Person in
            let name = "p\(Int.random(in: 0...5, using: &random))"
            let country: String? =
                Bool.random(using: &random) ? codes.randomElement(using: &random) : nil
            let isTaught = id > 1 && id % 5 > 0
            let teacher: Int? = isTaught ? Int.random(in: 1..<id, using: &random) : nil
            return Person(
                id: id, name: name, country: country, teacher: teacher,
                born: Date(timeIntervalSinceReferenceDate: Double(id) * 1e6))
        }
        books = (1...60).map { id in
            Book(
                id: id, name: "b\(id)",
                author: id % 7 == 0 ? nil : Int.random(in: 1...20, using: &random),
                editor: id % 3 == 0 ? nil : Int.random(in: 1...20, using: &random),
                cover: Lazy(Data(repeating: UInt8(id), count: id)))
        }
        let (countries, people, books) = (countries, people, books)
        try fixture.store.write { tx in
            try tx.insert(countries)
            try tx.insert(people)
            try tx.insert(books)
        }
    }

    private func person(_ id: Int?) -> Person? { people.first { $0.id == id } }

    private func fetch<each Row: Sendable>(
        _ join: Join<Book, repeat each Row>
    ) throws -> [(Book, repeat each Row)] {
        try fixture.store.read { tx in try tx.fetch(join) }
    }

    @Test func `a left join keeps rows without a partner`() throws {
        let found = try fetch(Book.order(by: \.id).leftJoining(\.editor, to: Person.all))
        #expect(found.map(\.0.id) == books.map(\.id))
        #expect(found.map(\.1) == books.map { person($0.editor) })
        #expect(found.contains { $0.1 == nil } && found.contains { $0.1 != nil })
    }

    @Test func `the condition of a left join decides which partners are found, not which rows`()
        throws
    {
        let old = Person.where(\.born < Date(timeIntervalSinceReferenceDate: 9.5e6))
        let query = Book.where(\.id > 10).order(by: \.id).leftJoining(\.author, to: old)
        let found = try fetch(query)
        #expect(found.map(\.0.id) == Array(11...60))
        #expect(
            found.map(\.1)
                == books.filter { $0.id > 10 }.map {
                    $0.author ?? 20 < 10 ? person($0.author) : nil
                }
        )
        #expect(found.contains { $0.0.author != nil && $0.1 == nil })
    }

    @Test func `a left join is in the order of the partners, those without first`() throws {
        let query = Book.order(by: \.id, .descending)
            .leftJoining(\.author, to: Person.order(by: \.name).order(by: \.id))
        let sorted = books.map { ($0, person($0.author)) }.sorted { left, right in
            let (first, second) = (left.1?.name ?? "", right.1?.name ?? "")
            if first != second { return first < second }
            let (one, other) = (left.1?.id ?? 0, right.1?.id ?? 0)
            return one != other ? one < other : left.0.id > right.0.id
        }
        #expect(try fetch(query).map(\.0.id) == sorted.map(\.0.id))
    }

    @Test func `a type is joined with itself`() throws {
        let taught = Person.where(\.id > 3).order(by: \.id)
        let expected = people.filter { $0.id > 3 }.map { ($0, person($0.teacher)) }
        let old = Person.where(\.born < Date(timeIntervalSinceReferenceDate: 4.5e6))
        try fixture.store.read { tx throws in
            let pairs = try tx.fetch(taught.joining(\.teacher, to: Person.all))
            let inner = expected.compactMap { pupil, teacher in teacher.map { (pupil, $0) } }
            #expect(pairs.map(\.0) == inner.map(\.0) && pairs.map(\.1) == inner.map(\.1))
            let left = try tx.fetch(taught.leftJoining(\.teacher, to: Person.all))
            #expect(left.map(\.0) == expected.map(\.0) && left.map(\.1) == expected.map(\.1))
            // Conditions and orders of each side are about that side.
            let some = try tx.fetch(taught.joining(\.teacher, to: old))
            #expect(some.map(\.0.id) == inner.filter { $0.1.id < 5 }.map(\.0.id))
            let others = try tx.fetch(taught.leftJoining(\.teacher, to: old))
            #expect(
                others.map(\.1?.id)
                    == expected.map { $0.1.flatMap { $0.id < 5 ? $0.id : nil } })
            let byTeacher = Person.order(by: \.id)
                .joining(\.teacher, to: Person.order(by: \.name, .descending))
            let sorted = try tx.fetch(byTeacher).map { "\($1.name) \($0.id)" }
            #expect(!sorted.isEmpty)
            let wanted = people.compactMap { pupil in
                person(pupil.teacher).map { ($0.name, pupil.id) }
            }.sorted { ($1.0, $0.1) < ($0.0, $1.1) }
            #expect(sorted == wanted.map { "\($0) \($1)" })
        }
    }

    @Test func `a join with itself goes on along the table that was joined last`() throws {
        let join = Person.order(by: \.id).joining(\.teacher, to: Person.all)
            .leftJoining(\Person.teacher, to: Person.where(\.id > 1))
        let found = try fixture.store.read { tx in try tx.fetch(join) }
        let expected = people.compactMap { pupil in
            person(pupil.teacher).map { teacher in
                [pupil.id, teacher.id, teacher.teacher.map { $0 > 1 ? $0 : 0 } ?? 0]
            }
        }
        #expect(found.map { [$0.id, $1.id, $2?.id ?? 0] } == expected)
    }

    @Test func `pages of a join are in the order of its first type`() throws {
        let page = Book.order(by: \.name).limit(5).after(books[2])
        #expect(try fetch(page.leftJoining(\.author, to: Person.all)).count == 5)
        let sorted = page.leftJoining(\.author, to: Person.order(by: \.name))
        #expect(expect(.misuse) { try fetch(sorted) }?.hint?.contains("order") == true)
    }

    struct Photo: Record {
        static var references: [Reference<Self>] { [Reference(\.original, to: Photo.self)] }
        var id: Int
        var original: Int?
        var pixels: Lazy<Data>
    }

    @Test func `values in the file stay there in a join with itself and a condition`() throws {
        try fixture.store.write { tx throws in
            for id in 1...3 {
                let pixels = Lazy(Data(count: id * 100))
                try tx.insert(Photo(id: id, original: id == 1 ? nil : 1, pixels: pixels))
            }
            let some = Photo.where(\.id < 2)
            let found = try tx.fetch(Photo.order(by: \.id).leftJoining(\.original, to: some))
            #expect(found.map(\.0.pixels.byteCount) == [100, 200, 300])
            #expect(found.map { $0.1?.pixels.byteCount } == [nil, 100, 100])
        }
    }

    struct Visit: Record {
        static var key: [String] { ["at"] }
        var at: Date
    }

    struct Receipt: Record {
        static var references: [Reference<Self>] { [Reference(\.visit, to: Visit.self)] }
        var id: Int
        var visit: Date?
    }

    @Test func `references of dates that count from different moments are refused`() throws {
        let date = Date(timeIntervalSinceReferenceDate: 7)
        try fixture.store.write { tx throws in
            try tx.create(Visit.self)
            try tx.execute("CREATE TABLE receipt(id INTEGER PRIMARY KEY, visit REAL)")
            try tx.insert(Visit(at: date))
            try tx.insert(Receipt(id: 1, visit: date))
            let join = Receipt.all.leftJoining(\.visit, to: Visit.all)
            #expect(expect(.mismatch) { try tx.fetch(join) }?.table == "receipt")
            _ = expect(.mismatch) {
                try tx.fetch(Visit.all.including(all: Receipt.all, by: \.visit))
            }
            _ = expect(.mismatch) { try tx.count(Receipt.where(Visit.all.contains(\.visit))) }
            _ = expect(.mismatch) {
                try tx.count(Visit.where(.exists(Receipt.all, by: \.visit)))
            }
        }
    }

    @Test func `several types are joined along their references`() throws {
        let join = Book.order(by: \.id).joining(\.author, to: Person.all)
            .joining(\Person.country, to: Country.all)
        let expected = books.compactMap { book -> String? in
            guard let author = person(book.author), let country = author.country else { return nil }
            return "\(book.id) \(author.id) \(country)"
        }
        let found = try fetch(join)
        #expect(found.map { "\($0.id) \($1.id) \($2.code)" } == expected)
        #expect(!found.isEmpty)
        #expect(found.allSatisfy { row in countries.contains(row.2) })
        let left = Book.order(by: \.id).leftJoining(\.author, to: Person.all)
            .leftJoining(\Person.country, to: Country.where(\.code != "dk"))
        #expect(
            try fetch(left).map { [$0.id, $1?.id ?? 0].description + ($2?.code ?? "-") }
                == books.map { book in
                    let author = person(book.author)
                    let code = author?.country == "dk" ? nil : author?.country
                    return [book.id, author?.id ?? 0].description + (code ?? "-")
                })
    }

    @Test func `one type is joined twice, along two references`() throws {
        let join = Book.order(by: \.id).joining(\.author, to: Person.where(\.id > 2))
            .leftJoining(\Book.editor, to: Person.where(\.id <= 15))
        let expected = books.filter { $0.author ?? 0 > 2 }.map { book in
            [book.id, book.author ?? 0, book.editor.map { $0 > 15 ? 0 : $0 } ?? 0]
        }
        #expect(try fetch(join).map { [$0.id, $1.id, $2?.id ?? 0] } == expected)
        // The table that was joined last refers.
        let further = join.leftJoining(\Person.country, to: Country.all)
        let editors = try fetch(further)
        #expect(editors.map { $0.3?.code } == editors.map { $0.2?.country })
        #expect(editors.contains { $0.3 != nil && $0.3?.code != $0.1.country })
        let absent = Book.all.joining(\.author, to: Person.all)
            .leftJoining(\Shop.country, to: Country.all)
        #expect(expect(.misuse) { try fetch(absent) }?.message.contains("no Shop") == true)
    }

    @Test func `values in the file stay there, in each table of a join`() throws {
        let found = try fetch(Book.order(by: \.id).leftJoining(\.editor, to: Person.all))
        #expect(found.map(\.0.cover.byteCount) == books.map(\.id))
    }

    @Test func `types without a table have no rows, and so no partners`() throws {
        try fixture.execute("DELETE FROM book")
        try fixture.execute("INSERT INTO book VALUES (1, 'a', NULL, NULL, x'00')")
        try fixture.execute("DROP TABLE person")
        let left = Book.all.leftJoining(\.author, to: Person.all)
            .leftJoining(\Person.country, to: Country.all)
        #expect(try fetch(left).map { [$0.0.id, $0.1?.id ?? 0] } == [[1, 0]])
        #expect(try fetch(Book.all.joining(\.author, to: Person.all)).isEmpty)
    }

    @Test func `a limit counts rows, and errors name the column`() throws {
        let three = Book.order(by: \.id).limit(3, offset: 1).leftJoining(\.author, to: Person.all)
        #expect(try fetch(three).map(\.0.id) == [2, 3, 4])
        _ = expect(.misuse) { try fetch(Book.all.leftJoining(\.author, to: Person.limit(3))) }
        try fixture.execute("DELETE FROM book")
        try fixture.execute("DROP TABLE person")
        try fixture.execute("CREATE TABLE person(id INTEGER PRIMARY KEY, name, country, teacher)")
        let missing = expect(.mismatch) { try fetch(three) }
        #expect(missing?.table == "person" && missing?.column == "born")
    }

    @Test func `a join is counted, tested for rows, and read one row at a time`() throws {
        let join = Book.order(by: \.id).leftJoining(\.editor, to: Person.all)
        let strict = Book.order(by: \.id).joining(\.editor, to: Person.where(\.id > 2))
            .joining(\Person.country, to: Country.all)
        let none = Book.where(\.id > 99).joining(\.author, to: Person.all)
        try fixture.store.read { tx throws in
            let rows = try tx.fetch(strict)
            #expect(try tx.count(join) == 60)
            let row = try #require(rows.first)
            #expect(try tx.count(strict) == rows.count)
            #expect(
                try tx.count(Book.limit(9, offset: 55).leftJoining(\.editor, to: Person.all)) == 5)
            #expect(try tx.exists(strict) && !tx.exists(none))
            let first = try tx.first(strict)
            #expect(first?.0.id == row.0.id && first?.1 == row.1 && first?.2 == row.2)
            let late = Book.order(by: \.id).limit(3, offset: 7).leftJoining(
                \.editor, to: Person.all)
            #expect(try tx.first(late)?.0.id == 8)
            #expect(try tx.first(Book.limit(0).leftJoining(\.editor, to: Person.all)) == nil)
            #expect(try tx.first(none) == nil)
            var ids: [Int] = []
            try tx.forEach(join) { book, editor in
                #expect(editor == person(book.editor))
                ids.append(book.id)
            }
            #expect(ids == books.map(\.id))
        }
    }

    struct Stopped: Error {}

    @Test func `an error of the body, or a row that cannot be read, ends the loop over a join`()
        throws
    {
        let join = Book.order(by: \.id).leftJoining(\.editor, to: Person.all)
        #expect(throws: Stopped.self) {
            try fixture.store.read { tx in
                try tx.forEach(join) { book, _ in if book.id == 3 { throw Stopped() } }
            }
        }
        let own = StoreError(.notFound, "of the body", table: "book")
        let thrown = expect(.notFound) {
            try fixture.store.read { tx in try tx.forEach(join) { _, _ in throw own } }
        }
        #expect(thrown?.message == "of the body")
        try fixture.execute("UPDATE book SET name = x'ff' WHERE id = 4")
        let error = expect(.mismatch) {
            try fixture.store.read { tx in
                try tx.forEach(join) { book, _ in #expect(book.id < 4) }
            }
        }
        #expect(error?.table == "book" && error?.column == "name")
        try fixture.execute("DROP TABLE book")
        try fixture.store.read { tx throws in
            #expect(try tx.count(join) == 0 && !tx.exists(join) && tx.first(join) == nil)
            try tx.forEach(join) { _, _ in Issue.record("no rows") }
        }
    }

    @Test func `any join agrees with Swift`() throws {
        var random = SeededGenerator(for: #function)
        for _ in 0..<40 {
            let bound = Int.random(in: 0...20, using: &random)
            let people = Person.where(\.id > bound)
            let isWanted = { (person: Person?) in person.map { $0.id > bound } ?? false }
            let (first, second) = (Bool.random(using: &random), Bool.random(using: &random))
            let all = Book.order(by: \.id)
            var expected = books.map { (book: $0, author: person($0.author)) }
                .map { ($0.book, isWanted($0.author) ? $0.author : nil) }
            if !first { expected.removeAll { $0.1 == nil } }
            var triples = expected.map { ($0.0, $0.1, self.person($0.1?.teacher)) }
            if !second { triples.removeAll { $0.2 == nil } }
            let wanted = triples.map { [$0.id, $1?.id ?? 0, $2?.id ?? 0] }
            let found: [[Int]] =
                switch (first, second) {
                case (true, true):
                    try fetch(
                        all.leftJoining(\.author, to: people)
                            .leftJoining(\Person.teacher, to: Person.all)
                    ).map { [$0.id, $1?.id ?? 0, $2?.id ?? 0] }
                case (true, false):
                    try fetch(
                        all.leftJoining(\.author, to: people)
                            .joining(\Person.teacher, to: Person.all)
                    ).map { [$0.id, $1?.id ?? 0, $2.id] }
                case (false, true):
                    try fetch(
                        all.joining(\.author, to: people)
                            .leftJoining(\Person.teacher, to: Person.all)
                    ).map { [$0.id, $1.id, $2?.id ?? 0] }
                case (false, false):
                    try fetch(
                        all.joining(\.author, to: people)
                            .joining(\Person.teacher, to: Person.all)
                    ).map { [$0.id, $1.id, $2.id] }
                }
            #expect(found == wanted)
        }
    }
}
