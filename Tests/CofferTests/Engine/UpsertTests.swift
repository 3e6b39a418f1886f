import Foundation
import Testing

@testable import Coffer

/// UPDATE, then INSERT: the same on an engine without UPSERT.
@Suite(.againstHanging, .onOwnThreads) struct UpsertTests {
    private let folder: TemporaryFolder
    private let connection: Connection

    init() throws {
        folder = try TemporaryFolder()
        connection = try Connection(
            path: folder.path(), key: .numbered(1), configuration: .testing())
        try connection.createTable(
            "w",
            [
                ColumnDefinition("id", .integer, isPrimaryKey: true),
                ColumnDefinition("word", .text, isUnique: true),
                ColumnDefinition("tag", .text, isUnique: true),
                ColumnDefinition("kept", .text, default: "as it was"),
            ])
    }

    private func rows() throws -> [[Value]] {
        try connection.rows(in: "w", orderedBy: ["id"]).map(\.values)
    }

    @Test
    func `P36 a row is added once and then updated, and keeps the columns that are not named`()
        throws
    {
        let added = try connection.upsert(
            into: "w", ["word": "a", "tag": "1"], onConflict: ["word"])
        #expect(added == RowChange(rowCount: 1, insertedRowID: 1))
        try connection.update("w", set: ["kept": "by the user"], where: ["word": "a"])
        let updated = try connection.upsert(
            into: "w", ["word": "a", "tag": "2"], onConflict: ["WORD"])
        #expect(updated == RowChange(rowCount: 1, insertedRowID: nil))
        #expect(try rows() == [[1, "a", "2", "by the user"]])
    }

    @Test func `rows that refer to an updated row stay`() throws {
        try connection.execute(
            "CREATE TABLE child(w REFERENCES w(id) ON DELETE CASCADE)")
        try connection.insert(into: "w", ["id": 5, "word": "a"])
        try connection.insert(into: "child", ["w": 5])
        try connection.upsert(into: "w", ["id": 5, "word": "b"], onConflict: ["id"])
        #expect(try connection.rows(in: "child").count == 1)
    }

    @Test func `a conflict in another column is an error, and changes nothing`() throws {
        try connection.insert(into: "w", ["word": "a", "tag": "1"])
        try connection.insert(into: "w", ["word": "b", "tag": "2"])
        let before = try rows()
        expect(.constraint) {
            try connection.upsert(into: "w", ["word": "a", "tag": "2"], onConflict: ["word"])
        }
        expect(.constraint) {
            try connection.upsert(into: "w", ["word": "c", "tag": "2"], onConflict: ["word"])
        }
        #expect(try rows() == before)
        // Inside a transaction the rest of it stays.
        try connection.transaction {
            try connection.insert(into: "w", ["word": "d"])
            expect(.constraint) {
                try connection.upsert(into: "w", ["word": "c", "tag": "2"], onConflict: ["word"])
            }
        }
        #expect(try rows().count == 3)
    }

    @Test func `with only its key, an existing row stays as it is`() throws {
        try connection.execute("CREATE TABLE log(line)")
        try connection.execute(
            "CREATE TRIGGER seen AFTER UPDATE ON w BEGIN INSERT INTO log VALUES (new.word); END")
        let added = try connection.upsert(into: "w", ["word": "a"], onConflict: ["word"])
        #expect(added == RowChange(rowCount: 1, insertedRowID: 1))
        let found = try connection.upsert(into: "w", ["word": "a"], onConflict: ["word"])
        #expect(found == RowChange(rowCount: 0, insertedRowID: nil))
        #expect(try connection.rows(in: "log").isEmpty)
        try connection.upsert(into: "w", ["word": "a", "tag": "x"], onConflict: ["word"])
        #expect(try connection.rows(in: "log").count == 1)
    }

    @Test func `NULL conflicts with nothing, as in a unique index`() throws {
        for _ in 0..<2 { try connection.upsert(into: "w", ["word": nil], onConflict: ["word"]) }
        for _ in 0..<2 {
            try connection.upsert(into: "w", ["id": nil, "kept": "x"], onConflict: ["id"])
        }
        #expect(try rows().count == 4)
    }

    @Test func `several columns are a key together`() throws {
        try connection.createTable(
            "p",
            [
                ColumnDefinition("a", .integer, isPrimaryKey: true),
                ColumnDefinition("b", .integer, isPrimaryKey: true), ColumnDefinition("v", .text),
            ])
        for (a, b, v) in [(1, 1, "x"), (1, 2, "y"), (1, 1, "z")] {
            try connection.upsert(into: "p", ["a": a, "b": b, "v": v], onConflict: ["b", "a"])
        }
        let rows = try connection.rows(in: "p", orderedBy: ["b"])
        #expect(rows.map { $0["v"] } == ["z", "y"])
        expect(.misuse) { try connection.upsert(into: "p", ["a": 1, "b": 1], onConflict: ["a"]) }
    }

    @Test func `columns that are not unique are refused, so that no second row is changed`() throws
    {
        try connection.insert(into: "w", ["kept": "same"])
        try connection.insert(into: "w", ["kept": "same"])
        try connection.execute("CREATE UNIQUE INDEX some ON w(kept) WHERE id > 100")
        for columns in [["kept"], ["word", "tag"], [], ["id", "id"], ["nothing"]] {
            expect(.misuse) {
                try connection.upsert(
                    into: "w", ["id": 1, "kept": "same", "word": "x", "tag": "y"],
                    onConflict: columns)
            }
        }
        // The index distinguishes the texts, the column does not.
        try connection.execute("CREATE TABLE n(a TEXT COLLATE NOCASE, v)")
        try connection.execute("CREATE UNIQUE INDEX exact ON n(a COLLATE BINARY)")
        for text in ["x", "X"] { try connection.insert(into: "n", ["a": text]) }
        expect(.misuse) { try connection.upsert(into: "n", ["a": "x", "v": 1], onConflict: ["a"]) }
        #expect(try connection.rows(in: "n", where: ["v": 1]).isEmpty)
    }

    @Test func `the uniqueness of columns is checked again after a change of the schema`() throws {
        let index = try connection.createIndex(on: "w", columns: ["kept"], isUnique: true)
        try connection.upsert(into: "w", ["kept": "a", "tag": "1"], onConflict: ["kept"])
        let other = try Connection(
            path: folder.path(), key: .numbered(1), configuration: .testing())
        try other.dropIndex(index)
        expect(.misuse) {
            try connection.upsert(into: "w", ["kept": "a", "tag": "2"], onConflict: ["kept"])
        }
    }

    @Test func `two connections never add a row twice`() async throws {
        let path = folder.path()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<2 {
                group.addTask {
                    let connection = try Connection(
                        path: path, key: .numbered(1), configuration: .testing())
                    for number in 0..<50 {
                        try connection.upsert(
                            into: "w", ["word": "\(number)", "kept": "x"], onConflict: ["word"])
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try rows().count == 50)
    }
}
