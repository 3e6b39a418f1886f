import CSQLCipher
import Foundation
import Testing

@testable import Coffer

/// Values that leave a statement: rows, borrowed bytes, coerced and decoded values.
@Suite(.againstHanging, .onOwnThreads) struct RowTests {
    private let folder: TemporaryFolder
    private let connection: Connection

    init() throws {
        folder = try TemporaryFolder()
        connection = try Connection(
            path: folder.path(), key: .numbered(1), configuration: .testing(.delete))
        try connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, v)")
    }

    private func row(_ sql: SQL) throws -> Row { try #require(try connection.firstRow(sql)) }

    // MARK: Names

    @Test func `P20 the first of equal names counts, and pairs keep all of them`() throws {
        let row = try row("SELECT 1 AS a, 2 AS A, 3 AS a, 4 AS b")
        #expect(row["a"] == 1 && row["A"] == 2 && row["B"] == 4)
        #expect(row.columnIndex(of: "A") == 1 && row.columnIndex(of: "c") == nil)
        #expect(row.pairs.map(\.name) == ["a", "A", "a", "b"])
        #expect(row.pairs.map(\.value) == [1, 2, 3, 4])
        #expect(row.dictionary == ["a": 1, "A": 2, "b": 4])
        #expect(row[-1] == nil && row[4] == nil)
    }

    @Test func `a printed row tells names and values, and leaves out bytes`() throws {
        let row = try row(
            "SELECT 1 AS id, 'a \"b\"' AS title, x'0102' AS body, NULL AS n, 1.5 AS r")
        #expect("\(row)" == #"[id: 1, title: "a \"b\"", body: 2 bytes, n: NULL, r: 1.5]"#)
    }

    @Test func `P20 only ASCII letters are compared without case, byte by byte`() throws {
        let row = try row("SELECT 1 AS Ä, 2 AS \"e\u{301}\"")
        #expect(row["Ä"] == 1 && row["ä"] == nil)
        #expect(row["e\u{301}"] == 2 && row["\u{e9}"] == nil)
    }

    @Test func `P20 names of a statement follow the schema between its runs`() throws {
        try connection.execute("CREATE TABLE u(a, b)")
        try connection.execute("INSERT INTO u VALUES (1, 2)")
        let statement = try connection.prepare("SELECT * FROM u")
        #expect(statement.columnIndex(of: "a") == 0)
        #expect(try statement.step())
        #expect(try statement.value(named: "A") == 1)
        #expect(try statement.value(named: "b", as: Int.self) == 2)
        expect(.notFound) { try statement.value(named: "c") }
        expect(.mismatch) { try statement.value(named: "a", as: String.self) }
        try statement.reset()
        try connection.execute("DROP TABLE u")
        try connection.execute("CREATE TABLE u(b, a, c)")
        try connection.execute("INSERT INTO u VALUES (1, 2, 3)")
        #expect(try statement.step())
        #expect(try statement.value(named: "a") == 2)
        #expect(try statement.value(named: "c") == 3)
    }

    // MARK: Borrowed bytes

    @Test func `P19 an empty blob, an empty text and NULL differ wherever they are read`()
        throws
    {
        let statement = try connection.prepare("SELECT x'', '', NULL")
        #expect(try statement.step())
        #expect(try statement.withBytes(at: 0) { $0.count } == 0)
        #expect(try statement.withUTF8(at: 1) { $0.count } == 0)
        #expect(try statement.withBytes(at: 2) { $0.count } == nil)
        #expect(try statement.withUTF8(at: 2) { $0.count } == nil)
        #expect(try (0..<3).map { try statement.storageClass(at: $0) } == [.blob, .text, .null])
        #expect(try (0..<3).map { try statement.isNull(at: $0) } == [false, false, true])
        let row = try row("SELECT x'' AS empty, NULL AS missing")
        #expect(row["empty"] == .blob(Data()) && row["missing"] == .null)
        #expect(row.coerced["empty"].data == Data() && row.coerced["missing"].data == nil)
        #expect(try row.get("empty", as: Data?.self) == Data())
        #expect(try row.get("missing", as: Data?.self) == nil)
        struct Both: Decodable, Equatable { let empty, missing: Data? }
        #expect(try row.decode(Both.self) == Both(empty: Data(), missing: nil))
    }

    @Test func `P27 a NUL does not end a text, and a text that is not UTF-8 is an error`() throws {
        let statement = try connection.prepare(
            "SELECT 'a' || char(0) || 'b', CAST(x'61ff' AS TEXT), '🗝️'")
        #expect(try statement.step())
        #expect(try statement.withUTF8(at: 0) { Array($0) } == [0x61, 0, 0x62])
        #expect(try statement.value(at: 0) == "a\0b")
        expect(.mismatch) { try statement.withUTF8(at: 1) { _ in } }
        expect(.mismatch) { try statement.value(at: 1) }
        #expect(try statement.withUTF8(at: 2) { String(decoding: $0, as: UTF8.self) } == "🗝️")
        expect(.mismatch) { try connection.execute("INSERT INTO t(v) VALUES (\(UInt64.max))") }
        let digits = try #require(Decimal(string: "0.1000000000000000000000000000001"))
        try connection.execute("INSERT INTO t(v) VALUES (\(digits))")
        #expect(try connection.scalar("SELECT v FROM t", as: Decimal.self) == digits)
    }

    @Test func `only texts are lent as text, only blobs as bytes`() throws {
        let statement = try connection.prepare("SELECT 1 AS number, 'text', x'01'")
        expect(.misuse) { try statement.withBytes(at: 0) { _ in } }
        #expect(try statement.step())
        let error = expect(.mismatch) { try statement.withUTF8(at: 0) { _ in } }
        #expect(error?.column == "number")
        expect(.mismatch) { try statement.withBytes(at: 1) { _ in } }
        expect(.mismatch) { try statement.withUTF8(at: 2) { _ in } }
        expect(.notFound) { try statement.withUTF8(at: 3) { _ in } }
        #expect(throws: CancellationError.self) {
            try statement.withUTF8(at: 1) { _ in throw CancellationError() }
        }
    }

    @Test func `lent bytes stay valid while they are lent`() throws {
        let bytes = [UInt8](repeating: 7, count: 100_000)
        try connection.execute("INSERT INTO t(v) VALUES (\(bytes)), (\([UInt8]([1])))")
        let statement = try connection.prepare("SELECT v FROM t")
        #expect(try statement.step())
        try statement.withBytes(at: 0) { lent in
            expect(.misuse) { try statement.step() }
            expect(.misuse) { try statement.reset() }
            expect(.misuse) { try statement.run() }
            expect(.misuse) { try statement.bind([]) }
            expect(.misuse) { try connection.closeCursors() }
            let count = try statement.withBytes(at: 0) { $0.count }
            #expect(count == bytes.count)
            #expect(lent.elementsEqual(bytes))
            connection.close()
            expect(.closed) { try statement.value(at: 0) }
            #expect(lent.elementsEqual(bytes), "closing waits for them")
        }
        expect(.closed) { try statement.step() }
        let again = try Connection(
            path: folder.path(), key: .numbered(1), configuration: .testing(.delete))
        #expect(try again.scalar("SELECT count(*) FROM t", as: Int.self) == 2)
    }

    // MARK: Coerced values

    /// The engine's own conversions of the same value.
    private func engine(_ value: Value) throws -> (Int, Double, String?) {
        let statement = try connection.prepare("SELECT ?")
        try statement.bind([value])
        #expect(try statement.step())
        let raw = try statement.pointer()
        let integer = Int(sqlite3_column_int64(raw, 0))
        let real = sqlite3_column_double(raw, 0)
        // The text is read last, because reading it changes the value.
        let text = sqlite3_column_text(raw, 0).map { String(cString: $0) }
        return (integer, real, text)
    }

    @Test(
        arguments: [
            .null, 0, 42, -7, .integer(.max), .integer(.min), 0.5, -1.5, 5.5, 1e20, -1e20, 1e300,
            0.1,
            100.0, 1e15, 1e16, 123456.789, .real(.infinity), .real(-.infinity), 4.4,
            .real(1.0 / 3.0),
            "", "12", " \t\n12abc", "-12.75", "+3", "abc", "1e3", "1e", "1e+", ".5", "5.", "-", ".",
            "9223372036854775807", "9223372036854775808", "-9223372036854775809", "0x10", "1e400",
            "99999999999999999999999999", "yes", "1 2", "- 1", "2.5e-3x", "00012", "é1",
            .blob(Data("12".utf8)), .blob(Data()), .blob(Data("-1.5x".utf8)),
        ] as [Value])
    func `coerced values are the engine's own conversions`(value: Value) throws {
        let (integer, real, text) = try engine(value)
        #expect(value.coerced.int == integer)
        #expect(value.coerced.double == real)
        #expect(value.coerced.bool == (integer != 0))
        #expect(value.coerced.string == (value == .blob(Data()) ? "" : text))
    }

    @Test func `P28 a wrong name or position is an error or nil, and 0 only where it is requested`()
        throws
    {
        let row = try row("SELECT 5000000000 AS big")
        expect(.notFound) { try row.get("big2", as: Int.self) }
        expect(.notFound) { try row.get(1, as: Int.self) }
        expect(.mismatch) { try row.get("big", as: Int32.self) }
        #expect(row["big2"] == nil && row[1] == nil)
        #expect(row.coerced["big2"].int == 0 && row.coerced["big"].int == 5_000_000_000)
        #expect(!row.coerced["big2"].bool)
        expect(.notFound) { try row.date("big2", as: .unixSeconds) }
    }

    // MARK: Decodable

    private struct Entry: Decodable, Equatable {
        enum Kind: String, Decodable { case note, task }
        struct Place: Decodable, Equatable { let x, y: Int }
        let id: Int
        let title: String
        let kind: Kind
        let place: Place?
        let tags: [String]
        let due: Date?
        let key: UUID
        let ratio: Double?
        let isDone: Bool
    }

    @Test func `P18 a row becomes a value, with NULL as nil and types unchanged`() throws {
        let key = UUID()
        let due = Date(timeIntervalSince1970: 86_400)
        let rows = try connection.rows(
            """
            SELECT 1 AS id, 'a' AS title, 'note' AS kind, '{"x":1,"y":2}' AS place,
                '["b","c"]' AS tags, \(due, as: .iso8601) AS due, \(key) AS key, 2 AS ratio,
                1 AS isDone, 'ignored' AS other
            UNION ALL
            SELECT 2, '', 'task', NULL, '[]', NULL, \(key), NULL, 0, NULL ORDER BY 1
            """, as: Entry.self, dates: .iso8601)
        #expect(
            rows == [
                Entry(
                    id: 1, title: "a", kind: .note, place: .init(x: 1, y: 2), tags: ["b", "c"],
                    due: due, key: key, ratio: 2, isDone: true),
                Entry(
                    id: 2, title: "", kind: .task, place: nil, tags: [], due: nil, key: key,
                    ratio: nil, isDone: false),
            ])
        #expect(try connection.rows("SELECT 1 UNION SELECT 2", as: Int.self) == [1, 2])
        #expect(try row("SELECT 'task'").decode(Entry.Kind.self) == .task)
        #expect(try row("SELECT NULL").decode(Int?.self) == nil)
    }

    @Test func `P18 a value that does not fit is .mismatch naming the column`() throws {
        struct Small: Decodable { let a: UInt8 }
        struct Kinds: Decodable { let kind: Entry.Kind }
        let tooBig = expect(.mismatch) { try row("SELECT 256 AS a").decode(Small.self) }
        #expect(tooBig?.column == "a")
        let missing = expect(.mismatch) { try row("SELECT 1 AS b").decode(Small.self) }
        #expect(missing?.column == "a" && missing?.hint != nil)
        let null = expect(.mismatch) { try row("SELECT NULL AS a").decode(Small.self) }
        #expect(null?.column == "a")
        let unknown = expect(.mismatch) { try row("SELECT 'x' AS kind").decode(Kinds.self) }
        #expect(unknown?.column == "kind" && unknown?.cause is DecodingError)
        expect(.mismatch) { try row("SELECT 1 AS a").decode([Int].self) }
        expect(.mismatch) { try row("SELECT '{' AS place").decode([String: Entry.Place].self) }
    }

    // MARK: Streams and stores

    @Test func `forEachRow stops at the closure's error, and rolls back its statement`() throws {
        struct Enough: Error {}
        var seen: [Value?] = []
        #expect(throws: Enough.self) {
            try connection.forEachRow("SELECT 1 UNION SELECT 2 UNION SELECT 3") { row in
                seen.append(row[0])
                if seen.count == 2 { throw Enough() }
            }
        }
        #expect(seen == [1, 2])
        #expect(!connection.hasOpenCursors)
        if isEngine4 {
            #expect(throws: Enough.self) {
                try connection.forEachRow("INSERT INTO t(v) VALUES (1), (2) RETURNING id") { _ in
                    throw Enough()
                }
            }
        }
        #expect(try connection.scalar("SELECT count(*) FROM t", as: Int.self) == 0)
    }

    @Test func `the connection may be closed in forEachRow`() throws {
        try connection.execute("INSERT INTO t(v) VALUES (1), (2)")
        expect(.closed) {
            try connection.forEachRow("SELECT v FROM t WHERE v > \(0)") { _ in connection.close() }
        }
    }

    @Test func `a store reads in the same ways`() throws {
        connection.close()
        let store = try Store(path: folder.path(), key: .numbered(1), configuration: .testing())
        try store.write { tx in
            try tx.execute(SQL(text: "INSERT INTO t(v) VALUES (:v)", named: ["v": 5]))
            #expect(try tx.scalar("SELECT v FROM t", as: Int.self) == 5)
        }
        let (sum, decoded) = try store.read { tx in
            var sum = 0
            try tx.forEachRow("SELECT v FROM t") { sum += try $0.get(0, as: Int.self) }
            expect(.readOnly) { try tx.forEachRow("DELETE FROM t") { _ in } }
            return (sum, try tx.rows("SELECT v FROM t", as: Int.self))
        }
        #expect(sum == 5 && decoded == [5])
    }

    @Test
    func `a cursor whose bytes are lent cannot be closed, and ends its transaction afterwards`()
        throws
    {
        try connection.execute("INSERT INTO t VALUES (1, 'lent')")
        let cursor = try connection.cursor("SELECT v FROM t")
        #expect(try cursor.step())
        try cursor.withUTF8(at: 0) { bytes in
            expect(.misuse) { try cursor.close() }
            expect(.misuse) { try connection.closeCursors() }
            #expect(String(decoding: bytes, as: UTF8.self) == "lent")
        }
        try cursor.close()
        try connection.transaction { try connection.execute("DELETE FROM t") }
    }
}
