import Foundation
import Testing

@testable import Coffer

/// Dates in SQL of the user, beside columns that count from 2001.
@Suite(.againstHanging, .onOwnThreads) struct PlainDateTests {
    private let fixture: RecordFixture
    private let date = Date(timeIntervalSinceReferenceDate: 721_692_800.1)

    struct Visit: Record, Equatable {
        var id: Int
        var began: Date
    }

    struct Latest: Decodable, Equatable {
        var began: Date
    }

    init() throws {
        fixture = try RecordFixture()
        try fixture.store.write { [date] tx in try tx.insert(Visit(id: 1, began: date)) }
    }

    @Test func `a result's column is read as its declared type says`() throws {
        let sql: SQL = "SELECT id, began FROM visit"
        try fixture.store.read { tx throws in
            let row = try #require(try tx.firstRow(sql))
            #expect(try row.get("began") == date)
            #expect(try row.get(1, as: Date?.self) == date)
            #expect(try row.decode(Latest.self) == Latest(began: date))
            #expect(try tx.rows(sql, as: Latest.self) == [Latest(began: date)])
            #expect(try tx.scalar("SELECT began FROM visit") == date)
            #expect(try tx.fetch(Visit.all, as: Latest.self) == [Latest(began: date)])
        }
        let connection = try Connection(path: fixture.folder.path(), key: .numbered(7))
        let statement = try connection.prepare("SELECT began FROM visit")
        #expect(try statement.step())
        #expect(try statement.value(at: 0, as: Date.self) == date)
        connection.close()
    }

    @Test func `an expression has no declared type, so its encoding must be said`() throws {
        let sql: SQL = "SELECT max(began) AS began FROM visit"
        try fixture.store.read { tx throws in
            let row = try #require(try tx.firstRow(sql))
            let error = expect(.mismatch) { try row.get("began", as: Date.self) }
            #expect(error?.hint?.contains("secondsSince2001") == true)
            expect(.mismatch) { try row.decode(Latest.self) }
            expect(.mismatch) { try tx.scalar(sql, as: Date.self) }
            let encoding = try tx.dateEncoding(of: \Visit.began)
            #expect(try row.date("began", as: encoding) == date)
            #expect(try row.decode(Latest.self, dates: encoding) == Latest(began: date))
            // A result as records takes the count of the table's column of that name.
            let records = try tx.fetch(
                Visit.self, sql: "SELECT id, max(began) AS began FROM visit GROUP BY id")
            #expect(records == [Visit(id: 1, began: date)])
        }
    }

