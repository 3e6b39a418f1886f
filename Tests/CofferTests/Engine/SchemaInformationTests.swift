import Foundation
import Testing

@testable import Coffer

@Suite(.againstHanging, .onOwnThreads) struct SchemaInformationTests {
    private let folder: TemporaryFolder
    private let connection: Connection

    init() throws {
        folder = try TemporaryFolder()
        connection = try Connection(
            path: folder.path(), key: .numbered(1), configuration: .testing(.delete))
        for sql in [
            "CREATE TABLE parent(a, b, PRIMARY KEY(a, b))",
            """
            CREATE TABLE child(
              id INTEGER PRIMARY KEY AUTOINCREMENT, "x y" TEXT NOT NULL DEFAULT 'n',
            p, q, FOREIGN KEY(p, q) REFERENCES parent(a, b) ON DELETE CASCADE,
            FOREIGN KEY(q) REFERENCES child ON UPDATE SET NULL)
            """,
            "CREATE UNIQUE INDEX child_x ON child(\"x y\", length(p)) WHERE q > 1",
            "CREATE VIEW seen AS SELECT a FROM parent",
            "CREATE TRIGGER fired AFTER INSERT ON parent BEGIN SELECT 1; END",
            "CREATE TABLE sqliteXfoo(v)",
            "CREATE TABLE \"ÄB\"(\"Ünder\")",
            "CREATE TABLE \"it's \"\"x\"\"\"(v)",
            "CREATE TEMP TABLE passing(v)",
        ] { try connection.execute(SQL(text: sql)) }
    }

    @Test func `P21 names are compared as SQLite does, and no name is SQL`() throws {
        #expect(try connection.tableExists("PARENT"))
        #expect(try connection.tableExists("ÄB"))
        #expect(try connection.tableExists("Äb"))
        #expect(try !connection.tableExists("äb"), "beyond ASCII the case counts")
        #expect(try connection.columnExists("ÜNDER", in: "ÄB"))
        #expect(try !connection.columnExists("ünder", in: "ÄB"))
        #expect(try connection.tableExists("it's \"x\""))
        #expect(try connection.columns(of: "it's \"x\"").map(\.name) == ["v"])
        #expect(try !connection.tableExists("parent' OR '1'='1"))
        #expect(try !connection.columnExists("v", in: "x') --"))
        #expect(try connection.tableExists("sqliteXfoo"))
        #expect(try connection.schemaObjects().contains { $0.name == "sqliteXfoo" })
        #expect(try !connection.schemaObjects().contains { $0.name.hasPrefix("sqlite_") })
    }

