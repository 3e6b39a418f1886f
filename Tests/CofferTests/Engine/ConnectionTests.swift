import CSQLCipher
import Foundation
import Testing

@testable import Coffer

@Suite(.againstHanging, .onOwnThreads) struct ConnectionTests {
    private let folder: TemporaryFolder
    private let connection: Connection

    init() throws {
        folder = try TemporaryFolder()
        connection = try Connection(
            path: folder.path(), key: .numbered(1), configuration: .testing(.delete))
        try connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, v)")
    }

    private func count() throws -> Int { try connection.rows("SELECT * FROM t").count }

    // MARK: Key

    @Test func `nothing works before the key and setKey works once`() throws {
        let other = Connection(path: folder.path("other.db"), configuration: .testing())
        #expect(!other.isOpen)
        expect(.misuse) { try other.execute("SELECT 1") }
        #expect(!FileManager.default.fileExists(atPath: folder.path("other.db")))
        try other.setKey(.numbered(1))
        try other.execute("CREATE TABLE t(v)")
        expect(.misuse) { try other.setKey(.numbered(1)) }
        other.close()
        other.close()
        expect(.closed) { try other.execute("SELECT 1") }
        expect(.closed) { try other.setKey(.numbered(1)) }
    }

    @Test func `setKey can be tried again after a wrong key`() throws {
        connection.close()
        let other = Connection(
            path: folder.path(), mode: .mustExist, configuration: .testing(.delete))
        expect(.wrongKey) { try other.setKey(.numbered(2)) }
        try other.setKey(.numbered(1))
        #expect(try other.rows("SELECT * FROM t").isEmpty)
    }

    // MARK: Values

    @Test func `values of every storage class come back exactly`() throws {
        let values: [Value] = [
            .null, .integer(0), .integer(.min), .integer(.max), .real(0.1), .real(.infinity),
            .real(-.infinity), .real(.leastNonzeroMagnitude), .text(""), .text("a\0b"),
            .text("🗝️ é"), .blob(Data()), .blob(Data([0, 1, 255])),
            .blob(Data(repeating: 3, count: 1 << 20)),
        ]
        for value in values {
            try connection.execute("DELETE FROM t")
            try connection.execute("INSERT INTO t(v) VALUES (\(value))")
            #expect(try connection.firstRow("SELECT v FROM t")?[0] == value)
        }
    }

    @Test func `NaN is refused, never stored as NULL`() throws {
        expect(.mismatch) { try connection.execute("INSERT INTO t(v) VALUES (\(Double.nan))") }
        let statement = try connection.prepare("INSERT INTO t(v) VALUES (?)")
        expect(.mismatch) { try statement.bind([.real(.nan)]) }
        #expect(try count() == 0)
    }

    @Test func `an unsigned integer above Int64 is refused, never wrapped`() throws {
        expect(.mismatch) { try connection.execute("INSERT INTO t(v) VALUES (\(UInt64.max))") }
        #expect(try count() == 0)
    }

    @Test func `a text that is not UTF-8 is .mismatch naming the column`() throws {
        try connection.execute("INSERT INTO t(v) VALUES (CAST(x'ff00' AS TEXT))")
        let error = expect(.mismatch) { _ = try connection.rows("SELECT v FROM t") }
        #expect(error?.column == "v")
    }

    @Test func `typed reading is exact or .mismatch`() throws {
        let row = try #require(
            try connection.firstRow(
                "SELECT 300 AS big, 'x' AS text, NULL AS missing_value, 2 AS two"))
        #expect(try row.get("big") == 300)
        expect(.mismatch) { try row.get("big", as: UInt8.self) }
        expect(.mismatch) { try row.get("text", as: Int.self) }
        expect(.mismatch) { try row.get("missing_value", as: Int.self) }
        expect(.mismatch) { try row.get("two", as: Bool.self) }
        expect(.notFound) { try row.get("missing", as: Int.self) }
        expect(.notFound) { try row.get(9, as: Int.self) }
        #expect(try row.get("missing_value", as: Int?.self) == nil)
        #expect(row["missing"] == nil)
        #expect(row.columnNames == ["big", "text", "missing_value", "two"])
    }

    // MARK: SQL

    @Test func `an interpolated value is bound and never becomes SQL`() throws {
        let hostile = "'; DROP TABLE t; --"
        try connection.execute("INSERT INTO t(v) VALUES (\(hostile))")
        #expect(
            try connection.firstRow("SELECT v FROM t WHERE v = \(hostile)")?[0] == .text(hostile))
        let sql: SQL = "SELECT * FROM t WHERE id IN \(list: [1, 2]) AND v = \("x")"
        #expect(sql.text == "SELECT * FROM t WHERE id IN (?, ?) AND v = ?")
        #expect(sql.arguments == [1, 2, "x"])
    }

    private enum Kind: String { case draft, sent }
    private enum Level: Int, ValueConvertible {
        case low = 1
        func asValue() throws(StoreError) -> Value { .text("low") }
    }

    @Test func `an enum is bound as its raw value, unless it says what its value is`() {
        let kind: Kind? = .sent
        let none: Kind? = nil
        let list: SQL = "\(list: [Kind.draft, .sent]) \(list: [Level.low])"
        let sql: SQL = "\(Kind.draft) \(kind) \(none) \(list) \(Level.low)"
        #expect(sql.text == "? ? ? (?, ?) (?) ?")
        #expect(sql.arguments == ["draft", "sent", nil, "draft", "sent", "low", "low"])
    }

    @Test func `the name of a column is never bound as a value`() throws {
        let query: any ColumnQuery = NamedColumnQuery()
        let error = expect(.misuse) { try connection.rows(query.sql(.v)) }
        #expect(error?.hint?.contains("identifier:") == true)
    }

    @Test(arguments: ["t\"x", "select", "with space", "🗝️", "a'b", "--"])
    func `any name can be quoted`(name: String) throws {
        try connection.execute("CREATE TABLE \(identifier: name) (\(identifier: name) INT)")
        try connection.execute("INSERT INTO \(identifier: name) VALUES (1)")
        let row = try connection.firstRow("SELECT * FROM \(identifier: name)")
        #expect(row?.columnNames == [name])
    }

    @Test func `a name with NUL or without letters is refused`() throws {
        expect(.sql) { try connection.execute("CREATE TABLE \(identifier: "a\0b") (v)") }
        expect(.sql) { try connection.execute("CREATE TABLE \(identifier: "") (v)") }
    }

    @Test(arguments: [
        "INSERT INTO t(v) VALUES (1); INSERT INTO t(v) VALUES (2)",
        "SELECT 1; garbage", "SELECT 1\0; DROP TABLE t", "", "  -- nothing", "garbage",
    ])
    func `text that is not exactly one statement is .sql and runs nothing`(sql: String) throws {
        expect(.sql) { try connection.execute(SQL(text: sql)) }
        #expect(try count() == 0)
    }

    @Test(arguments: ["SELECT 1;", "SELECT 1 ; ; ", "SELECT 1; -- done", "SELECT 1 /* x */ ;\n"])
    func `whitespace, semicolons and comments may follow`(sql: String) throws {
        #expect(try connection.rows(SQL(text: sql)).count == 1)
    }

    @Test func `a wrong number of arguments is misuse and the statement stays usable`() throws {
        let statement = try connection.prepare("INSERT INTO t(v) VALUES (?)")
        expect(.misuse) { try statement.bind([]) }
        expect(.misuse) { try statement.bind([1, 2]) }
        try statement.bind([7])
        #expect(try !statement.step())
        #expect(try connection.firstRow("SELECT v FROM t")?[0] == 7)
        expect(.misuse) { try connection.execute(SQL(text: "INSERT INTO t(v) VALUES (?)")) }
        try connection.execute("INSERT INTO t(v) VALUES (\(8))")
        #expect(try count() == 2)
    }

    @Test func `errors name the SQL and no value`() throws {
        try connection.execute("CREATE TABLE u(v UNIQUE)")
        try connection.execute("INSERT INTO u VALUES (\("my secret"))")
        let error = expect(.constraint) {
            try connection.execute("INSERT INTO u VALUES (\("my secret"))")
        }
        #expect(error?.sql == "INSERT INTO u VALUES (?)")
        #expect(error?.resultCode == 2067)
        #expect(!"\(error!)".contains("secret"))
    }

    @Test func `execute counts the rows that it changed`() throws {
        #expect(try connection.execute("INSERT INTO t(v) VALUES (1), (2), (3)") == 3)
        #expect(try connection.execute("UPDATE t SET v = 0 WHERE v > 1") == 2)
        #expect(try connection.execute("SELECT * FROM t") == 0)
        #expect(try connection.execute("CREATE TABLE u(v)") == 0)
        #expect(try connection.execute("DELETE FROM t") == 3)
        #expect(connection.lastInsertedRowID == 3)
    }

    // MARK: Transactions and cursors

    @Test func `two cursors over the same SQL do not disturb each other`() throws {
        try connection.execute("INSERT INTO t(v) VALUES (1), (2), (3)")
        let sql = "SELECT v FROM t ORDER BY v"
        let first = try connection.cached(sql)
        let second = try connection.cached(sql)
        #expect(first !== second)
        #expect(try first.step())
        #expect(try second.step())
        #expect(try second.step())
        #expect(try first.value(at: 0) == 1)
        #expect(try second.value(at: 0) == 2)
        connection.release(first)
        connection.release(second)
    }

    @Test func `a write next to an open cursor is durable when it returns`() throws {
        try connection.execute("INSERT INTO t(v) VALUES (1), (2), (3)")
        let cursor = try connection.prepare("SELECT v FROM t")
        #expect(try cursor.step())
        try connection.execute("INSERT INTO t(v) VALUES (4)")
        try cursor.reset()
        connection.close()
        let again = try Connection(
            path: folder.path(), key: .numbered(1), configuration: .testing(.delete))
        #expect(try again.rows("SELECT * FROM t").count == 4)
    }

    @Test func `reset before the end releases the lock`() throws {
        try connection.execute("INSERT INTO t(v) VALUES (1), (2)")
        let cursor = try connection.prepare("SELECT v FROM t")
        #expect(try cursor.step())
        #expect(!connection.isInTransaction)
        try cursor.reset()
        #expect(
            try Peer.run(["insert", "delete", folder.path(), "1", "from outside"]) == ["inserted"])
        #expect(try count() == 3)
    }

    @Test func `a transaction commits, rolls back and does not nest`() throws {
        try connection.transaction {
            #expect(connection.isInTransaction)
            try connection.execute("INSERT INTO t(v) VALUES (1)")
            expect(.misuse) { try connection.transaction {} }
        }
        try? connection.transaction {
            try connection.execute("DELETE FROM t")
            throw CancellationError()
        }
        #expect(!connection.isInTransaction)
        #expect(try count() == 1)
        expect(.misuse) { try connection.savepoint {} }
    }

    @Test func `nothing runs after SQLite has rolled back the transaction of a body`() throws {
        try connection.execute("CREATE TABLE u(v UNIQUE)")
        expect(.rolledBack) {
            try connection.transaction {
                try connection.execute("INSERT INTO u VALUES (1)")
                _ = try? connection.execute("INSERT OR ROLLBACK INTO u VALUES (1)")
                _ = expect(.rolledBack) { try connection.execute("INSERT INTO t(v) VALUES (1)") }
            }
        }
        #expect(try count() == 0)
    }

    @Test func `a body of a transaction cannot end it in SQL`() throws {
        expect(.misuse) {
            try connection.transaction {
                try connection.execute("INSERT INTO t(v) VALUES (1)")
                try connection.execute("COMMIT")
            }
        }
        #expect(try count() == 0)
        try connection.execute("BEGIN")
        try connection.execute("COMMIT")
    }

    @Test func `a savepoint needs a transaction, not only an open cursor`() throws {
        try connection.execute("INSERT INTO t(v) VALUES (1), (2)")
        let cursor = try connection.prepare("SELECT v FROM t")
        #expect(try cursor.step())
        expect(.misuse) { try connection.savepoint {} }
        try cursor.reset()
    }

    @Test func `a cursor that is released with a current row ends its transaction`() throws {
        try connection.execute("INSERT INTO t(v) VALUES (1), (2)")
        do {
            let cursor = try connection.prepare("SELECT v FROM t")
            #expect(try cursor.step())
        }
        try connection.transaction { try connection.execute("DELETE FROM t") }
        #expect(try count() == 0)
    }

    @Test func `column names follow the schema`() throws {
        try connection.execute("CREATE TABLE u(a, b)")
        try connection.execute("INSERT INTO u VALUES (1, 2)")
        let sql: SQL = "SELECT * FROM u"
        #expect(try connection.firstRow(sql)?["a"] == 1)
        try connection.execute("DROP TABLE u")
        try connection.execute("CREATE TABLE u(b, a)")
        try connection.execute("INSERT INTO u VALUES (1, 2)")
        #expect(try connection.firstRow(sql)?["a"] == 2)
    }

    @Test func `texts that differ only in normalisation are two statements`() throws {
        let composed = try connection.firstRow(SQL(text: "SELECT length('\u{e9}')"))
        let decomposed = try connection.firstRow(SQL(text: "SELECT length('e\u{301}')"))
        #expect(composed?[0] == 1 && decomposed?[0] == 2)
    }

    @Test(arguments: ["12abc", "", "1.2.3", "1-2", " 1", "NaN", "+", "1e"])
    func `a text that is not a decimal number is .mismatch`(text: String) throws {
        expect(.mismatch) { try Decimal(Value.text(text)) }
    }

    @Test(arguments: ["0", "-12.50", "1e3", "340282366920938463463374607431768211455"])
    func `a decimal number is read digit for digit`(text: String) throws {
        #expect(try Decimal(Value.text(text)) == Decimal(string: text))
        expect(.mismatch) { try Float(Value.real(1e300)) }
    }

    @Test func `the transaction's state is SQLite's own, also after the user's SQL`() throws {
        try connection.execute("BEGIN")
        #expect(connection.isInTransaction)
        try connection.execute("INSERT INTO t(v) VALUES (1)")
        try connection.execute("ROLLBACK")
        #expect(!connection.isInTransaction)
        #expect(try count() == 0)
        try connection.execute("VACUUM")
    }

    @Test func `a statement ends with its connection`() throws {
        let statement = try connection.prepare("SELECT 1")
        connection.close()
        expect(.closed) { _ = try statement.step() }
        expect(.closed) { try statement.bind([]) }
    }

    @Test func `the statement cache is bounded`() throws {
        var configuration = Configuration.testing(.delete)
        configuration.maximumStatementCount = 4
        let other = try Connection(
            path: folder.path("small.db"), key: .numbered(1), configuration: configuration)
        for number in 0..<20 { try other.execute(SQL(text: "SELECT " + String(number))) }
        #expect(other.cache.count == 4)
    }

    @Test(arguments: ["key", "rekey", "hexkey", "hexrekey", "textkey", "textrekey"])
    func `a key in SQL text is misuse that names the verb`(pragma: String) throws {
        let error = expect(.misuse) {
            try connection.execute(SQL(text: "PRAGMA " + pragma + " = 'hunter2'"))
        }
        #expect(error?.message.contains("(") == true)
        expect(.misuse) { try connection.execute("PRAGMA temp_store = FILE") }
        expect(.misuse) { try connection.execute("PRAGMA journal_mode = WAL") }
        #expect(try count() == 0)
    }

    @Test(arguments: [
        "PRAGMA key = 'hunter2'", "SELECT 1; PRAGMA key = 'hunter2'",
        "ATTACH '/no/where' AS a KEY 'hunter2'", "ATTACH '/no/where' AS a KEY 'hunter2'; SELECT 1",
        "ATTACH ? AS a KEY 'hunter2'", "/* x */ pragma rekey('hunter2')",
        "PRAGMA key = 'hunter2", "PRAGMA key = 'hunter2' \0",
    ])
    func `no key in SQL text appears in an error`(sql: String) throws {
        do {
            try connection.execute(SQL(text: sql))
            Issue.record("nothing was thrown")
        } catch let error as StoreError {
            #expect(!"\(error)".contains("hunter2"), "\(error.code)")
            #expect(error.sql?.contains("hunter2") != true)
        }
    }

    @Test func `a name that only looks like ATTACH and KEY stays in the error`() throws {
        let error = expect(.sql) { try connection.execute("SELECT key FROM attachments") }
        #expect(error?.sql == "SELECT key FROM attachments")
    }

    @Test func `attaching by SQL text is off, and VACUUM works`() throws {
        let error = expect(.misuse) { try connection.execute("ATTACH '/no/where' AS a") }
        #expect(error?.message.contains("attach(_:as:key:)") == true)
        try connection.execute("VACUUM")
        try connection.execute("/* a comment */ -- and another\n VACUUM")
    }

    @Test(arguments: ["COMMIT", "ROLLBACK", "END"])
    func `transaction SQL compiled before a body cannot end it`(sql: String) throws {
        let prepared = try connection.prepare(sql)
        #expect(throws: CancellationError.self) {
            try connection.transaction {
                try connection.execute("INSERT INTO t(v) VALUES (1)")
                _ = expect(.misuse) { try prepared.step() }
                throw CancellationError()
            }
        }
        #expect(try count() == 0)
    }

    @Test func `COMMIT by SQL next to an open cursor is misuse`() throws {
        try connection.execute("INSERT INTO t(v) VALUES (1), (2)")
        let cursor = try connection.prepare("SELECT v FROM t")
        #expect(try cursor.step())
        expect(.misuse) { try connection.execute("COMMIT") }
        #expect(try cursor.step())
        #expect(try !cursor.step())
    }

    @Test func `a write that failed half-way is rolled back next to an open cursor too`() throws {
        try connection.execute("INSERT INTO t(id, v) VALUES (1, 1), (2, 2)")
        let cursor = try connection.prepare("SELECT v FROM t")
        #expect(try cursor.step())
        expect(.constraint) {
            try connection.execute("INSERT OR FAIL INTO t(id, v) SELECT 7, 7 UNION ALL SELECT 1, 1")
        }
        try cursor.reset()
        #expect(try count() == 2)
    }

    @Test func `closing inside a body ends it with .closed`() throws {
        expect(.closed) {
            try connection.transaction {
                try connection.execute("INSERT INTO t(v) VALUES (1)")
                connection.close()
            }
        }
        let again = try Connection(
            path: folder.path(), key: .numbered(1), configuration: .testing(.delete))
        expect(.closed) {
            try again.transaction { try again.savepoint { again.close() } }
        }
        let third = try Connection(
            path: folder.path(), key: .numbered(1), configuration: .testing(.delete))
        #expect(try third.rows("SELECT * FROM t").isEmpty)
    }

    @Test func `the engine reports its version and capabilities`() throws {
        let capabilities = try Engine.capabilities
        #expect(capabilities.cipherMajorVersion >= 3)
        #expect(capabilities.sqliteVersion == String(cString: sqlite3_libversion()))
        #expect((capabilities.ageNotice != nil) == (capabilities.cipherMajorVersion < 4))
        // Headers of another engine, from an earlier build in the same folder.
        #expect(SQLITE_VERSION_NUMBER == sqlite3_libversion_number())
        // `make test ENGINE=4` sets it.
        if ProcessInfo.processInfo.environment["COFFER_TEST_ENGINE"] == "4" {
            #expect(capabilities.cipherMajorVersion == 4)
        }
    }
}

private enum Columns: String, CodingKey { case v }

/// The compiler does not warn of a deprecated function that is called through a protocol.
private protocol ColumnQuery {
    func sql(_ key: Columns) -> SQL
}

private struct NamedColumnQuery: ColumnQuery {
    @available(*, deprecated)
    func sql(_ key: Columns) -> SQL { "SELECT * FROM t WHERE \(key) = 1" }
}
