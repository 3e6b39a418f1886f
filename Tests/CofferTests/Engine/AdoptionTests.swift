import CSQLCipher
import Foundation
import Testing

@testable import Coffer

/// A program moves from another wrapper by sharing its open handle.
@Suite(.againstHanging, .onOwnThreads) struct AdoptionTests {
    private let folder: TemporaryFolder
    private let host: RawConnection

    init() throws {
        folder = try TemporaryFolder()
        host = try RawConnection(folder.path(), key: 7)
        try #require(host.run("CREATE TABLE t(a)") == SQLITE_OK)
        try #require(host.run("INSERT INTO t VALUES ('old')") == SQLITE_OK)
    }

    @Test func `both sides see each other's work, and each other's transactions`() throws {
        let connection = try Connection(adopting: host.db)
        #expect(try connection.firstRow("SELECT a FROM t")?[0] == "old")
        try connection.transaction { try connection.execute("INSERT INTO t VALUES ('new')") }
        #expect(host.first("SELECT count(*) FROM t") == "2")
        host.run("BEGIN")
        #expect(connection.isInTransaction)
        expect(.misuse) { try connection.transaction {} }
        try connection.execute("INSERT INTO t VALUES ('undone')")
        host.run("ROLLBACK")
        #expect(try connection.rows("SELECT a FROM t").count == 2)
    }

