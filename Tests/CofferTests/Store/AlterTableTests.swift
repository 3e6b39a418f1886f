import Foundation
import Synchronization
import Testing

@testable import Coffer

/// Columns and tables that a migration renames or drops, on both engines alike.
@Suite(.againstHanging, .onOwnThreads) struct AlterTableTests {
    private let folder: TemporaryFolder
    private let path: String
    private let store: Store
    private let migrator: Migrator

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
        store = try Store(path: path, key: .numbered(1), configuration: .testing())
        migrator = Migrator(store)
    }

    private func execute(_ statements: String...) throws {
        try store.write { tx throws in
            for text in statements { try tx.execute(SQL(text: text)) }
        }
    }

    private func values(_ text: String) throws -> [Value] {
        try store.read { tx in try tx.rows(SQL(text: text)).flatMap(\.values) }
    }

    private func sql(of name: String) throws -> String {
        try store.read { tx throws in
            try tx.firstRow("SELECT sql FROM sqlite_master WHERE name = \(name)")?.get(0) ?? ""
        }
    }

    private func dump() throws -> [String] {
        try store.write { tx throws in
            let handle = try tx.connection().current()
            return try handle.authorizer.asCoffer { Result { try Dump.lines(handle.db) } }.get()
        }
    }

    /// A family of tables with everything that altering one of them must keep.
    private func makeFamily() throws {
        try execute(
            """
            CREATE TABLE author(id INTEGER PRIMARY KEY AUTOINCREMENT, "e mail" TEXT NOT NULL
                UNIQUE COLLATE NOCASE, born REAL DEFAULT 1.5 CHECK (born > 0), name TEXT,
                mentor INTEGER REFERENCES author(id) ON DELETE SET NULL,
                CONSTRAINT named CHECK (length(name) < 100 AND "name" <> 'name'),
                UNIQUE (name, born))
            """,
            """
            CREATE TABLE book(key TEXT PRIMARY KEY, author TEXT REFERENCES author("e mail")
                ON UPDATE CASCADE ON DELETE CASCADE, title) WITHOUT ROWID
            """,
            "CREATE TABLE log(line)",
            "CREATE TABLE loan(id INTEGER PRIMARY KEY, due, back)",
            "CREATE INDEX dues ON loan(due) WHERE back IS NULL",
            "CREATE INDEX births ON author(born DESC, lower(name)) WHERE name IS NOT NULL",
            """
            CREATE TRIGGER logged AFTER INSERT ON author BEGIN
                INSERT INTO log VALUES (new.id); END
            """,
            "CREATE VIEW titles AS SELECT title, mentor FROM book, author",
            "INSERT INTO author VALUES (3, 'a@b', 1, 'ada', NULL), (7, 'e@f', 2, 'eve', 3)",
            "INSERT INTO author(id, \"e mail\") VALUES (50, 'x')",
            "DELETE FROM author WHERE id = 50",
            "INSERT INTO book VALUES ('k', 'A@B', 't'), ('l', 'e@f', 'u')", "DELETE FROM log")
    }

    // MARK: Columns

    @Test func `a renamed column keeps rows, constraints, indexes and what refers to it`() throws {
        try makeFamily()
        try migrator.run { tx in
            try tx.table("author").renameColumn("E Mail", to: "address")
            try tx.table("author").renameColumn("name", to: "full \"name\"")
            try tx.table("author").renameColumn("born", to: "select")
        }
        let author = try sql(of: "author")
        #expect(author.contains("\"address\" TEXT NOT NULL"))
        #expect(
            author.contains(
                "length(\"full \"\"name\"\"\") < 100 AND \"full \"\"name\"\"\" <> 'name'"))
        #expect(author.contains("UNIQUE (\"full \"\"name\"\"\", \"select\")"))
        #expect(
            try sql(of: "births")
                == "CREATE INDEX births ON author(\"select\" DESC, lower(\"full \"\"name\"\"\")) "
                + "WHERE \"full \"\"name\"\"\" IS NOT NULL")
        #expect(try sql(of: "book").contains("REFERENCES author(\"address\")"))
        #expect(
            try values("SELECT rowid, * FROM author WHERE id = 7") == [7, 7, "e@f", 2.0, "eve", 3])
        #expect(try values("SELECT title FROM titles").count == 4)
        try execute("INSERT INTO author(address) VALUES ('new')")
        // AUTOINCREMENT goes on after the highest row id ever, and the trigger is there.
        #expect(try values("SELECT line FROM log") == [51])
        for refused in [
            "INSERT INTO author(address) VALUES ('NEW')", "UPDATE author SET \"select\" = -1",
            "INSERT INTO book VALUES ('m', 'nobody', 1)",
        ] {
            expect(.constraint) { try execute(refused) }
        }
        try execute("UPDATE author SET address = 'z' WHERE id = 7")
        #expect(try values("SELECT author FROM book WHERE key = 'l'") == ["z"])
    }

    @Test func `dropped columns take their own constraints along, and nothing else`() throws {
        try makeFamily()
        try execute("DROP VIEW titles")
        try migrator.run { tx in
            try tx.table("author").dropColumns("mentor")
            try tx.table("book").dropColumns("title", "author")
        }
        #expect(try sql(of: "book") == "CREATE TABLE \"book\"(key TEXT PRIMARY KEY) WITHOUT ROWID")
        #expect(try values("SELECT * FROM author WHERE id = 3") == [3, "a@b", 1.0, "ada"])
        #expect(try values("SELECT * FROM book") == ["k", "l"])
        #expect(try values("SELECT seq FROM sqlite_sequence") == [50])
        #expect(try sql(of: "births").isEmpty == false)
    }

    @Test(arguments: [
        ("author", "id", "the primary key"), ("author", "born", "a constraint"),
        ("loan", "due", "the index dues"), ("loan", "back", "the index dues"),
        ("author", "e mail", "a foreign key of book"),
        ("author", "mentor", "the view titles"), ("book", "title", "the view titles"),
    ])
    func `a column that something names is not dropped, and the error says what names it`(
        table: String, column: String, owner: String
    ) throws {
        try makeFamily()
        let before = try dump()
        let error = expect(.unsupported) {
            try migrator.run { tx in try tx.table(table).dropColumns(column) }
        }
        #expect(error?.message.contains(owner) == true, "\(String(describing: error))")
        #expect(try dump() == before)
    }

    @Test func `a trigger or view that names a renamed column is named by the error`() throws {
        try makeFamily()
        try execute(
            "CREATE TRIGGER watched AFTER UPDATE OF key ON book BEGIN SELECT 1; END",
            "CREATE TRIGGER other AFTER DELETE ON log BEGIN UPDATE book SET author = 1; END")
        let before = try dump()
        for (table, column, owner) in [
            ("author", "id", "logged"), ("book", "key", "watched"), ("book", "author", "other"),
            ("author", "mentor", "titles"),
        ] {
            let error = expect(.unsupported) {
                try migrator.run { tx in try tx.table(table).renameColumn(column, to: "new") }
            }
            #expect(error?.message.contains(" \(owner) names the column \(column)") == true)
        }
        #expect(try dump() == before)
    }

    @Test func `CHECK of a table names its columns with the table in front`() throws {
        try execute(
            """
            CREATE TABLE t(a, "b c" CHECK (t.a <> [b c]), d DEFAULT 'a',
                UNIQUE('a') CHECK (`d` > a))
            """,
            "INSERT INTO t VALUES (1, 2, 3)")
        try migrator.run { tx in try tx.table("t").renameColumn("a", to: "naïve") }
        #expect(try values("SELECT \"naïve\", \"b c\", d FROM t") == [1, 2, 3])
        #expect(try sql(of: "t").contains("UNIQUE(\"naïve\")"))
        expect(.constraint) { try execute("INSERT INTO t VALUES (5, 5, 9)") }
        expect(.constraint) { try execute("INSERT INTO t VALUES (5, 6, 1)") }
        expect(.constraint) { try execute("INSERT INTO t VALUES (1, 6, 9)") }
        // Part of two constraints without a comma between them.
        expect(.unsupported) {
            try migrator.run { tx in try tx.table("t").dropColumns("naïve") }
        }
    }

    @Test func `rows without a key keep their row ids`() throws {
        try execute(
            "CREATE TABLE t(a, rowid, oid)", "INSERT INTO t(_rowid_, a) VALUES (9, 'x'), (-4, 'y')",
            "CREATE TABLE hidden(rowid, oid, _rowid_, a)", "INSERT INTO hidden VALUES (1, 2, 3, 4)")
        try migrator.run { tx in
            try tx.table("t").renameColumn("a", to: "b")
            try tx.table("t").dropColumns("oid")
        }
        #expect(try values("SELECT _rowid_, b FROM t ORDER BY 1") == [-4, "y", 9, "x"])
        expect(.unsupported) {
            try migrator.run { tx in try tx.table("hidden").dropColumns("a") }
        }
    }

    @Test(.enabled(if: isEngine4))
    func `generated columns and STRICT stay on an engine that has them`() throws {
        try execute(
            """
            CREATE TABLE t(a INT, b INT AS (a * 2) STORED,
                c INT GENERATED ALWAYS AS (a + 1) VIRTUAL, d ANY) STRICT
            """, "INSERT INTO t(a, d) VALUES (4, 'x')")
        try migrator.run { tx in
            try tx.table("t").renameColumn("a", to: "e")
            try tx.table("t").dropColumns("b")
        }
        #expect(try values("SELECT e, c, d FROM t") == [4, 5, "x"])
        #expect(try sql(of: "t").hasSuffix("STRICT"))
        expect(.unsupported) {
            try migrator.run { tx in try tx.table("t").dropColumns("e") }
        }
    }

    // MARK: Tables

    @Test func `a renamed table takes foreign keys, indexes and triggers along`() throws {
        try makeFamily()
        try execute("DROP VIEW titles")
        try migrator.run { tx in try tx.table("author").rename(to: "writer 'x'") }
        #expect(try sql(of: "book").contains("REFERENCES \"writer 'x'\""))
        #expect(try sql(of: "writer 'x'").contains("REFERENCES \"writer 'x'\"(id)"))
        try execute("INSERT INTO \"writer 'x'\"(\"e mail\") VALUES ('new')")
        #expect(try values("SELECT line FROM log") == [51])
        expect(.constraint) { try execute("INSERT INTO book VALUES ('m', 'nobody', 1)") }
        try execute("DELETE FROM \"writer 'x'\" WHERE id = 3")
        #expect(try values("SELECT key FROM book") == ["l"])
    }

    @Test func `a table that a view or trigger names, or whose new name is taken, stays`() throws {
        try makeFamily()
        let before = try dump()
        for (table, owner) in [("author", "titles"), ("log", "logged")] {
            let error = expect(.unsupported) {
                try migrator.run { tx in try tx.table(table).rename(to: "new") }
            }
            #expect(error?.message.contains(owner) == true)
        }
        for name in ["Births", "book", "titles", "logged"] {
            expect(.alreadyExists) {
                try migrator.run { tx in try tx.table("log").rename(to: name) }
            }
        }
        #expect(try dump() == before)
    }

    // MARK: Refusals

    @Test func `views, virtual tables and tables of Coffer's own are refused`() throws {
        try makeFamily()
        try execute(
            "CREATE VIRTUAL TABLE words USING fts4(body)", "CREATE TABLE words_more(body)")
        try migrator.run { _ in }
        let before = try dump()
        for (table, code) in [
            ("titles", StoreError.Code.mismatch), ("words", .unsupported),
            ("words_content", .unsupported), ("coffer:migrations", .misuse),
            ("sqlite_sequence", .misuse), ("nothing", .notFound),
        ] {
            expect(code) { try migrator.run { tx in try tx.table(table).dropColumns("body") } }
            expect(code) { try migrator.run { tx in try tx.table(table).rename(to: "x") } }
        }
        for name in ["coffer:x", "sqlite_x", "Bucket:x"] {
            expect(.misuse) { try migrator.run { tx in try tx.table("log").rename(to: name) } }
        }
        #expect(try dump() == before)
        try migrator.run { tx in try tx.table("words_more").renameColumn("body", to: "text") }
    }

    @Test func `outside of a migration nothing is altered`() throws {
        try makeFamily()
        expect(.misuse) {
            try store.write { tx in try tx.table("book").renameColumn("title", to: "x") }
        }
        expect(.misuse) {
            try store.migrate(byUserVersion: [
                VersionStep(1) { tx in try tx.table("log").rename(to: "x") }
            ])
        }
        try migrator.run { _ in }
        expect(.misuse) { try store.write { tx in try tx.table("log").rename(to: "x") } }
    }

    @Test func `unknown, equal and missing columns are refused`() throws {
        try makeFamily()
        expect(.notFound) {
            try migrator.run { tx in try tx.table("book").renameColumn("nothing", to: "x") }
        }
        expect(.notFound) { try migrator.run { tx in try tx.table("book").dropColumns("x") } }
        expect(.misuse) {
            try migrator.run { tx in try tx.table("book").renameColumn("title", to: "AUTHOR") }
        }
        expect(.sql) {
            try migrator.run { tx in try tx.table("book").renameColumn("key", to: "") }
        }
        expect(.unsupported) { try migrator.run { tx in try tx.table("log").dropColumns("line") } }
        // The case alone may change, and an error that the body catches leaves nothing.
        try migrator.run { tx in
            try tx.table("log").renameColumn("line", to: "LINE")
            try? tx.table("log").dropColumns("LINE")
        }
        #expect(try sql(of: "log") == "CREATE TABLE \"log\"(\"LINE\")")
    }

    @Test func `a temporary object on the table or of its name stops it`() throws {
        try makeFamily()
        for sql in [
            "CREATE TEMP TABLE book(x)",
            "CREATE TEMP TRIGGER mine AFTER INSERT ON main.book BEGIN SELECT 1; END",
        ] {
            expect(.unsupported) {
                try migrator.run { tx in
                    try tx.execute(SQL(text: sql))
                    try tx.table("book").renameColumn("title", to: "x")
                }
            }
        }
    }

    // MARK: Failures

    @Test func `a migration that fails after altering leaves the old table`() throws {
        try makeFamily()
        let before = try dump()
        struct Odd: Error {}
        #expect(throws: Odd.self) {
            try migrator.run { tx in
                try tx.table("author").renameColumn("e mail", to: "x")
                throw Odd()
            }
        }
        #expect(try dump() == before)
        // The foreign keys of all tables are checked at the end.
        expect(.constraint) {
            try migrator.run { tx in
                try tx.table("author").renameColumn("e mail", to: "x")
                try tx.execute("DELETE FROM author")
            }
        }
        #expect(try dump() == before)
        #expect(
            try store.migrate(
                [
                    Migration("dry") { tx in
                        try tx.table("author").renameColumn("e mail", to: "x")
                    }
                ], isDryRun: true) == 1)
        #expect(try dump() == before)
    }

    @Test func `a cancelled task ends the copying of rows, and the old table is there`()
        async throws
    {
        try makeFamily()
        try execute(
            """
            INSERT INTO log WITH RECURSIVE n(i) AS
                (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 200000) SELECT i FROM n
            """)
        let before = try values("SELECT count(*), total(line) FROM log")
        let store = store
        let began = Mutex(false)
        let task = Task {
            try await store.migrate([
                Migration("endless") { tx in
                    began.withLock { $0 = true }
                    var number = 0
                    while true {
                        number += 1
                        try tx.table("log").renameColumn(
                            number == 1 ? "line" : "l\(number - 1)", to: "l\(number)")
                    }
                }
            ])
        }
        #expect(await comes { began.withLock { $0 } })
        task.cancel()
        let result = await task.result
        #expect(throws: CancellationError.self) { try result.get() }
        #expect(try values("SELECT count(*), total(line) FROM log") == before)
    }

    @Test func `a peer's lock gives .busy, and its commit is seen`() throws {
        try makeFamily()
        var configuration = Configuration.testing()
        configuration.busyTimeout = .milliseconds(20)
        try store.close()
        let store = try Store(path: path, key: .numbered(1), configuration: configuration)
        let peer = try Connection(path: path, key: .numbered(1), configuration: .testing())
        let migration = Migration("m") { tx in
            try tx.table("log").renameColumn("line", to: "text")
        }
        try peer.begin(.immediate)
        expect(.busy) { try store.migrate([migration]) }
        try peer.execute("INSERT INTO log VALUES ('late')")
        try peer.commit()
        #expect(try store.migrate([migration]) == 1)
        #expect(try peer.rows("SELECT text FROM log").map { $0[0] } == ["late"])
    }

    @Test(.onSmallDisk, arguments: journalModes)
    func `a full disk is .full, and the old table is there`(
        mode: Configuration.JournalMode
    ) throws {
        #expect(try SmallDisk.run(folder, "alter-until-full", mode) == ["full", "kept"])
    }

    // MARK: Others who watch

    @Test func `triggers of a history go on, and one that names the column is an error`() throws {
        try execute(
            "CREATE TABLE t(id INTEGER PRIMARY KEY, a)", "INSERT INTO t VALUES (1, 2)",
            "CREATE TABLE u(name TEXT PRIMARY KEY NOT NULL, a)")
        try store.write { tx throws in
            try tx.keepHistory(of: "t")
            try tx.keepHistory(of: "u")
        }
        try migrator.run { tx in try tx.table("t").renameColumn("a", to: "b") }
        let token = try store.read { tx in try tx.changeToken() }
        try execute(
            "UPDATE t SET b = 3", "REPLACE INTO t VALUES (1, 5)", "INSERT INTO t VALUES (9, 9)")
        let changes = try store.changes(since: token).changes
        #expect(changes.map(\.table) == ["t", "t"])
        expect(.unsupported) {
            try migrator.run { tx in try tx.table("u").renameColumn("name", to: "n") }
        }
        expect(.unsupported) { try migrator.run { tx in try tx.table("t").rename(to: "v") } }
        try migrator.run { tx in
            try tx.stopKeepingHistory(of: "t")
            try tx.table("t").rename(to: "v")
            try tx.keepHistory(of: "v")
        }
        try execute("DELETE FROM v WHERE id = 9")
        #expect(try store.changes(since: token).changes.last?.table == "v")
    }

    @Test func `followers of a table hear of its rows after it was altered`() async throws {
        try execute("CREATE TABLE w(k TEXT PRIMARY KEY, v) WITHOUT ROWID")
        let store = store
        let keys = Mutex<Set<[Value]>>([])
        let follower = Task {
            for try await event in store.changes(in: "w") {
                guard case .commit(let rows) = event else { continue }
                keys.withLock { $0.formUnion(rows.map(\.key)) }
            }
        }
        var number = 0
        for key in ["before", "after"] {
            let isHeard = try await comes {
                number += 1
                try execute("REPLACE INTO w VALUES ('\(key)', \(number))")
                return keys.withLock { $0.contains([.text(key)]) }
            }
            #expect(isHeard)
            guard key == "before" else { break }
            try migrator.run { tx in try tx.table("w").renameColumn("v", to: "value") }
        }
        follower.cancel()
        _ = await follower.result
    }

    @Test func `a statement that was prepared before sees the new column`() throws {
        try makeFamily()
        #expect(try values("SELECT * FROM book").count == 6)
        try migrator.run { tx in
            _ = try tx.rows("SELECT * FROM book")
            try tx.table("book").renameColumn("key", to: "id")
            let row = try tx.firstRow("SELECT * FROM book")
            #expect(row?["id"] == "k")
        }
        #expect(try store.read { tx in try tx.firstRow("SELECT * FROM book")?["id"] } == "k")
    }
}
