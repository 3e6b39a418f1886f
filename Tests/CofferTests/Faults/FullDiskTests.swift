import Foundation
import Testing

@testable import Coffer

@Suite(.againstHanging, .onOwnThreads) struct FullDiskTests {
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    private func make(_ mode: Configuration.JournalMode) throws -> Connection {
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(mode))
        try connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, v)")
        try connection.execute("INSERT INTO t(v) VALUES ('before')")
        return connection
    }

    @Test(arguments: journalModes)
    func `a write beyond the page limit is .full and rolled back, and the store goes on`(
        mode: Configuration.JournalMode
    ) throws {
        let connection = try make(mode)
        try connection.current().run("PRAGMA max_page_count = 20")
        expect(.full) {
            try connection.transaction {
                for _ in 0..<200 {
                    try connection.execute(
                        "INSERT INTO t(v) VALUES (\([UInt8](repeating: 1, count: 4000)))")
                }
            }
        }
        #expect(!connection.isInTransaction)
        #expect(try connection.rows("SELECT * FROM t").count == 1)
        try connection.execute("INSERT INTO t(v) VALUES ('after')")
        #expect(try connection.rows("SELECT * FROM t").count == 2)
    }

    @Test func `a savepoint that fills the disk reports to the outer body that all is rolled back`()
        throws
    {
        let store = try Store(path: path, key: .numbered(1), configuration: .testing())
        try store.write { tx in
            try tx.execute("CREATE TABLE t(v)")
            try tx.connection().current().run("PRAGMA max_page_count = 20")
        }
        expect(.rolledBack) {
            try store.write { tx in
                try tx.execute("INSERT INTO t VALUES (1)")
                try? tx.savepoint { part in
                    for _ in 0..<200 {
                        try part.execute(
                            "INSERT INTO t VALUES (\([UInt8](repeating: 1, count: 4000)))")
                    }
                }
                try tx.execute("INSERT INTO t VALUES (2)")
            }
        }
        #expect(try store.read { tx in try tx.rows("SELECT * FROM t").count } == 0)
    }

    @Test(arguments: journalModes)
    func `a file-size limit gives .io, rolls back the write and loses no row`(
        mode: Configuration.JournalMode
    ) throws {
        try make(mode).close()
        let lines = try Peer.run(["write-limited", "200000", mode.description, path, "1"])
        #expect(lines == ["io", "kept"])
    }

    @Test(.onSmallDisk, arguments: journalModes)
    func `a full disk gives .full, rolls back the write and loses no row`(
        mode: Configuration.JournalMode
    ) throws {
        #expect(try SmallDisk.run(folder, "write-until-full", mode) == ["full", "kept"])
    }
}
