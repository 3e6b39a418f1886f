import CSQLCipher
import Foundation
import Testing

@testable import Coffer

@Suite(.againstHanging, .onOwnThreads) struct ScriptTests {
    private let folder: TemporaryFolder
    private let connection: Connection

    init() throws {
        folder = try TemporaryFolder()
        connection = try Connection(
            path: folder.path(), key: .numbered(1), configuration: .testing(.delete))
    }

    private func count(_ table: String) throws -> Int? {
        try connection.scalar("SELECT count(*) FROM \(identifier: table)")
    }

    @Test func `a script runs all its statements`() throws {
        try connection.executeScript(
            """
            -- A table with a semicolon in a text; and one in this comment
            CREATE TABLE t(v DEFAULT ';');
            INSERT INTO t DEFAULT VALUES; ;;
            CREATE TRIGGER g AFTER INSERT ON t WHEN new.v = 1 BEGIN
                DELETE FROM t WHERE v = ';'; INSERT INTO t VALUES (2);
            END;
            INSERT INTO t VALUES (1) /* the last one has no semicolon */
            """)
        #expect(try connection.rows("SELECT v FROM t ORDER BY v").map { $0[0] } == [1, 2])
        try connection.executeScript("")
        try connection.executeScript("BEGIN; INSERT INTO t VALUES (3); ROLLBACK;")
        #expect(try count("t") == 2)
        #expect(!connection.isInTransaction && !connection.hasOpenCursors)
    }

    @Test func `P13 rows of a script have types, NULs and all columns of one name`() throws {
        var rows: [Row] = []
        let isWhole = try connection.executeScript(
            """
            CREATE TABLE t(v);
            INSERT INTO t VALUES (x'610062');
            SELECT v, 1 AS v, 2.5 AS v, 'a' || char(0) || 'b', NULL, x'' FROM t;
            SELECT 'second' AS name;
            """
        ) { row in
            rows.append(row)
            return .continue
        }
        #expect(isWhole && rows.count == 2)
        let bytes = Value.blob(Data([0x61, 0, 0x62]))
        #expect(rows.first?.values == [bytes, 1, 2.5, "a\0b", .null, .blob(Data())])
        #expect(rows.first?.columnNames.prefix(3) == ["v", "v", "v"])
        #expect(rows.last?["name"] == "second")
    }

    @Test func `P13 a script needs an open connection and has no arguments`() throws {
        expect(.misuse) { try connection.executeScript("SELECT ?") }
        connection.close()
        expect(.closed) { try connection.executeScript("SELECT 1") }
    }