    @Test func `the owner's handle stays as it was, before and after close`() throws {
        var statement: OpaquePointer?
        try #require(
            sqlite3_prepare_v2(host.db, "SELECT count(*) FROM t", -1, &statement, nil)
                == SQLITE_OK)
        defer { sqlite3_finalize(statement) }
        host.run("PRAGMA foreign_keys = OFF")
        let connection = try Connection(adopting: host.db)
        expect(.misuse) { try connection.execute("PRAGMA journal_mode = WAL") }
        expect(.misuse) { try connection.execute("PRAGMA key = 'x'") }
        // Coffer's rules bind Coffer's statements, not the owner's.
        #expect(host.first("PRAGMA journal_mode = WAL") == "wal")
        #expect(host.first("PRAGMA foreign_keys") == "0")
        #expect(sqlite3_step(statement) == SQLITE_ROW)
        sqlite3_reset(statement)
        let own = try connection.prepare("SELECT a FROM t")
        #expect(try own.step())
        connection.close()
        expect(.closed) { try own.step() }
        #expect(sqlite3_step(statement) == SQLITE_ROW)
        sqlite3_reset(statement)
        #expect(host.run("INSERT INTO t VALUES ('after')") == SQLITE_OK)
    }

    private struct Visit: Record {
        struct Place: Codable {
            var city: String
        }
        var id: Int
        var place: Place
    }

    @Test func `a condition on JSON knows its function`() throws {
        host.run("CREATE TABLE visit(id INTEGER PRIMARY KEY, place TEXT NOT NULL)")
        host.run("INSERT INTO visit VALUES (1, '{\"city\":\"Oslo\"}'), (2, '{\"city\":\"Rome\"}')")
        let connection = try Connection(adopting: host.db)
        try connection.migrate([
            Migration("cities") { tx throws in
                for city in ["Oslo", "Rome"] {
                    let found = try tx.fetch(Visit.where(\.place.city == city))
                    #expect(found.map(\.place.city) == [city])
                }
            }
        ])
        #expect(host.first("SELECT count(*) FROM visit") == "2")
    }

    @Test func `a verb that needs the key or the file is .unsupported`() throws {
        let connection = try Connection(adopting: host.db)
        expect(.unsupported) { try connection.rekey(to: .numbered(8)) }
        #expect(connection.profile == nil)
        expect(.misuse) { try connection.setKey(.numbered(7)) }
    }

    @Test func `a handle that is not encrypted, not keyed or still empty is refused`() throws {
        let plain = try RawConnection(folder.path("plain.db"))
        expect(.notEncrypted) { try Connection(adopting: plain.db) }
        plain.run("CREATE TABLE t(a)")
        expect(.notEncrypted) { try Connection(adopting: plain.db) }
        let wrong = try RawConnection(folder.path(), key: 8)
        expect(.wrongKey) { try Connection(adopting: wrong.db) }
        let new = try RawConnection(folder.path("new.db"), key: 7)
        expect(.notEncrypted) { try Connection(adopting: new.db) }
        let memory = try RawConnection(":memory:")
        #expect(try Connection(adopting: memory.db).firstRow("SELECT 1")?[0] == 1)
    }

    @Test func `a function is refused once its connection is closed`() throws {
        let connection = try Connection(adopting: host.db)
        try connection.register(function: "one", argumentCount: 0) { _ in 1 }
        #expect(host.first("SELECT one()") == "1")
        connection.close()
        #expect(host.first("SELECT one()") == nil)
    }

    @Test func `damage in an adopted file is an error`() throws {
        let size = 1024
        let path = folder.path("long.db")
        var writer: RawConnection? = try RawConnection(
            path, key: 7, pragmas: ["PRAGMA cipher_page_size = \(size)"])
        writer?.run("CREATE TABLE t(big BLOB, flag)")
        writer?.run("INSERT INTO t VALUES (zeroblob(5000), 7)")
        let pageCount = try #require(writer?.first("PRAGMA page_count").flatMap { Int($0) })
        writer = nil
        try Damage.flip(path, at: (pageCount - 1) * size + 10)
        let host = try RawConnection(
            path, key: 7, pragmas: ["PRAGMA cipher_page_size = \(size)"])
        let connection = try Connection(adopting: host.db)
        expect(.damaged) { try connection.rows("SELECT flag FROM t") }
    }

    @Test func `scripts and validation follow the same rules`() throws {
        let connection = try Connection(adopting: host.db)
        for sql in ["PRAGMA key = 'x'", "ATTACH 'x' AS y", "PRAGMA journal_mode = OFF"] {
            expect(.misuse) { try connection.executeScript(sql) }
            expect(.misuse) { try connection.validate(sql) }
        }
        host.run("PRAGMA foreign_keys = ON")
        try connection.validate("PRAGMA foreign_keys = OFF")
        #expect(host.first("PRAGMA foreign_keys") == "1")
        try connection.executeScript("BEGIN; INSERT INTO t VALUES ('two'); COMMIT")
        #expect(host.first("SELECT count(*) FROM t") == "2")
        expect(.unsupported) { try connection.cipherInformation() }
    }

    /// Makes a second file with one row under the host's key, and returns its path.
    private func makeOther(_ name: String) throws -> String {
        let path = folder.path(name)
        let other = try RawConnection(path, key: 7)
        try #require(other.run("CREATE TABLE u(a)") == SQLITE_OK)
        try #require(other.run("INSERT INTO u VALUES ('other')") == SQLITE_OK)
        return path
    }

    /// Attaches a file as the owner of the handle does.
    private func attach(_ path: String, as name: String) throws {
        try #require(host.attach(path, as: name, key: 7) == SQLITE_OK)
    }

    @Test func `a connection detaches at its end what it attached, and nothing else`() throws {
        try attach(try makeOther("early.db"), as: "early")
        let path = try makeOther("own.db")
        var connection: Connection? = try Connection(adopting: host.db)
        try connection?.attach(path, as: "own", key: .numbered(7))
        #expect(connection?.attachedNames == ["early", "own"])
        for sql: SQL in ["SELECT a FROM early.u", "SELECT a FROM own.u"] {
            #expect(try connection?.firstRow(sql)?[0] == "other")
        }
        #expect(host.first("SELECT a FROM own.u") == "other")
        connection = nil
        #expect(host.first("SELECT a FROM own.u") == nil)
        #expect(host.first("SELECT a FROM early.u") == "other")
    }

    @Test func `a file that the owner detached is not probed`() throws {
        try attach(try makeOther("other.db"), as: "other")
        let connection = try Connection(adopting: host.db)
        #expect(try connection.rows("SELECT a FROM t").count == 1)
        try #require(host.run("DETACH other") == SQLITE_OK)
        #expect(try connection.rows("SELECT a FROM t").count == 1)
        #expect(connection.attachedNames.isEmpty)
    }

    @Test(arguments: [false, true])
    func `damage in a file that the owner attaches is an error`(isLate: Bool) throws {
        let path = folder.path("other.db")
        var writer: RawConnection? = try RawConnection(path, key: 7)
        writer?.run("CREATE TABLE u(big BLOB, flag)")
        writer?.run("INSERT INTO u VALUES (zeroblob(20000), 7)")
        let pageCount = try #require(writer?.first("PRAGMA page_count").flatMap { Int($0) })
        let size = try #require(writer?.first("PRAGMA page_size").flatMap { Int($0) })
        writer = nil
        try Damage.flip(path, at: (pageCount - 1) * size + 10)
        if !isLate { try attach(path, as: "other") }
        let connection = try Connection(adopting: host.db)
        #expect(try connection.rows("SELECT a FROM t").count == 1)
        if isLate { try attach(path, as: "other") }
        expect(.damaged) { try connection.rows("SELECT flag FROM u") }
        expect(.damaged) { try connection.rows("SELECT count(*) FROM u WHERE flag = 7") }
        expect(.damaged) { try connection.executeScript("UPDATE u SET flag = flag + 1") }
        #expect(try connection.rows("SELECT a FROM t").count == 1)
    }

    @Test func `the schema of a file that takes another one's name is authenticated`() throws {
        let good = folder.path("good.db")
        var writer: RawConnection? = try RawConnection(good, key: 7)
        for sql in [
            "CREATE TABLE note(id INTEGER PRIMARY KEY, title, secret)",
            "INSERT INTO note VALUES (1, 'open', 0), (2, 'hidden', 1)",
            SchemaFixture.LastObject.view.sql,
        ] {
            try #require(writer?.run(sql) == SQLITE_OK)
        }
        let size = try #require(writer?.first("PRAGMA page_size").flatMap { Int($0) })
        writer = nil
        let damaged = folder.path("damaged.db")
        try FileManager.default.copyItem(atPath: good, toPath: damaged)
        try Damage.flip(damaged, at: try Damage.byteCount(damaged) - size + 100)
        try attach(good, as: "other")
        let connection = try Connection(adopting: host.db)
        let prepared = try connection.prepare("SELECT title FROM visible")
        for _ in 0..<2 {
            #expect(try connection.rows("SELECT title FROM visible").count == 1)
            #expect(try prepared.step())
            try prepared.reset()
        }
        try #require(host.run("DETACH other") == SQLITE_OK)
        try attach(damaged, as: "other")
        for _ in 0..<2 {
            expect(.damaged) { try connection.rows("SELECT title FROM visible") }
            expect(.damaged) { try prepared.step() }
            expect(.damaged) { try connection.transaction(.deferred) { try prepared.step() } }
            // The owner begins a transaction.
            host.run("BEGIN")
            expect(.damaged) { try prepared.step() }
            expect(.damaged) { try connection.rows("SELECT title FROM visible") }
            host.run("ROLLBACK")
        }
        try #require(host.run("DETACH other") == SQLITE_OK)
        try attach(good, as: "other")
        #expect(try connection.rows("SELECT title FROM visible").count == 1)
    }

    @Test func `blobs and traces work on a shared handle`() throws {
        host.run("CREATE TABLE b(id INTEGER PRIMARY KEY, a BLOB)")
        host.run("INSERT INTO b VALUES (1, x'010203')")
        let connection = try Connection(adopting: host.db)
        let bytes = try connection.withBlob("a", in: "b", row: 1) { blob in
            try blob.bytes(in: 0..<2)
        }
        #expect(Array(bytes) == [1, 2])
        var texts: [String] = []
        try connection.trace { event in
            if case .begin = event.kind { texts.append(event.sql) }
        }
        _ = try connection.rows("SELECT a FROM t WHERE a <> \("secret")")
        #expect(texts == ["SELECT a FROM t WHERE a <> ?"])
        connection.close()
        host.run("SELECT 'after'")
        #expect(texts.count == 1, "the trace has ended")
    }
}