    @Test func `each kind of object is found by its kind and its database`() throws {
        #expect(try connection.viewExists("seen") && !connection.tableExists("seen"))
        #expect(try connection.indexExists("child_x") && !connection.indexExists("child"))
        #expect(try connection.triggerExists("fired") && !connection.triggerExists("seen"))
        #expect(try connection.tableExists("passing", in: "TEMP"))
        #expect(
            try connection.tableExists("passing") && !connection.tableExists("passing", in: "main"))
        expect(.notFound) { try connection.tableExists("parent", in: "nowhere") }
        expect(.notFound) { try connection.schemaObjects(in: "main\"") }
        let objects = try connection.schemaObjects(in: "main")
        #expect(Set(objects.map(\.kind)) == Set(SchemaObject.Kind.allCases))
        let index = try #require(objects.first { $0.name == "child_x" })
        #expect(index.table == "child" && index.rootPage > 1 && index.schema == "main")
        #expect(index.sql?.hasPrefix("CREATE UNIQUE INDEX") == true)
        #expect(objects.first { $0.name == "seen" }?.rootPage == 0)
        #expect(try connection.schemaObjects(in: "temp").map(\.name) == ["passing"])
        #expect(try connection.schemaObjects().count == objects.count + 1)
        let child = objects.filter { $0.table == "child" }.map(\.kind)
        #expect(child == [.table, .index])
    }

    @Test func `columns report all that was declared`() throws {
        let columns = try connection.columns(of: "CHILD")
        #expect(
            columns == [
                ColumnInformation(
                    position: 0, name: "id", declaredType: "INTEGER", isNotNull: false,
                    defaultExpression: nil, primaryKeyPosition: 1),
                ColumnInformation(
                    position: 1, name: "x y", declaredType: "TEXT", isNotNull: true,
                    defaultExpression: "'n'", primaryKeyPosition: 0),
                ColumnInformation(
                    position: 2, name: "p", declaredType: "", isNotNull: false,
                    defaultExpression: nil, primaryKeyPosition: 0),
                ColumnInformation(
                    position: 3, name: "q", declaredType: "", isNotNull: false,
                    defaultExpression: nil, primaryKeyPosition: 0),
            ])
        #expect(try connection.columns(of: "parent").map(\.primaryKeyPosition) == [1, 2])
        #expect(try connection.columns(of: "seen").map(\.name) == ["a"])
        #expect(try connection.columns(of: "passing", in: "temp").map(\.name) == ["v"])
        let error = expect(.notFound) { try connection.columns(of: "missing") }
        #expect(error?.table == "missing")
        #expect(try !connection.columnExists("v", in: "missing"))
    }

    @Test func `a table in temp hides one of the same name in main, as it does for SQL`() throws {
        try connection.execute("CREATE TEMP TABLE parent(other)")
        #expect(try connection.columns(of: "parent").map(\.name) == ["other"])
        #expect(try connection.columns(of: "parent", in: "main").map(\.name) == ["a", "b"])
    }

    @Test func `indexes and foreign keys report their columns`() throws {
        let indexes = try connection.indexes(of: "child")
        #expect(
            indexes == [
                IndexInformation(
                    name: "child_x", isUnique: true, isPartial: true, isOfConstraint: false,
                    columns: ["x y", nil])
            ])
        let key = try #require(try connection.indexes(of: "parent").first)
        #expect(key.isUnique && key.isOfConstraint && key.columns == ["a", "b"])
        let keys = try connection.foreignKeys(of: "child").sorted {
            $0.parentTable < $1.parentTable
        }
        #expect(keys.map(\.parentTable) == ["child", "parent"])
        #expect(keys[0].references.map(\.parentColumn) == [nil])
        #expect(keys[0].onUpdate == "SET NULL")
        #expect(keys[1].references.map(\.column) == ["p", "q"])
        #expect(keys[1].references.map(\.parentColumn) == ["a", "b"])
        #expect(keys[1].onDelete == "CASCADE")
        expect(.notFound) { try connection.indexes(of: "missing") }
        expect(.notFound) { try connection.foreignKeys(of: "missing") }
    }

    @Test func `another connection's change is seen, also inside a transaction`() throws {
        let other = try Connection(
            path: folder.path(), key: .numbered(1), configuration: .testing(.delete))
        #expect(try connection.columns(of: "sqliteXfoo").count == 1)
        try other.execute("ALTER TABLE sqliteXfoo ADD COLUMN w")
        #expect(try connection.columns(of: "sqliteXfoo").count == 2)
        try connection.transaction {
            try connection.execute("CREATE TABLE inside(v)")
            #expect(try connection.tableExists("inside"))
        }
        #expect(try other.tableExists("inside"))
    }

    @Test func `a damaged schema is an error, not an empty answer`() throws {
        let sql = "CREATE TABLE long(v /* " + String(repeating: "x", count: 20_000) + " */, w)"
        try connection.execute(SQL(text: sql))
        let size = try #require(connection.profile).pageByteCount
        let end = try connection.current().firstInteger("PRAGMA page_count")
        connection.close()
        // The page holds text of the table that is stored last.
        try Damage.flip(folder.path(), at: (end - 2) * size + 10)
        expect(.damaged) {
            let again = try Connection(
                path: folder.path(), key: .numbered(1), configuration: .testing(.delete))
            _ = try again.tableExists("parent")
        }
    }
}
