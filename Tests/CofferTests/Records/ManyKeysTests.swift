import CSQLCipher
import Foundation
import Synchronization
import Testing
import Workload

@testable import Coffer

/// Many keys in one statement give what single lookups give.
@Suite(.againstHanging, .onOwnThreads) struct ManyKeysTests {
    private let fixture: RecordFixture

    init() throws {
        fixture = try RecordFixture()
    }

    struct Plain: Record, Equatable {
        static let table = "item"
        var id: Int
        var title: String
        var data: Data
    }

    struct Stored: Record, Equatable {
        static let access = RecordAccess.storedProperties
        static let table = "item"
        var id: Int
        var title: String
        var data: Data
    }

    private static func item(_ id: Int) -> Plain {
        Plain(id: id, title: "title \(id)", data: Data("\(id)".utf8))
    }

    private func fill(_ ids: some Sequence<Int>) throws {
        try fixture.store.write { tx in try tx.insert(ids.map(Self.item)) }
    }

    private func read<T>(_ body: (inout ReadTransaction) throws -> T) throws -> T {
        try fixture.store.read(body)
    }

    /// Compares with single lookups, for both ways to make a record.
    private func expectAsSingly(_ keys: [Int]) throws {
        try read { tx throws in
            let single = try keys.compactMap { try tx.find(Plain.self, $0) }
            #expect(try tx.find(Plain.self, keys: keys) == single)
            let stored = try tx.find(Stored.self, keys: keys)
            #expect(stored.map { Plain(id: $0.id, title: $0.title, data: $0.data) } == single)
        }
    }

    @Test func `any order, duplicates and missing keys, whatever the distances`() throws {
        let ids = [0, 1, 2, 255, 256, 257, 70_000, -1, -300, .max, .min, .max - 1, 1 << 40]
        try fill(ids)
        var generator = SeededGenerator(seed: testSeed())
        for count in [0, 1, 4, 5, 6, 13, 40, 400, 3000] {
            let keys = (0..<count).map { _ in
                Bool.random(using: &generator)
                    ? ids.randomElement(using: &generator) ?? 0
                    : Int.random(in: .min ... .max, using: &generator)
            }
            try expectAsSingly(keys)
            try expectAsSingly(keys.sorted())
            try expectAsSingly(Array(keys.sorted().reversed()))
            try expectAsSingly((0..<count).map { _ in 257 })
        }
    }

    @Test func `keys come from any sequence and any type of integer`() throws {
        try fill(1...300)
        try read { tx throws in
            let expected = Array(1...300).map(Self.item)
            #expect(try tx.find(Plain.self, keys: 1...300) == expected)
            #expect(try tx.find(Plain.self, keys: (1...300).map { Int32($0) }) == expected)
            #expect(try tx.find(Plain.self, keys: (1...300).map { UInt16($0) }) == expected)
            #expect(try tx.find(Plain.self, keys: Array(1...300)[10...]) == expected[10...] + [])
            #expect(try tx.find(Plain.self, keys: Set(1...300)).count == 300)
            let once = AnySequence(sequence(first: 1) { $0 < 300 ? $0 + 1 : nil })
            #expect(try tx.find(Plain.self, keys: once) == expected)
            #expect(try tx.find(Plain.self, keys: [Value](repeating: 7, count: 9)).count == 9)
        }
    }

    @Test func `NULL finds nothing, and a key of another storage class is an error`() throws {
        try fill(1...9)
        try read { tx throws in
            let keys: [Value] = [9, .null, 1, 2, .null, 3, 4]
            #expect(try tx.find(Plain.self, keys: keys).map(\.id) == [9, 1, 2, 3, 4])
            let none = [Value](repeating: .null, count: 9)
            #expect(try tx.find(Plain.self, keys: none).isEmpty)
            for wrong: Value in ["7", 7.0, .blob(Data([7]))] {
                for type in [Plain.self, Stored.self] as [any Record.Type] {
                    let error = expect(.mismatch) { try tx.find(type, keys: keys + [wrong]) }
                    #expect(error?.table == "item" && error?.column == "id")
                }
            }
        }
    }

