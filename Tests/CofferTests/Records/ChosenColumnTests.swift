import Foundation
import Testing
import Workload

@testable import Coffer

/// Some columns of records, by key paths: the values are those of whole records.
@Suite(.againstHanging, .onOwnThreads) struct ChosenColumnTests {
    private let fixture: RecordFixture

    init() throws {
        fixture = try RecordFixture()
    }

    enum Colour: String, Codable, CaseIterable { case red, green }
    enum Shape: Codable, Equatable {
        case point
        case circle(radius: Double)
    }
    struct Place: Codable, Equatable { var x: Int, y: Double? }
    struct Mark: RawRepresentable, Codable, Equatable { var rawValue: Int }

    protocol Access { static var kind: RecordAccess { get } }
    enum Coded: Access { static var kind: RecordAccess { .codable } }
    enum Stored: Access { static var kind: RecordAccess { .storedProperties } }

    /// Every kind of column, for both ways in which a record is read.
    struct Sample<A: Access>: Record {
        static var table: String { "sample" }
        static var access: RecordAccess { A.kind }
        static var encodings: [PartialKeyPath<Self>: ColumnEncoding] {
            [\.written: .date(.iso8601), \.code: .uuidText]
        }

        var id: Int
        var flag: Bool
        var small: Int8?
        var big: UInt64
        var real: Double?
        var float: Float
        var text: String
        var words: String?
        var data: Data
        var bytes: [UInt8]?
        var uuid: UUID
        var code: UUID?
        var created: Date
        var opened: Date?
        var written: Date
        var link: URL?
        var price: Decimal
        var colour: Colour
        var other: Colour?
        var shape: Shape
        var place: Place?
        var list: [Int]
        var mark: Mark
        var body: Lazy<Data>
        var extra: Lazy<String>?

        init(_ id: Int, _ random: inout SeededGenerator) {
            func maybe<T>(_ value: T) -> T? { Bool.random(using: &random) ? value : nil }
            self.id = id
            flag = .random(using: &random)
            small = maybe(.random(in: .min ... .max, using: &random))
            big = .random(in: 0...UInt64(Int64.max), using: &random)
            real = maybe(.random(in: -1e9...1e9, using: &random))
            float = .random(in: -1...1, using: &random)
            text = "text \(Int.random(in: 0...99, using: &random))\u{0}é"
            words = maybe("words")
            data = Data((0..<Int.random(in: 0...9, using: &random)).map { UInt8($0) })
            bytes = maybe([1, 2, 3])
            uuid = UUID()
            code = maybe(UUID())
            created = Date(
                timeIntervalSinceReferenceDate: .random(in: 0...1e9, using: &random))
            opened = maybe(Date(timeIntervalSinceReferenceDate: 0.1))
            written = Date(timeIntervalSince1970: 1_000)
            link = maybe(URL(filePath: "/\(id)"))
            price = Decimal(id) / 8
            colour = maybe(.red) ?? .green
            other = maybe(.green)
            shape = maybe(.point) ?? .circle(radius: 2.5)
            place = maybe(Place(x: id, y: maybe(0.5)))
            list = [Int](repeating: id, count: .random(in: 0...3, using: &random))
            mark = Mark(rawValue: id * 2)
            body = Lazy(Data(count: id))
            extra = maybe(Lazy("extra"))
        }
    }

    @Test(arguments: [RecordAccess.codable, .storedProperties])
    func `each property has the value that it has in a whole record`(
        access: RecordAccess
    ) throws {
        switch access {
        case .codable: try compare(Coded.self)
        case .storedProperties: try compare(Stored.self)
        }
    }

    private func compare<A: Access>(_ access: A.Type) throws {
        #expect(try Sample<A>.accessReport().reason == nil || A.self == Coded.self)
        var random = SeededGenerator(for: "a property of a whole record")
        let records = (1...40).map { Sample<A>($0, &random) }
        try fixture.store.write { tx throws in
            try tx.insert(records)
            // A transaction that writes reads as well.
            try agree(&tx, A.self)
        }
        try fixture.store.read { tx in try agree(&tx, A.self) }
    }