    @Test func `a script stops where its closure says so`() throws {
        try connection.executeScript("CREATE TABLE t(v); INSERT INTO t VALUES (1), (2)")
        var seen: [Value?] = []
        let isWhole = try connection.executeScript("SELECT v FROM t; DROP TABLE t") { row in
            seen.append(row[0])
            return .stop
        }
        #expect(!isWhole)
        #expect(seen == [1])
        #expect(try count("t") == 2)
        #expect(!connection.hasOpenCursors)
        #expect(throws: CancellationError.self) {
            try connection.executeScript("SELECT v FROM t; DROP TABLE t") { _ in
                throw CancellationError()
            }
        }
        #expect(try count("t") == 2)
        try connection.transaction { try connection.execute("DELETE FROM t") }
    }

    @Test func `a failing statement is named by its offset, and those before it are done`() throws {
        let text = "CREATE TABLE t(v UNIQUE); INSERT INTO t VALUES (1), (2); "
        let failing = "INSERT INTO t VALUES (3), (1);"
        let error = expect(.constraint) {
            try connection.executeScript(text + failing + " INSERT INTO t VALUES (9)")
        }
        #expect(error?.sqlOffset == text.utf8.count - 1, "the space before it is its own")
        #expect(try count("t") == 2)
        let garbled = "SELECT 1; SELECT 'é'; SELECT nowhere"
        let compiled = expect(.sql) { try connection.executeScript(garbled) }
        let start = "SELECT 1; SELECT 'é';".utf8.count
        #expect(compiled?.sqlOffset == (isEngine4 ? garbled.utf8.count - 7 : start))
        expect(.sql) { try connection.executeScript("SELECT 1;\0 SELECT 2") }
    }

    @Test func `a script in a transaction is all or nothing, and cannot end it`() throws {
        expect(.misuse) {
            try connection.transaction {
                try connection.executeScript("CREATE TABLE t(v); COMMIT; CREATE TABLE u(v)")
            }
        }
        #expect(try count("sqlite_master") == 0)
        try connection.transaction { try connection.executeScript("CREATE TABLE t(v)") }
        #expect(try count("t") == 0)
    }

    @Test(arguments: [
        "SELECT 1; PRAGMA key = 'hunter2'", "PRAGMA key = 'hunter2", "PRAGMA rekey = hunter2 x",
        "SELECT 1; ATTACH '/no/where' AS a KEY 'hunter2",
    ])
    func `no key in a script appears in an error`(text: String) throws {
        do {
            try connection.executeScript(text)
            Issue.record("nothing was thrown")
        } catch {
            #expect(!"\(error)".contains("hunter2"))
        }
        do {
            try connection.validate(text)
            Issue.record("nothing was thrown")
        } catch {
            #expect(!"\(error)".contains("hunter2"))
        }
    }

    @Test func `validating runs nothing, not even a pragma`() throws {
        try connection.execute("CREATE TABLE t(v)")
        #expect(try connection.scalar("PRAGMA foreign_keys") == 1)
        try connection.validate(
            "PRAGMA foreign_keys = OFF; INSERT INTO t VALUES (1); DROP TABLE t; COMMIT")
        #expect(try connection.scalar("PRAGMA foreign_keys") == 1)
        #expect(try count("t") == 0)
        expect(.misuse) { try connection.validate("SELECT 1; PRAGMA journal_mode = WAL") }
        expect(.sql) { try connection.validate("CREATE TABLE u(v); INSERT INTO u VALUES (1)") }
        try connection.execute("PRAGMA foreign_keys = OFF")
        #expect(try connection.scalar("PRAGMA foreign_keys") == 0, "afterwards they work again")
    }

    @Test func `P25 an error has its codes, text and offset at once, and keeps them`() throws {
        try connection.execute("CREATE TABLE t(v UNIQUE)")
        try connection.execute("INSERT INTO t VALUES (1)")
        let unique = expect(.constraint) { try connection.execute("INSERT INTO t VALUES (\(1))") }
        let sql = "SELECT v FROM t WHERE wrong = 1"
        let syntax = expect(.sql) { try connection.rows(SQL(text: sql)) }
        _ = try connection.rows("SELECT v FROM t")
        #expect(unique?.resultCode == 2067 && unique?.sqlOffset == nil)
        #expect(unique?.sql == "INSERT INTO t VALUES (?)")
        #expect(syntax?.resultCode == 1 && syntax?.sql == sql)
        #expect(syntax?.message.contains("wrong") == true)
        #expect(syntax?.sqlOffset == (isEngine4 ? 22 : nil))
        #expect(syntax?.with(sql: "other").sqlOffset == syntax?.sqlOffset)
    }

    @Test(arguments: journalModes)
    func `P25 an error keeps its text where compiling has to read pages`(
        mode: Configuration.JournalMode
    ) throws {
        let connection = try Connection(
            path: folder.path("cold.db"), key: .numbered(1), configuration: .testing(mode))
        defer { connection.close() }
        try connection.execute("CREATE TABLE t(v)")
        for sql in ["SELECT wrong FROM t", "SELECT v FROM wrong"] {
            sqlite3_db_release_memory(try connection.current().db)
            let error = expect(.sql) { try connection.rows(SQL(text: sql)) }
            #expect(error?.message.contains("wrong") == true, "\(sql)")
            #expect(error?.sql == sql)
        }
    }

    @Test func `P25 the offset in a text with a key is not reported`() throws {
        let error = expect(.sql) { try connection.execute("PRAGMA key = 'hunter2") }
        #expect(error?.sqlOffset == nil && error?.sql == "PRAGMA …")
    }

    @Test func `a script may contain VACUUM`() throws {
        try connection.executeScript(
            "CREATE TABLE t(v); /* tidy */ VACUUM; -- and on\nINSERT INTO t VALUES (1)")
        #expect(try count("t") == 1)
    }
}