    struct Word<P: RecordPathsTests.Path, K: Codable & Sendable & Equatable>: Record, Equatable {
        static var access: RecordAccess { P.access }
        static var table: String { "word" }
        static var key: [String] { ["key"] }
        var key: K
        var number: Int
    }

    /// Compares with single lookups in a table of this definition.
    private func check<K: Codable & Sendable & Hashable & ValueConvertible>(
        _ definition: String, _ rows: [K], _ keys: [K]
    ) throws {
        try fixture.execute("DROP TABLE IF EXISTS word")
        try fixture.execute(SQL(text: "CREATE TABLE word(\(definition)"))
        typealias Own = Word<RecordPathsTests.Own, K>
        typealias Fast = Word<RecordPathsTests.Stored, K>
        try fixture.store.write { tx throws in
            for (number, key) in rows.enumerated() { try tx.insert(Own(key: key, number: number)) }
            let single = try keys.compactMap { try tx.find(Own.self, $0) }
            #expect(try tx.find(Own.self, keys: keys) == single)
            let stored = try tx.find(Fast.self, keys: keys)
            #expect(stored.map { Own(key: $0.key, number: $0.number) } == single)
        }
    }

    @Test(arguments: [
        "key TEXT PRIMARY KEY, number INTEGER)",
        "key TEXT PRIMARY KEY COLLATE NOCASE, number INTEGER)",
        "key TEXT PRIMARY KEY COLLATE RTRIM, number INTEGER) WITHOUT ROWID",
        "key TEXT, number INTEGER)", "key, number)", "key TEXT COLLATE NOCASE, number INTEGER)",
    ])
    func `texts are found by the collation of their column`(definition: String) throws {
        let keys = ["a", "B", "b", "A", "", "nul\u{0}x", "nul\u{0}y", "z  ", "é", "e\u{301}", "z"]
        let rows = ["a", "B", "", "nul\u{0}x", "z", "é", String(repeating: "long", count: 5000)]
        try check(definition, rows, keys)
        try check(definition, rows, rows + keys + rows)
    }

    @Test(arguments: [
        "key BLOB PRIMARY KEY, number INTEGER)",
        "key BLOB PRIMARY KEY, number INTEGER) WITHOUT ROWID", "number INTEGER, key BLOB)",
    ])
    func `bytes and UUIDs are found`(definition: String) throws {
        let ids = (0..<20).map { _ in UUID() }
        try check(definition, ids, ids.reversed() + [UUID()] + ids)
        let bytes = (0..<20).map { Data(repeating: UInt8($0), count: $0) }
        try check(definition, bytes, bytes.reversed() + [Data([7])] + bytes)
    }

    @Test(arguments: ["REAL", "REAL_SINCE_2001", ""])
    func `reals and dates are found, from whenever they count`(type: String) throws {
        let dates = (0..<20).map { Date(timeIntervalSinceReferenceDate: Double($0) * 1e8 / 3) }
        let definition = "key \(type) PRIMARY KEY, number INTEGER)"
        try check(definition, dates, dates.reversed() + [Date(timeIntervalSince1970: 7)])
        let reals = [0.5, -1e300, 7, .infinity, 3]
        try check("key REAL PRIMARY KEY, number INTEGER)", reals, reals.reversed() + [0, -0.0])
    }

    /// Integers in a column of texts: SQLite compares them as texts, by the column's affinity.
    @Test func `keys have no type of their own in the comparison`() throws {
        try fixture.execute("CREATE TABLE word(key TEXT PRIMARY KEY, number INTEGER)")
        try fixture.execute("INSERT INTO word VALUES ('7', 1), ('8', 2)")
        typealias Own = Word<RecordPathsTests.Own, Int>
        // Found, and refused as a text.
        expect(.mismatch) { try read { tx in try tx.find(Own.self, 7) } }
        expect(.mismatch) { try read { tx in try tx.find(Own.self, keys: 7...20) } }
    }

