import CSQLCipher
import Foundation
import Testing

@testable import Coffer

@Suite(.againstHanging, .onOwnThreads) struct TransactionVerbTests {
    private let folder: TemporaryFolder
    private let connection: Connection

    init() throws {
        folder = try TemporaryFolder()
        connection = try Connection(
            path: folder.path(), key: .numbered(1), configuration: .impatient(.delete))
        try connection.execute("CREATE TABLE t(v UNIQUE)")
    }

    private func values() throws -> [Int] {
        try connection.rows("SELECT v FROM t ORDER BY v").map { try $0.get(0) }
    }

    private func insert(_ value: Int) throws {
        try connection.execute("INSERT INTO t VALUES (\(value))")
    }

    @Test func `begin and commit keep changes, begin and rollback discard them`() throws {
        try connection.begin()
        try insert(1)
        #expect(connection.isInTransaction)
        try connection.commit()
        #expect(!connection.isInTransaction)
        try connection.begin(.deferred)
        try insert(2)
        try connection.rollback()
        #expect(!connection.isInTransaction)
        #expect(try values() == [1])
    }

    @Test func `P7 the state is SQLite's own, no matter who began or ended the transaction`() throws
    {
        try connection.execute("BEGIN")
        #expect(connection.isInTransaction)
        expect(.misuse) { try connection.begin() }
        try insert(1)
        try connection.commit()
        #expect(!connection.isInTransaction)
        try connection.begin()
        // SQLite rolls back the transaction by itself.
        expect(.constraint) { try connection.execute("INSERT OR ROLLBACK INTO t VALUES (1)") }
        #expect(!connection.isInTransaction)
        expect(.misuse) { try connection.commit() }
        expect(.misuse) { try connection.rollback() }
        try connection.begin()
        connection.close()
        #expect(!connection.isInTransaction)
        expect(.closed) { try connection.commit() }
    }

    @Test func `P6 a body never runs without a transaction, and none is left open`() throws {
        let other = try Connection(
            path: folder.path(), key: .numbered(1), configuration: .impatient(.delete))
        try other.begin()
        var hasRun = false
        // BEGIN fails: the body does not run as if it were inside.
        expect(.busy) { try connection.transaction { hasRun = true } }
        #expect(!hasRun)
        #expect(!connection.isInTransaction)
        try other.rollback()
        // COMMIT fails on a deferred foreign key, so everything is rolled back.
        try connection.execute(
            """
            CREATE TABLE child(p REFERENCES t(v) DEFERRABLE INITIALLY DEFERRED)
            """)
        let error = expect(.constraint) {
            try connection.transaction { try connection.execute("INSERT INTO child VALUES (9)") }
        }
        #expect(error?.resultCode == 787)
        #expect(!connection.isInTransaction)
        #expect(try connection.rows("SELECT * FROM child").isEmpty)
        // With the verbs the transaction stays open, so that the caller can repair it.
        try connection.begin()
        try connection.execute("INSERT INTO child VALUES (9)")
        expect(.constraint) { try connection.commit() }
        #expect(connection.isInTransaction)
        try insert(9)
        try connection.commit()
        #expect(try connection.rows("SELECT * FROM child").count == 1)
    }

