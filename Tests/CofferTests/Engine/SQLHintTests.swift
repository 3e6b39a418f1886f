import Foundation
import Testing

@testable import Coffer

/// Hints for SQL that fails for a reason that the engine does not tell, and values that are asked
/// for in the wrong place.
@Suite struct SQLHintTests {
    private let connection: Connection

    init() throws {
        connection = try Connection(.memory)
    }

    @Test func `VACUUM in a transaction says where it runs`() throws {
        let error = expect(.sql) {
            try connection.transaction { try connection.execute("VACUUM") }
        }
        #expect(error?.hint?.contains("outside") == true)
    }

    @Test func `VACUUM in the transaction of a store says that compact() does more`() throws {
        let store = try Store(.memory)
        for sql: SQL in ["VACUUM", "  /* a */ vacuum"] {
            let error = expect(.sql) { try store.write { tx in try tx.execute(sql) } }
            #expect(error?.hint?.contains("Store.compact()") == true)
        }
    }

    @Test func `RENAME COLUMN says which engine has it`() throws {
        try connection.execute("CREATE TABLE t(a)")
        guard !isEngine4 else {
            try connection.execute("ALTER TABLE t RENAME COLUMN a TO b")
            return
        }
        for sql in ["ALTER TABLE t RENAME COLUMN a TO b", "alter table t rename a to b"] {
            let error = expect(.sql) { try connection.execute(SQL(text: sql)) }
            #expect(error?.hint?.contains("SQLCipher 4") == true)
        }
        try connection.execute("ALTER TABLE t RENAME TO u")
    }

    @Test func `MATCH says what it needs`() throws {
        try connection.execute("CREATE TABLE t(a)")
        try connection.execute("INSERT INTO t VALUES ('x')")
        let error = expect(.sql) { try connection.rows("SELECT * FROM t WHERE a MATCH 'x'") }
        #expect(error?.hint?.contains("full-text") == true)
    }

    @Test func `other errors have no such hint`() throws {
        for sql in ["SELECT nothing", "SELECT 1 FROM missing", "ALTER TABLE t RENAME TO u"] {
            #expect(expect(.sql) { try connection.rows(SQL(text: sql)) }?.hint == nil)
        }
    }

    @Test func `a column that the row lacks is .notFound, however it is asked for`() throws {
        let row = try #require(try connection.firstRow("SELECT 1"))
        expect(.notFound) { try row.get(999, as: Int.self) }
        let statement = try connection.prepare("SELECT 1")
        expect(.misuse) { try statement.value(at: 0) }
        #expect(try statement.step())
        for index in [1, 999, -1] {
            expect(.notFound) { try statement.value(at: index) }
            expect(.notFound) { try statement.value(at: index, as: Int.self) }
            expect(.notFound) { try statement.storageClass(at: index) }
        }
        #expect(try !statement.step())
        expect(.misuse) { try statement.value(at: 0) }
    }

    @Test func `rows are equal if their names and values are`() throws {
        func row(_ sql: SQL) throws -> Row { try #require(try connection.firstRow(sql)) }
        #expect(try row("SELECT 1 AS a, NULL AS b") == row("SELECT 1 AS a, NULL AS b"))
        #expect(try row("SELECT 1 AS a") != row("SELECT 1 AS b"))
        #expect(try row("SELECT 1 AS a") != row("SELECT 1.0 AS a"))
        #expect(try row("SELECT 1 AS a") != row("SELECT 1 AS a, 2 AS b"))
    }

    @Test func `an optional is bound, and nil is NULL`() throws {
        let none: String? = nil
        let some: String? = "x"
        let double: Int?? = .some(nil)
        let date: Date? = nil
        let row = try #require(
            try connection.firstRow("SELECT \(none), \(some), \(double), \(date), \(Int?.some(3))"))
        #expect(row.values == [.null, .text("x"), .null, .null, .integer(3)])
    }
}