    @Test func `the first of several rows is taken, of a view as well`() throws {
        try fixture.execute("CREATE TABLE base(key TEXT, number INTEGER)")
        for number in 0..<40 {
            try fixture.execute("INSERT INTO base VALUES (\("k\(number % 8)"), \(100 - number))")
        }
        try fixture.execute("CREATE VIEW word AS SELECT * FROM base ORDER BY number DESC")
        typealias Own = Word<RecordPathsTests.Own, String>
        typealias Fast = Word<RecordPathsTests.Stored, String>
        let keys = (0..<9).map { "k\($0)" }
        func expectFirst() throws {
            try read { tx throws in
                let single = try keys.compactMap { try tx.find(Own.self, $0) }
                #expect(single.count == 8)
                #expect(try tx.find(Own.self, keys: keys) == single)
                #expect(try tx.find(Fast.self, keys: keys).map(\.number) == single.map(\.number))
            }
        }
        try expectFirst()
        try fixture.execute("DROP VIEW word")
        try fixture.execute("ALTER TABLE base RENAME TO word")
        try expectFirst()
    }

    @Test func `a temporary view that hides the table is read by single lookups`() throws {
        try fill(1...20)
        try fixture.store.write { tx throws in
            try tx.execute(
                """
                CREATE TEMP VIEW item AS SELECT id, 'hidden' AS title, data FROM main.item
                ORDER BY id DESC
                """)
            let found = try tx.find(Plain.self, keys: 1...20)
            #expect(found.map(\.id) == Array(1...20))
            #expect(found.allSatisfy { $0.title == "hidden" })
            #expect(try tx.find(Stored.self, keys: 1...20).count == 20)
            try tx.execute("DROP VIEW temp.item")
            #expect(try tx.find(Plain.self, keys: 1...20).first?.title == "title 1")
        }
    }

    @Test func `without a table, or with a key of two columns`() throws {
        struct Two: Record {
            static let key = ["a", "b"]
            var a: Int
            var b: Int
        }
        struct Late: Record, Equatable { var id: Int }
        try fixture.store.write { tx throws in
            #expect(try tx.find(Late.self, keys: 1...50).isEmpty)
            #expect(try tx.find(Late.self, keys: ["wrong"]).isEmpty)
            try tx.insert((1...60).map { Late(id: $0) })
            #expect(try tx.find(Late.self, keys: 41...90).count == 20)
            for keys in [[], Array(1...50)] {
                expect(.misuse) { try tx.find(Two.self, keys: keys) }
            }
        }
    }

    @Test(arguments: isLongRun ? [1_000_000, 10_000_000] : [1_000_000])
    func `a million keys take one statement`(count: Int) throws {
        try fill(1...1000)
        try fixture.store.write { tx throws in
            let found = try tx.find(Stored.self, keys: Array(1...count).reversed())
            #expect(found.map(\.id) == Array((1...1000).reversed()))
            #expect(found.capacity < 10_000)
            #expect(try tx.find(Plain.self, keys: Array(0..<count)).count == 1000)
        }
    }

    // MARK: Errors and nesting

    @Test(arguments: [false, true])
    func `an error half-way frees the keys, and the next call works`(isStored: Bool) throws {
        try fill(1...50)
        func find() throws -> Int {
            try read { tx in
                isStored
                    ? try tx.find(Stored.self, keys: 1...50).count
                    : try tx.find(Plain.self, keys: 1...50).count
            }
        }
        #expect(try find() == 50)
        try fixture.execute("UPDATE item SET title = x'00' WHERE id = 25")
        for _ in 1...3 {
            let error = expect(.mismatch) { try find() }
            #expect(error?.column == "title" && error?.message.contains("id 25") == true)
        }
        try fixture.execute("DELETE FROM item WHERE id = 25")
        #expect(try find() == 49)
    }

