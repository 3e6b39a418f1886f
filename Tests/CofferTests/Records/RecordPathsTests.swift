import Foundation
import Testing
import Workload

@testable import Coffer

/// The two ways from a record to a row and back do the same for every shape: same rows, same
/// values, same refusals.
@Suite(.againstHanging, .onOwnThreads) struct RecordPathsTests {
    private let fixture: RecordFixture

    init() throws {
        fixture = try RecordFixture()
        let shapes: [any Shape.Type] = [
            One<Own, Int>.self, Seven<Own, Int, Int, Int, Int>.self,
            Sixteen<Own, Int, Int, Int, Int>.self, Wide<Own, Int, Int, Int, Int>.self,
        ]
        for shape in shapes {
            // Without column types, so that any value is stored unchanged.
            let columns = shape.columnNames.joined(separator: ", ")
            try fixture.execute(SQL(text: "CREATE TABLE \(shape.table)(\(columns))"))
        }
    }

    protocol Path: Sendable { static var access: RecordAccess { get } }
    enum Own: Path { static let access = RecordAccess.codable }
    enum Stored: Path { static let access = RecordAccess.storedProperties }

    /// A record whose values a generator makes.
    protocol Shape: Record {
        static var columnNames: [String] { get }
        init(_ seed: inout SeededGenerator)
    }

    /// A single property.
    struct One<P: Path, A: Sample>: Shape {
        static var access: RecordAccess { P.access }
        static var table: String { "one" }
        static var key: [String] { [] }
        static var columnNames: [String] { ["a0"] }
        var a0: A

        init(_ seed: inout SeededGenerator) { a0 = .sample(&seed) }
    }

    /// A key, and six other properties.
    struct Seven<P: Path, A: Sample, B: Sample, C: Sample, D: Sample>: Shape {
        static var access: RecordAccess { P.access }
        static var table: String { "seven" }
        static var columnNames: [String] { ["a0", "b0", "id", "c0", "d0", "a1", "b1"] }
        var a0: A?, b0: B, id: Int64, c0: C, d0: D?, a1: A, b1: B?

        init(_ seed: inout SeededGenerator) {
            (a0, b0, id) = (maybe(&seed), .sample(&seed), Int64(seed.next() >> 1))
            (c0, d0, a1, b1) = (.sample(&seed), maybe(&seed), .sample(&seed), maybe(&seed))
        }
    }

    /// A key that is a text in the middle of fifteen other properties.
    struct Sixteen<P: Path, A: Sample, B: Sample, C: Sample, D: Sample>: Shape {
        static var access: RecordAccess { P.access }
        static var table: String { "sixteen" }
        static var columnNames: [String] {
            [
                "d0", "c0", "b0", "a0", "d1", "c1", "b1", "id", "a1", "d2", "c2", "b2", "a2", "d3",
                "c3", "b3",
            ]
        }
        var d0: D?, c0: C?, b0: B?, a0: A?, d1: D, c1: C, b1: B, id: UUID, a1: A
        var d2: D, c2: C?, b2: B, a2: A?, d3: D, c3: C?, b3: B

        init(_ seed: inout SeededGenerator) {
            (d0, c0, b0, a0) = (maybe(&seed), maybe(&seed), maybe(&seed), maybe(&seed))
            (d1, c1, b1, id) = (.sample(&seed), .sample(&seed), .sample(&seed), .sample(&seed))
            (a1, d2, c2, b2) = (.sample(&seed), .sample(&seed), maybe(&seed), .sample(&seed))
            (a2, d3, c3, b3) = (maybe(&seed), .sample(&seed), maybe(&seed), .sample(&seed))
        }
    }

    /// Thirty properties of four types and their optionals, in an order that leaves gaps.
    struct Wide<P: Path, A: Sample, B: Sample, C: Sample, D: Sample>: Shape {
        static var access: RecordAccess { P.access }
        static var table: String { "wide" }
        static var key: [String] { [] }
        var a0: A, b0: B?, c0: C, d0: D?, a1: A?, b1: B, c1: C?, d1: D
        var d2: D?, c2: C?, b2: B?, a2: A?, a3: A, c3: C, b3: B, d3: D
        var b4: B, a4: A?, d4: D, c4: C?, c5: C, d5: D?, a5: A, b5: B?
        var a6: A?, d6: D?, c6: C?, b6: B?, d7: D, a7: A

