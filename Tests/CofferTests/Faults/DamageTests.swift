import Foundation
import Testing

@testable import Coffer

/// No byte of a page that failed authentication may come back as data, by any verb. Both engines
/// return zeros with success for the last overflow page of a value, also for the short columns next
/// to it.
@Suite struct DamageTests {
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    /// Makes a table whose only big value spans several pages, and damages the page of its end.
    private func makeWithDamagedEnd(isZeroed: Bool = false) throws {
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(.delete))
        try connection.execute("CREATE TABLE good(v)")
        try connection.execute("INSERT INTO good VALUES ('as it was')")
        try connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, big BLOB, flag INT)")
        let pageCount = try connection.current().firstInteger("PRAGMA page_count")
        let size = try #require(connection.profile).pageByteCount
        let big = [UInt8](repeating: 9, count: size * 2 + size / 2)
        try connection.execute("INSERT INTO t VALUES (1, \(big), 7)")
        let endPage = try connection.current().firstInteger("PRAGMA page_count")
        #expect(endPage > pageCount)
        connection.close()
        let offset = (endPage - 1) * size
        if isZeroed {
            try Damage.zero(path, at: offset, count: size)
        } else {
            try Damage.flip(path, at: offset + 10)
        }
    }

    private static let queries: [SQL] = [
        "SELECT big FROM t", "SELECT flag FROM t", "SELECT flag, big FROM t WHERE id = 1",
        "SELECT count(*) FROM t WHERE flag = 7", "SELECT sum(flag) FROM t",
        "SELECT length(big), flag FROM t", "SELECT max(flag) FROM t GROUP BY id",
    ]

    @Test(arguments: 0..<7, [false, true])
    func `no result over a damaged or zeroed last overflow page leaves the connection`(
        index: Int, isZeroed: Bool
    ) throws {
        try makeWithDamagedEnd(isZeroed: isZeroed)
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(.delete))
        expect(.damaged) { _ = try connection.rows(Self.queries[index]) }
        expect(.damaged) { _ = try connection.firstRow(Self.queries[index]) }
        expect(.damaged) {
            try connection.transaction { _ = try connection.rows(Self.queries[index]) }
        }
        let statement = try connection.prepare(Self.queries[index].text)
        expect(.damaged) { while try statement.step() {} }
        #expect(try connection.rows("SELECT v FROM good").count == 1, "good rows can be read")
    }

    @Test(arguments: ["SELECT see(flag) FROM t", "SELECT seeAll(flag) FROM t"])
    func `a function never sees a value from next to a damaged page`(sql: String) throws {
        final class Seen { var values: [Value] = [] }
        struct SeeAll: Aggregate {
            let seen: Seen
            mutating func step(_ arguments: FunctionArguments) throws {
                seen.values += arguments.values
            }
            func result() throws -> Value { 1 }
        }
        try makeWithDamagedEnd()
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(.delete))
        let seen = Seen()
        try connection.register(function: "see", argumentCount: 1) { arguments in
            seen.values += arguments.values
            return 1
        }
        try connection.register(aggregate: "seeAll", argumentCount: 1) { SeeAll(seen: seen) }
        expect(.damaged) { _ = try connection.rows(SQL(text: sql)) }
        #expect(seen.values.isEmpty)
        _ = try connection.rows("SELECT see(v), seeAll(v) FROM good")
        #expect(seen.values == ["as it was", "as it was"])
    }

    @Test(arguments: ["body", "verbs", "text", "rollback"])
    func `the end of a cursor that outlives its transaction is probed`(how: String) throws {
        try makeWithDamagedEnd()
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(.delete))
        // With zeros for the flag the last row would be missing.
        let cursor = try connection.cursor(
            "SELECT v FROM good UNION ALL SELECT id FROM t WHERE flag = 7")
        switch how {
        case "body":
            let first = try connection.transaction { try cursor.step() }
            #expect(first)
        case "verbs":
            try connection.begin(.deferred)
            #expect(try cursor.step())
            try connection.commit()
        case "text":
            try connection.execute("BEGIN")
            #expect(try cursor.step())
            try connection.execute("COMMIT")
        default:
            try connection.begin()
            #expect(try cursor.step())
            try connection.rollback()
        }
        #expect(!connection.isInTransaction)
        let other = try connection.cursor("SELECT v FROM good")
        #expect(try other.step())
        expect(.damaged) { try cursor.step() }
        // It ran in the same transaction, so none of its results can be trusted.
        expect(.damaged) { try other.step() }
        #expect(try connection.rows("SELECT v FROM good").count == 1)
        try connection.transaction {}
    }

    @Test(arguments: ["PRAGMA integrity_check", "PRAGMA quick_check", "PRAGMA main.quick_check(1)"])
    func `a pragma that reads pages is probed as a query is`(sql: String) throws {
        try makeWithDamagedEnd()
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(.delete))
        expect(.damaged) { try connection.rows(SQL(text: sql)) }
        expect(.damaged) { try connection.execute(SQL(text: sql)) }
        let statement = try connection.prepare(sql)
        expect(.damaged) { while try statement.step() {} }
        #expect(try connection.rows("SELECT v FROM good").count == 1)
    }

    private static let writes: [SQL] = [
        "UPDATE t SET flag = 8", "UPDATE t SET flag = 8 WHERE flag = 7", "DELETE FROM t",
        "DELETE FROM t WHERE big = x'00'", "UPDATE t SET id = 2 WHERE big >= x''",
        "INSERT INTO t SELECT id + 1, big, flag FROM t",
        "UPDATE t SET big = big || x'00' WHERE id = 1", "CREATE INDEX by_big ON t(big)",
    ]

    /// A write over a damaged page may fail with `.damaged`, or succeed without reading the page.
    private func requireDamagedOrNothing(_ body: () throws -> Void) {
        do { try body() } catch {
            #expect((error as? StoreError)?.code == .damaged, "\(error)")
        }
    }

    @Test(arguments: 0..<writes.count, [Configuration.JournalMode.wal, .delete])
    func `a write over a damaged page fails as damaged, never as something else`(
        index: Int, mode: Configuration.JournalMode
    ) throws {
        try makeWithDamagedEnd()
        let sql = Self.writes[index]
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(mode))
        requireDamagedOrNothing {
            try connection.transaction {
                try connection.execute("INSERT INTO good VALUES ('undone')")
                _ = try? connection.rows("SELECT big FROM t")
                try connection.execute(sql)
                throw CancellationError()
            }
        }
        #expect(try connection.rows("SELECT v FROM good").count == 1)
        requireDamagedOrNothing { try connection.execute(sql) }
        connection.close()
        // SQLCipher 4 leaves the journal of what it could not roll back to the next connection.
        let again = try Connection(
            path: path, key: .numbered(1), configuration: .testing(mode))
        #expect(try again.rows("SELECT v FROM good").count == 1)
        again.close()
        removeStore(path)
        try makeWithDamagedEnd()
        let store = try Store(path: path, key: .numbered(1), configuration: .testing(mode))
        requireDamagedOrNothing {
            try store.write { tx in
                _ = try? tx.rows("SELECT big FROM t")
                try tx.savepoint { tx in _ = try tx.execute(sql) }
                throw CancellationError()
            }
        }
        #expect(try store.read { tx in try tx.rows("SELECT v FROM good") }.count == 1)
    }

    @Test func `no row over a damaged page is streamed, borrowed or decoded`() throws {
        try makeWithDamagedEnd()
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(.delete))
        for sql in Self.queries {
            expect(.damaged) { try connection.cursor(sql).next() }
            expect(.damaged) { try connection.cursor(sql).step() }
            expect(.damaged) { try connection.scalar(sql, as: Value.self) }
            expect(.damaged) { try connection.rows(sql, as: Int.self) }
            expect(.damaged) {
                try connection.forEachRow(sql) { _ in Issue.record("a row was handed out") }
            }
            expect(.damaged) {
                try connection.executeScript(sql.text) { _ in
                    Issue.record("a row was handed out")
                    return .continue
                }
            }
            expect(.damaged) { try connection.prepare(sql.text).run() }
        }
        let cursor = try connection.cursor("SELECT v FROM good UNION ALL SELECT big FROM t")
        #expect(try cursor.next()?[0] == "as it was")
        expect(.damaged) { try cursor.next() }
        expect(.closed) { try cursor.next() }
        #expect(try connection.scalar("SELECT v FROM good") == "as it was")
        connection.close()
        let store = try Store(path: path, key: .numbered(1), configuration: .testing())
        expect(.damaged) {
            try store.read { tx in
                try tx.forEachRow("SELECT flag FROM t") { _ in
                    Issue.record("a row was handed out")
                }
            }
        }
    }

    @Test func `the end of a statement is probed inside the user's transaction`() throws {
        try makeWithDamagedEnd()
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(.delete))
        try connection.execute("BEGIN")
        let statement = try connection.prepare("SELECT 1 FROM t WHERE flag = 7")
        expect(.damaged) { try statement.step() }
        expect(.damaged) { try connection.execute("INSERT INTO good VALUES ('from wrong data')") }
        expect(.damaged) { try connection.execute("COMMIT") }
        try connection.execute("ROLLBACK")
        #expect(try connection.rows("SELECT v FROM good").count == 1)
    }

    @Test(arguments: 0..<7, journalModes)
    func `no result over a damaged last overflow page leaves a store's body`(
        index: Int, mode: Configuration.JournalMode
    ) throws {
        try makeWithDamagedEnd()
        let store = try Store(path: path, key: .numbered(1), configuration: .testing(mode))
        expect(.damaged) { _ = try store.read { tx in try tx.rows(Self.queries[index]).count } }
        expect(.damaged) { _ = try store.write { tx in try tx.rows(Self.queries[index]).count } }
        #expect(try store.read { tx in try tx.rows("SELECT v FROM good").count } == 1)
    }

    @Test func `a write that read a damaged page is rolled back`() throws {
        try makeWithDamagedEnd()
        let store = try Store(path: path, key: .numbered(1), configuration: .testing(.delete))
        expect(.damaged) {
            try store.write { tx in
                try tx.execute("INSERT INTO good SELECT 'wrong' FROM t WHERE flag = 0")
            }
        }
        expect(.damaged) {
            try store.write { tx in
                try tx.execute("INSERT INTO good VALUES ('beside')")
                _ = try tx.rows("SELECT flag FROM t")
            }
        }
        #expect(try store.read { tx in try tx.rows("SELECT v FROM good").count } == 1)
        try store.write { tx in try tx.execute("INSERT INTO good VALUES ('next')") }
        #expect(try store.read { tx in try tx.rows("SELECT v FROM good").count } == 2)
    }

    @Test func `an error thrown over a damaged page is reported as damage with the error as cause`()
        throws
    {
        struct Surprise: Error {}
        try makeWithDamagedEnd()
        let store = try Store(path: path, key: .numbered(1), configuration: .testing(.delete))
        let error = expect(.damaged) {
            _ = try store.read { tx -> Int in
                _ = try tx.rows("SELECT flag FROM t")
                throw Surprise()
            }
        }
        #expect(error?.cause is Surprise)
    }

    @Test(arguments: supportedProfiles)
    func `every page of a file may be damaged and no wrong row comes back`(
        profile: CipherProfile
    ) throws {
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(.delete, profile: profile))
        try connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, v, n INT)")
        try connection.transaction {
            for id in 1...12 {
                let value = [UInt8](repeating: UInt8(id), count: id * 900)
                try connection.execute("INSERT INTO t VALUES (\(id), \(value), \(id))")
            }
        }
        connection.close()
        let size = profile.pageByteCount
        for page in 1..<(try Damage.byteCount(path) / size) {
            let copy = try folder.copy(path, as: "page\(page).db")
            try Damage.flip(copy, at: page * size + size / 3)
            try expectGoodRowsOrDamage(copy)
        }
    }

    private func expectGoodRowsOrDamage(_ path: String) throws {
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(.delete))
        var damageCount = 0
        for id in 1...12 {
            do {
                let row = try connection.firstRow("SELECT v, n FROM t WHERE id = \(id)")
                let expected = Data(repeating: UInt8(id), count: id * 900)
                #expect(row?[0] == .blob(expected) && row?[1] == .integer(Int64(id)))
            } catch let error as StoreError {
                #expect(error.code == .damaged, "\(error)")
                damageCount += 1
            }
        }
        #expect(damageCount > 0, "the flipped page belongs to some row")
    }
}
