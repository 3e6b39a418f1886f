import Foundation
import Testing

@testable import Coffer

/// Files that an attacker made for a program that opens them with the right key.
@Suite(.againstHanging, .onOwnThreads) struct HostileTests {
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    /// Makes the file on the bare engine, which allows everything.
    private func make(_ statements: [String]) throws {
        let raw = try RawConnection(path, key: 1)
        for sql in ["CREATE TABLE good(v)", "INSERT INTO good VALUES (1)"] + statements {
            let code = raw.run(sql)
            try #require(code == 0, "\(sql.prefix(80)): \(code)")
        }
    }

    /// A row of the schema that no statement would write.
    private static func schemaRow(
        _ type: String, _ name: String, root: Int, sql: String
    ) -> String {
        let text = sql.utf8.map { String($0, radix: 16) }.map { $0.count == 1 ? "0" + $0 : $0 }
        return schemaRow(type, name, root: root, hex: text.joined())
    }

    private static func schemaRow(
        _ type: String, _ name: String, root: Int, hex: String
    ) -> String {
        "INSERT INTO sqlite_master VALUES "
            + "('\(type)', '\(name)', '\(name)', \(root), CAST(x'\(hex)' AS TEXT))"
    }

    private static let writable = "PRAGMA writable_schema = ON"

    private func open(_ mode: Configuration.JournalMode = .delete) throws -> Connection {
        try Connection(path: path, key: .numbered(1), configuration: .testing(mode))
    }

    struct Attack: Sendable, CustomTestStringConvertible {
        let name: String
        let statements: [String]
        let query: String
        let code: StoreError.Code
        /// SQLCipher 4 may refuse it earlier, as an unsafe use of the function.
        var code4: StoreError.Code?
        var expected: StoreError.Code { isEngine4 ? code4 ?? code : code }
        var testDescription: String { name }
    }

    private static let inSchema = [
        Attack(
            name: "a circular view",
            statements: ["CREATE VIEW a AS SELECT * FROM b", "CREATE VIEW b AS SELECT * FROM a"],
            query: "SELECT * FROM a", code: .sql),
        Attack(
            name: "a view that loads code",
            statements: ["CREATE VIEW a AS SELECT load_extension('/tmp/x.so')"],
            query: "SELECT * FROM a", code: .misuse, code4: .sql),
        Attack(
            name: "a trigger that loads code",
            statements: [
                "CREATE TRIGGER x AFTER INSERT ON good BEGIN SELECT load_extension('x'); END"
            ],
            query: "INSERT INTO good VALUES (2)", code: .misuse),
        Attack(
            name: "a CHECK that tells an address",
            statements: ["CREATE TABLE a(v CHECK(hex(fts3_tokenizer('simple')) > ''))"],
            query: "INSERT INTO a VALUES (2)", code: .misuse),
        Attack(
            name: "a CHECK that loads code",
            statements: ["CREATE TABLE a(v CHECK(load_extension('x') IS NULL))"],
            query: "INSERT INTO a VALUES (2)", code: .misuse),
        Attack(
            name: "a CHECK that registers a tokenizer",
            statements: ["CREATE TABLE a(v CHECK(fts3_tokenizer('x', x'00') IS NULL))"],
            query: "INSERT INTO a VALUES (2)", code: .misuse),
        Attack(
            name: "a DEFAULT that tells an address",
            statements: ["CREATE TABLE a(w, v DEFAULT (fts3_tokenizer('simple')))"],
            query: "INSERT INTO a(w) VALUES (2)", code: .misuse, code4: .sql),
        Attack(
            name: "a column name that is not UTF-8",
            statements: [
                writable,
                // CREATE VIEW a AS SELECT 1 AS "\xff"
                schemaRow(
                    "view", "a", root: 0,
                    hex: "435245415445205649455720612041532053454c454354203120415320"
                        + "22ff22"),
            ],
            query: "SELECT * FROM a", code: .mismatch),
    ]

    @Test(arguments: inSchema)
    func `an attack in the schema is refused and good rows are read`(attack: Attack) throws {
        try make(attack.statements)
        let connection = try open()
        let error = expect(attack.expected) { try connection.rows(SQL(text: attack.query)) }
        #expect(error?.pages.isEmpty == true)
        #expect(try connection.rows("SELECT v FROM good").map(\.values) == [[1]])
        connection.close()
        let store = try Store(path: path, key: .numbered(1), configuration: .testing())
        expect(attack.expected) {
            try store.write { tx in _ = try tx.rows(SQL(text: attack.query)) }
        }
        #expect(try store.read { tx in try tx.rows("SELECT v FROM good").count } == 1)
    }

    private static let malformed = [
        ("garbage", schemaRow("table", "a", root: 2, sql: "CREATE nonsense")),
        (
            "a module that does not exist",
            schemaRow("table", "a", root: 0, sql: "CREATE VIRTUAL TABLE a USING nothing(x)")
        ),
        (
            "a deep expression",
            schemaRow(
                "view", "a", root: 0,
                sql: "CREATE VIEW a AS SELECT 1" + String(repeating: "+1", count: 5000))
        ),
        ("a page far away", "UPDATE sqlite_master SET rootpage = 999999"),
        ("a table on the page of the schema", "UPDATE sqlite_master SET rootpage = 1"),
        ("a negative page", "UPDATE sqlite_master SET rootpage = -7"),
        ("no page", "UPDATE sqlite_master SET rootpage = NULL"),
        ("a name of bytes", "UPDATE sqlite_master SET name = x'ff00ff', sql = 'CREATE TABLE'"),
    ]