        static var columnNames: [String] {
            [
                "a0", "b0", "c0", "d0", "a1", "b1", "c1", "d1", "d2", "c2", "b2", "a2", "a3", "c3",
                "b3", "d3", "b4", "a4", "d4", "c4", "c5", "d5", "a5", "b5", "a6", "d6", "c6", "b6",
                "d7", "a7",
            ]
        }

        init(_ seed: inout SeededGenerator) {
            func one<T: Sample>() -> T { T.sample(&seed) }
            (a0, b0, c0, d0, a1, b1, c1) = (
                one(), maybe(&seed), one(), maybe(&seed), maybe(&seed), one(), maybe(&seed)
            )
            (d1, d2, c2, b2, a2, a3, c3) = (
                one(), maybe(&seed), maybe(&seed), maybe(&seed), maybe(&seed), one(), one()
            )
            (b3, d3, b4, a4, d4, c4, c5) = (
                one(), one(), one(), maybe(&seed), one(), maybe(&seed), one()
            )
            (d5, a5, b5, a6, d6, c6, b6) =
                (
                    maybe(&seed), one(), maybe(&seed), maybe(&seed), maybe(&seed), maybe(&seed),
                    maybe(&seed)
                )
            (d7, a7) = (one(), one())
        }
    }

    // MARK: Rows and values

    @Test(arguments: 0..<64)
    func `the same rows are written and the same values read`(round: Int) throws {
        try withTypes(round) { kit, seed in try kit.compareRows(fixture, &seed) }
    }

    @Test(arguments: 0..<32)
    func `the same stored values are refused, with the same words`(round: Int) throws {
        try withTypes(round) { kit, seed in try kit.compareRefusals(fixture, &seed) }
    }

    /// Calls with four types from a list; the seed chooses the combinations.
    private func withTypes(
        _ round: Int, _ body: (any Kit, inout SeededGenerator) throws -> Void
    ) throws {
        var seed = SeededGenerator(seed: UInt64(round))
        // Every type gets to the front in some round.
        let a = samples[round % samples.count]
        let b = samples.randomElement(using: &seed) ?? a
        let c = samples.randomElement(using: &seed) ?? a
        let d = samples.randomElement(using: &seed) ?? a
        func first<A: Sample>(_ a: A.Type) -> any Kit {
            func second<B: Sample>(_ b: B.Type) -> any Kit {
                func third<C: Sample>(_ c: C.Type) -> any Kit {
                    func fourth<D: Sample>(_ d: D.Type) -> any Kit {
                        // Shapes and types alternate: the number of one does not divide the number
                        // of the other.
                        switch round % 4 {
                        case 0: Ways<One<Own, A>, One<Stored, A>>()
                        case 1: Ways<Seven<Own, A, B, C, D>, Seven<Stored, A, B, C, D>>()
                        case 2: Ways<Sixteen<Own, A, B, C, D>, Sixteen<Stored, A, B, C, D>>()
                        default: Ways<Wide<Own, A, B, C, D>, Wide<Stored, A, B, C, D>>()
                        }
                    }
                    return fourth(d)
                }
                return third(c)
            }
            return second(b)
        }
        try body(first(a), &seed)
    }

    protocol Kit {
        func compareRows(_ fixture: RecordFixture, _ seed: inout SeededGenerator) throws
        func compareRefusals(_ fixture: RecordFixture, _ seed: inout SeededGenerator) throws
    }

    /// One shape, in both ways.
    struct Ways<OwnShape: Shape, StoredShape: Shape>: Kit {
        private var names: String { "\(StoredShape.self)" }
        private var table: String { StoredShape.table }

