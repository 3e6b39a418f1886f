import Foundation
import Testing

@testable import Coffer

/// A connection after a rollback that restored pages from the journal.
///
/// Without `Handle.dropRestoredPages` some failed commits without WAL make page 1 unreadable until
/// the connection is opened again: one of about 10 000 with pages of 4 096 bytes on SQLCipher
/// 4.6.1. Ciphertext looks like a page header more often the larger the pages are, so the tests
/// use the largest.
@Suite(.againstHanging) struct RestoredPageTests {
    private let folder: TemporaryFolder
    private let disk: FaultDisk
    private let tryCount = CofferTests.tryCount(1500, long: 20_000)

    private struct Undo: Error {}

    init() throws {
        folder = try TemporaryFolder()
        disk = try FaultDisk()
    }

    private func connect(_ mode: Configuration.JournalMode) throws -> Connection {
        let largest = try Engine.capabilities.defaultProfile.with(pageByteCount: 65_536)
        var configuration = Configuration.testing(mode, profile: largest)
        configuration.vfs = disk.name
        let connection = try Connection(
            path: folder.path(), key: .numbered(1), configuration: configuration)
        try connection.execute("CREATE TABLE t(v)")
        try connection.execute("INSERT INTO t VALUES ('kept')")
        return connection
    }

    /// Undoes something again and again, and looks at the schema and the rows each time.
    private func repeats(
        _ mode: Configuration.JournalMode, _ undo: (Connection, _ number: Int) throws -> Void
    ) throws {
        let connection = try connect(mode)
        defer { connection.close() }
        for number in 0..<tryCount {
            try undo(connection, number)
            try #require(
                try connection.rows("SELECT name FROM sqlite_master").count == 1, "try \(number)")
            try #require(try connection.rows("SELECT v FROM t").count == 1, "try \(number)")
        }
    }

    @Test(arguments: journalModes)
    func `a commit whose sync failed leaves a connection that reads`(
        mode: Configuration.JournalMode
    ) throws {
        try repeats(mode) { connection, number in
            // Without WAL the third sync is that of the main file: all pages are written.
            disk.arm(.sync, skip: mode == .wal ? 0 : 2)
            defer { disk.disarm() }
            expect(.io) { try connection.execute("INSERT INTO t VALUES (\(number))") }
        }
    }

    @Test(arguments: journalModes)
    func `a body that is undone leaves a connection that reads`(
        mode: Configuration.JournalMode
    ) throws {
        try repeats(mode) { connection, number in
            #expect(throws: Undo.self) {
                try connection.transaction {
                    try connection.execute(SQL(text: "PRAGMA user_version = \(number)"))
                    throw Undo()
                }
            }
        }
    }

    @Test(arguments: journalModes)
    func `a savepoint that is undone leaves a transaction that reads`(
        mode: Configuration.JournalMode
    ) throws {
        let connection = try connect(mode)
        defer { connection.close() }
        try connection.transaction {
            for number in 0..<tryCount {
                #expect(throws: Undo.self) {
                    try connection.savepoint {
                        try connection.execute(SQL(text: "PRAGMA user_version = \(number)"))
                        throw Undo()
                    }
                }
                try #require(try connection.rows("SELECT name FROM sqlite_master").count == 1)
            }
        }
    }
}
