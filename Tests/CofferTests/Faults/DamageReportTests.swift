import Foundation
import Testing

@testable import Coffer

/// The numbers of damaged pages that errors name.
@Suite struct DamageReportTests {
    @Test(arguments: journalModes)
    func `pages that are damaged after a call that found none are named`(
        mode: Configuration.JournalMode
    ) throws {
        let folder = try TemporaryFolder()
        let path = folder.path()
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(mode))
        let size = try #require(connection.profile).pageByteCount
        try connection.execute("CREATE TABLE t(v)")
        try connection.execute("INSERT INTO t VALUES (zeroblob(\(9 * size)))")
        // The pages of a WAL have no number, so they go into the main file.
        if mode == .wal { try connection.checkpoint(.truncate) }
        let handle = try connection.current()
        let pages = try #require(handle.failures.damagedPages)
        #expect(pages() == [])
        for page in [7, 5] {
            try Damage.overwriteFromOutside(path, at: (page - 1) * size + 100)
            // Once it has found pages, it names these as long as they fail.
            #expect(pages() == [7])
        }
        connection.close()
    }

    @Test func `an error keeps its place in the SQL when it gets a cause`() {
        struct Cause: Error {}
        let error = StoreError(.sql, "near x", sql: "SELECT x", sqlOffset: 7)
        let caused = error.with(cause: Cause())
        #expect(caused.sqlOffset == 7 && caused.sql == "SELECT x" && caused.cause is Cause)
    }
}
