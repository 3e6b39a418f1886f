import Foundation
import Testing
import Workload

@testable import Coffer

/// What a program that came from FMDB finds in rows.
@Suite(.againstHanging, .onOwnThreads) struct ReadingBehaviourTests {
    private let fixture: BehaviourFixture
    private var connection: Connection { fixture.connection }

    init() throws {
        fixture = try BehaviourFixture()
    }

    @Test func `F010 an integer above Int64 is refused, and its bits can be stored`() throws {
        try connection.execute("CREATE TABLE ull(a integer)")
        expect(.mismatch) { try connection.execute("INSERT INTO ull VALUES (\(UInt64.max))") }
        try connection.execute("INSERT INTO ull VALUES (\(Int64(bitPattern: UInt64.max)))")
        let row = try #require(try connection.firstRow("SELECT a FROM ull"))
        #expect(UInt64(bitPattern: try row.get(0, as: Int64.self)) == UInt64.max)
        #expect(UInt64(bitPattern: try row.get("a", as: Int64.self)) == UInt64.max)
        #expect(!connection.hasOpenCursors)
    }

    @Test func `F011 columns are read by name`() throws {
        let fixture = try BehaviourFixture.test()
        let cursor = try fixture.connection.cursor("SELECT rowid,* FROM test WHERE a=\("hi'")")
        #expect(cursor.columnNames[0] == "rowid")
        #expect(cursor.columnNames[1] == "a")
        var count = 0
        while let row = try cursor.next() {
            count += 1
            #expect(fixture.connection.hasOpenCursors)
            #expect(try row.get("a", as: String.self) == "hi'")
            #expect(try row.get("b", as: String.self) == "number \(count)")
            #expect(row.coerced["rowid"].string == String(count))
            #expect(abs(try row.get("d", as: Date.self).timeIntervalSinceNow) < 60)
            #expect(try row.get("c", as: Int.self) == count)
            #expect(try row.get("d", as: Double.self) > 0)
            #expect(try row.get("e", as: Float.self) == 2.2)
        }
        #expect(count == 20)
        #expect(!fixture.connection.hasOpenCursors)
    }

    @Test func `F012 a name that is no column gives nil, and .notFound where a type is asked for`()
        throws
    {
        let fixture = try BehaviourFixture.test()
        let cursor = try fixture.connection.cursor("SELECT rowid,a,b,c FROM test")
        var count = 0
        while let row = try cursor.next() {
            count += 1
            #expect(row["foobar"] == nil)
            #expect(cursor.columnIndex(of: "foobar") == nil)
            expectNothing(row.coerced["foobar"])
            expect(.notFound) { try row.get("foobar", as: String.self) }
        }
        #expect(count == 40)
        #expect(!fixture.connection.hasOpenCursors)
    }

    @Test func `F013 a position that is no column gives nil, and .notFound where a type is asked`()
        throws
    {
        let fixture = try BehaviourFixture.test()
        let cursor = try fixture.connection.cursor("SELECT rowid,a,b,c FROM test")
        var count = 0
        while let row = try cursor.next() {
            count += 1
            #expect(row[999] == nil)
            expectNothing(row.coerced[999])
            expect(.notFound) { try row.get(999, as: String.self) }
            expect(.notFound) { try cursor.value(at: 999) }
            expect(.notFound) { try cursor.withUTF8(at: 999) { _ in } }
            expect(.notFound) { try cursor.withBytes(at: 999) { _ in } }
        }
        #expect(count == 40)
        #expect(!fixture.connection.hasOpenCursors)
    }

    private func expectNothing(_ value: CoercedValue) {
        #expect(value.string == nil && value.date == nil && value.data == nil)
        #expect(value.isNull && value.int == 0 && value.double == 0 && !value.bool)
    }

    @Test func `F016 true is 1 in an integer column, and both when it is read`() throws {
        try connection.execute("CREATE TABLE btest(a integer)")
        try connection.execute("INSERT INTO btest VALUES (\(true))")
        let row = try #require(try connection.firstRow("SELECT a FROM btest"))
        #expect(try row.get("a", as: Bool.self))
        #expect(try row.get("a", as: Int.self) == 1)
        #expect(row.coerced["a"].bool && row.coerced["a"].int == 1)
        #expect(!connection.hasOpenCursors)
    }

    @Test func `F018 a blob of 64 KiB comes back, copied and borrowed`() throws {
        var random = SeededGenerator(for: #function)
        let bytes = Data((0..<65_536).map { _ in .random(in: 0...255, using: &random) })
        try connection.execute("CREATE TABLE blobTable(a text, b blob)")
        try connection.execute("INSERT INTO blobTable VALUES (\("safari's compass"), \(bytes))")
        let cursor = try connection.cursor(
            "SELECT b FROM blobTable WHERE a = \("safari's compass")")
        let row = try #require(try cursor.next())
        #expect(try row.get("b", as: Data.self) == bytes)
        let isSame = try cursor.withBytes(at: 0) { $0.elementsEqual(bytes) }
        #expect(isSame == true)
        try cursor.close()
        #expect(!connection.hasOpenCursors)
    }

    @Test func `F019 NULL has no text, and 5 has the text 5 when it is coerced`() throws {
        try connection.execute("CREATE TABLE t2(a integer, b integer)")
        let nothing: Value = nil
        try connection.execute("INSERT INTO t2 VALUES (\(nothing), \(5))")
        let row = try #require(try connection.firstRow("SELECT * FROM t2"))
        #expect(row.coerced[0].string == nil)
        #expect(row.coerced[1].string == "5")
        expect(.mismatch) { try row.get(1, as: String.self) }
        #expect(!connection.hasOpenCursors)
    }

    @Test func `F021 Value.null and nil are both NULL`() throws {
        try connection.execute("CREATE TABLE nulltest(a text, b text)")
        try connection.execute("INSERT INTO nulltest VALUES (\(Value.null), \("a"))")
        let insert = try connection.prepare("INSERT INTO nulltest VALUES (?, 'b')")
        try insert.bind(String?.none, at: 0)
        try insert.run()
        let rows = try connection.rows("SELECT * FROM nulltest")
        #expect(rows.count == 2)
        for row in rows {
            #expect(row[0] == .null)
            #expect(try row.get(0, as: String?.self) == nil)
            #expect(try row.get(1, as: String?.self) != nil)
        }
        #expect(!connection.hasOpenCursors)
    }

    @Test func `F022 a date of NULL is nil, of 0 is 1970`() throws {
        let now = Date()
        try connection.execute("CREATE TABLE datetest(a double, b double, c double)")
        try connection.execute("INSERT INTO datetest VALUES (NULL, \(now), \(0))")
        let row = try #require(try connection.firstRow("SELECT * FROM datetest"))
        #expect(row.coerced[0].date == nil)
        #expect(try row.get(0, as: Date?.self) == nil)
        #expect(try row.date(0, as: .unixSeconds) == nil)
        for read in [
            try row.get(1, as: Date.self), try #require(row.coerced[1].date),
            try #require(try row.date("b", as: .fmdb)),
        ] {
            #expect(abs(read.timeIntervalSince(now)) < 1)
        }
        #expect(abs(try row.get(2, as: Date.self).timeIntervalSince1970) < 1)
        #expect(abs(try #require(row.coerced[2].date).timeIntervalSince1970) < 1)
        #expect(!connection.hasOpenCursors)
    }

    @Test func `F023 many NULLs beside values of every kind`() throws {
        let bytes = Data((0..<65_536).map { UInt8(truncatingIfNeeded: $0) })
        try connection.execute(
            "CREATE TABLE nulltest2(s text, d data, i integer, f double, b integer)")
        try connection.execute(
            "INSERT INTO nulltest2 VALUES (\("Hi"), \(bytes), \(12), \(Float(4.4)), \(true))")
        try connection.execute("INSERT INTO nulltest2 VALUES (NULL, NULL, NULL, NULL, NULL)")
        let rows = try connection.rows("SELECT * FROM nulltest2")
        let (first, second) = (rows[0], rows[1])
        for column in 0...4 {
            #expect(!first.coerced[column].isNull && second.coerced[column].isNull)
        }
        #expect(first.coerced[5].isNull && second.coerced[5].isNull)
        #expect(first.coerced["d"].data == bytes)
        #expect(first.coerced["notthere"].data == nil)
        #expect(first.coerced[-2].string == nil)
        #expect(first.coerced[4].bool && first.coerced["b"].bool)
        #expect(abs(first.coerced["f"].double - 4.4) < 1e-7)
        #expect(first.coerced["i"].int == 12 && first.coerced[2].int == 12)
        #expect(first.coerced[12].int == 0 && first.coerced["notthere"].int == 0)
        #expect(try first.get("i", as: Int.self) == 12)
        #expect(try first.get("i", as: Int64.self) == 12)
        #expect(second.coerced["d"].data == nil)
        #expect(!connection.hasOpenCursors)
    }

    @Test func `F026 names with periods are names, and the text's bytes can be borrowed`() throws {
        for isWithArguments in [false, true] {
            func run(_ text: String) throws {
                try connection.execute(
                    isWithArguments ? SQL(text: text, arguments: []) : SQL(text: text))
            }
            try run("CREATE TABLE t4(a text, b text)")
            try run("INSERT INTO t4 VALUES ('one', 'two')")
            let cursor = try connection.cursor("SELECT t4.a AS 't4.a', t4.b FROM t4;")
            let row = try #require(try cursor.next())
            #expect(row["t4.a"] == "one")
            #expect(row["b"] == "two")
            #expect(try cursor.withUTF8(at: 1) { Array($0) } == Array("two".utf8))
            #expect(try cursor.next() == nil)
            try run("DROP TABLE t4")
        }
    }

    @Test func `F028 interpolated numbers of all sizes`() throws {
        try connection.execute("CREATE TABLE t55(a text, b int, c float)")
        try connection.execute(
            "INSERT INTO t55 VALUES (\("a"), \(Int16(-4)), \(Float(5.5)))")
        try connection.execute("INSERT INTO t55 VALUES (\("a"), \(UInt16(6)), \(5.5))")
        let rows = try connection.rows("SELECT * FROM t55 WHERE a = \("a") ORDER BY 2")
        #expect(rows.map { $0.coerced["a"].string } == ["a", "a"])
        #expect(try rows.map { try $0.get("b", as: Int.self) } == [-4, 6])
        #expect(rows.map { $0.coerced["c"].string } == ["5.5", "5.5"])
    }

    @Test func `F038 positions of columns are known before the first row`() throws {
        try connection.execute("CREATE TABLE colNameTest(a, b, c, d)")
        try connection.execute("INSERT INTO colNameTest VALUES ('1', '2', '3', '4')")
        let cursor = try connection.cursor("SELECT * FROM colNameTest")
        let statement = try connection.prepare("SELECT * FROM colNameTest")
        for (position, name) in ["a", "b", "c", "d"].enumerated() {
            #expect(cursor.columnIndex(of: name) == position)
            #expect(cursor.columnIndex(of: name.uppercased()) == position)
            #expect(statement.columnIndex(of: name) == position)
        }
        #expect(cursor.columnNames.count == 4)
    }

    @Test func `F058 booleans and characters in columns without a type`() throws {
        try connection.execute("CREATE TABLE charBoolTest(a, b, c)")
        try connection.execute("INSERT INTO charBoolTest VALUES (\(true), \(false), \(UInt8(120)))")
        let row = try #require(try connection.firstRow("SELECT * FROM charBoolTest"))
        #expect(row.coerced["a"].bool && !row.coerced["b"].bool)
        #expect(try row.get("a", as: Bool.self))
        #expect(try !row.get("b", as: Bool.self))
        #expect(row.coerced["c"].int == 120)
        #expect(row.values == [1, 0, 120])
    }

    @Test func `X1 a value by its position equals the one by its name`() throws {
        let fixture = try BehaviourFixture.test()
        let rows = try fixture.connection.rows("SELECT rowid,a,b,c FROM test")
        #expect(rows.count == 40)
        for row in rows {
            for (position, name) in ["rowid", "a", "b", "c"].enumerated() {
                #expect(row[position] == row[name])
                #expect(row[position] != nil)
            }
        }
    }
}
