import CSQLCipher
import Foundation
import Testing

@testable import Coffer

/// What a program that came from FMDB finds where values meet SQL.
@Suite(.againstHanging, .onOwnThreads) struct BindingBehaviourTests {
    private let fixture: BehaviourFixture
    private var connection: Connection { fixture.connection }

    init() throws {
        fixture = try BehaviourFixture()
    }

    private static let four: [String: (any ValueConvertible)?] = [
        "a": "Text1", "b": "Text2", "c": 1, "d": 2.0,
    ]

    private func makeNamed() throws {
        try connection.execute("CREATE TABLE namedparamtest(a text, b text, c integer, d double)")
        let changed = try connection.execute(
            SQL(text: "INSERT INTO namedparamtest VALUES (:a, :b, :c, :d)", named: Self.four))
        #expect(changed == 1)
        let row = try #require(try connection.firstRow("SELECT * FROM namedparamtest"))
        #expect(row.values == ["Text1", "Text2", 1, 2.0])
    }

    @Test func `F017 named arguments, of which some have no placeholder`() throws {
        try makeNamed()
        let query = "SELECT * FROM namedparamtest WHERE a = :a"
        let row = try connection.firstRow(SQL(text: query, named: Self.four))
        #expect(row?["b"] == "Text2")
        let strict = expect(.misuse) {
            try connection.firstRow(SQL(text: query, named: Self.four, isStrict: true))
        }
        #expect(strict?.message.contains("b") == true)
        let changed = try connection.execute(
            SQL(
                text: "UPDATE namedparamtest SET a = :a, b = :b WHERE b = 'Text2'",
                named: ["a": "NewText1", "b": "NewText2", "OneMore": "Text"]))
        #expect(changed == 1)
        #expect(
            try connection.rows("SELECT a, b FROM namedparamtest").map(\.values)
                == [["NewText1", "NewText2"]])
    }

    @Test func `F024 text beyond ASCII`() throws {
        try connection.execute("CREATE TABLE utest(a text)")
        try connection.execute("INSERT INTO utest VALUES (\("/übertest"))")
        let rows = try connection.rows("SELECT * FROM utest WHERE a = \("/übertest")")
        #expect(rows.map { $0["a"] } == ["/übertest"])
        #expect(!connection.hasOpenCursors)
    }

    @Test func `F025 arguments in an array, and a cursor that says whether it is at a row`() throws
    {
        try connection.execute("CREATE TABLE testOneHundredTwelvePointTwo(a text, b integer)")
        for number: Value in [2, 3] {
            try connection.execute(
                SQL(
                    text: "INSERT INTO testOneHundredTwelvePointTwo VALUES (?, ?)",
                    arguments: ["one", number]))
        }
        let cursor = try connection.cursor(
            SQL(
                text: "SELECT * FROM testOneHundredTwelvePointTwo WHERE b > ?", arguments: [1]))
        #expect(try cursor.next()?.values == ["one", 2])
        #expect(cursor.isOnRow)
        #expect(try cursor.next()?["b"] == 3)
        #expect(cursor.isOnRow)
        #expect(try cursor.next() == nil)
        #expect(!cursor.isOnRow)
    }

    @Test func `F027 interpolation takes the place of formats`() throws {
        try connection.execute("CREATE TABLE t5(a text, b int, c blob, d text, e text)")
        try connection.execute(
            """
            INSERT INTO t5 VALUES (\("text"), \(42), \("BLOB"), \("d"), \
            \(Int64(12_345_678_901_234)))
            """)
        let rows = try connection.rows(
            "SELECT * FROM t5 WHERE a = \("text") AND a = \("text") AND b = \(42)")
        #expect(rows.count == 1)
        #expect(rows[0].coerced["a"].string == "text")
        #expect(rows[0].coerced["b"].int == 42)
        #expect(rows[0].coerced["c"].string == "BLOB")
        #expect(rows[0].coerced["d"].string == "d")
        #expect(rows[0].coerced["e"].int == 12_345_678_901_234)
    }

    @Test func `F030 an insert of five values throws nothing`() throws {
        try connection.execute("CREATE TABLE t5(a text, b int, c blob, d text, e text)")
        let changed = try connection.execute(
            SQL(
                text: "INSERT INTO t5 VALUES (?, ?, ?, ?, ?)",
                arguments: ["text", 42, "BLOB", "d", 0]))
        #expect(changed == 1)
    }

    @Test func `F031 a missing argument is .misuse and not code 0`() throws {
        let fixture = try BehaviourFixture.test()
        let error = expect(.misuse) {
            try fixture.connection.rows(
                SQL(text: "SELECT * FROM test WHERE a=?", arguments: []))
        }
        #expect(error?.message == "1 arguments expected, 0 given")
        #expect(error?.resultCode == nil)
    }

    @Test func `F033 a query by a named argument`() throws {
        try makeNamed()
        for key in ["blah", ":blah"] {
            let row = try connection.firstRow(
                SQL(text: "SELECT * FROM namedparamtest WHERE b = :blah", named: [key: "Text2"]))
            #expect(row?["b"] == "Text2")
        }
    }

    @Test func `F037 a date in a text column reads back equal in each form`() throws {
        let date = Date(timeIntervalSince1970: 1_361_361_600)  // 2013-02-20 12:00:00 GMT
        try connection.execute("CREATE TABLE test_format(test TEXT)")
        let pattern = DateEncoding.format("yyyy-MM-dd HH:mm:ss")
        for (encoding, stored) in [
            (DateEncoding.unixSeconds, "1361361600.0"), (.fmdb, "1361361600.0"),
            (pattern, "2013-02-20 12:00:00"),
        ] {
            try connection.execute("DELETE FROM test_format")
            try connection.execute("INSERT INTO test_format VALUES (\(date, as: encoding))")
            let row = try #require(try connection.firstRow("SELECT test FROM test_format"))
            #expect(row["test"] == .text(stored))
            #expect(try row.date("test", as: encoding) == date)
        }
    }

    @Test func `F074 interpolated values of several kinds`() throws {
        try connection.execute("CREATE TABLE foo(a text, b text, c int, d int, e double, f int)")
        try connection.execute(
            """
            INSERT INTO foo VALUES (\("A"), \("baz"), \(42), \(UInt32(43)), \(44.0), \(UInt64(45)))
            """)
        #expect(
            try connection.firstRow("SELECT * FROM foo")?.values
                == ["A", "baz", 42, 43, 44.0, 45])
    }

    @Test func `F082 a value above the engine's limit is .tooBig and leaves the statement usable`()
        throws
    {
        try connection.execute("CREATE TABLE foo(bar blob)")
        let sql = "INSERT INTO foo VALUES (?)"
        let statement = try connection.prepare(sql)
        let limit = 10_000
        sqlite3_limit(try connection.current().db, SQLITE_LIMIT_LENGTH, Int32(limit))
        let tooBig = Value.blob(Data(count: limit + 1))
        for _ in 0..<2 {
            let error = expect(.tooBig) {
                try connection.execute(SQL(text: sql, arguments: [tooBig]))
            }
            #expect(error?.resultCode == 18)
            expect(.tooBig) { try statement.bind([tooBig]) }
            expect(.tooBig) { try statement.bind(tooBig, at: 0) }
        }
        try statement.bind([.blob(Data(count: 9000))])
        #expect(try statement.run() == 1)
        #expect(try connection.scalar("SELECT length(bar) FROM foo") == 9000)
    }

    @Test func `F084 empty text and empty bytes are not NULL`() throws {
        #expect(try connection.scalar("SELECT \("") NOT NULL", as: Bool.self) == true)
        #expect(try connection.scalar("SELECT \(Data()) NOT NULL", as: Bool.self) == true)
        #expect(try connection.scalar("SELECT \([UInt8]()) NOT NULL", as: Bool.self) == true)
        #expect(try connection.scalar("SELECT \(Value.null) NOT NULL", as: Bool.self) == false)
    }
}
