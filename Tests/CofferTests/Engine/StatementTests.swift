import Foundation
import Testing

@testable import Coffer

/// Statements by hand: binding, running, reading, and the pitfalls that other wrappers have.
@Suite(.againstHanging, .onOwnThreads) struct StatementTests {
    private let folder: TemporaryFolder
    private let connection: Connection

    init() throws {
        folder = try TemporaryFolder()
        connection = try Connection(
            path: folder.path(), key: .numbered(1), configuration: .testing(.delete))
        try connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, v)")
    }

    private func values() throws -> [Value] {
        try connection.rows("SELECT v FROM t ORDER BY id").map { $0.values[0] }
    }

    // MARK: Binding

    @Test func `one argument is bound, the others keep theirs`() throws {
        let statement = try connection.prepare("INSERT INTO t(id, v) VALUES (?, ?)")
        #expect(statement.parameterNames == [nil, nil])
        try statement.bind(1, at: 0)
        try statement.bind("one", at: 1)
        #expect(try statement.run() == 1)
        try statement.bind(2, at: 0)
        #expect(try statement.run() == 1)
        try statement.clearBindings()
        try statement.run()
        #expect(try values() == ["one", "one", .null])
        #expect(statement.useCount == 3)
    }

    @Test func `all types of values are bound one by one`() throws {
        let uuid = UUID()
        let statement = try connection.prepare("SELECT ?")
        func read(_ value: some ValueConvertible) throws -> Value {
            try statement.bind(value, at: 0)
            #expect(try statement.step())
            return try statement.value(at: 0)
        }
        #expect(try read(Int8(-3)) == -3)
        #expect(try read(1.5) == 1.5)
        #expect(try read("a\0b") == "a\0b")
        #expect(try read(Data()) == .blob(Data()))
        #expect(try read([UInt8]([1, 2])) == .blob(Data([1, 2])))
        #expect(try read(Int?.none) == .null)
        #expect(try read(uuid) == uuid.asValue())
        #expect(try read(Value.text("")) == "")
    }

    @Test func `named placeholders of every prefix take their arguments`() throws {
        let statement = try connection.prepare("SELECT :a, @b, $c, :a")
        #expect(statement.parameterNames == [":a", "@b", "$c"])
        try statement.bind(named: ["a": 1, "@b": "two", "$c": nil])
        #expect(try statement.step())
        #expect(try connection.firstRow("SELECT 1")?[0] == 1)
        #expect(try (0..<4).map { try statement.value(at: $0) } == [1, "two", .null, 1])
    }

    @Test func `named and interpolated arguments go together`() throws {
        var sql: SQL = "SELECT \(7), "
        sql.append(SQL(text: ":name, ?", named: ["name": "x"]))
        sql.append(SQL(text: "", arguments: [8]))
        #expect(try connection.firstRow(sql)?.values == [7, "x", 8])
        sql.append(SQL(text: ", :name", named: ["name": "y"]))
        let error = expect(.misuse) { try connection.firstRow(sql) }
        #expect(error?.message.contains("name") == true)
    }

    @Test func `P1 a failed bind of a cached statement leaves it usable, and close is clean`()
        throws
    {
        let text = "INSERT INTO t(v) VALUES (?)"
        for arguments: [Value] in [[], [1, 2], [.real(.nan)]] {
            #expect(throws: StoreError.self) {
                try connection.execute(SQL(text: text, arguments: arguments))
            }
            try connection.execute(SQL(text: text, arguments: [3]))
        }
        #expect(try values() == [3, 3, 3])
        #expect(connection.cache.count > 0)
        connection.clearStatementCache()
        #expect(connection.cache.count == 0)
        try connection.execute(SQL(text: text, arguments: [4]))
        connection.close()
        expect(.closed) { try connection.execute(SQL(text: text, arguments: [5])) }
    }

    @Test func `P2 a failed bind by position or name leaves a prepared statement usable`() throws {
        let statement = try connection.prepare("INSERT INTO t(v) VALUES (:v)")
        expect(.misuse) { try statement.bind([]) }
        expect(.misuse) { try statement.bind(1, at: 1) }
        expect(.misuse) { try statement.bind(1, at: -1) }
        expect(.mismatch) { try statement.bind(Double.nan, at: 0) }
        expect(.misuse) { try statement.bind(named: [:]) }
        expect(.mismatch) { try statement.bind(named: ["v": Double.nan]) }
        try statement.bind(named: ["v": 9])
        #expect(try statement.run() == 1)
        #expect(try values() == [9])
    }

    @Test
    func `P23 an error of the arguments names the argument, and has no result code of the engine`()
        throws
    {
        let text = "SELECT :first, :second"
        let missing = expect(.misuse) {
            try connection.firstRow(SQL(text: text, named: ["first": 1]))
        }
        #expect(missing?.message == "the argument for :second is missing")
        let unused = expect(.misuse) {
            try connection.firstRow(
                SQL(text: text, named: ["first": 1, "second": 2, "third": 3], isStrict: true))
        }
        #expect(unused?.message == "no placeholder is named third")
        let count = expect(.misuse) { try connection.firstRow(SQL(text: text, arguments: [1])) }
        #expect(count?.message == "2 arguments expected, 1 given")
        let twice = expect(.misuse) {
            try connection.firstRow(SQL(text: text, named: [":first": 1, "@first": 1]))
        }
        #expect(twice?.message.contains("first") == true)
        for error in [missing, unused, count, twice] { #expect(error?.resultCode == nil) }
    }

    @Test func `P12 format specifiers are text, and quotes around a value stay outside it`() throws
    {
        try connection.execute("INSERT INTO t(v) VALUES (\("hello")), (\("100%d")), ('%@')")
        let found = try connection.rows("SELECT v FROM t WHERE v LIKE 'h%' OR v LIKE \("%d")")
        #expect(found.map { $0[0] } == ["hello", "100%d"])
        #expect(try connection.scalar("SELECT '%%s' || \("%") || '%li'") == "%%s%%li")
        // A placeholder in quotes is not a placeholder: the value would be lost.
        expect(.misuse) { try connection.scalar("SELECT '\("x")'", as: String.self) }
    }

    // MARK: Running

    @Test func `P3 a step that fails is an error and never the end`() throws {
        for id in 1...4 { try connection.execute("INSERT INTO t(id, v) VALUES (\(id), \(id))") }
        // The third row is beyond 64 bits, so the engine fails in the middle of the rows.
        let sql = "SELECT CASE id WHEN 3 THEN abs(-9223372036854775808) ELSE v END FROM t"
        let statement = try connection.prepare(sql)
        #expect(try statement.step())
        #expect(try statement.step())
        expect(.sql) { try statement.step() }
        let cursor = try connection.cursor(SQL(text: sql))
        #expect(try cursor.next()?[0] == 1)
        #expect(try cursor.next()?[0] == 2)
        expect(.sql) { try cursor.next() }
        // The cursor neither begins again nor pretends to be at the end.
        let closed = expect(.closed) { try cursor.next() }
        #expect((closed?.cause as? StoreError)?.code == .sql)
        expect(.sql) { try connection.rows(SQL(text: sql)) }
        var seen: [Value?] = []
        expect(.sql) { try connection.forEachRow(SQL(text: sql)) { seen.append($0[0]) } }
        #expect(seen == [1, 2])
        #expect(!connection.hasOpenCursors)
    }

    @Test func `P4 a second statement is an error in every verb`() throws {
        let text = "INSERT INTO t(v) VALUES (1); INSERT INTO t(v) VALUES (2)"
        expect(.sql) { try connection.execute(SQL(text: text)) }
        expect(.sql) { try connection.rows(SQL(text: text)) }
        expect(.sql) { try connection.prepare(text) }
        expect(.sql) { try connection.cursor(SQL(text: text)) }
        expect(.sql) { try connection.scalar(SQL(text: text), as: Int.self) }
        expect(.sql) { try connection.forEachRow(SQL(text: text)) { _ in } }
        #expect(try values().isEmpty)
        try connection.executeScript(text)
        #expect(try values() == [1, 2])
    }

    @Test func `P5 a statement that returns rows runs to its end in execute`() throws {
        #expect(try connection.execute("PRAGMA user_version = 7") == 0)
        #expect(try connection.execute("PRAGMA user_version") == 0)
        #expect(try connection.execute("SELECT 1") == 0)
        if isEngine4 {
            let sql: SQL = "INSERT INTO t(v) VALUES (1), (2) RETURNING id"
            #expect(try connection.execute(sql) == 2)
            let statement = try connection.prepare(sql.text)
            #expect(try statement.run() == 2)
            #expect(try values().count == 4)
            #expect(try connection.rows(sql).map { $0[0] } == [5, 6])
        }
        #expect(try connection.scalar("PRAGMA user_version", as: Int.self) == 7)
    }

    @Test func `a statement knows whether it is in use, and how often it was`() throws {
        try connection.execute("INSERT INTO t(v) VALUES (1), (2)")
        let statement = try connection.prepare("SELECT v FROM t")
        #expect(!statement.isInUse && statement.useCount == 0)
        #expect(try statement.step())
        #expect(statement.isInUse && statement.useCount == 1 && connection.hasOpenCursors)
        #expect(try statement.step())
        #expect(statement.useCount == 1)
        try statement.reset()
        #expect(!statement.isInUse && !connection.hasOpenCursors)
        try statement.run()
        #expect(statement.useCount == 2)
    }

    @Test func `closeCursors resets a prepared statement, which runs again`() throws {
        try connection.execute("INSERT INTO t(v) VALUES (1), (2)")
        let statement = try connection.prepare("SELECT v FROM t")
        #expect(try statement.step())
        try connection.closeCursors()
        #expect(!statement.isInUse)
        expect(.misuse) { try statement.value(at: 0) }
        #expect(try statement.step())
        #expect(try statement.value(at: 0) == 1)
        try statement.reset()
        try connection.transaction { try connection.execute("DELETE FROM t") }
    }

    @Test func `closeCursors does not disturb a statement that a verb runs`() throws {
        try connection.execute("INSERT INTO t(v) VALUES (1), (2)")
        var seen: [Value?] = []
        try connection.forEachRow("SELECT v FROM t") { row in
            seen.append(row[0])
            try connection.closeCursors()
        }
        #expect(seen == [1, 2])
    }

    @Test func `a cursor that is released releases its lock`() throws {
        try connection.execute("INSERT INTO t(v) VALUES (1), (2)")
        do {
            let cursor = try connection.cursor("SELECT v FROM t")
            #expect(try cursor.next() != nil)
            #expect(connection.hasOpenCursors)
        }
        #expect(!connection.hasOpenCursors)
        try connection.transaction { try connection.execute("DELETE FROM t") }
    }

    @Test func `a cursor ends with its connection`() throws {
        try connection.execute("INSERT INTO t(v) VALUES (1), (2)")
        let cursor = try connection.cursor("SELECT v FROM t")
        #expect(try cursor.next() != nil)
        connection.close()
        expect(.closed) { try cursor.next() }
        expect(.closed) { try cursor.value(at: 0) }
        expect(.closed) { try connection.cursor("SELECT 1") }
    }

    @Test func `P4 a pragma next to another statement has no effect`() throws {
        for sql in [
            "SELECT 1; PRAGMA foreign_keys = OFF", "PRAGMA foreign_keys = OFF; SELECT 1",
            "PRAGMA foreign_keys = OFF; PRAGMA user_version", "/* */ PRAGMA foreign_keys(0); x",
            "-- PRAGMA\n\tPragma foreign_keys = OFF; SELECT 1",
            "/*/ x */--\n/***/\r\npragma foreign_keys(0); x",
            "\u{feff}PRAGMA foreign_keys = OFF; SELECT 1", "/* PRAGMA foreign_keys = OFF", "--",
            "/*",
        ] {
            expect(.sql) { try connection.rows(SQL(text: sql)) }
            expect(.sql) { try connection.prepare(sql) }
            #expect(try connection.scalar("PRAGMA foreign_keys") == 1)
        }
        try connection.execute("PRAGMA foreign_keys = OFF;")
        #expect(try connection.scalar("PRAGMA foreign_keys") == 0)
    }

    @Test func `ATTACH is also refused under the name that VACUUM uses`() throws {
        expect(.misuse) { try connection.execute("ATTACH 'vacuum_db' AS x") }
        try connection.execute("VACUUM")
    }

    @Test(.enabled(if: isEngine4))
    func `a write that is released with a current row is rolled back`() throws {
        var statement: Statement? = try connection.prepare(
            "INSERT INTO t(v) VALUES (1) RETURNING v")
        #expect(try statement?.step() == true)
        statement = nil
        #expect(!connection.isInTransaction)
        #expect(try values().isEmpty)
    }

    @Test func `a statement describes itself without its values`() throws {
        let statement = try connection.prepare("INSERT INTO t(v) VALUES (?)")
        try statement.bind("secret", at: 0)
        try statement.run()
        #expect("\(statement)" == "Statement(used 1 time: INSERT INTO t(v) VALUES (?))")
    }

    // MARK: What went wrong in FMDB once

    @Test func `P35 two cursors on one text each see every row`() throws {
        try connection.execute("INSERT INTO t(v) VALUES (1), (2), (3)")
        let cursors = try (0..<2).map { _ in try connection.cursor("SELECT v FROM t") }
        var seen: [[Value]] = [[], []]
        for _ in 0..<3 {
            for (index, cursor) in cursors.enumerated() {
                let row = try #require(try cursor.next())
                seen[index].append(row.values[0])
            }
        }
        #expect(seen == [[1, 2, 3], [1, 2, 3]])
        #expect(try cursors.allSatisfy { try $0.next() == nil })
    }

    @Test func `P35 a cached statement that was left halfway begins again`() throws {
        try connection.execute("INSERT INTO t(v) VALUES (1), (2)")
        for _ in 0..<3 {
            let cursor = try connection.cursor("SELECT v FROM t WHERE v > \(0)")
            #expect(try cursor.next()?.values == [1])
        }
        expect(.constraint) { try connection.execute("INSERT INTO t(id, v) VALUES (\(1), 9)") }
        try connection.execute("INSERT INTO t(id, v) VALUES (\(3), 9)")
        #expect(try values() == [1, 2, 9])
    }

    @Test func `P35 names that begin with a digit are names`() throws {
        try connection.execute(#"CREATE TABLE "1st"("2nd" INT)"#)
        #expect(try connection.tableExists("1st"))
        #expect(try connection.columns(of: "1st").map(\.name) == ["2nd"])
        try connection.insert(into: "1st", ["2nd": 3])
        #expect(try connection.rows(in: "1st", where: ["2nd": 3]).count == 1)
    }
}
