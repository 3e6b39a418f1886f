import Foundation
import Synchronization
import Testing

@testable import Coffer

/// Conditions with a list of any length: compared with what Swift says.
@Suite(.againstHanging, .onOwnThreads) struct ListConditionTests: NotesSuite {
    let fixture: RecordFixture
    private let notes: [Note]

    init() throws {
        (fixture, notes) = try Self.makeFixture()
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
        let things = (0..<300).map { index -> Thing in
            let name = index == 0 ? "" : "x\u{0}\(index)é"
            let weight = index == 1 ? Double.leastNonzeroMagnitude : Double(index) / 3
            return Thing(
                id: UUID(), name: name, weight: weight, data: Data(repeating: 7, count: index))
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

    @Test func `a list that nobody packed is an error, not a crash`() throws {
        // Both ways to read a list.
        for way in ["SELECT 1", "CREATE TABLE coffer_keys(value)"] {
            try fixture.execute(SQL(text: way))
            #expect(try ids(Array(5...500).contains(\.id)) == Array(5...40))
        }
        for list in ["x''", "x'00'", "'text'", "NULL", "randomblob(64)", "zeroblob(32)"] {
            for index in ["0", "9223372036854775807", "-1"] {
                let sql = SQL(text: "SELECT coffer_value(\(list), \(index))")
                expect(.sql) { try fixture.values(sql) }
            }
        }
        try fixture.execute("DROP TABLE coffer_keys")
        #expect(try ids(Array(5...500).contains(\.id)) == Array(5...40))
        for list in ["x''", "x'00'", "'text'", "NULL", "randomblob(64)", "zeroblob(32)"] {
            for count in ["1", "9223372036854775807"] {
                let sql = SQL(text: "SELECT value FROM coffer_keys(\(count), \(list))")
                expect(.sql) { try fixture.values(sql) }
            }
            for count in ["0", "-1", "NULL", "'1'", "x'01'"] {
                let sql = SQL(text: "SELECT value FROM coffer_keys(\(count), \(list))")
                #expect(try fixture.values(sql) == [])
            }
        }
        // Such a scan would not end.
        expect(.sql) {
            try fixture.values("SELECT count(*) FROM coffer_keys(9223372036854775807, x'')")
        }
        let two = ValueList.pack([7, "x"])
        let values = try fixture.values("SELECT value, ticket, list FROM coffer_keys(2, \(two))")
        #expect(values == [7, 2, .blob(two), "x", 2, .blob(two)])
        expect(.sql) { try fixture.values("SELECT value FROM coffer_keys(3, \(two))") }
    }

    struct Word<K: Codable & Sendable>: Record {
        static var table: String { "word" }
        static var key: [String] { ["key"] }
        var key: K
    }

    private static let columns = [
        "TEXT", "INTEGER", "REAL", "BLOB", "", "NUMERIC", "TEXT COLLATE NOCASE",
        "INTEGER COLLATE NOCASE", "TEXT COLLATE RTRIM", "TEXT PRIMARY KEY", "INTEGER PRIMARY KEY",
        "TEXT COLLATE NOCASE UNIQUE",
    ]

    /// Values that SQLite may take for equal.
    private static let values: [Value] = [
        7, 7.0, "7", "7.0", " 7", .blob(Data("7".utf8)), 0, -0.0, "", .blob(Data()), 7.5, "7.5",
        "a", "A", "a ", "nul\u{0}x", "nul\u{0}y", .integer(.max), 9_223_372_036_854_775_807.0,
        "9223372036854775807", .integer(1 << 53 + 1), 9_007_199_254_740_992.0, .null,
    ]

    /// A list finds an integer in a column of reals where SQLite 3.46 does not find it singly.
    @Test(arguments: columns)
    func `a list compares alike by both ways to read it, for every type of value and column`(
        column: String
    ) throws {
        try fixture.execute(SQL(text: "CREATE TABLE word(key \(column))"))
        for value in Self.values {
            // A row id takes integers only.
            try? fixture.execute("INSERT OR IGNORE INTO word VALUES (\(value))")
        }
        func check<K: Codable & Sendable & Equatable>(_ list: [K], _ fill: (Int) -> K) throws {
            let list = list + (0..<150).map(fill)
            typealias W = Word<K>
            try fixture.store.write { tx throws in
                let count = try tx.count(W.where(list.contains(\W.key)))
                let others = try tx.count(W.where(!list.contains(\W.key)))
                #expect(try count + others == tx.count(W.all))
                try tx.execute("CREATE TABLE coffer_keys(value)")
                #expect(try tx.count(W.where(list.contains(\W.key))) == count)
                #expect(try tx.count(W.where(!list.contains(\W.key))) == others)
                try tx.execute("DROP TABLE coffer_keys")
                guard column != "REAL" else { return }
                // Only the first values may be in the table.
                let few = Array(list.prefix(90))
                #expect(try tx.count(W.where(few.contains(\W.key))) == count)
            }
        }
        try check([7, 0, .max, 1 << 53 + 1] as [Int64]) { Int64(-1000 - $0) }
        try check([7.0, -0.0, 7.5, 9_223_372_036_854_775_807.0, 9_007_199_254_740_992.0]) {
            -1000.5 - Double($0)
        }
        try check(["7", "7.0", " 7", "", "7.5", "A", "a ", "nul\u{0}x", "9223372036854775807"]) {
            "other \($0)"
        }
        try check(["7", "", "a"].map { Data($0.utf8) }) { Data("other \($0)".utf8) }
    }

    @Test func `lists within lists, and while others are read`() throws {
        let (low, high) = (Array(1...130), Array(11...5_000))
        let both = Note.where(low.contains(\.id) && high.contains(\.id)).order(by: \.id)
        try fixture.store.write { tx throws in
            #expect(try tx.fetch(both).map(\.id) == Array(11...40))
            let neither = Note.where(!(low.contains(\.id) && high.contains(\.id)))
            #expect(try tx.count(neither) == 10)
            var seen: [Int] = []
            try tx.forEach(both.limit(3)) { note in
                seen += try tx.fetch(both.limit(2)).map(\.id)
                seen += try tx.find(Note.self, keys: (1...7).map { $0 + note.id }).map(\.id)
            }
            var expected: [Int] = []
            for id in 11...13 { expected += [11, 12] + Array((id + 1)...(id + 7)) }
            #expect(seen == expected)
        }
    }

    @Test func `an update expects a list of any length`() throws {
        try fixture.store.write { tx throws in
            var note = notes[6]
            note.title = "new"
            let few = Array(100...400)
            expect(.conflict) { try tx.update(note, expecting: few.contains(\.id)) }
            try tx.update(note, expecting: \.title != "new" && Array(1...400).contains(\.id))
            #expect(try tx.find(Note.self, note.id)?.title == "new")
        }
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
}
