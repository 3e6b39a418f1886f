import Foundation
import Testing

@testable import Coffer

/// Migrations that rename tables do the same on both engines, and can be rehearsed.
@Suite(.againstHanging, .onOwnThreads) struct MigrationModeTests {
    private let store: Store

    init() throws {
        store = try Store(.memory)
    }

    private static let family = Migration("family") { tx in
        try tx.execute("CREATE TABLE parent (id INTEGER PRIMARY KEY, name)")
        try tx.execute(
            """
            CREATE TABLE child
                (id INTEGER PRIMARY KEY, parent REFERENCES parent ON DELETE CASCADE)
            """
        )
        try tx.execute("CREATE VIEW named AS SELECT name FROM parent")
        try tx.execute("INSERT INTO parent VALUES (1, 'a'), (2, 'b')")
        try tx.execute("INSERT INTO child VALUES (7, 1), (8, 2)")
        try tx.execute(
            "CREATE TRIGGER told AFTER INSERT ON child BEGIN UPDATE parent SET name = 'told'; END")
    }

    private func text(_ sql: SQL) throws -> [String] {
        try store.read { tx in try tx.rows(sql).map { try $0.get(0) } }
    }

    /// The table is renamed away first, which SQLite 3.26 would tell the children.
    @Test func `children keep their parent if it is renamed away and made again`() throws {
        let again = Migration("again") { tx in
            try tx.execute("ALTER TABLE parent RENAME TO old")
            try tx.execute("CREATE TABLE parent (id INTEGER PRIMARY KEY, name TEXT NOT NULL)")
            try tx.execute("INSERT INTO parent SELECT id, name FROM old")
            try tx.execute("DROP TABLE old")
        }
        #expect(try store.migrate([Self.family, again]) == 2)
        let parents = try store.read { tx in
            try tx.rows("PRAGMA foreign_key_list(child)").map {
                try $0.get("table", as: String.self)
            }
        }
        #expect(parents == ["parent"])
        #expect(try text("SELECT name FROM named ORDER BY name") == ["a", "b"])
        try store.write { tx in try tx.execute("DELETE FROM parent WHERE id = 1") }
        #expect(
            try store.read { tx in try tx.scalar("SELECT count(*) FROM child", as: Int.self) } == 1)
        try store.write { tx in try tx.execute("INSERT INTO child VALUES (9, 2)") }
        #expect(try text("SELECT name FROM named") == ["told"])
    }

    /// The new table is made under another name, as the article shows it.
    @Test func `children keep their parent if a new one takes its name`() throws {
        let again = Migration("again") { tx in
            try tx.execute("CREATE TABLE new (id INTEGER PRIMARY KEY, name TEXT NOT NULL)")
            try tx.execute("INSERT INTO new SELECT id, name FROM parent")
            try tx.execute("DROP TABLE parent")
            try tx.execute("ALTER TABLE new RENAME TO parent")
        }
        #expect(try store.migrate([Self.family, again]) == 2)
        #expect(try text("SELECT name FROM named ORDER BY name") == ["a", "b"])
        try store.write { tx in try tx.execute("DELETE FROM parent WHERE id = 1") }
        #expect(
            try store.read { tx in try tx.scalar("SELECT count(*) FROM child", as: Int.self) } == 1)
    }

    @Test func `what a migration switches ends with it, also after an error`() throws {
        let folder = try TemporaryFolder()
        let connection = try Connection(
            path: folder.path(), key: .numbered(1), configuration: .testing())
        func settings() throws -> [Value] {
            let legacy =
                isEngine4
                ? try connection.scalar("PRAGMA legacy_alter_table", as: Int.self) ?? -1 : 0
            let keys = try connection.scalar("PRAGMA foreign_keys", as: Int.self) ?? -1
            return [.integer(Int64(legacy)), .integer(Int64(keys))]
        }
        let before = try settings()
        #expect(before == [.integer(0), .integer(1)])
        try connection.migrate([Self.family])
        #expect(try settings() == before)
        let failing = Migration("failing") { tx in try tx.execute("INSERT INTO nothing VALUES (1)")
        }
        expect(.sql) { try connection.migrate([Self.family, failing]) }
        #expect(try settings() == before)
        let other = try Connection(
            path: folder.path(), key: .numbered(1), configuration: .testing())
        try other.begin(.immediate)
        connection.busyPolicy = .none
        expect(.busy) { try connection.migrate([Self.family, failing]) }
        try other.rollback()
        other.close()
        #expect(try settings() == before)
        // Outside a migration the engine does as it always does.
        try connection.execute("ALTER TABLE parent RENAME TO elder")
        let parent = try connection.firstRow("PRAGMA foreign_key_list(child)")?.get(
            "table", as: String.self)
        #expect(parent == "elder")
    }

    struct Note: Record {
        var id: Int64?
        var title: String
        var pinned: Bool
    }

    private static let old = Migration("create notes") { tx in
        struct Note: Record {
            var id: Int64?
            var title: String
        }
        try tx.create(Note.self)
    }

    @Test func `a rehearsal finds a migration that makes what the type is now`() throws {
        let add = Migration("pinned") { tx in
            try tx.execute("ALTER TABLE note ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0")
        }
        try Migration.rehearse([Self.old, add], for: Note.self)
        let now = Migration("create notes") { tx in try tx.create(Note.self) }
        expect(.sql) { try Migration.rehearse([now, add], for: Note.self) }
    }

    @Test func `a rehearsal names what differs from a type`() throws {
        let error = expect(.mismatch) { try Migration.rehearse([Self.old], for: Note.self) }
        #expect(error?.table == "note")
        #expect(error?.message.contains("pinned") == true)
        expect(.misuse) { try Migration.rehearse([Self.old, Self.old]) }
        try Migration.rehearse([Self.old])
    }
}
