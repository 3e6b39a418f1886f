import Foundation
import Testing
import Workload

@testable import Coffer

/// Deleting many keys in one statement does what deleting each by itself does.
@Suite(.againstHanging, .onOwnThreads) struct ManyDeletionsTests {
    private let fixture: DeletionFixture

    init() throws {
        fixture = try DeletionFixture()
    }

    private struct Item: Record, Equatable {
        var id: Int
        var title: String
    }

    private struct Word<K: Codable & Sendable>: Record {
        static var table: String { "word" }
        static var key: [String] { ["key"] }
        var key: K
    }

    private func fill(_ ids: some Sequence<Int>) throws {
        try fixture.store.write { tx in try tx.insert(ids.map { Item(id: $0, title: "t\($0)") }) }
    }

    // MARK: Keys

    @Test func `any order, duplicates and missing keys, whatever their number`() throws {
        let ids = Array(-50..<700) + [.max, .min, .max - 1, 1 << 40, 70_000]
        try fill(ids)
        var generator = SeededGenerator(seed: testSeed())
        for count in [0, 1, 99, 100, 101, 250, 251, 349, 350, 351, 500, 1000, 10_050] {
            let keys = (0..<count).map { _ in
                Int.random(in: 0..<4, using: &generator) > 0
                    ? ids.randomElement(using: &generator) ?? 0
                    : Int.random(in: .min ... .max, using: &generator)
            }
            try fixture.check(Item.self, keys, isMany: count >= 100)
            try fixture.check(Item.self, keys.sorted(), isMany: count >= 100)
            try fixture.check(
                Item.self, keys.map { Value.integer(Int64($0)) }, isMany: count >= 100)
        }
        #expect(try fixture.check(Item.self, [Int](repeating: 7, count: 600)) == 1)
    }