    /// Either the file does not open, or its table is not readable: SQLCipher 4 checks more.
    @Test(arguments: 0..<malformed.count)
    func `a schema that cannot be is damage or no row, never a crash`(index: Int) throws {
        try make([Self.writable, Self.malformed[index].1])
        do {
            let connection = try open()
            _ = try connection.rows("SELECT v FROM good")
        } catch let error as StoreError {
            #expect([.damaged, .sql].contains(error.code), "\(Self.malformed[index].0): \(error)")
            #expect(error.pages.isEmpty, "no page failed authentication")
        }
    }

    @Test func `triggers that call each other come to an end`() throws {
        try make([
            "CREATE TABLE a(v)", "CREATE TABLE b(v)",
            "CREATE TRIGGER x AFTER INSERT ON a BEGIN INSERT INTO b VALUES (1); END",
            "CREATE TRIGGER y AFTER INSERT ON b BEGIN INSERT INTO a VALUES (1); END",
        ])
        let connection = try open()
        try connection.execute("PRAGMA recursive_triggers = ON")
        expect(.sql) { try connection.execute("INSERT INTO a VALUES (1)") }
        #expect(try connection.rows("SELECT v FROM a").isEmpty, "all of it is undone")
    }

    @Test func `false statistics and a huge name do no harm`() throws {
        let name = String(repeating: "n", count: 1 << 20)
        try make([
            "CREATE TABLE \"\(name)\"(v)", "CREATE INDEX by_v ON good(v)", "ANALYZE",
            "UPDATE sqlite_stat1 SET stat = '99999999999999999999 -5 x 0 \(name)'",
            "INSERT INTO sqlite_stat1 VALUES ('nothing', x'ff', x'00')",
        ])
        let connection = try open()
        #expect(try connection.rows("SELECT v FROM good WHERE v = 1").count == 1)
        #expect(try connection.execute("INSERT INTO \(identifier: name) VALUES (1)") == 1)
    }

    @Test func `full-text search works without its tokenizer function`() throws {
        let connection = try open()
        try connection.execute("CREATE VIRTUAL TABLE f USING fts4(v, tokenize=porter)")
        try connection.execute("INSERT INTO f VALUES ('running dogs')")
        #expect(try connection.rows("SELECT v FROM f WHERE f MATCH 'run'").count == 1)
        for sql in [
            "SELECT fts3_tokenizer('simple')", "SELECT fts3_tokenizer('x', x'00')",
            "SELECT load_extension('x')", "SELECT LOAD_EXTENSION('x', 'y')",
        ] {
            expect(.misuse) { try connection.rows(SQL(text: sql)) }
        }
    }

    private static let pragmas = [
        "PRAGMA writable_schema(1)", "PRAGMA main.writable_schema = 1",
        "pragma /* */ journal_mode(delete)", "PRAGMA\tmain.journal_mode('off')",
        "PRAGMA temp_store(1)", "PRAGMA page_size(512)", "PRAGMA key('x')", "PRAGMA rekey(\"x\")",
        "PRAGMA cipher_page_size(512)", "PRAGMA locking_mode(exclusive)",
        "PRAGMA Trusted_Schema(on)",
    ]

    @Test(arguments: pragmas)
    func `a pragma in any form is refused`(text: String) throws {
        try make([])
        let connection = try open()
        expect(.misuse) { try connection.rows(SQL(text: text)) }
        try connection.transaction { expect(.misuse) { try connection.rows(SQL(text: text)) } }
        expect(.misuse) { try connection.prepare(text) }
        connection.close()
        let store = try Store(path: path, key: .numbered(1), configuration: .testing(.delete))
        expect(.misuse) { try store.read { tx in _ = try tx.rows(SQL(text: text)) } }
        expect(.misuse) { try store.write { tx in _ = try tx.execute(SQL(text: text)) } }
        #expect(try store.read { tx in try tx.rows("SELECT v FROM good").count } == 1)
    }

    @Test(.enabled(if: isEngine4), arguments: ["journal_mode('off')", "writable_schema(1)"])
    func `a pragma as a table changes nothing`(call: String) throws {
        try make([])
        let connection = try open(.wal)
        _ = try? connection.rows(SQL(text: "SELECT * FROM pragma_\(call)"))
        #expect(try connection.firstRow("PRAGMA journal_mode")?[0] == "wal")
        #expect(try connection.firstRow("PRAGMA writable_schema")?[0] == 0)
    }

    @Test func `a key behind a NUL stays out of the error`() throws {
        let connection = try open()
        let error = expect(.sql) { try connection.execute("PRAGMA\0key = 'hunter2'") }
        #expect(error.map { !"\($0)".contains("hunter2") } == true)
    }
}
