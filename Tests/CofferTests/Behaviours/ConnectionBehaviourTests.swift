import CSQLCipher
import Foundation
import Testing

@testable import Coffer

/// Waiting, checkpoints, limits, attached files and what the database consists of.
@Suite(.againstHanging, .onOwnThreads) struct ConnectionBehaviourTests {
    @Test func `F014 a busy peer gives .busy after the timeout`() throws {
        let fixture = try BehaviourFixture.test()
        let connection = fixture.connection
        try connection.execute("CREATE TABLE t1(a integer)")
        try connection.execute("INSERT INTO t1 VALUES (\(5))")
        connection.busyPolicy = .timeout(.seconds(2))
        let other = try fixture.secondConnection()
        let cursor = try other.prepare("select rowid,* from test where a=\"hi'\"")
        #expect(try cursor.step())
        let start = ContinuousClock.now
        let error = expect(.busy) { try connection.execute("INSERT INTO t1 VALUES (\(6))") }
        let elapsed = ContinuousClock.now - start
        // A loaded machine may be late, never early.
        #expect(elapsed >= .milliseconds(1900) && elapsed < .seconds(15), "\(elapsed)")
        #expect(error.flatMap(\.resultCode).map { $0 & 0xff } == 5)
        try cursor.reset()
        other.close()
        #expect(try connection.execute("INSERT INTO t1 VALUES (\(6))") == 1)
        #expect(!connection.isInTransaction)
    }

    @Test func `F032 a file is attached with its key, probed, and not by SQL text`() throws {
        let fixture = try BehaviourFixture.test()
        let path = fixture.folder.path("attackme.db")
        let other = try Connection(
            path: path, key: .numbered(8), configuration: .testing(.delete))
        try other.execute("create table attached (a text)")
        try other.execute("insert into attached values (\("test"))")
        other.close()
        try fixture.connection.attach(path, as: "attack", key: .numbered(8))
        let rows = try fixture.connection.rows("select * from attack.attached")
        #expect(rows.map { $0[0] } == ["test"])
        expect(.misuse) {
            try fixture.connection.execute("ATTACH DATABASE 'attackme.db' AS again KEY 'x'")
        }
    }

    @Test func `F034 the list of databases has one row with the file's path`() throws {
        let fixture = try BehaviourFixture.test()
        let rows = try fixture.connection.rows("pragma database_list")
        #expect(rows.count == 1)
        let path = URL(filePath: fixture.folder.path()).resolvingSymlinksInPath().path
        #expect(try rows.first?.get("file", as: String.self) == path)
    }

    @Test func `F065 the busy timeout that was set is read back`() throws {
        let connection = try Connection(.memory)
        let old = try #require(connection.busyPolicy.timeout)
        connection.busyPolicy = .timeout(old + .seconds(1))
        let new = try #require(connection.busyPolicy.timeout)
        let difference = new - (old + .seconds(1))
        #expect(difference < .microseconds(10) && difference > .microseconds(-10))
        let milliseconds = try connection.firstRow("PRAGMA busy_timeout")?.get(0, as: Int.self)
        #expect(milliseconds == old.milliseconds + 1000, "the engine has it as well")
    }

    @Test func `F066 the busy timeout can be set before the connection opens`() throws {
        let folder = try TemporaryFolder()
        let connection = Connection(path: folder.path(), configuration: .testing(.delete))
        let old = try #require(connection.busyPolicy.timeout)
        connection.busyPolicy = .timeout(old + .seconds(1))
        #expect(connection.busyPolicy.timeout == old + .seconds(1))
        try connection.setKey(.numbered(7))
        let milliseconds = try connection.firstRow("PRAGMA busy_timeout")?.get(0, as: Int.self)
        #expect(milliseconds == old.milliseconds + 1000)
    }