    /// Reads other records while it is decoded.
    struct Nesting: Record {
        static let table = "item"
        @TaskLocal static var inner: (@Sendable () throws -> Void)?
        var id: Int
        enum CodingKeys: CodingKey { case id }
        init(from decoder: any Decoder) throws {
            id = try decoder.container(keyedBy: CodingKeys.self).decode(Int.self, forKey: .id)
            if id > 0 { try Self.inner?() }
        }
    }

    @Test func `one call within another has keys of its own`() throws {
        try fill(1...50)
        try read { tx throws in
            var seen: [Int] = []
            try tx.forEach(Plain.order(by: \.id).limit(3)) { item in
                seen += try tx.find(Plain.self, keys: (0...6).map { item.id + $0 * 7 }).map(\.id)
            }
            var expected: [Int] = []
            for id in 1...3 { expected += stride(from: id, through: id + 42, by: 7) }
            #expect(seen == expected)
        }
        try fixture.store.write { tx throws in
            _ = try tx.find(Nesting.self, keys: 1...9)
            nonisolated(unsafe) let table = try RecordTable.of(Plain.self, tx.connection())
            let nested = try RecordTable.of(Nesting.self, tx.connection())
            nonisolated(unsafe) let (inside, own) = (try tx.connection(), nested)
            let counts = Mutex((inner: 0, refused: 0))
            let found = try Nesting.$inner.withValue({
                let count = try table.find(Plain.self, keys: 11...40, inside).count
                counts.withLock { $0.inner += count }
                do {
                    _ = try own.find(Nesting.self, keys: 1...9, inside)
                } catch let error as StoreError where error.code == .misuse {
                    counts.withLock { $0.refused += 1 }
                }
            }) { try tx.find(Nesting.self, keys: [9, 3, 7, 1, 5, 99]) }
            #expect(found.map(\.id) == [9, 3, 7, 1, 5])
            #expect(counts.withLock { $0.inner } == 150)
            #expect(counts.withLock { $0.refused } == 5)
        }
    }

    @Test func `a closed store and a cancelled task find nothing`() async throws {
        try fill(1...50)
        let store = fixture.store
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await store.read { tx in try tx.find(Stored.self, keys: 1...50) }
        }
        await #expect(throws: CancellationError.self) { try await task.value }
        expectClosed(store)
    }

    private func expectClosed(_ store: Store) {
        #expect(throws: Never.self) { try store.close() }
        expect(.closed) { try store.read { tx in try tx.find(Stored.self, keys: 1...50) } }
    }

    @Test func `an interrupted search ends, and the next one works`() throws {
        try fill(1...1000)
        try fixture.store.write { tx throws in
            let connection = try tx.connection()
            _ = try tx.find(Nesting.self, keys: 1...9)
            let handle = try connection.current()
            nonisolated(unsafe) let db = handle.db
            let error = expect(.cancelled) {
                try Nesting.$inner.withValue({ sqlite3_interrupt(db) }) {
                    try tx.find(Nesting.self, keys: 1...1000)
                }
            }
            #expect(error != nil)
            #expect(try tx.find(Stored.self, keys: 1...1000).count == 1000)
        }
    }

    @Test func `a store that is observed looks again only if the table was touched`() throws {
        try fill(1...50)
        try fixture.execute("CREATE VIEW shown AS SELECT * FROM item")
        try read { tx throws in
            let connection = try tx.connection()
            for type in [Plain.self, Stored.self] as [any Record.Type] {
                func footprint<R: Record>(_ type: R.Type) throws -> TableSet? {
                    _ = try tx.find(type, keys: 1...50)
                    return try RecordTable.of(type, connection).joining?
                        .footprint(on: connection).reads
                }
                #expect(try footprint(type) == TableSet(["item"]))
            }
        }
    }
}