    private func agree<A: Access, Tx: Reading & ~Copyable>(
        _ tx: inout Tx, _ access: A.Type
    ) throws {
        let query = Sample<A>.where(\.id > 3).order(by: \.id, .descending).limit(30, offset: 1)
        let whole = try tx.fetch(query)
        #expect(whole.count == 30)
        func same<V: Codable & Equatable>(
            _ path: KeyPath<Sample<A>, V>, _ tx: inout Tx
        ) throws {
            #expect(try tx.fetch(query, path) == whole.map { $0[keyPath: path] }, "\(path)")
            #expect(try tx.first(query, path) == whole[0][keyPath: path], "\(path)")
        }
        try same(\.id, &tx)
        try same(\.flag, &tx)
        try same(\.small, &tx)
        try same(\.big, &tx)
        try same(\.real, &tx)
        try same(\.float, &tx)
        try same(\.text, &tx)
        try same(\.words, &tx)
        try same(\.data, &tx)
        try same(\.bytes, &tx)
        try same(\.uuid, &tx)
        try same(\.code, &tx)
        try same(\.created, &tx)
        try same(\.opened, &tx)
        try same(\.written, &tx)
        try same(\.link, &tx)
        try same(\.price, &tx)
        try same(\.colour, &tx)
        try same(\.other, &tx)
        try same(\.shape, &tx)
        try same(\.place, &tx)
        try same(\.list, &tx)
        try same(\.mark, &tx)
        // Values that are not loaded are equal to their own copies only.
        let bodies = try tx.fetch(query, \.body)
        #expect(bodies.map(\.byteCount) == whole.map(\.body.byteCount))
        let extras = try tx.fetch(query, \.extra)
        #expect(extras.map { $0 == nil } == whole.map { $0.extra == nil })
        #expect(!bodies.contains(where: \.isLoaded) && !extras.contains { $0?.isLoaded == true })
    }

    @Test func `a tuple has the values in the order of the key paths`() throws {
        var random = SeededGenerator(for: "tuples")
        let records = (1...20).map { Sample<Coded>($0, &random) }
        try fixture.store.write { tx in try tx.insert(records) }
        let query = Sample<Coded>.order(by: \.id)
        try fixture.store.read { tx throws in
            // Types of many sizes, so that each tuple has gaps.
            let rows = try tx.fetch(
                query, \.flag, \.words, \.small, \.created, \.colour, \.bytes, \.other, \.place,
                \.flag, \.shape, \.id)
            #expect(rows.count == records.count)
            for (row, record) in zip(rows, records) {
                #expect(row.0 == record.flag && row.1 == record.words && row.2 == record.small)
                #expect(row.3 == record.created && row.4 == record.colour)
                #expect(row.5 == record.bytes && row.6 == record.other && row.7 == record.place)
                #expect(row.8 == record.flag && row.9 == record.shape && row.10 == record.id)
            }
            let first = try tx.first(query.where(\.id > 4), \.text, \.id)
            #expect(first?.0 == records[4].text && first?.1 == 5)
            #expect(try tx.first(query.where(\.id > 40), \.text, \.id) == nil)
        }
    }

    // MARK: Dates