    @Test func `F067 no busy timeout means .busy at once`() throws {
        let fixture = try BehaviourFixture.test()
        let connection = fixture.connection
        connection.busyPolicy = .none
        #expect(connection.busyPolicy.timeout == .zero)
        #expect(try connection.firstRow("PRAGMA busy_timeout")?[0] == 0)
        let other = try fixture.secondConnection()
        try other.begin(.exclusive)
        // The fastest of several: a loaded machine may stop this thread for longer.
        var fastest = Duration.seconds(60)
        for _ in 0..<20 {
            let start = ContinuousClock.now
            expect(.busy) { try connection.execute("INSERT INTO t3 VALUES (1)") }
            fastest = min(fastest, ContinuousClock.now - start)
        }
        #expect(fastest < .milliseconds(100))
        try other.rollback()
    }

    @Test func `F076 a checkpoint in memory has nothing to count`() throws {
        let connection = try Connection(.memory)
        // Where SQLite says -1 frames and -1 checkpointed, which is no count.
        #expect(try connection.checkpoint(.truncate) == nil)
        var counts: (Int32, Int32) = (0, 0)
        try connection.withUnsafeHandle { db in
            let code = sqlite3_wal_checkpoint_v2(
                db, "main", SQLITE_CHECKPOINT_TRUNCATE, &counts.0, &counts.1)
            #expect(code == SQLITE_OK)
        }
        #expect(counts == (-1, -1))
    }

    @Test func `F080 a value above the limit is .tooBig, and the statement goes on`() throws {
        let fixture = try BehaviourFixture()
        let connection = fixture.connection
        try connection.execute("CREATE TABLE foo(bar BLOB)")
        try connection.setLimit(.length, to: 10_000)
        let limit = try connection.limit(.length)
        let statement = try connection.prepare("INSERT INTO foo VALUES (?)")
        let error = expect(.tooBig) {
            try statement.bind([.blob(Data(repeating: 1, count: limit + 1))])
        }
        #expect(error?.resultCode == 18)
        expect(.tooBig) {
            let large = Data(repeating: 1, count: limit + 1)
            try connection.execute("INSERT INTO foo VALUES (\(large))")
        }
        try statement.bind([.blob(Data(repeating: 1, count: 100))])
        #expect(try !statement.step())
        #expect(try connection.rows("SELECT * FROM foo").count == 1)
    }

    @Test func `F083 a table with a funny name tells its columns`() throws {
        let fixture = try BehaviourFixture()
        let connection = fixture.connection
        try connection.execute("create table '234 fds' (foo text)")
        #expect(try connection.columns(of: "234 fds").map(\.name) == ["foo"])
        let types = try connection.columns(of: "234 fds").map { $0.declaredType.lowercased() }
        #expect(types == ["text"])
    }

    @Test func `F090 a column exists or does not`() throws {
        let fixture = try BehaviourFixture()
        let connection = fixture.connection
        try connection.execute("create table nulltest (a text, b text)")
        #expect(try connection.columnExists("a", in: "nulltest"))
        #expect(try connection.columnExists("b", in: "nulltest"))
        #expect(try !connection.columnExists("c", in: "nulltest"))
    }

    @Test func `F091 the user version is read back`() throws {
        let fixture = try BehaviourFixture()
        let connection = fixture.connection
        #expect(try connection.userVersion == 0)
        try connection.setUserVersion(12)
        #expect(try connection.userVersion == 12)
    }

    @Test func `F092 the application id is read back, as a number and as four characters`() throws {
        let fixture = try BehaviourFixture()
        let connection = fixture.connection
        let code = try FourCharacterCode("fmdb")
        #expect(code.number == 0x666d_6462)
        try connection.setApplicationID(code.number)
        #expect(try connection.applicationID == code.number)
        try connection.setApplicationID(FourCharacterCode("acrn").number)
        #expect(try FourCharacterCode(number: connection.applicationID).text == "acrn")
        try connection.setApplicationID(.max)
        #expect(try connection.applicationID == .max)
    }
}
