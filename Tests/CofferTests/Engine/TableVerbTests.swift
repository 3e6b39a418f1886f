import Foundation
import Testing

@testable import Coffer

/// Rows as dictionaries. The names describe what P36 is about: values and names that became SQL,
/// integers that became reals, NULL that became "", 32 bits, and 0 rows reported as success.
@Suite(.againstHanging, .onOwnThreads) struct TableVerbTests {
    private let folder: TemporaryFolder
    private let connection: Connection

    init() throws {
        folder = try TemporaryFolder()
        connection = try Connection(
            path: folder.path(), key: .numbered(1), configuration: .testing(.delete))
        try connection.createTable(
            "t",
            [
                ColumnDefinition("id", .integer, isPrimaryKey: true),
                ColumnDefinition("name", .text), ColumnDefinition("data", .blob),
            ])
    }

    private func values(_ column: String = "name", in table: String = "t") throws -> [Value] {
        try connection.rows(in: table, orderedBy: [.ascending(column)]).map { $0[column] ?? .null }
    }

    private static let attacks = [
        "'", "''", "\"", "' OR '1'='1", "x'); DROP TABLE t; --", "\\", "`", "]", "?", ":name",
        "a\0b", "%_", "é\u{301}\"\u{301}", "; PRAGMA key = 'x'",
    ]

    @Test(arguments: attacks)
    func `P36 a value is never SQL, wherever it is`(attack: String) throws {
        try connection.insert(into: "t", ["id": 1, "name": "other"])
        let blob = Data(attack.utf8)
        try connection.insert(into: "t", ["id": 2, "name": attack, "data": blob])
        #expect(try connection.rows(in: "t", where: ["name": attack]).map { $0["id"] } == [2])
        #expect(try connection.update("t", set: ["name": attack], where: ["data": blob]) == 1)
        try connection.upsert(into: "t", ["id": 2, "name": attack + attack], onConflict: ["id"])
        #expect(try connection.delete(from: "t", where: ["name": attack]) == 0)
        #expect(try connection.delete(from: "t", where: ["name": attack + attack]) == 1)
        #expect(try values() == ["other"])
    }

    @Test(arguments: attacks.filter { !$0.contains("\0") })
    func `P36 a name is never SQL, whatever it names`(attack: String) throws {
        try connection.insert(into: "t", ["name": "kept"])
        try connection.createTable(
            attack,
            [ColumnDefinition(attack, .text, default: .text(attack)), ColumnDefinition("n", .real)])
        try connection.insert(into: attack, ["n": 1])
        #expect(try values(attack, in: attack) == [.text(attack)])
        try connection.update(attack, set: [attack: "set"], where: [attack: attack])
        #expect(try connection.delete(from: attack, where: [attack: attack]) == 0)
        let index = try connection.createIndex(on: attack, columns: [attack], isUnique: true)
        #expect(try connection.indexes(of: attack).map(\.name) == [index])
        try connection.upsert(into: attack, [attack: "set", "n": 2], onConflict: [attack])
        #expect(try values("n", in: attack) == [.real(2)])
        try connection.addColumnIfMissing(ColumnDefinition(attack + "2", .text), to: attack)
        try connection.dropIndex(index)
        try connection.dropTable(attack)
        #expect(try connection.schemaObjects().map(\.name) == ["t"])
        #expect(try values() == ["kept"])
    }

    @Test func `P36 a name that is not a column is an error, not a text to compare with`() throws {
        try connection.insert(into: "t", ["name": "kept"])
        // `"nothing" = 'nothing'` would be true for every row.
        expect(.sql) { try connection.delete(from: "t", where: ["nothing": "nothing"]) }
        expect(.sql) { try connection.update("t", set: ["id": 1], where: ["nothing": "nothing"]) }
        expect(.sql) { try connection.rows(in: "t", where: ["nothing": "nothing"]) }
        expect(.sql) { try connection.rows(in: "t", orderedBy: ["nothing"]) }
        expect(.sql) { try connection.insert(into: "t", ["nothing": 1]) }
        expect(.sql) { try connection.update("t", set: ["nothing": 1], where: .all) }
        let error = expect(.notFound) { try connection.createIndex(on: "t", columns: ["nothing"]) }
        #expect(error?.table == "t" && error?.column == "nothing")
        expect(.sql) { try connection.insert(into: "t", ["": 1]) }
        expect(.sql) { try connection.insert(into: "t", ["name\0": 1]) }
        #expect(try values() == ["kept"])
    }