    @Test func `P34 the default mode takes the write lock, and each mode its own`() throws {
        let other = try Connection(
            path: folder.path(), key: .numbered(1), configuration: .impatient(.delete))
        func others(_ sql: SQL) -> StoreError.Code? {
            do {
                try other.execute(sql)
                return nil
            } catch { return (error as? StoreError)?.code }
        }
        let write: SQL = "INSERT INTO t VALUES (1)"
        try connection.begin(.deferred)
        #expect(others(write) == nil)
        try connection.rollback()
        for mode in [nil, TransactionMode.immediate] {
            if let mode { try connection.begin(mode) } else { try connection.begin() }
            #expect(others(write) == .busy)
            #expect(others("SELECT * FROM t") == nil)
            try connection.rollback()
        }
        try connection.begin(.exclusive)
        #expect(others("SELECT * FROM t") == .busy)
        try connection.rollback()
        try connection.transaction { #expect(others(write) == .busy) }
    }

    @Test(arguments: ["a", "it's", "say \"x\"", "🗝️", "select", "coffer_0", "--"])
    func `P33 a savepoint may have any name and is rolled back or released`(name: String) throws {
        try connection.begin()
        try connection.beginSavepoint(name)
        try insert(1)
        try connection.rollback(toSavepoint: name)
        try insert(2)
        try connection.savepoint { try insert(3) }
        try connection.releaseSavepoint(name)
        expect(.notFound) { try connection.releaseSavepoint(name) }
        expect(.notFound) { try connection.rollback(toSavepoint: name) }
        try connection.commit()
        #expect(try values() == [2, 3])
    }

    @Test func `savepoints by name need a transaction that the user began`() throws {
        expect(.misuse) { try connection.beginSavepoint("a") }
        expect(.misuse) { try connection.releaseSavepoint("a") }
        try connection.begin()
        expect(.sql) { try connection.beginSavepoint("") }
        expect(.sql) { try connection.beginSavepoint("a\0b") }
        try connection.beginSavepoint("a")
        try connection.savepoint {
            expect(.misuse) { try connection.releaseSavepoint("a") }
            expect(.misuse) { try connection.rollback(toSavepoint: "a") }
            expect(.misuse) { try connection.execute("RELEASE a") }
            expect(.misuse) { try connection.commit() }
            expect(.misuse) { try connection.rollback() }
            try insert(1)
        }
        try connection.commit()
        try connection.transaction {
            expect(.misuse) { try connection.commit() }
            try connection.beginSavepoint("b")
            try insert(2)
            try connection.releaseSavepoint("b")
        }
        #expect(try values() == [1, 2])
    }

    @Test func `begin and commit are refused while a statement has a current row`() throws {
        try insert(1)
        try insert(2)
        let cursor = try connection.prepare("SELECT v FROM t")
        #expect(try cursor.step())
        expect(.misuse) { try connection.begin() }
        expect(.misuse) { try connection.commit() }
        expect(.misuse) { try connection.rollback() }
        expect(.misuse) { try connection.checkpoint() }
        #expect(try cursor.step())
        #expect(try !cursor.step())
        try connection.begin()
        try connection.rollback()
    }

    @Test func `commit and release refuse what a damaged page may have changed`() throws {
        let path = folder.path("damaged.db")
        var connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(.delete))
        try connection.execute("CREATE TABLE t(big, flag)")
        let size = try #require(connection.profile).pageByteCount
        try connection.execute(
            "INSERT INTO t VALUES (\([UInt8](repeating: 9, count: size * 3)), 7)")
        let end = try connection.current().firstInteger("PRAGMA page_count")
        connection.close()
        try Damage.flip(path, at: (end - 1) * size + 10)
        connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(.delete))
        try connection.begin()
        try connection.beginSavepoint("a")
        _ = try connection.current().firstText("SELECT flag FROM t")
        expect(.damaged) { try connection.releaseSavepoint("a") }
        // A rollback to a savepoint does not make the transaction sound.
        _ = try? connection.rollback(toSavepoint: "a")
        expect(.damaged) { try connection.releaseSavepoint("a") }
        expect(.damaged) { try connection.commit() }
        #expect(!connection.isInTransaction)
        try connection.execute("CREATE TABLE u(v)")
    }

    // MARK: Numbers and limits

    @Test func `a checkpoint counts frames in WAL and is nil without WAL`() throws {
        #expect(try connection.checkpoint() == nil)
        let wal = try Connection(
            path: folder.path("wal.db"), key: .numbered(1), configuration: .impatient(.wal))
        try wal.execute("CREATE TABLE t(v)")
        try wal.execute("INSERT INTO t VALUES (1)")
        let passive = try #require(try wal.checkpoint())
        #expect(passive.walFrameCount > 0)
        #expect(passive.checkpointedFrameCount == passive.walFrameCount)
        #expect(
            try wal.checkpoint(.truncate)
                == CheckpointResult(walFrameCount: 0, checkpointedFrameCount: 0))
        #expect(try Damage.byteCount(folder.path("wal.db-wal")) == 0)
        try wal.begin()
        expect(.misuse) { try wal.checkpoint() }
        try wal.rollback()
        // A reader has an older snapshot. A passive checkpoint copies what it can, the other kinds
        // wait.
        let reader = try Connection(
            path: folder.path("wal.db"), key: .numbered(1), configuration: .impatient(.wal))
        try reader.begin(.deferred)
        #expect(try reader.rows("SELECT * FROM t").count == 1)
        try wal.execute("INSERT INTO t VALUES (2)")
        #expect(try wal.checkpoint(.passive) != nil)
        expect(.busy) { try wal.checkpoint(.restart) }
        try reader.rollback()
        for mode in CheckpointMode.allCases { #expect(try wal.checkpoint(mode) != nil) }
    }

    @Test(arguments: [0, 1, 12, Int32.max, -1, .min])
    func `the user's version comes back exactly`(version: Int32) throws {
        try connection.setUserVersion(version)
        #expect(try connection.userVersion == version)
        expect(.notFound) {
            try connection.transaction {
                try connection.setUserVersion(77)
                throw StoreError(.notFound, "undone")
            }
        }
        #expect(try connection.userVersion == version)
    }

    @Test func `the version of a closed or unkeyed connection is an error`() throws {
        expect(.misuse) { try Connection(path: folder.path("no.db")).userVersion }
        connection.close()
        expect(.closed) { try connection.applicationID }
    }

    @Test(arguments: ["", "abc", "abcde", "é12", "ab\n1"])
    func `a code must be four printable ASCII characters`(text: String) throws {
        expect(.misuse) { try FourCharacterCode(text) }
        #expect(FourCharacterCode(number: 7).text == nil)
        #expect(FourCharacterCode(number: 7).description == "7")
    }

    @Test func `a limit holds, is refused beyond the engine's, and survives a new key`() throws {
        let ceiling = try connection.limit(.column)
        try connection.setLimit(.column, to: 3)
        #expect(try connection.limit(.column) == 3)
        expect(.misuse) { try connection.setLimit(.column, to: 1 << 30) }
        expect(.misuse) { try connection.setLimit(.column, to: -1) }
        expect(.misuse) { try connection.setLimit(.column, to: .max) }
        #expect(try connection.limit(.column) == 3)
        try connection.rekey(to: .numbered(2))
        #expect(try connection.limit(.column) == 3)
        expect(.sql) { try connection.execute("CREATE TABLE u(a, b, c, d)") }
        try connection.setLimit(.column, to: ceiling)
        try connection.execute("CREATE TABLE u(a, b, c, d)")
    }

    @Test func `changes are counted, and the cache is emptied on demand`() throws {
        try insert(1)
        try insert(2)
        #expect(connection.lastChangeCount == 1)
        let before = connection.totalChangeCount
        try connection.execute("UPDATE t SET v = v + 10")
        #expect(connection.lastChangeCount == 2)
        #expect(connection.totalChangeCount == before + 2)
        #expect(connection.cache.count > 0)
        connection.clearStatementCache()
        #expect(connection.cache.count == 0)
        #expect(try values() == [11, 12])
    }

    @Test func `the unsafe handle is the connection's own`() throws {
        try insert(1)
        let count = try connection.withUnsafeHandle { sqlite3_total_changes($0) }
        #expect(count == 1)
        expect(.cancelled) {
            try connection.withUnsafeHandle { _ in throw StoreError(.cancelled, "thrown") }
        }
        connection.close()
        expect(.closed) { try connection.withUnsafeHandle { _ in } }
    }
}