        func compareRows(_ fixture: RecordFixture, _ seed: inout SeededGenerator) throws {
            #expect(try StoredShape.accessReport().reason == nil, "\(names)")
            let start = seed
            let own = (0..<20).map { _ in OwnShape(&seed) }
            seed = start
            let stored = (0..<20).map { _ in StoredShape(&seed) }
            let ownRows = try fixture.store.write { tx throws in
                try tx.insert(own)
                return try tx.rows(SQL(text: "SELECT * FROM \(table) ORDER BY rowid")).map(\.values)
            }
            let storedRows = try fixture.store.write { tx throws in
                try tx.delete(StoredShape.all)
                try tx.insert(stored)
                return try tx.rows(SQL(text: "SELECT * FROM \(table) ORDER BY rowid")).map(\.values)
            }
            #expect(ownRows == storedRows, "\(names)")
            let expected = try own.map { try text($0) }
            for read in reads() {
                #expect(try fixture.store.read { tx in try read.own(&tx) } == expected, "\(names)")
                #expect(
                    try fixture.store.read { tx in try read.stored(&tx) } == expected, "\(names)")
            }
        }

        func compareRefusals(_ fixture: RecordFixture, _ seed: inout SeededGenerator) throws {
            let values = [
                "NULL", "5", "-1", "300", "9007199254740993", "1.5", "1e300", "'x'", "x'00'",
                "CAST(x'ff' AS TEXT)", "'[1]'",
            ]
            func change(_ sql: String) throws { try fixture.execute(SQL(text: sql)) }
            try fixture.store.write { tx in try tx.insert(OwnShape(&seed)) }
            var refusalCount = 0
            for name in StoredShape.columnNames {
                for value in ["NULL", values.randomElement(using: &seed) ?? "NULL"] {
                    try change("CREATE TEMP TABLE kept AS SELECT * FROM \(table)")
                    try change("UPDATE \(table) SET \(name) = \(value)")
                    for read in reads() {
                        let own = fixture.outcome(read.own)
                        #expect(fixture.outcome(read.stored) == own, "\(names) \(name) \(value)")
                        if own.first == "\(StoreError.Code.mismatch)" { refusalCount += 1 }
                    }
                    try change("DELETE FROM \(table)")
                    try change("INSERT INTO \(table) SELECT * FROM kept")
                    try change("DROP TABLE kept")
                }
            }
            #expect(refusalCount > 0, "\(names)")
        }

        private typealias Read = (inout ReadTransaction) throws -> [String]

        /// All rows as a query, in an order, and as SQL.
        private func reads() -> [(own: Read, stored: Read)] {
            [
                (
                    { tx in try tx.fetch(OwnShape.all).map { try text($0) } },
                    { tx in try tx.fetch(StoredShape.all).map { try text($0) } }
                ),
                (
                    { tx in try tx.fetch(OwnShape.limit(99)).map { try text($0) } },
                    { tx in try tx.fetch(StoredShape.limit(99)).map { try text($0) } }
                ),
                (
                    { tx in
                        try tx.fetch(OwnShape.self, sql: SQL(text: "SELECT *, 1 FROM \(table)"))
                            .map { try text($0) }
                    },
                    { tx in
                        try tx.fetch(StoredShape.self, sql: SQL(text: "SELECT *, 1 FROM \(table)"))
                            .map { try text($0) }
                    }
                ),
            ]
        }

        private func text(_ value: some Encodable) throws -> String {
            let encoder = JSONEncoder()
            encoder.outputFormatting = .sortedKeys
            encoder.nonConformingFloatEncodingStrategy = .convertToString(
                positiveInfinity: "+", negativeInfinity: "-", nan: "?")
            return String(decoding: try encoder.encode(value), as: UTF8.self)
        }
    }
}

private func maybe<T: Sample>(_ seed: inout SeededGenerator) -> T? {
    seed.next() & 1 == 0 ? nil : T.sample(&seed)
}

extension RecordFixture {
    /// The result of a read, or its error.
    fileprivate func outcome(_ read: (inout ReadTransaction) throws -> [String]) -> [String] {
        do {
            return try store.read { tx in try read(&tx) }
        } catch let error as StoreError {
            return ["\(error.code)", error.message, error.table ?? "", error.column ?? ""]
        } catch {
            return ["\(error)"]
        }
    }
}

// MARK: Values

protocol Sample: Codable, Sendable {
    static func sample(_ seed: inout SeededGenerator) -> Self
}

extension Sample where Self: FixedWidthInteger {
    static func sample(_ seed: inout SeededGenerator) -> Self {
        let most = Self(clamping: Int64.max)
        let some = Self(truncatingIfNeeded: seed.next()) & most
        return [.min, 0, 1, some, most][Int(seed.next() % 5)]
    }
}