    @Test func `P36 every value comes back as it went in`() throws {
        let values: [any ValueConvertible] = [
            Int64.max, Int64.min, 0, -1, 5_000_000_000, 1.5, -0.25, Double.infinity, "", "a\0b",
            "é",
            Data(), Data([0, 255, 0]), true,
        ]
        for (number, value) in values.enumerated() {
            let change = try connection.insert(into: "t", ["id": number, "data": value])
            #expect(change == RowChange(rowCount: 1, insertedRowID: Int64(number)))
            #expect(
                try connection.rows(in: "t", where: ["data": value, "id": number]).count == 1,
                "\(value)")
            #expect(
                try connection.rows(in: "t", where: ["id": number])[0]["data"] == value.asValue())
        }
        try connection.insert(into: "t", ["id": Int64.max, "name": nil, "data": Int?.none])
        let row = try #require(try connection.rows(in: "t", where: ["id": Int64.max]).first)
        #expect(row.values == [.integer(.max), .null, .null])
        #expect(try connection.rows(in: "t", where: ["data": nil]).count == 1)
        let below = try connection.insert(into: "t", ["id": Int64.min]).insertedRowID
        #expect(below == .min)
        let error = expect(.mismatch) { try connection.insert(into: "t", ["data": Double.nan]) }
        #expect(error?.column == "data")
        expect(.mismatch) { try connection.insert(into: "t", ["data": UInt64.max]) }
    }

    @Test func `P36 no row is distinguished from an error, and 0 changed rows from 1`() throws {
        #expect(try connection.rows(in: "t", where: ["id": 7]).isEmpty)
        #expect(try connection.update("t", set: ["name": "x"], where: ["id": 7]) == 0)
        #expect(try connection.delete(from: "t", where: ["id": 7]) == 0)
        for verb in [
            { try connection.insert(into: "nowhere", ["a": 1]).rowCount },
            { try connection.update("nowhere", set: ["a": 1], where: .all) },
            { try connection.delete(from: "nowhere", where: .all) },
            { try connection.rows(in: "nowhere").count },
            { try connection.upsert(into: "nowhere", ["a": 1], onConflict: ["a"]).rowCount },
            { try connection.addColumnIfMissing(.init("a", .text), to: "nowhere") ? 1 : 0 },
            { try connection.createIndex(on: "nowhere", columns: ["a"]).count },
            {
                try connection.dropTable("nowhere")
                return 0
            },
        ] as [() throws -> Int] {
            #expect(expect(.notFound, verb)?.table == "nowhere")
        }
        try connection.dropTable("nowhere", ifExists: true)
        expect(.notFound) { try connection.dropIndex("nowhere") }
        try connection.dropIndex("nowhere", ifExists: true)
    }

    @Test func `P36 all rows must be requested by name`() throws {
        for name in ["a", "b"] { try connection.insert(into: "t", ["name": name]) }
        let none: [String: any ValueConvertible] = [:]
        expect(.misuse) { try connection.delete(from: "t", where: [:]) }
        expect(.misuse) { try connection.delete(from: "t", where: RowFilter(none)) }
        expect(.misuse) { try connection.update("t", set: ["name": "x"], where: [:]) }
        expect(.misuse) { try connection.rows(in: "t", where: [:]) }
        expect(.misuse) { try connection.insert(into: "t", none) }
        expect(.misuse) { try connection.update("t", set: [:], where: .all) }
        expect(.misuse) { try connection.insert(into: "t", ["name": 1, "NAME": 2]) }
        expect(.misuse) { try connection.delete(from: "t", where: ["name": 1, "name": 2]) }
        expect(.misuse) { try connection.rows(in: "t", limit: -1) }
        #expect(try values() == ["a", "b"])
        #expect(try connection.update("t", set: ["name": "x"], where: .all) == 2)
        #expect(try connection.delete(from: "t", where: .all) == 2)
    }

    @Test func `rows are filtered, ordered and limited`() throws {
        for (name, number) in [("a", 1), ("b", 2), ("b", 1)] {
            try connection.insert(into: "t", ["name": name, "data": number])
        }
        let all = try connection.rows(in: "t", orderedBy: [.descending("name"), "data"])
        #expect(all.map { $0["id"] } == [3, 2, 1])
        #expect(try connection.rows(in: "t", where: ["name": "b"], limit: 1).count == 1)
        #expect(try connection.rows(in: "t", limit: 0).isEmpty)
        #expect(try connection.rows(in: "t", where: ["rowid": 2]).count == 1)
    }

    @Test func `the same columns give the same statement, in any order`() throws {
        try connection.insert(into: "t", ["name": "a", "data": 1, "id": 1])
        let count = connection.cache.count
        try connection.insert(into: "t", ["id": 2, "data": 2, "name": "b"])
        try connection.insert(into: "t", ["data": 3, "name": nil, "id": 3])
        #expect(connection.cache.count == count)
    }

    @Test func `a row has at most 999 values, on every engine`() throws {
        let columns = (0...999).map { ColumnDefinition("c\($0)", .integer) }
        try connection.createTable("wide", columns)
        func row(_ count: Int) -> [String: any ValueConvertible] {
            Dictionary(uniqueKeysWithValues: (0..<count).map { ("c\($0)", $0) })
        }
        #expect(try connection.insert(into: "wide", row(999)).rowCount == 1)
        #expect(expect(.tooBig) { try connection.insert(into: "wide", row(1000)) }?.table == "wide")
        expect(.tooBig) { try connection.update("wide", set: row(999), where: ["c0": 0]) }
        #expect(try connection.rows(in: "wide").count == 1)
    }

    @Test func `a table without row ids gives none, and an ignored conflict adds none`()
        throws
    {
        try connection.insert(into: "t", ["id": 77])
        try connection.execute("CREATE TABLE w(rowid TEXT PRIMARY KEY, v) WITHOUT ROWID")
        let change = try connection.insert(into: "w", ["rowid": "a"])
        #expect(change == RowChange(rowCount: 1, insertedRowID: nil))
        try connection.execute("CREATE TABLE u(rowid TEXT UNIQUE ON CONFLICT IGNORE)")
        #expect(try connection.insert(into: "u", ["rowid": "a"]).insertedRowID == 1)
        let ignored = try connection.insert(into: "u", ["rowid": "a"])
        #expect(ignored == RowChange(rowCount: 0, insertedRowID: nil))
    }

    @Test func `a body that throws rolls back what the verbs did`() throws {
        struct Stop: Error {}
        #expect(throws: Stop.self) {
            try connection.transaction {
                try connection.insert(into: "t", ["id": 1])
                try connection.upsert(into: "t", ["id": 1, "name": "x"], onConflict: ["id"])
                try connection.addColumnIfMissing(ColumnDefinition("more", .text), to: "t")
                #expect(try connection.rows(in: "t").map(\.values) == [[1, "x", .null, .null]])
                throw Stop()
            }
        }
        #expect(try connection.rows(in: "t").isEmpty)
        #expect(try !connection.columnExists("more", in: "t"))
        // While another statement has a current row, a verb of one statement works.
        try connection.insert(into: "t", ["id": 1])
        let cursor = try connection.prepare("SELECT id FROM t")
        #expect(try cursor.step())
        try connection.insert(into: "t", ["id": 2])
        expect(.misuse) { try connection.upsert(into: "t", ["id": 2], onConflict: ["id"]) }
        try cursor.reset()
        #expect(try connection.rows(in: "t").count == 2)
    }

    @Test(arguments: journalModes)
    func `a store's bodies have the same verbs`(mode: Configuration.JournalMode) throws {
        let store = try Store(
            path: folder.path("other.db"), key: .numbered(1), configuration: .testing(mode))
        let change = try store.write { tx in
            let n = tx.table("n")
            try n.create(
                [
                    ColumnDefinition("id", .integer, isPrimaryKey: true),
                    ColumnDefinition("word", .text), ColumnDefinition("count", .integer),
                ], ifNotExists: true)
            try n.createIndex(columns: ["word"], isUnique: true)
            try n.insert(["word": "a", "count": 1])
            return try n.upsert(["word": "b", "count": 1], onConflict: ["word"])
        }
        #expect(change == RowChange(rowCount: 1, insertedRowID: 2))
        try store.write { tx in
            try tx.table("n").upsert(["word": "a", "count": 9], onConflict: ["word"])
            try tx.table("n").update(set: ["count": nil], where: ["word": "b"])
            try tx.table("n").addColumnIfMissing(
                ColumnDefinition("more", .text, default: "m"))
        }
        let rows = try store.read { tx in
            try tx.table("n").rows(where: .all, orderedBy: ["word"])
        }
        #expect(rows.map(\.values) == [[1, "a", 9, "m"], [2, "b", .null, "m"]])
        expect(.constraint) {
            try store.write { tx in
                try tx.table("n").delete(where: .all)
                try tx.table("n").insert(["word": "c"])
                try tx.table("n").insert(["word": "c"])
            }
        }
        #expect(try store.read { tx in try tx.table("n").rows().count } == 2)
        try store.write { tx in
            try tx.table("n").dropIndex("index_n_word")
            try tx.table("n").drop()
        }
        expect(.notFound) { try store.read { tx in try tx.table("n").rows() } }
        try store.close()
    }

    @Test func `no row from next to a damaged page is returned or written upon`() throws {
        try connection.insert(into: "t", ["id": 1, "name": "good"])
        try connection.createTable(
            "long",
            [
                ColumnDefinition("id", .integer, isPrimaryKey: true),
                ColumnDefinition("flag", .integer), ColumnDefinition("big", .blob),
            ])
        let size = try #require(connection.profile).pageByteCount
        let big = Data(repeating: 9, count: size * 2 + size / 2)
        try connection.insert(into: "long", ["id": 1, "flag": 7, "big": big])
        let endPage = try connection.current().firstInteger("PRAGMA page_count")
        connection.close()
        try Damage.flip(folder.path(), at: (endPage - 1) * size + 10)

        let again = try Connection(
            path: folder.path(), key: .numbered(1), configuration: .testing(.delete))
        expect(.damaged) { try again.rows(in: "long") }
        expect(.damaged) { try again.update("long", set: ["flag": 2], where: ["big": big]) }
        expect(.damaged) { try again.delete(from: "long", where: ["big": Data()]) }
        #expect(try again.rows(in: "t").count == 1)
    }
}
