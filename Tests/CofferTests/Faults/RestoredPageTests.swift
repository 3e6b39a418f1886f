import CSQLCipher
import Foundation
import Testing

@testable import Coffer

/// A connection after a rollback that restored pages from the journal.
///
/// Without `RestoredPages.swift` some rollbacks without WAL make page 1 unreadable until the
/// connection is opened again: one of about 10 000 with pages of 4 096 bytes on SQLCipher 4.6.1.
/// Ciphertext looks like a page header more often the larger the pages are, so the tests use the
/// largest. Each test then meets about four such rollbacks.
@Suite(.againstHanging, .onOwnThreads) struct RestoredPageTests {
    private let folder: TemporaryFolder
    private let disk: FaultDisk
    private let tryCount = CofferTests.tryCount(1500, long: 20_000)

    private struct Undo: Error {}

    init() throws {
        folder = try TemporaryFolder()
        disk = try FaultDisk()
    }

    private func connect(
        _ mode: Configuration.JournalMode, name: String = "data.db"
    ) throws -> Connection {
        let largest = try Engine.capabilities.defaultProfile.with(pageByteCount: 65_536)
        var configuration = Configuration.testing(mode, profile: largest)
        configuration.vfs = disk.name
        let connection = try Connection(
            path: folder.path(name), key: .numbered(1), configuration: configuration)
        try connection.execute("CREATE TABLE t(v CHECK(v <> 'bad'))")
        try connection.execute("INSERT INTO t VALUES ('kept'), ('too')")
        return connection
    }

    private func requireReadable(
        _ connection: Connection, _ number: Int, _ schema: String = "main"
    ) throws {
        let names = SQL(text: "SELECT name FROM \(schema).sqlite_master")
        try #require(try connection.rows(names).count == 1, "try \(number)")
        let rows = SQL(text: "SELECT v FROM \(schema).t")
        try #require(try connection.rows(rows).count == 2, "try \(number)")
    }

    /// Undoes something again and again, and looks at the schema and the rows each time.
    private func repeats(
        _ connection: Connection, _ schema: String = "main",
        _ undo: (_ number: Int) throws -> Void
    ) throws {
        defer { connection.close() }
        for number in 0..<tryCount {
            try undo(number)
            try requireReadable(connection, number, schema)
        }
    }

    /// Runs a body in a transaction that is rolled back after it.
    private func undone(_ connection: Connection, _ body: () throws -> Void) throws {
        do {
            try connection.transaction {
                try body()
                throw Undo()
            }
        } catch is Undo {}
    }

    /// Writes page 1 and another page.
    ///
    /// - Parameter reachesFile: Whether the other page goes to the file at once, as it does when
    ///   the cache is full. Only then does the engine keep its cache after a rollback.
    private func write(
        _ connection: Connection, _ number: Int, _ schema: String = "main",
        reachesFile: Bool = false
    ) throws {
        try connection.execute(SQL(text: "PRAGMA \(schema).user_version = \(number)"))
        try connection.execute(SQL(text: "INSERT INTO \(schema).t VALUES (\(number))"))
        if reachesFile {
            try #require(sqlite3_db_cacheflush(try connection.current().db) == SQLITE_OK)
        }
    }

    /// Fails a commit. Without WAL the third sync is that of the main file: all pages are written.
    private func failCommit(
        _ connection: Connection, _ mode: Configuration.JournalMode = .delete
    ) throws {
        disk.arm(.sync, skip: mode == .wal ? 0 : 2)
        defer { disk.disarm() }
        expect(.io) { try connection.execute("INSERT INTO t VALUES ('lost')") }
    }

    // MARK: The whole transaction

    @Test(arguments: journalModes)
    func `a commit whose sync failed leaves a connection that reads`(
        mode: Configuration.JournalMode
    ) throws {
        let connection = try connect(mode)
        try repeats(connection) { _ in try failCommit(connection, mode) }
    }

    @Test(arguments: journalModes)
    func `a body that is undone leaves a connection that reads`(
        mode: Configuration.JournalMode
    ) throws {
        let connection = try connect(mode)
        try repeats(connection) { number in
            try undone(connection) { try write(connection, number, reachesFile: true) }
        }
    }

    @Test func `ROLLBACK as SQL text leaves a connection that reads`() throws {
        let connection = try connect(.delete)
        try repeats(connection) { number in
            try connection.execute("BEGIN")
            try write(connection, number, reachesFile: true)
            try connection.execute("ROLLBACK")
        }
    }