    @Test(arguments: ["REAL", "REAL_SINCE_2001"])
    func `a date counts as its column declares it`(type: String) throws {
        try fixture.execute(
            SQL(
                text: """
                    CREATE TABLE visit(
                        id INTEGER PRIMARY KEY, began \(type) NOT NULL, ended \(type))
                    """))
        let visit = DateColumnTests.Visit(
            id: 1, began: Date(timeIntervalSinceReferenceDate: 1.5),
            ended: Date(timeIntervalSinceReferenceDate: -2.25))
        try fixture.store.write { tx in try tx.insert(visit) }
        try fixture.store.read { tx throws in
            let row = try #require(
                try tx.first(DateColumnTests.Visit.all, \.ended, \.id, \.began))
            #expect(row.0 == visit.ended && row.2 == visit.began)
            let stored = try tx.first(DateColumnTests.StoredVisit.all, \.ended, \.began)
            #expect(stored?.0 == visit.ended && stored?.1 == visit.began)
        }
    }

    @Test func `a property with a declared column has that column's value`() throws {
        struct Event: Record {
            static var columns: [PartialKeyPath<Self>: String] {
                [\.title: "name", \.time: "seconds"]
            }
            enum CodingKeys: String, CodingKey {
                case id
                case text = "name"
                case seconds
            }
            var id: Int
            var text: String
            var seconds: Double
            var title: String { text }
            var time: Date { Date(timeIntervalSince1970: seconds) }
        }
        try fixture.store.write { tx in
            try tx.insert(Event(id: 1, text: "a", seconds: 12.5))
        }
        let row = try fixture.store.read { tx in try tx.first(Event.all, \.title, \.time) }
        #expect(row?.0 == "a" && row?.1 == Date(timeIntervalSince1970: 12.5))
    }

    // MARK: Queries

    @Test func `conditions on references, pages and a missing table mean what they do elsewhere`()
        throws
    {
        typealias Author = JoinTests.Author
        typealias Article = JoinTests.Article
        let store = fixture.store
        #expect(try store.read { tx in try tx.fetch(Author.all, \.name, \.id).isEmpty })
        #expect(try store.read { tx in try tx.first(Author.all, \.name) } == nil)
        try store.write { tx throws in
            try tx.insert([
                Author(id: 1, name: "Ada", email: nil), Author(id: 2, name: "Bob", email: nil),
            ])
            try tx.insert(
                (1...9).map {
                    Article(id: $0, name: "n\($0)", author: 1 + $0 % 2, length: Double($0 % 3))
                })
        }
        try store.read { tx throws in
            let ofAda = Article.where(Author.where(\.name == "Ada").contains(\.author))
            #expect(try tx.fetch(ofAda.order(by: \.id), \.name) == ["n2", "n4", "n6", "n8"])
            let page = Article.order(by: \.length).inOrderOfKey().limit(4)
            let last = try #require(try tx.fetch(page).last)
            let next = page.after(last)
            #expect(try tx.fetch(next, \.id) == tx.fetch(next).map(\.id))
        }
    }

    // MARK: Failures

    /// As `BadValueTests` has them.
    @Test(arguments: BadValueTests.stored)
    func `a value that does not fit is the error of a whole record`(
        column: String, value: String
    ) throws {
        typealias Item = BadValueTests.Item
        let names = "id, big, small, flag, real, float, text, data, uuid, link, price, colour, list"
        try fixture.execute(SQL(text: "CREATE TABLE item(\(names))"))
        try fixture.store.write { tx in try tx.insert(Item(id: 7)) }
        try fixture.execute(SQL(text: "UPDATE item SET \(column) = \(value)"))
        try fixture.store.read { tx throws in
            let whole = expect(.mismatch) { try tx.fetch(Item.all) }
            let chosen = expect(.mismatch) {
                switch column {
                case "text": _ = try tx.fetch(Item.all, \.flag, \.text)
                case "big": _ = try tx.fetch(Item.all, \.id, \.big)
                case "small": _ = try tx.fetch(Item.all, \.small)
                case "flag": _ = try tx.fetch(Item.all, \.text, \.flag)
                case "real": _ = try tx.fetch(Item.all, \.real)
                case "float": _ = try tx.fetch(Item.all, \.float)
                case "data": _ = try tx.fetch(Item.all, \.text, \.data)
                case "uuid": _ = try tx.fetch(Item.all, \.data, \.uuid)
                case "link": _ = try tx.fetch(Item.all, \.list, \.link)
                case "price": _ = try tx.fetch(Item.all, \.price)
                case "colour": _ = try tx.fetch(Item.all, \.colour)
                default: _ = try tx.fetch(Item.all, \.text, \.list)
                }
            }
            #expect(chosen?.message == whole?.message)
            #expect(chosen?.message.hasSuffix(", in the row with id 7") == true)
            #expect(chosen?.table == "item" && chosen?.column == column)
        }
    }

    @Test func `a value that fails leaves none of the values before it behind`() throws {
        final class Watch: Sendable {}
        struct Held: Codable {
            @TaskLocal static var watch: Watch?
            var watch = Held.watch
            init(from decoder: any Decoder) throws {
                _ = try decoder.singleValueContainer().decode(String.self)
            }
            func encode(to encoder: any Encoder) throws {
                var container = encoder.singleValueContainer()
                try container.encode("held")
            }
            init() {}
        }
        struct Box: Record {
            var id: Int
            var held: Held
            var number: Int
        }
        try fixture.execute("CREATE TABLE box(id INTEGER PRIMARY KEY, held TEXT, number)")
        try fixture.execute("INSERT INTO box VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 'x')")
        weak var gone: Watch?
        try Held.$watch.withValue(Watch()) {
            gone = Held.watch
            try fixture.store.read { tx throws in
                _ = expect(.mismatch) { try tx.fetch(Box.order(by: \.id), \.held, \.number) }
            }
        }
        #expect(gone == nil)
    }

    @Test func `a key path without a column is the error of a condition`() throws {
        struct Plain: Record {
            var id: Int
            var text: String
            var length: Int { text.count }
        }
        try fixture.store.write { tx in try tx.insert(Plain(id: 1, text: "a")) }
        try fixture.store.read { tx throws in
            let condition = expect(.misuse) { try tx.fetch(Plain.where(\.length == 1)) }
            for chosen in [
                expect(.misuse) { try tx.fetch(Plain.all, \.length) },
                expect(.misuse) { try tx.fetch(Plain.all, \.text, \.length) },
                expect(.misuse) { try tx.first(Plain.all, \.id, \.length) },
            ] {
                #expect(chosen?.message == condition?.message && chosen?.hint == condition?.hint)
            }
            let nested = expect(.misuse) { try tx.fetch(Plain.all, \.text.count) }
            #expect(nested?.table == "plain")
        }
    }

    @Test func `a cancelled task gets no values`() async throws {
        let store = fixture.store
        try await store.write { tx in try tx.insert(Note.numbered(1)) }
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await store.read { tx in try tx.fetch(Note.all, \.id) }
        }
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    /// The table of `BlobFixture`, whose values lie on pages that the list must not read.
    private struct Item: Record {
        static let table = "t"
        var id: Int
        var flag: Int
        var data: Data
    }

    private struct StoredItem: Record {
        static let table = "t"
        static let access = RecordAccess.storedProperties
        var id: Int
        var flag: Int
        var data: Data
    }

    @Test(arguments: BlobFixture.DamagedPart.allCases, journalModes)
    func `no page of a column that is not chosen is read`(
        part: BlobFixture.DamagedPart, mode: Configuration.JournalMode
    ) throws {
        let fixture = try BlobFixture(mode)
        _ = try fixture.insertDamaged(part)
        let store = try fixture.store()
        let rows = try store.read { tx in try tx.fetch(Item.where(\.flag == 7), \.flag, \.id) }
        #expect(rows.count == 1 && rows[0] == (7, 1))
        #expect(try store.read { tx in try tx.fetch(StoredItem.all, \.flag) } == [7])
        let flag = try store.read { tx in try tx.first(StoredItem.all, \.flag) }
        #expect(flag == 7)
        expect(.damaged) { try store.read { tx in try tx.fetch(Item.all) } }
        expect(.damaged) { try store.read { tx in try tx.fetch(Item.all, \.flag, \.data) } }
        expect(.damaged) { try store.read { tx in try tx.first(Item.all, \.data) } }
    }
}
