import Foundation
import Synchronization
import Testing

@testable import Coffer

/// Aggregates, lists of any length, texts, ranges and pages: compared with what Swift says.
@Suite(.againstHanging) struct ManyRowsTests {
    private let fixture: RecordFixture
    private let notes: [Note]

    init() throws {
        fixture = try RecordFixture()
        notes = (1...40).map { id in
            var note = Note.numbered(id)
            note.rank = Double(id % 7)
            note.note = id % 3 == 0 ? "n\(id % 4)" : nil
            note.created = Date(timeIntervalSince1970: Double(id % 5))
            return note
        }
        let notes = notes
        try fixture.store.write { tx in try tx.insert(notes) }
    }

    private func read<T>(_ body: (inout ReadTransaction) throws -> T) throws -> T {
        try fixture.store.read(body)
    }

    private func ids(_ condition: Condition<Note>) throws -> [Int] {
        try read { tx in try tx.fetch(Note.where(condition).order(by: \.id)) }.map(\.id)
    }

    @Test func `aggregates are those of the rows`() throws {
        let some = Note.where(\.id > 10)
        let rows = notes.filter { $0.id > 10 }
        #expect(try read { tx in try tx.min(\.rank, some) } == rows.map(\.rank).min())
        #expect(try read { tx in try tx.max(\.created, some) } == rows.map(\.created).max())
        #expect(try read { tx in try tx.max(\.note, some) } == rows.compactMap(\.note).max())
        #expect(try read { tx in try tx.sum(\.id, some) } == rows.map(\.id).reduce(0, +))
        #expect(try read { tx in try tx.sum(\.rank, some) } == rows.map(\.rank).reduce(0, +))
        let mean = Double(rows.map(\.id).reduce(0, +)) / Double(rows.count)
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

    @Test func `a list may be of any length, and of texts and NULL`() throws {
        let many = Array(stride(from: -50_000, to: 50_000, by: 3))
        #expect(try ids(many.contains(\.id)) == notes.map(\.id).filter { many.contains($0) })
        let texts: [String?] = (0..<2_000).map { "n\($0)" } + [nil]
        #expect(try ids(texts.contains(\.note)).count == 40)
        #expect(
            try ids(!texts.dropLast().contains(\.note)) == notes.filter { $0.note == nil }.map(\.id)
        )
        #expect(try ids(Array(repeating: "x", count: 3_000).contains(\.title)) == [])
        let dates = (0..<1_500).map { Date(timeIntervalSince1970: Double($0) + 2) }
        #expect(
            try ids(dates.contains(\.created))
                == notes.filter { dates.contains($0.created) }.map(\.id))
    }

    struct Thing: Record, Equatable {
        static var isWithoutRowID: Bool { true }
        static var indexes: [Index<Self>] { [Index(\.name), Index(\.weight, \.name)] }
        var id: UUID
        var name: String
        var weight: Double
        var data: Data
    }

    @Test func `lists of every storage class find what is equal, as few values do`() throws {
        let things = (0..<300).map { index in
            Thing(
                id: UUID(), name: index == 0 ? "" : "x\u{0}\(index)é",
                weight: index == 1 ? .leastNonzeroMagnitude : Double(index) / 3,
                data: Data(repeating: 7, count: index))
        }
        try fixture.store.write { tx throws in
            try tx.insert(things)
            for part in [things[..<150], things[150...], things[..<9]] {
                func isFound(_ condition: Condition<Thing>) throws {
                    let found = try tx.fetch(Thing.where(condition)).map(\.id)
                    #expect(Set(found) == Set(part.map(\.id)) && found.count == part.count)
                }
                try isFound(part.map(\.id).contains(\.id))
                try isFound(part.map(\.name).contains(\.name))
                try isFound(part.map(\.weight).contains(\.weight))
                try isFound(part.map(\.data).contains(\.data))
            }
            #expect(try tx.delete(Thing.where(things.map(\.id).contains(\.id))) == 300)
        }
    }

    /// What the engine means to do for a query.
    private func plan<R: Record>(of query: Query<R>) throws -> String {
        try read { tx throws in
            // Makes the function of lists known on this connection.
            _ = try tx.fetch(query)
            let sql = query.selectSQL(try RecordPlan.of(R.self))
            return try tx.rows("EXPLAIN QUERY PLAN \(sql)")
                .map { try $0.get("detail", as: String.self) }.joined(separator: "\n")
        }
    }

    @Test func `a list of any length is looked up by an index`() throws {
        try fixture.store.write { tx in try tx.create(Thing.self) }
        for count in [3, 100, 101, 5000] {
            let ids = (0..<count).map { _ in UUID() }
            let byKey = try plan(of: Thing.where(ids.contains(\.id)))
            #expect(byKey.contains("USING PRIMARY KEY (id=?)"), "\(byKey)")
            let byRowID = try plan(of: Note.where((0..<count).contains(\.id)))
            #expect(byRowID.contains("USING INTEGER PRIMARY KEY (rowid"), "\(byRowID)")
            let list = try plan(of: Note.where(Array(0..<count).contains(\.id)))
            #expect(list.contains("USING INTEGER PRIMARY KEY (rowid=?)"), "\(list)")
            let names = (0..<count).map { "\($0)" }
            let byName = try plan(of: Thing.where(names.contains(\.name)))
            #expect(byName.contains("USING INDEX index_thing_name (name=?)"), "\(byName)")
        }
    }

    @Test func `the next page is looked up by an index, and nothing is sorted`() throws {
        let thing = Thing(id: UUID(), name: "n", weight: 1, data: Data())
        try fixture.store.write { tx in try tx.insert(thing) }
        for order in [QueryOrder.ascending, .descending] {
            let sign = order == .ascending ? ">" : "<"
            let byKey = try plan(of: Note.order(by: \.id, order).after(notes[3]).limit(3))
            #expect(byKey.contains("PRIMARY KEY (rowid\(sign)?)"), "\(byKey)")
            #expect(!byKey.contains("TEMP B-TREE"), "\(byKey)")
            let query = Thing.order(by: \.weight, order).order(by: \.name, order)
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

    @Test func `texts that differ in case are two values in any column`() throws {
        try fixture.store.write { tx throws in
            try tx.execute(
                """
                CREATE TABLE word(
                    id INTEGER NOT NULL PRIMARY KEY, text TEXT NOT NULL COLLATE NOCASE)
                """)
            try tx.insert([Word(id: 1, text: "a"), Word(id: 2, text: "A"), Word(id: 3, text: "a")])
            #expect(try tx.counts(by: \Word.text) == ["a": 2, "A": 1])
            #expect(try tx.distinct(\Word.text) == ["A", "a"])
            #expect(try tx.distinct(\Word.text, Word.order(by: \.id).limit(2)) == ["A", "a"])
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

    @Test func `a list that nobody packed is an error, not a crash`() throws {
        _ = try ids(Array(1...500).contains(\.id))
        for list in ["x''", "x'00'", "'text'", "NULL", "randomblob(64)", "zeroblob(32)"] {
            _ = try? fixture.values("SELECT coffer_value(\(SQL(text: list)), 0)")
            _ = try? fixture.values("SELECT coffer_value(\(SQL(text: list)), 9223372036854775807)")
            _ = try? fixture.values("SELECT coffer_value(\(SQL(text: list)), -1)")
        }
        #expect(try ids(\.id == 1) == [1])
    }

    struct Word: Record, Equatable {
        var id: Int
        var text: String
    }

    @Test(arguments: [
        "", "a", "A", "%", "_", "\\", "é", "e\u{301}", "\u{10FFFF}", "a\u{0}", "\u{D7FF}",
    ])
    func `texts are compared as their bytes are`(part: String) throws {
        let texts = [
            "", "a", "A", "ab", "a%b", "a_b", "a\\b", "%", "é", "e\u{301}", "\u{10FFFF}x",
            "a\u{0}b",
            "b", "ba", "\u{D7FF}z", "\u{E000}",
        ]
        let words = texts.enumerated().map { Word(id: $0, text: $1) }
        try fixture.store.write { tx in try tx.insert(words) }
        func found(_ condition: Condition<Word>) throws -> [String] {
            try read { tx in try tx.fetch(Word.where(condition).order(by: \.id)) }.map(\.text)
        }
        func expected(_ isFound: (String) -> Bool) -> [String] { texts.filter(isFound) }
        let bytes = Array(part.utf8)
        #expect(try found(.hasPrefix(\.text, part)) == expected { $0.utf8.starts(with: bytes) })
        #expect(
            try found(.hasSuffix(\.text, part))
                == expected { $0.utf8.reversed().starts(with: bytes.reversed()) })
        #expect(
            try found(.contains(\.text, part))
                == expected { text in
                    let all = Array(text.utf8)
                    return (0...all.count).contains { all[$0...].starts(with: bytes) }
                })
    }

    @Test func `without case, and by a pattern`() throws {
        #expect(try ids(.hasPrefix(\.title, "N4", isCaseSensitive: false)) == [4, 40])
        #expect(try ids(.contains(\.title, "N4", isCaseSensitive: false)) == [4, 40])
        #expect(try ids(.hasSuffix(\.title, "N4", isCaseSensitive: false)) == [4])
        #expect(try ids(.like(\.title, "n_4")) == [14, 24, 34])
        #expect(try ids(.like(\.title, "n\\_4")) == [])
    }

    @Test func `without case, what a pattern has another meaning for is a letter`() throws {
        let texts = ["a%b", "A%B", "axb", "a_b", "a\\b", "%", "_", "\\", "ab"]
        try fixture.store.write { tx in
            try tx.insert(texts.enumerated().map { Word(id: $0, text: $1) })
        }
        for part in ["%", "_", "\\", "a%", "%b", "A_B", "a\\B"] {
            let lower = part.lowercased()
            func check(_ condition: Condition<Word>, _ isFound: (String) -> Bool) throws {
                let found = try read { tx in try tx.fetch(Word.where(condition).order(by: \.id)) }
                #expect(found.map(\.text) == texts.filter { isFound($0.lowercased()) }, "\(part)")
            }
            try check(.hasPrefix(\.text, part, isCaseSensitive: false)) { $0.hasPrefix(lower) }
            try check(.hasSuffix(\.text, part, isCaseSensitive: false)) { $0.hasSuffix(lower) }
            try check(.contains(\.text, part, isCaseSensitive: false)) { $0.contains(lower) }
        }
    }

    @Test func `without case a text ends at its first NUL`() throws {
        try fixture.store.write { tx in try tx.insert(Word(id: 1, text: "a\u{0}b")) }
        func count(_ condition: Condition<Word>) throws -> Int {
            try read { tx in try tx.count(Word.where(condition)) }
        }
        #expect(try count(.contains(\.text, "b")) == 1)
        #expect(try count(.contains(\.text, "B", isCaseSensitive: false)) == 0)
        #expect(try count(.hasPrefix(\.text, "A", isCaseSensitive: false)) == 1)
    }

    @Test func `a long list serves every verb`() throws {
        let list = Array(21...5_000)
        let query = Note.where(list.contains(\.id))
        let sorted = query.order(by: \.id)
        try fixture.store.write { tx throws in
            #expect(try tx.count(query.limit(7)) == 7)
            #expect(try tx.exists(query))
            #expect(try tx.first(sorted)?.id == 21)
            #expect(try tx.min(\.id, query) == 21)
            #expect(try tx.sum(\.id, sorted.limit(2)) == 43)
            #expect(try tx.distinct(\.pinned, query) == [false, true])
            #expect(try tx.counts(by: \.pinned, query) == [false: 10, true: 10])
            #expect(try tx.fetch(sorted.after(notes[30])).map(\.id) == Array(32...40))
            var count = 0
            try tx.forEach(query) { _ in count += 1 }
            #expect(count == 20)
            #expect(try tx.update(query.set(\.title, to: "x")) == 20)
            #expect(try tx.update(sorted.limit(3).set(\.title, to: "y")) == 3)
            #expect(try tx.delete(sorted.limit(2)) == 2)
            #expect(try tx.count(Note.where(\.title == "y" && list.contains(\.id))) == 1)
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