    @Test func `a plain date as an argument is refused, and a named property binds it`() throws {
        try fixture.store.write { tx throws in
            let error = expect(.misuse) {
                try tx.rows("SELECT * FROM visit WHERE began = \(date)")
            }
            #expect(error?.hint?.contains(", for: ") == true)
            expect(.misuse) { try tx.execute("UPDATE visit SET began = \(Optional(date))") }
            expect(.misuse) {
                try tx.rows(SQL(text: "SELECT * FROM visit WHERE began = :d", named: ["d": date]))
            }
            expect(.misuse) { try tx.cursor("SELECT * FROM visit WHERE began = \(date)") }
            let found = try tx.rows(
                "SELECT * FROM visit WHERE began = \(date, for: \Visit.began) AND id = \(1)")
            #expect(found.count == 1)
            let encoding = try tx.dateEncoding(of: \Visit.began)
            #expect(
                try tx.rows("SELECT * FROM visit WHERE began = \(date, as: encoding)").count == 1)
            expect(.misuse) {
                try tx.rows("SELECT \(1, for: \Visit.id.description.count)")
            }
        }
        let connection = try Connection(path: fixture.folder.path(), key: .numbered(7))
        let statement = try connection.prepare("SELECT * FROM visit WHERE began = ?")
        expect(.misuse) { try statement.bind(date, at: 0) }
        expect(.misuse) { try statement.bind(named: ["d": date]) }
        connection.close()
    }

    @Test func `a table of another program takes plain dates, beside one that counts from 2001`()
        throws
    {
        let time = Date(timeIntervalSince1970: 1_700_000_000)
        try fixture.execute("CREATE TABLE log (id INTEGER PRIMARY KEY, time REAL)")
        try fixture.execute("INSERT INTO log VALUES (1, \(time))")
        struct Log: Record, Equatable {
            var id: Int
            var time: Date
        }
        try fixture.store.read { tx throws in
            #expect(try tx.scalar("SELECT time FROM log WHERE time <= \(time)") == time)
            #expect(try tx.scalar("SELECT max(time) FROM log") == time)
            let log = try tx.fetch(Log.self, sql: "SELECT id, max(time) AS time FROM log")
            #expect(log == [Log(id: 1, time: time)])
            let visits = try tx.fetch(Visit.self, sql: "SELECT id, max(time) AS began FROM log")
            #expect(visits == [Visit(id: 1, began: time)])
            // Of both tables: nothing tells which.
            expect(.mismatch) {
                try tx.fetch(
                    Visit.self, sql: "SELECT 1 AS id, max(time, began) AS began FROM log, visit")
            }
            let both: SQL = "SELECT began FROM visit UNION ALL SELECT time FROM log"
            for row in try tx.rows(both) {
                expect(.mismatch) { try row.get(0, as: Date.self) }
            }
        }
    }

    @Test func `a view's expression needs an encoding, and a compound view too`() throws {
        struct Latest: Record {
            static let table = "latest"
            static let key = ["id"]
            var id: Int
            var began: Date
        }
        struct ToldLatest: Record, Equatable {
            static let table = "latest"
            static var encodings: [PartialKeyPath<ToldLatest>: ColumnEncoding] {
                [\.began: .date(.secondsSince2001)]
            }
            var id: Int
            var began: Date
        }
        struct Recent: Record {
            static let table = "recent"
            var began: Date
        }
        struct Every: Record {
            static let table = "every"
            var began: Date
        }
        try fixture.execute("CREATE TABLE log (time REAL)")
        try fixture.execute(
            "CREATE VIEW latest AS SELECT id, max(began) AS began FROM visit GROUP BY id")
        try fixture.execute(
            "CREATE VIEW every AS SELECT began FROM visit UNION ALL SELECT time FROM log")
        try fixture.execute("CREATE VIEW recent AS SELECT began FROM every WHERE began > 0")
        try fixture.store.read { tx throws in
            let error = expect(.mismatch) { try tx.fetch(Latest.all) }
            #expect(error?.hint?.contains("encodings") == true)
            expect(.mismatch) { try tx.count(Latest.where(\.began == date)) }
            expect(.mismatch) { try tx.fetch(Every.all) }
            expect(.mismatch) { try tx.fetch(Recent.all) }
            #expect(
                try tx.fetch(ToldLatest.where(\.began == date)) == [ToldLatest(id: 1, began: date)])
        }
    }

    @Test func `a copy of a table that would count otherwise is refused`() throws {
        try fixture.store.write { tx throws in
            let error = expect(.misuse) {
                try tx.execute("CREATE TABLE archive AS SELECT * FROM visit")
            }
            #expect(error?.column == "began")
            expect(.misuse) {
                try tx.execute(
                    "create temp table t as with v as (select * from visit) select * from v")
            }
            try tx.execute("CREATE TABLE log (time REAL)")
            for text in [
                "-- an old one\nCREATE TABLE archive AS SELECT * FROM visit",
                "CREATE TABLE archive AS /* all */ SELECT * FROM visit",
                "CREATE TABLE \"x as select 1\" AS SELECT * FROM visit",
                "CREATE TABLE archive AS SELECT time FROM log UNION ALL SELECT began FROM visit",
                "CREATE TABLE archive AS SELECT max(began) AS began FROM visit",
            ] {
                expect(.misuse) { try tx.execute(SQL(text: text)) }
                expect(.misuse) { try tx.executeScript("SELECT 1; \(text);") }
            }
            try tx.execute("CREATE TABLE ids AS SELECT id FROM visit")
            try tx.execute("CREATE TABLE counts AS SELECT count(*) AS n, '--began' FROM log")
            try tx.execute("CREATE VIEW copy AS SELECT * FROM visit")
            let kinds: [ColumnDefinition] = [.init("id", .integer), .init("began", .date)]
            try tx.table("archive").create(kinds)
            try tx.execute("INSERT INTO archive SELECT * FROM visit")
            #expect(try tx.scalar("SELECT began FROM archive") == date)
        }
    }

    @Test func `a file without such columns takes plain dates as seconds since 1970`() throws {
        let other = try RecordFixture()
        try other.execute("CREATE TABLE log (time REAL)")
        let time = Date(timeIntervalSince1970: 1_700_000_000)
        try other.execute("INSERT INTO log VALUES (\(time))")
        #expect(try other.values("SELECT time FROM log") == [1_700_000_000.0])
        try other.store.read { tx throws in
            #expect(try tx.scalar("SELECT max(time) FROM log") == time)
            #expect(try tx.scalar("SELECT time FROM log WHERE time = \(time)") == time)
        }
    }

    @Test(arguments: ["REAL", "REAL_SINCE_2001"])
    func `verbs for tables give each column its own count`(type: String) throws {
        try fixture.execute("CREATE TABLE log (id INTEGER PRIMARY KEY, time \(identifier: type))")
        try fixture.execute("CREATE UNIQUE INDEX times ON log (time)")
        let times = (0..<4).map { Date(timeIntervalSince1970: 1_700_000_000 + Double($0)) }
        try fixture.store.write { tx throws in
            try tx.table("log").insert(["id": 1, "time": times[0]])
            try tx.table("log").upsert(["id": 1, "time": times[1]], onConflict: ["id"])
            try tx.table("log").upsert(["time": times[1]], onConflict: ["time"])
            let log = tx.table("log")
            #expect(try log.update(set: ["time": times[2]], where: ["time": times[1]]) == 1)
            let rows = try log.rows(where: ["time": times[2]])
            #expect(try rows.map { try $0.get("time", as: Date.self) } == [times[2]])
            #expect(try log.delete(where: ["time": times[2]]) == 1)
        }
    }

    @Test func `columns beyond the 64th count as they are declared`() {
        let columns = ColumnSet([0, 63, 64, 70])
        #expect((0..<80).filter { columns.contains(Int32($0)) } == [0, 63, 64, 70])
        #expect(columns.moved(by: 2) == ColumnSet([2, 65, 66, 72]))
        #expect(ColumnSet() == ColumnSet([]))
    }
}