    @Test func `a rollback while a cursor has a row leaves a connection that reads`() throws {
        let connection = try connect(.delete)
        try repeats(connection) { number in
            let cursor = try connection.cursor("SELECT v FROM t")
            #expect(try cursor.step())
            try failCommit(connection)
            expect(.cancelled) { try cursor.step() }
        }
    }

    @Test func `a rollback without a write keeps the page cache, and cursors go on`() throws {
        let connection = try connect(.delete)
        let cursor = try connection.cursor("SELECT v FROM t")
        #expect(try cursor.step())
        let missCount = coffer_cache_miss_count(try connection.current().db)
        for _ in 0..<3 {
            expect(.constraint) { try connection.execute("INSERT INTO t VALUES ('bad')") }
        }
        #expect(try cursor.step())
        try cursor.close()
        for _ in 0..<3 {
            try undone(connection) {
                let rows = try connection.rows("SELECT v FROM t")
                #expect(rows.count == 2)
            }
        }
        let laterCount = coffer_cache_miss_count(try connection.current().db)
        #expect(laterCount == missCount)
    }

    @Test func `an attached file without WAL next to a WAL reads after a rollback`() throws {
        try connect(.delete, name: "side.db").close()
        let connection = try connect(.wal)
        try connection.attach(folder.path("side.db"), as: "side", key: .numbered(1))
        try repeats(connection, "side") { number in
            try undone(connection) { try write(connection, number, "side", reachesFile: true) }
        }
    }

    @Test func `an adopted handle reads after Coffer has rolled back`() throws {
        try connect(.delete).close()
        let host = try RawConnection(
            folder.path("data.db"), key: 1, pragmas: ["PRAGMA cipher_page_size = 65536"])
        let connection = try Connection(adopting: host.db)
        try repeats(connection) { number in
            try undone(connection) { try write(connection, number, reachesFile: true) }
        }
    }

    @Test func `a held VACUUM runs after a commit that failed`() throws {
        let connection = try connect(.delete)
        let vacuum = try connection.prepare("VACUUM")
        try repeats(connection) { _ in
            try failCommit(connection)
            let hasRow = try vacuum.step()
            #expect(!hasRow)
        }
    }

    // MARK: A part of the transaction

    /// Undoes a part of a transaction that has not written page 1 before it.
    private func repeatsInTransaction(
        _ mode: Configuration.JournalMode, _ undo: (Connection, _ number: Int) throws -> Void
    ) throws {
        let connection = try connect(mode)
        try repeats(connection) { number in
            try undone(connection) {
                try requireReadable(connection, number)
                try undo(connection, number)
                try requireReadable(connection, number)
            }
        }
    }

    @Test(arguments: journalModes)
    func `a savepoint that is undone leaves a transaction that reads`(
        mode: Configuration.JournalMode
    ) throws {
        try repeatsInTransaction(mode) { connection, number in
            #expect(throws: Undo.self) {
                try connection.savepoint {
                    try write(connection, number)
                    throw Undo()
                }
            }
        }
    }

    @Test func `ROLLBACK TO as SQL text leaves a transaction that reads`() throws {
        let connection = try connect(.delete)
        try repeats(connection) { number in
            try connection.begin()
            try requireReadable(connection, number)
            try connection.execute("SAVEPOINT a")
            try write(connection, number)
            try connection.execute("ROLLBACK TO a")
            try requireReadable(connection, number)
            try connection.beginSavepoint("b")
            try write(connection, number)
            try connection.rollback(toSavepoint: "b")
            try requireReadable(connection, number)
            try connection.rollback()
        }
    }

    @Test(arguments: journalModes)
    func `a statement that fails half-way leaves a transaction that reads`(
        mode: Configuration.JournalMode
    ) throws {
        try repeatsInTransaction(mode) { connection, _ in
            expect(.constraint) {
                // The first row grows the file, which page 1 records.
                try connection.execute("INSERT INTO t VALUES (zeroblob(100000)), ('bad')")
            }
        }
    }

    @Test(arguments: journalModes)
    func `a transaction whose connection was closed is undone without touching the closed file`(
        mode: Configuration.JournalMode
    ) throws {
        let connection = try connect(mode)
        try connection.begin(.immediate)
        try connection.execute("INSERT INTO t VALUES (1)")
        let handle = try connection.current()
        connection.close()
        #expect(handle.isClosed && handle.controls.isBegun)
        #expect(connection.undo(handle))
        handle.dropRestoredPages()
        #expect(!handle.mayMisreadPages, "nobody asked the closed file whether it has a WAL")
    }
}
