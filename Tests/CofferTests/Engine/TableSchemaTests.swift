import Foundation
import Testing

@testable import Coffer

/// Tables and indexes from descriptions.
@Suite(.againstHanging, .onOwnThreads) struct TableSchemaTests {
    private let folder: TemporaryFolder
    private let connection: Connection

    init() throws {
        folder = try TemporaryFolder()
        connection = try Connection(
            path: folder.path(), key: .numbered(1), configuration: .testing(.delete))
    }

    @Test func `a table has the columns that were described, in their order`() throws {
        try connection.createTable(
            "parent", [ColumnDefinition("code", .text, isPrimaryKey: true)])
        try connection.createTable(
            "t",
            [
                ColumnDefinition("z", .integer, isPrimaryKey: true),
                ColumnDefinition("a", .text, isNotNull: true, default: "it's"),
                ColumnDefinition("m", .real, isUnique: true),
                ColumnDefinition(
                    "p", .text,
                    references: .init(
                        "parent", column: "code", onDelete: .cascade, onUpdate: .setNull)),
            ])
        let columns = try connection.columns(of: "t")
        #expect(columns.map(\.name) == ["z", "a", "m", "p"])
        #expect(columns.map(\.declaredType) == ["INTEGER", "TEXT", "REAL", "TEXT"])
        #expect(columns.map(\.primaryKeyPosition) == [1, 0, 0, 0])
        #expect(columns.map(\.isNotNull) == [false, true, false, false])
        #expect(columns[1].defaultExpression == "'it''s'")
        #expect(try connection.indexes(of: "t").map(\.columns) == [["m"]])
        let key = try #require(try connection.foreignKeys(of: "t").first)
        #expect(key.parentTable == "parent" && key.onDelete == "CASCADE")
        #expect(key.onUpdate == "SET NULL")
        #expect(key.references == [.init(column: "p", parentColumn: "code")])
        // A primary key that is not the row id is never NULL.
        expect(.constraint) { try connection.insert(into: "parent", ["code": nil]) }
        #expect(try connection.insert(into: "t", ["z": nil, "p": nil]).insertedRowID == 1)
    }

    @Test func `a table that exists is an error, or stays as it is`() throws {
        try connection.createTable("t", [ColumnDefinition("a", .text)])
        let other = [ColumnDefinition("b", .text)]
        #expect(expect(.sql) { try connection.createTable("T", other) }?.table == "T")
        try connection.createTable("T", other, ifNotExists: true)
        #expect(try connection.columns(of: "t").map(\.name) == ["a"])
        expect(.misuse) { try connection.createTable("none", []) }
        expect(.sql) { try connection.createTable("twice", other + other) }
        expect(.sql) { try connection.createTable("", other) }
    }

    @Test func `a default is given as it was described, also to existing rows`() throws {
        let values: [Value] = [
            .null, 0, .integer(.max), .integer(.min), 1.5, -0.001, .real(1e300), .real(-.infinity),
            "", "it's \"x\"", "-- é\u{301}'\u{301}", .blob(Data()), .blob(Data([0, 1, 255])),
        ]
        try connection.createTable("old", [ColumnDefinition("first", .integer)])
        try connection.insert(into: "old", ["first": 1])
        for (number, value) in values.enumerated() {
            let column = ColumnDefinition("c", .blob, default: value)
            try connection.createTable("t\(number)", [column, ColumnDefinition("d", .blob)])
            try connection.insert(into: "t\(number)", ["d": 1])
            #expect(try connection.rows(in: "t\(number)")[0]["c"] == value, "\(value)")
            let added = ColumnDefinition("c\(number)", .blob, default: value)
            #expect(try connection.addColumnIfMissing(added, to: "old"))
            #expect(try connection.rows(in: "old")[0]["c\(number)"] == value, "\(value)")
        }
        for value: Value in ["a\0b", .real(.nan)] {
            let column = ColumnDefinition("c", .blob, default: value)
            let error = expect(.mismatch) { try connection.createTable("bad", [column]) }
            #expect(error?.table == "bad" && error?.column == "c")
        }
    }

