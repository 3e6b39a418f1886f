import Coffer
import Foundation
import Testing

/// `coffer tables`, `schema` and `journal-mode`.
@Suite(.againstHanging, .onOwnThreads) struct SchemaVerbTests {
    private let store: ToolStore

    init() throws {
        store = try ToolStore()
        try store.execute(
            "CREATE TABLE note(id INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT)",
            "CREATE INDEX note_body ON note(body)", "CREATE TABLE \"odd\nname\"(v)",
            "CREATE VIEW bodies AS SELECT body FROM note -- all of them",
            "CREATE TRIGGER touched AFTER INSERT ON note BEGIN SELECT 1; END")
    }

    @Test func `tables lists tables and views, a line each`() throws {
        #expect(try store.succeed("tables").text == "note\nodd\\nname\nbodies\n")
        let lines = try store.succeed("tables", ["--json"]).text.split(separator: "\n")
        #expect(lines.first == "{\"name\":\"note\",\"type\":\"table\"}")
        #expect(lines.last == "{\"name\":\"bodies\",\"type\":\"view\"}")
    }

    @Test func `the statements of schema make the same schema again`() throws {
        let schema = try store.succeed("schema")
        let other = try ToolStore()
        try other.succeed("import", ["-", "--format", "sql"], input: schema.stdout)
        let sql: SQL = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name"
        #expect(try other.rows(sql) == store.rows(sql))
    }

    @Test func `the tables behind a virtual one are left out, because it makes them itself`()
        throws
    {
        let store = try ToolStore()
        try store.execute("CREATE VIRTUAL TABLE f USING fts4(body)", "CREATE TABLE f_other(v)")
        #expect(try store.succeed("tables").text == "f\nf_other\n")
        let schema = try store.succeed("schema")
        let other = try ToolStore()
        try other.succeed("import", ["-", "--format", "sql"], input: schema.stdout)
        #expect(try other.tables() == store.tables())
    }

    @Test func `schema of a table has its indexes and triggers, whatever case its name is in`()
        throws
    {
        let text = try store.succeed("schema", ["NOTE"]).text
        #expect(text.contains("CREATE TABLE note") && text.contains("CREATE INDEX note_body"))
        #expect(text.contains("CREATE TRIGGER touched") && !text.contains("odd"))
        try store.fail("schema", ["nowhere"], exitCode: 10, saying: "coffer tables")
    }

    // MARK: journal-mode

    private func mode() throws -> String {
        let connection = try Connection(path: store.path, key: .numbered(1), mode: .readOnly)
        defer { connection.close() }
        return try connection.rows("PRAGMA journal_mode")[0].get(0)
    }

    @Test func `journal-mode shows the mode, and changes it both ways`() throws {
        #expect(try store.succeed("journal-mode").text.contains("wal"))
        for wanted in ["delete", "wal"] {
            #expect(try store.succeed("journal-mode", [wanted]).text.contains("changed"))
            #expect(try mode() == wanted)
            #expect(!(try store.succeed("journal-mode", [wanted]).text.contains("changed")))
        }
        #expect(try store.rows("SELECT count(*) FROM note") == [[0]])
    }

    @Test func `journal-mode leaves a store alone that another program has open`() throws {
        try store.execute("CREATE TABLE t(v)")
        let peer = try Peer(["hold-read", "wal", store.path, "1"])
        try #require(peer.line() == "ready")
        try store.fail("journal-mode", ["delete", "--busy-timeout", "0.1"], exitCode: 11)
        peer.goOn()
        _ = peer.finish()
        #expect(try mode() == "wal")
    }

    @Test func `a wrong key and a mode that does not exist change nothing`() throws {
        let wrong = try Tool.run(
            ["journal-mode", store.path, "delete", "--raw-key-fd", "3"],
            descriptors: [3: Tool.key(2)])
        #expect(wrong.exitCode == 12)
        try store.fail("journal-mode", ["memory"], exitCode: 2)
        #expect(try mode() == "wal")
    }
}
