import Foundation
import Testing

@testable import Coffer

/// Pitfalls in a connection's life that no other suite covers.
@Suite(.againstHanging, .onOwnThreads) struct PitfallTests {
    private let folder: TemporaryFolder
    private let connection: Connection

    init() throws {
        folder = try TemporaryFolder()
        connection = try Connection(
            path: folder.path(), key: .numbered(1), configuration: .testing(.delete))
        try connection.execute("CREATE TABLE t(v)")
        try connection.execute("INSERT INTO t VALUES (1), (2)")
    }

    @Test func `P9 row id and changes are reported while a statement runs`() throws {
        let cursor = try connection.prepare("SELECT v FROM t")
        #expect(try cursor.step())
        try connection.execute("INSERT INTO t VALUES (3)")
        #expect(connection.lastInsertedRowID == 3)
        #expect(connection.lastChangeCount == 1)
        #expect(try cursor.step())
        try cursor.reset()
    }

    @Test func `P14 close ends open statements, and releases the file`() throws {
        let cursor = try connection.prepare("SELECT v FROM t")
        #expect(try cursor.step())
        let idle = try connection.prepare("SELECT 1")
        connection.close()
        expect(.closed) { try cursor.step() }
        expect(.closed) { try idle.step() }
        connection.close()
        // Nothing is leaked that would hold a lock.
        let other = try Connection(
            path: folder.path(), key: .numbered(1), configuration: .impatient(.delete))
        try other.begin(.exclusive)
        try other.commit()
        // Closing rolls back an open transaction.
        try other.begin()
        try other.execute("DELETE FROM t")
        other.close()
        let third = try Connection(
            path: folder.path(), key: .numbered(1), configuration: .impatient(.delete))
        #expect(try third.rows("SELECT * FROM t").count == 2)
    }

    @Test func `P15 SQL with values in its text does not grow the cache without bound`() throws {
        for number in 0..<500 { try connection.execute(SQL(text: "SELECT " + String(number))) }
        #expect(connection.cache.count == connection.configuration.maximumStatementCount)
    }
}