    @Test func `P36 a column is added once, and existing rows get its default`() throws {
        try connection.createTable("t", [ColumnDefinition("a", .text)])
        try connection.insert(into: "t", ["a": "x"])
        let column = ColumnDefinition("b", .integer, isNotNull: true, default: 7)
        #expect(try connection.addColumnIfMissing(column, to: "t"))
        #expect(try !connection.addColumnIfMissing(column, to: "t"))
        #expect(try !connection.addColumnIfMissing(ColumnDefinition("B", .text), to: "t"))
        #expect(try connection.rows(in: "t").map(\.values) == [["x", 7]])
        // The columns of an empty table are found too, although it has no row.
        try connection.delete(from: "t", where: .all)
        #expect(try !connection.addColumnIfMissing(column, to: "t"))
        for column in [
            ColumnDefinition("k", .integer, isPrimaryKey: true),
            ColumnDefinition("u", .integer, isUnique: true),
            ColumnDefinition("n", .integer, isNotNull: true),
        ] {
            // SQLCipher 4 checks NOT NULL only where there are rows.
            try connection.insert(into: "t", ["a": "y"])
            expect(.sql) { try connection.addColumnIfMissing(column, to: "t") }
        }
    }

    @Test func `P36 two tables with the same column both get an index`() throws {
        for table in ["one", "two"] {
            try connection.createTable(
                table, [ColumnDefinition("a", .text), ColumnDefinition("b", .text)])
            for _ in 0..<2 {
                let name = try connection.createIndex(
                    on: table, columns: ["a", "b"], ifNotExists: true)
                #expect(name == "index_\(table)_a_b")
            }
            #expect(try connection.indexes(of: table).map(\.columns) == [["a", "b"]])
        }
        expect(.sql) { try connection.createIndex(on: "one", columns: ["a", "b"]) }
        expect(.misuse) { try connection.createIndex(on: "one", columns: []) }
    }

    @Test func `an index of the same name on something else is never taken for the requested one`()
        throws
    {
        try connection.createTable(
            "t", [ColumnDefinition("a", .text), ColumnDefinition("b", .text)])
        try connection.createTable("t_a", [ColumnDefinition("b", .text)])
        try connection.createIndex(on: "t", columns: ["a"], ifNotExists: true, name: "i")
        for (columns, isUnique) in [(["b"], false), (["a"], true), (["a", "b"], false)] {
            expect(.mismatch) {
                try connection.createIndex(
                    on: "t", columns: columns, isUnique: isUnique, ifNotExists: true, name: "I")
            }
        }
        expect(.sql) {
            try connection.createIndex(on: "t_a", columns: ["b"], ifNotExists: true, name: "i")
        }
        // Both are called index_t_a_b.
        try connection.createIndex(on: "t", columns: ["a", "b"])
        expect(.sql) { try connection.createIndex(on: "t_a", columns: ["b"], ifNotExists: true) }
        try connection.insert(into: "t", ["a": "same"])
        try connection.insert(into: "t", ["a": "same"])
        expect(.constraint) { try connection.createIndex(on: "t", columns: ["a"], isUnique: true) }
    }

    @Test func `dropping a table is refused while rows refer to it`() throws {
        try connection.createTable("p", [ColumnDefinition("id", .integer, isPrimaryKey: true)])
        try connection.createTable(
            "c", [ColumnDefinition("p", .integer, references: .init("p"))])
        try connection.insert(into: "p", ["id": 1])
        try connection.insert(into: "c", ["p": 1])
        expect(.constraint) { try connection.dropTable("p") }
        try connection.delete(from: "c", where: .all)
        try connection.dropTable("p")
        #expect(try !connection.tableExists("p"))
    }
}