extension Int: Sample {}
extension Int8: Sample {}
extension Int16: Sample {}
extension Int32: Sample {}
extension Int64: Sample {}
extension UInt: Sample {}
extension UInt8: Sample {}
extension UInt16: Sample {}
extension UInt32: Sample {}
extension UInt64: Sample {}

extension Bool: Sample {
    static func sample(_ seed: inout SeededGenerator) -> Bool { seed.next() & 1 == 1 }
}

extension Double: Sample {
    static func sample(_ seed: inout SeededGenerator) -> Double {
        let some = Double(Int64(bitPattern: seed.next())) / 3
        return [0.5, -1e300, .infinity, .leastNonzeroMagnitude, some][Int(seed.next() % 5)]
    }
}

extension Float: Sample {
    static func sample(_ seed: inout SeededGenerator) -> Float {
        [0.1, -.greatestFiniteMagnitude, .infinity, .pi][Int(seed.next() % 4)]
    }
}

extension String: Sample {
    static func sample(_ seed: inout SeededGenerator) -> String {
        let count = Int(seed.next() % 40)
        return ["", "ä\u{0}🎈e\u{301}", String(repeating: "x", count: count)][
            Int(seed.next() % 3)]
    }
}

extension Data: Sample {
    static func sample(_ seed: inout SeededGenerator) -> Data {
        Data((0..<Int(seed.next() % 40)).map { UInt8($0 * 7 & 0xff) })
    }
}

extension Date: Sample {
    static func sample(_ seed: inout SeededGenerator) -> Date {
        Date(timeIntervalSince1970: Double(seed.next() % 4_000_000_000) + 0.25)
    }
}

extension UUID: Sample {
    static func sample(_ seed: inout SeededGenerator) -> UUID {
        let (high, low) = (seed.next(), seed.next())
        return UUID(uuid: unsafeBitCast((high, low), to: uuid_t.self))
    }
}

extension URL: Sample {
    static func sample(_ seed: inout SeededGenerator) -> URL {
        URL(filePath: "/a/\(seed.next() % 9)")
    }
}

extension Decimal: Sample {
    static func sample(_ seed: inout SeededGenerator) -> Decimal {
        Decimal(Int64(bitPattern: seed.next())) / 100
    }
}

extension Array: Sample where Element: Sample {
    static func sample(_ seed: inout SeededGenerator) -> [Element] {
        (0..<Int(seed.next() % 4)).map { _ in Element.sample(&seed) }
    }
}

/// Two bits of payload in odd places: a tag, padding and spare bits.
enum Padded: Codable, CaseIterable, Sample {
    case empty
    case small(UInt8)
    case large(Double?)

    /// Only for the placeholders.
    static var allCases: [Padded] { [.empty, .small(1)] }

    static func sample(_ seed: inout SeededGenerator) -> Padded {
        [.empty, .small(UInt8(seed.next() & 0xff)), .large(nil), .large(0.5)][Int(seed.next() % 4)]
    }
}

enum Tone: String, Codable, CaseIterable, Sample {
    case deep, high, flat

    static func sample(_ seed: inout SeededGenerator) -> Tone {
        allCases.randomElement(using: &seed) ?? .deep
    }
}

enum Level: Int8, Codable, CaseIterable, Sample {
    case low = -1
    case high = 100

    static func sample(_ seed: inout SeededGenerator) -> Level {
        allCases.randomElement(using: &seed) ?? .low
    }
}

struct Pair: Codable, Sample {
    var flag: Bool
    var wide: Int64?

    static func sample(_ seed: inout SeededGenerator) -> Pair {
        Pair(flag: .sample(&seed), wide: .sample(&seed))
    }
}

private let samples: [any Sample.Type] = [
    Bool.self, Int.self, UInt64.self, String.self, Data.self, Date.self, Double.self, UUID.self,
    Int8.self, Float.self, [UInt8].self, Tone.self, Padded.self, Int16.self, Int32.self,
    Int64.self, UInt.self, UInt8.self, UInt16.self, UInt32.self, URL.self, Decimal.self,
    Level.self, Pair.self, [Bool].self,
]