    @Test func `statistics of a small table let no run of keys scan the large one`() throws {
        try fill(1...300)
        try fixture.run("ANALYZE")
        try fill(301...3000)
        let keys = Array(stride(from: 1, through: 3000, by: 3))
        try fixture.check(Item.self, keys, isMany: false)
        #expect(
            try fixture.store.read { tx in try tx.find(Item.self, keys: keys).map(\.id) } == keys)
        try fixture.run("ANALYZE")
        try fixture.check(Item.self, keys)
    }

    @Test func `keys that change the schema while they are made are deleted by the new one`()
        throws
    {
        try fill(1...30_000)
        try fixture.store.write { tx throws in
            try tx.execute("CREATE TABLE gone(id)")
            #expect(try tx.delete(Item.self, keys: 1...300) == 300)
            let connection = try tx.connection()
            let keys = (301...20_000).lazy.map { id -> Value in
                if id == 12_000 {
                    // The trigger must see each row from here on.
                    _ = try? connection.execute(
                        """
                        CREATE TRIGGER log AFTER DELETE ON item
                        BEGIN INSERT INTO gone VALUES (old.id); END
                        """)
                }
                return .integer(Int64(id))
            }
            #expect(try tx.delete(Item.self, keys: keys) == 19_700)
            #expect(try tx.firstRow("SELECT count(*) FROM gone")?.get(0, as: Int.self) ?? 0 > 8000)
        }
    }

    @Test func `keys come from any sequence and any type of integer`() throws {
        func expectDeleted(_ keys: some Sequence<some ValueConvertible>, _ count: Int) throws {
            try fixture.store.write { tx throws in
                try tx.insert((1...300).map { Item(id: $0, title: "") })
                #expect(try tx.delete(Item.self, keys: keys) == count)
                #expect(try tx.delete(Item.all) == 300 - count)
            }
        }
        try expectDeleted(1...300, 300)
        try expectDeleted((1...300).map { Int32($0) }, 300)
        try expectDeleted((1...255).map { UInt8($0) }, 255)
        try expectDeleted(Array(0...300)[150...], 151)
        try expectDeleted(Set(-300...300), 300)
        try expectDeleted(AnySequence(sequence(first: 2) { $0 < 500 ? $0 + 2 : nil }), 150)
        try expectDeleted([Int?](repeating: nil, count: 200) + (1...150).map { Optional($0) }, 150)
        try expectDeleted([Int](), 0)
    }

    @Test(arguments: isLongRun ? [1_000_000, 10_000_000] : [200_000])
    func `any number of keys is taken in blocks`(count: Int) throws {
        try fill(1...1000)
        try fixture.store.write { tx throws in
            #expect(try tx.delete(Item.self, keys: Array(501...count).reversed()) == 500)
            #expect(try tx.delete(Item.self, keys: 0..<count) == 500)
        }
    }

    @Test(arguments: [0, 1, 99, 100, 250, 260, 399])
    func `a key that the column refuses ends the deletion, and earlier rows are gone`(
        position: Int
    ) throws {
        try fill(1...500)
        for wrong: Value in ["7", 7.0, .blob(Data([7]))] {
            var keys = (1...400).map { Value.integer($0) }
            keys[position] = wrong
            #expect(try fixture.check(Item.self, keys, isMany: position >= 0) == nil)
            keys[position] = .null
            #expect(try fixture.check(Item.self, keys) == 399)
        }
    }

    private struct Failing: ValueConvertible {
        let id: Int
        init(id: Int) { self.id = id }
        init(_ value: Value) throws(StoreError) { id = try Int(value) }
        func asValue() throws(StoreError) -> Value {
            guard id > 0 else { throw StoreError(.mismatch, "no value") }
            return .integer(Int64(id))
        }
    }

    @Test(arguments: [0, 50, 150, 10_001])
    func `a key without a value ends the deletion, and earlier rows are gone`(count: Int) throws {
        try fill(1...300)
        let keys = (0..<count).map { Failing(id: $0 % 200 + 1) } + [Failing(id: 0)]
        try fixture.check(
            Item.self, keys + (201...350).map(Failing.init(id:)), isMany: count >= 100)
    }

    @Test func `large keys are taken in small blocks`() throws {
        let texts = (0..<150).map { "\($0 % 140)" + String(repeating: "x", count: 20_000) }
        try fixture.makeWords("key TEXT PRIMARY KEY)", texts.prefix(100).map { .text($0) })
        // A block of a MiB has fewer keys than one statement is worth.
        try fixture.check(Word<String>.self, texts, isMany: false)
    }

    // MARK: Tables

    private static let oneRowEach = [
        "key INTEGER PRIMARY KEY, n)", "key INT PRIMARY KEY, n)",
        "key TEXT PRIMARY KEY, n)", "key TEXT PRIMARY KEY, n) WITHOUT ROWID",
        "n INTEGER, key BLOB NOT NULL PRIMARY KEY)", "key REAL PRIMARY KEY, n)",
        "key PRIMARY KEY, n)", "key NUMERIC PRIMARY KEY, n) WITHOUT ROWID",
        "key TEXT, n, UNIQUE (n, key), PRIMARY KEY (key))",
        "key INTEGER PRIMARY KEY DESC, n)", "key TEXT PRIMARY KEY, n CHECK (n > 0))",
    ]

    /// Values that SQLite may take for equal.
    private static let values: [Value] =
        [
            7, 7.0, "7", "7.0", " 7", .blob(Data("7".utf8)), 0, 0.0, -0.0, "", .blob(Data()), 7.5,
            "7.5", "a", "A", "a ", "nul\u{0}x", "nul\u{0}y", "é", "e\u{301}", .integer(.max),
            .integer(.min), 9_223_372_036_854_775_807.0, "9223372036854775807",
            .integer(1 << 53), .integer(1 << 53 + 1), 9_007_199_254_740_992.0, .null,
        ] + (0..<150).map { .integer($0 * 3) } + (0..<150).map { .text("k\($0)") }
        + (0..<150).map { .real(Double($0) + 0.25) }

    private func checkAllTypes(_ definition: String, isMany: Bool) throws {
        try fixture.store.write { tx throws in
            try tx.execute("DROP TABLE IF EXISTS word")
            try tx.execute(SQL(text: "CREATE TABLE word(\(definition)"))
            for row in Self.values + Self.values.reversed() {
                // A row id takes integers only.
                _ = try? tx.execute("INSERT OR IGNORE INTO word(key) VALUES (\(row))")
            }
        }
        let integers = Self.values.compactMap { value -> Int64? in
            if case .integer(let integer) = value { integer } else { nil }
        }
        let reals = Self.values.compactMap { value -> Double? in
            if case .real(let real) = value { real } else { nil }
        }
        let texts = Self.values.compactMap { value -> String? in
            if case .text(let text) = value { text } else { nil }
        }
        try fixture.check(Word<Int64>.self, integers, isMany: isMany)
        try fixture.check(Word<Double>.self, reals, isMany: isMany)
        try fixture.check(Word<String>.self, texts + texts.map { $0.uppercased() }, isMany: isMany)
        let blobs = (texts + integers.map { "\($0)" }).map { Data($0.utf8) }
        try fixture.check(Word<Data>.self, blobs, isMany: isMany)
    }

    @Test(arguments: oneRowEach)
    func `keys are compared as single ones, whatever the type of key and column`(
        definition: String
    ) throws {
        try checkAllTypes(definition, isMany: true)
    }

    @Test(arguments: [
        "key, n)", "key TEXT COLLATE NOCASE, n)", "key TEXT UNIQUE, n)",
        "key TEXT COLLATE NOCASE PRIMARY KEY, n)",
        "key TEXT COLLATE NOCASE, n, PRIMARY KEY (key COLLATE BINARY))",
        "key TEXT COLLATE RTRIM, n, PRIMARY KEY (key COLLATE BINARY)) WITHOUT ROWID",
        "key TEXT, n NOT NULL DEFAULT 1, PRIMARY KEY (key, n))",
    ])
    func `each key counts once where it may have several rows`(definition: String) throws {
        try checkAllTypes(definition, isMany: false)
    }

    @Test(arguments: [
        "key INTEGER PRIMARY KEY)", "key TEXT PRIMARY KEY)", "key TEXT PRIMARY KEY) WITHOUT ROWID",
        "key BLOB NOT NULL PRIMARY KEY)",
    ])
    func `the index leads to each key, and the table is not scanned`(definition: String) throws {
        try fixture.makeWords(definition, [])
        try fixture.store.write { tx throws in
            let plan = try RecordTable.of(Word<String>.self, tx.connection()).plan
            let sql = plan.deleteManySQL(RecordTable.mostKeysAtOnce)
            let explained = SQL(
                text: "EXPLAIN QUERY PLAN \(sql)",
                arguments: [Value](repeating: .null, count: RecordTable.mostKeysAtOnce))
            let steps = try tx.rows(explained).map { try $0.get("detail", as: String.self) }
            #expect(steps.contains { $0.contains("SEARCH") && $0.contains("=?)") }, "\(steps)")
            #expect(!steps.contains { $0.contains("SCAN") }, "\(steps)")
        }
    }

    @Test func `UUIDs and dates are deleted`() throws {
        let ids = (0..<300).map { _ in UUID() }
        try fixture.makeWords("key BLOB PRIMARY KEY)", ids.map { $0.asValue() })
        #expect(try fixture.check(Word<UUID>.self, ids.shuffled() + ids) == 300)
        for type in ["REAL", "REAL_SINCE_2001"] {
            try fixture.makeWords("key \(type) PRIMARY KEY)", [])
            let dates = (0..<300).map { Date(timeIntervalSinceReferenceDate: Double($0) * 1e6 / 3) }
            try fixture.store.write { tx in try tx.insert(dates.map { Word(key: $0) }) }
            #expect(try fixture.check(Word<Date>.self, dates.reversed() + dates) == 300)
        }
    }
}
