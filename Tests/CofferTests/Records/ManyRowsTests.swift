import Foundation
import Synchronization
import Testing

@testable import Coffer

/// Aggregates, ranges, pages and many keys: compared with what Swift says.
@Suite(.againstHanging, .onOwnThreads) struct ManyRowsTests: NotesSuite {
    let fixture: RecordFixture
    private let notes: [Note]

    init() throws {
        (fixture, notes) = try Self.makeFixture()
    }

    @Test func `aggregates are those of the rows`() throws {
        let some = Note.where(\.id > 10)
        let rows = notes.filter { $0.id > 10 }
        #expect(try read { tx in try tx.min(\.rank, some) } == rows.map(\.rank).min())
        #expect(try read { tx in try tx.max(\.created, some) } == rows.map(\.created).max())
        #expect(try read { tx in try tx.max(\.note, some) } == rows.compactMap(\.note).max())
        let (ids, ranks): (Int, Double) = rows.reduce((0, 0)) { ($0.0 + $1.id, $0.1 + $1.rank) }
        #expect(try read { tx in try tx.sum(\.id, some) } == ids)
        #expect(try read { tx in try tx.sum(\.rank, some) } == ranks)
        let mean = Double(ids) / Double(rows.count)
        #expect(try read { tx in try tx.average(\.id, some) } == mean)
        let first = some.order(by: \.id).limit(3)
        #expect(try read { tx in try tx.sum(\.id, first) } == 11 + 12 + 13)
        #expect(try read { tx in try tx.exists(some) })
    }

    @Test func `aggregates of no rows are nil or zero`() throws {
        let none = Note.where(\.id < 0)
        #expect(try read { tx in try tx.min(\.rank, none) } == nil)
        #expect(try read { tx in try tx.average(\.rank, none) } == nil)
        #expect(try read { tx in try tx.sum(\.id, none) } == 0)
        #expect(try read { tx in try tx.exists(none) } == false)
        #expect(try read { tx in try tx.distinct(\.rank, none) } == [])
    }

    @Test func `distinct values and counts, NULL among them`() throws {
        let ranks = try read { tx in try tx.distinct(\Note.rank) }
        #expect(ranks == Set(notes.map(\.rank)).sorted())
        let texts = try read { tx in try tx.distinct(\Note.note) }
        #expect(texts == [nil] + Set(notes.compactMap(\.note)).sorted())
        let counts = try read { tx in try tx.counts(by: \Note.note) }
        #expect(counts == Dictionary(grouping: notes, by: \.note).mapValues(\.count))
    }

    @Test func `the next page is looked up by an index, and nothing is sorted`() throws {
        let thing = ListConditionTests.Thing(id: UUID(), name: "n", weight: 1, data: Data())
        try fixture.store.write { tx in try tx.insert(thing) }
        for order in [QueryOrder.ascending, .descending] {
            let sign = order == .ascending ? ">" : "<"
            let byKey = try plan(of: Note.order(by: \.id, order).after(notes[3]).limit(3))
            #expect(byKey.contains("PRIMARY KEY (rowid\(sign)?)"), "\(byKey)")
            #expect(!byKey.contains("TEMP B-TREE"), "\(byKey)")
            let query = ListConditionTests.Thing.order(by: \.weight, order).order(by: \.name, order)
            let byIndex = try plan(of: query.after(thing).limit(3))
            #expect(byIndex.contains("index_thing_weight_name (weight\(sign)?)"), "\(byIndex)")
            #expect(!byIndex.contains("TEMP B-TREE"), "\(byIndex)")
        }
    }

    struct Entry: Record {
        var id: Int64?
        var text: String
    }

    @Test func `a key that the engine chooses is never NULL in a row`() throws {
        try fixture.store.write { tx in
            for number in 1...9 { try tx.insert(Entry(text: "\(number)")) }
        }
        let query = Entry.order(by: \.id, .descending).limit(4)
        let first = try read { tx in try tx.fetch(query) }
        let next = query.after(try #require(first.last))
        #expect(try read { tx in try tx.fetch(next) }.map(\.id) == [5, 4, 3, 2])
        #expect(try plan(of: next).contains("PRIMARY KEY (rowid<?)"))
        let new = Entry(text: "new")
        _ = expect(.misuse) { try read { tx in try tx.fetch(query.after(new)) } }
    }

    struct Odd: Record, Equatable {
        var id: Int
        var small: Int8
        var big: Int64
        var price: Decimal
        var size: Float
        var tags: [String]
    }

    @Test func `what cannot be added up, ordered or paged is an error, never a guess`() throws {
        struct Keyless: Record {
            var a: Int
        }
        let odds = (0..<2).map {
            Odd(id: $0, small: 100, big: .max, price: 1.5, size: 0.1, tags: [])
        }
        try fixture.store.write { tx throws in
            try tx.insert(odds)
            try tx.create(Keyless.self)
            _ = expect(.mismatch) { try tx.sum(\Odd.small) }
            _ = expect(.sql) { try tx.sum(\Odd.big) }
            _ = expect(.misuse) { try tx.sum(\Odd.price) }
            _ = expect(.misuse) { try tx.average(\Odd.price) }
            _ = expect(.misuse) { try tx.min(\Odd.price) }
            _ = expect(.misuse) { try tx.max(\Odd.tags) }
            #expect(try tx.sum(\Odd.size) == 0.2)
            #expect(try tx.average(\Odd.small) == 100)
            #expect(try tx.max(\Odd.big) == .max)
            #expect(try tx.distinct(\Odd.tags) == [[]])
            #expect(try tx.counts(by: \Odd.price) == [1.5: 2])
            _ = expect(.misuse) { try tx.fetch(Odd.order(by: \.tags).after(odds[0])) }
            let error = expect(.misuse) { try tx.fetch(Odd.order(by: \.price)) }
            #expect(error?.column == "price")
            _ = expect(.misuse) { try tx.delete(Odd.order(by: \.price).limit(1)) }
            _ = expect(.misuse) { try tx.fetch(Odd.order(by: \.tags)) }
            _ = expect(.misuse) { try tx.fetch(Keyless.all.inOrderOfKey()) }
            _ = expect(.misuse) { try tx.fetch(Keyless.all.after(Keyless(a: 1))) }
        }
    }

    @Test func `what is no number is not added up`() throws {
        struct Measure: Record {
            var id: Int
            var value: Double?
        }
        try fixture.store.write { tx throws in
            try tx.insert((1...3).map { Measure(id: $0, value: [.infinity, 1, nil][$0 - 1]) })
            #expect(try tx.sum(\Measure.value) == .infinity)
            try tx.insert(Measure(id: 4, value: -.infinity))
            _ = expect(.mismatch) { try tx.sum(\Measure.value) }
            _ = expect(.mismatch) { try tx.average(\Measure.value) }
            #expect(try tx.sum(\Measure.value, Measure.where(\.id > 2 && \.id < 4)) == 0)
            for wrong: SQL in ["'abc'", "x'7a7a'"] {
                try tx.execute("UPDATE measure SET value = \(wrong) WHERE id = 4")
                _ = expect(.mismatch) { try tx.sum(\Measure.value) }
                _ = expect(.mismatch) { try tx.average(\Measure.value) }
            }
        }
    }

    @Test func `an offset is left out before the first page alone`() throws {
        try read { tx throws in
            let pages = Note.all.inOrderOfKey().limit(3, offset: 5)
            let first = try tx.fetch(pages).map(\.id)
            let last = try #require(try tx.find(Note.self, first[2]))
            let second = try tx.fetch(pages.after(last)).map(\.id)
            #expect(first + second == Array(notes.map(\.id).sorted()[5..<11]))
        }
    }

    @Test func `ranges`() throws {
        #expect(try ids((3...5).contains(\.id)) == [3, 4, 5])
        #expect(try ids((3..<5).contains(\.id)) == [3, 4])
        #expect(try ids((39...).contains(\.id)) == [39, 40])
        #expect(
            try ids((1.0...2.0).contains(\.rank))
                == notes.filter { (1...2).contains($0.rank) }.map(\.id))
    }

    @Test(arguments: [QueryOrder.ascending, .descending])
    func `pages go on behind the last record, with NULL and equal values`(order: QueryOrder) throws
    {
        let queries = [
            Note.order(by: \.note, order).order(by: \.created), Note.order(by: \.rank, order),
            Note.order(by: \.created).order(by: \.note, order), Note.order(by: \.id, order),
            Note.all,
        ].map { $0.inOrderOfKey() }
        for query in queries {
            let all = try read { tx in try tx.fetch(query) }
            var pages: [Note] = []
            var next = query
            while pages.count <= 40 {
                let page = try read { tx in try tx.fetch(next.limit(7)) }
                guard let last = page.last else { break }
                pages += page
                next = query.after(last)
            }
            #expect(pages == all && pages.count == 40)
        }
    }

    @Test func `many keys, one by one, and as another type`() throws {
        struct Title: Decodable, Equatable {
            let id: Int
            let title: String
        }
        let found = try read { tx in try tx.find(Note.self, keys: [7, 99, 3, 7]) }
        #expect(found.map(\.id) == [7, 3, 7])
        var seen: [Int] = []
        try read { tx in
            try tx.forEach(Note.order(by: \.id).limit(5)) { note in
                seen.append(note.id)
                // Its own type may be read meanwhile.
                seen.append(try tx.find(Note.self, note.id + 10)?.id ?? 0)
            }
        }
        #expect(seen == [1, 11, 2, 12, 3, 13, 4, 14, 5, 15])
        struct Stop: Error {}
        #expect(throws: Stop.self) {
            try read { tx in try tx.forEach(Note.all) { _ in throw Stop() } }
        }
        let titles = try read { tx in try tx.fetch(Note.where(\.id < 3), as: Title.self) }
        #expect(titles == [Title(id: 1, title: "n1"), Title(id: 2, title: "n2")])
    }

    struct Counted: Record {
        static let madeCount = Mutex(0)
        var id: Int
        enum CodingKeys: CodingKey { case id }
        init(id: Int) { self.id = id }
        init(from decoder: any Decoder) throws {
            id = try decoder.container(keyedBy: CodingKeys.self).decode(Int.self, forKey: .id)
            Self.madeCount.withLock { $0 += 1 }
        }
    }

    @Test func `one by one means that the next record is not made before`() throws {
        try fixture.store.write { tx in try tx.insert((1...50).map(Counted.init)) }
        let query = Counted.order(by: \.id)
        // The type is known by now.
        _ = try read { tx in try tx.first(query) }
        let before = Counted.madeCount.withLock { $0 }
        var count = 0
        try read { tx in
            try tx.forEach(query) { counted in
                count += 1
                #expect(counted.id == count)
                #expect(Counted.madeCount.withLock { $0 } == before + count)
            }
        }
        #expect(count == 50)
    }

    /// Counts itself.
    final class Token: Codable, Sendable {
        static let aliveCount = Mutex(0)
        let text: String
        init(_ text: String) {
            self.text = text
            Self.aliveCount.withLock { $0 += 1 }
        }
        convenience init(from decoder: any Decoder) throws {
            self.init(try decoder.singleValueContainer().decode(String.self))
        }
        func encode(to encoder: any Encoder) throws {
            var value = encoder.singleValueContainer()
            try value.encode(text)
        }
        deinit { Self.aliveCount.withLock { $0 -= 1 } }
    }

    struct Holder: Record {
        var id: Int
        var token: Token
        var last: Int
    }

    @Test func `records found by many keys are freed, after an error too`() throws {
        // Plain, so that it takes what is broken.
        try fixture.execute("CREATE TABLE holder(id INTEGER PRIMARY KEY, token, last)")
        try fixture.store.write { tx in
            try tx.insert((1...20).map { Holder(id: $0, token: Token("t"), last: 0) })
        }
        // Reflection may keep examples.
        let before = Token.aliveCount.withLock { $0 }
        let keys = [12, 3, 99, 3, 20, 7, 1]
        do {
            let found = try read { tx in try tx.find(Holder.self, keys: keys) }
            #expect(found.map(\.id) == [12, 3, 3, 20, 7, 1])
            #expect(Token.aliveCount.withLock { $0 } == before + 6)
        }
        #expect(Token.aliveCount.withLock { $0 } == before)
        try fixture.execute("UPDATE holder SET last = 'x' WHERE id = 12")
        _ = expect(.mismatch) { try read { tx in try tx.find(Holder.self, keys: keys) } }
        #expect(Token.aliveCount.withLock { $0 } == before)
        let few = try read { tx in try tx.find(Holder.self, keys: Array(100...400) + [5]) }
        #expect(few.map(\.id) == [5] && few.capacity < 100)
    }

    #if os(Linux)
    @Test(arguments: ["codable", "stored"])
    func `records one by one take the memory of one, at once that of all`(way: String) throws {
        let path = fixture.folder.path("pages.db")
        try #require(try Peer.run(["stream", "fill", path, "1"]) == ["filled"])
        let line = try Peer.run(["stream", way, path, "1"]).first ?? ""
        let parts = line.split(separator: ", ").map(String.init)
        try #require(parts.count == 5, "\(line)")
        #expect(parts[0] == (way == "stored" ? "storedProperties" : "codable"))
        #expect(parts[1] == "40000000 bytes" && parts[3] == "400 records")
        let (one, all) = (Int(parts[2]) ?? .max, Int(parts[4]) ?? 0)
        #expect(one <= 8, "\(one) MB")
        #expect(all >= 30, "\(all) MB")
    }
    #endif

    @Test func `a query prints its SQL without values`() throws {
        let text = "\(Note.where(\.title == "secret" && \.id < 7).order(by: \.id).limit(3))"
        #expect(text.hasPrefix("SELECT ") && text.contains("ORDER BY") && !text.contains("secret"))
        #expect(!text.contains("7"))
    }

    @Test func `no kind of condition prints its values`() {
        let conditions: [(name: String, condition: Condition<Note>)] = [
            ("==", \.title == "secret"), ("!=", \.title != "secret"), ("<", \.title < "secret"),
            ("<=", \.title <= "secret"), (">", \.title > "secret"), (">=", \.title >= "secret"),
            ("optional", \.note == "secret"), ("not optional", \.note != "secret"),
            ("few", ["secret", "other"].contains(\.title)),
            ("many", Array(repeating: "secret", count: 1000).contains(\.title)),
            ("few optional", ["secret"].contains(\.note)),
            ("range", ("secret"..<"secretz").contains(\.title)),
            ("closed range", ("secret"..."secretz").contains(\.title)),
            ("range from", ("secret"...).contains(\.title)),
            ("prefix", .hasPrefix(\.title, "secret")), ("suffix", .hasSuffix(\.title, "secret")),
            ("contains", .contains(\.title, "secret")), ("like", .like(\.title, "secret%")),
            ("optional prefix", .hasPrefix(\.note, "secret")),
            ("optional like", .like(\.note, "%secret")),
            ("number", \.id == 53_267), ("real", \.rank < 53_267.5),
            ("date", \.created > Date(timeIntervalSince1970: 53_267)),
            ("SQL", .sql("title = \("secret") AND id = \(53_267)")),
        ]
        let secret = "secret"
        let inBytes = secret.utf8.map { String(format: "%02x", $0) }.joined()
        for (name, condition) in conditions {
            for condition in [condition, !condition, condition && \.id > 0, \.id > 0 || condition] {
                let query = Note.where(condition).order(by: \.id)
                for text in ["\(query)", String(reflecting: query)] {
                    #expect(text.contains("WHERE"), "\(name)")
                    #expect(!text.contains(secret) && !text.contains("53267"), "\(name)")
                    #expect(!text.lowercased().contains(inBytes), "\(name)")
                }
            }
        }
    }

    @Test(arguments: [false, true])
    func `many keys with one row that is broken are its error, and others are found`(
        isStored: Bool
    ) throws {
        let keys = [9, 1, 30, 2, 5, 7]
        func find<R: Record>(_ type: R.Type) throws -> [R] {
            try read { tx in try tx.find(type, keys: keys) }
        }
        struct StoredNote: Record {
            static let access = RecordAccess.storedProperties
            static var table: String { "note" }
            var id: Int
            var title: String
            var pinned: Bool
            var rank: Double
            var note: String?
            var created: Date
        }
        func ids() throws -> [Int] {
            isStored ? try find(StoredNote.self).map(\.id) : try find(Note.self).map(\.id)
        }
        #expect(try ids() == keys)
        try fixture.execute("UPDATE note SET title = x'00' WHERE id = 5")
        let error = try #require(expect(.mismatch) { _ = try ids() })
        #expect(error.table == "note" && error.column == "title")
        #expect(error.message.contains("id 5"), "\(error)")
        struct Title: Decodable { let title: String }
        let other = expect(.mismatch) { try read { tx in try tx.fetch(Note.all, as: Title.self) } }
        #expect(other?.message.contains("id 5") == true)
        try fixture.execute("DELETE FROM note WHERE id = 5 OR id = 9")
        #expect(try ids() == [1, 30, 2, 7])
    }
}
