import Foundation
import Synchronization
import Testing

@testable import Coffer

@Suite(.againstHanging, .onOwnThreads) struct BusyAndInterruptTests {
    private let folder: TemporaryFolder
    private let connection: Connection
    private let other: Connection

    init() throws {
        folder = try TemporaryFolder()
        connection = try Connection(
            path: folder.path(), key: .numbered(1), configuration: .testing(.delete))
        try connection.execute("CREATE TABLE t(v)")
        other = try Connection(
            path: folder.path(), key: .numbered(1), configuration: .testing(.delete))
    }

    /// Rows without an end.
    private static let endless: SQL = """
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n
        """

    // MARK: Busy

    @Test func `a custom policy is asked before each try, from 0, until it gives up`() throws {
        let attempts = Mutex<[Int]>([])
        connection.busyPolicy = .custom { attempt in
            attempts.withLock { $0.append(attempt) }
            return attempt < 3
        }
        #expect(connection.busyPolicy.timeout == nil)
        try other.begin(.exclusive)
        expect(.busy) { try connection.begin() }
        #expect(attempts.withLock { $0 } == [0, 1, 2, 3])
        try other.rollback()
        // Nobody holds the lock, so the policy is not called.
        try connection.begin()
        try connection.rollback()
        #expect(attempts.withLock { $0.count } == 4)
    }

    @Test func `the policy survives a change of the key, and another policy replaces it`() throws {
        other.close()
        let count = Mutex(0)
        connection.busyPolicy = .custom { _ in
            count.withLock { $0 += 1 }
            return false
        }
        try connection.rekey(to: .numbered(2))
        let third = try Connection(
            path: folder.path(), key: .numbered(2), configuration: .testing(.delete))
        try third.begin()
        count.withLock { $0 = 0 }
        expect(.busy) { try connection.begin() }
        #expect(count.withLock { $0 } == 1)
        connection.busyPolicy = .none
        expect(.busy) { try connection.begin() }
        #expect(count.withLock { $0 } == 1)
        try third.rollback()
    }

    @Test func `a policy set before the key holds while the file opens`() throws {
        try other.begin(.exclusive)
        let third = Connection(path: folder.path(), configuration: .testing(.delete))
        third.busyPolicy = .none
        let start = ContinuousClock.now
        expect(.busy) {
            try third.setKey(.numbered(1))
            try third.begin()
        }
        #expect(ContinuousClock.now - start < .seconds(15), "the configuration says 20 seconds")
        try other.rollback()
    }

    @Test func `a fraction of a millisecond is not rounded down to not waiting`() throws {
        let asked = Duration.microseconds(300)
        connection.busyPolicy = .timeout(asked)
        #expect(connection.busyPolicy.timeout == asked)
        let milliseconds = try connection.current().firstInteger("PRAGMA busy_timeout")
        #expect(milliseconds == 1)
    }

    // MARK: Interrupt

    @Test func `an interrupt ends a long statement with .cancelled`() throws {
        let handle = connection.interruptHandle
        let isDone = Mutex(false)
        Thread.detachNewThread {
            // An interrupt before the statement runs does nothing, so it is repeated.
            while !isDone.withLock({ $0 }) {
                handle.interrupt()
                usleep(1000)
            }
        }
        defer { isDone.withLock { $0 = true } }
        expect(.cancelled) { try connection.rows(Self.endless) }
        expect(.cancelled) {
            try connection.transaction { _ = try connection.rows(Self.endless) }
        }
        #expect(!connection.isInTransaction)
    }

    @Test func `P16 an interrupt opens nothing and never touches a closed handle`() throws {
        let unkeyed = Connection(path: folder.path("never.db"), configuration: .testing())
        unkeyed.interruptHandle.interrupt()
        #expect(!unkeyed.isOpen)
        #expect(!FileManager.default.fileExists(atPath: folder.path("never.db")))
        // Interrupts come from another thread while connections open and close. Under the thread
        // sanitizer and under load this would find a freed handle.
        for _ in 0..<20 {
            let short = try Connection(
                path: folder.path(), key: .numbered(1), configuration: .testing(.delete))
            let handle = short.interruptHandle
            let isDone = Mutex(false)
            let ended = DispatchSemaphore(value: 0)
            Thread.detachNewThread {
                while !isDone.withLock({ $0 }) { handle.interrupt() }
                ended.signal()
            }
            _ = try? short.rows("SELECT * FROM t")
            short.close()
            isDone.withLock { $0 = true }
            ended.wait()
            handle.interrupt()
        }
        // A connection that is deallocated clears its address in the handle.
        var gone: Connection? = try Connection(
            path: folder.path(), key: .numbered(1), configuration: .testing(.delete))
        let left = try #require(gone?.interruptHandle)
        gone = nil
        left.interrupt()
    }

    @Test func `an interrupt next to a cursor ends the cursor and the transaction`() throws {
        try connection.execute("INSERT INTO t VALUES (1), (2), (3)")
        let cursor = try connection.prepare("SELECT v FROM t")
        expect(.cancelled) {
            try connection.transaction {
                try connection.execute("INSERT INTO t VALUES (4)")
                #expect(try cursor.step())
                // The cursor has a current row. As long as it does, everything fails with 9.
                connection.interruptHandle.interrupt()
                _ = try connection.rows("SELECT * FROM t")
            }
        }
        #expect(!connection.isInTransaction)
        #expect(connection.isOpen)
        // The cursor does not begin again as if nothing had happened.
        expect(.cancelled) { try cursor.step() }
        #expect(try connection.rows("SELECT * FROM t").count == 3)
        #expect(try cursor.step())
        try cursor.reset()
    }

    @Test func `an interrupt next to two cursors outside a transaction leaves no lock`() throws {
        try connection.execute("INSERT INTO t VALUES (1), (2), (3)")
        let first = try connection.prepare("SELECT v FROM t")
        let second = try connection.prepare("SELECT v + 1 FROM t")
        #expect(try first.step())
        #expect(try second.step())
        connection.interruptHandle.interrupt()
        expect(.cancelled) { try connection.execute("INSERT INTO t VALUES (4)") }
        _ = try? first.step()
        _ = try? second.step()
        try first.reset()
        try second.reset()
        #expect(!connection.isInTransaction)
        try other.begin(.exclusive)
        try other.rollback()
        #expect(try connection.rows("SELECT * FROM t").count == 3)
    }

    @Test func `an interrupted write takes its transaction with it`() throws {
        try connection.begin()
        try connection.execute("INSERT INTO t VALUES (1)")
        let handle = connection.interruptHandle
        // An interrupt before the first row is written would leave the transaction open.
        try connection.register(function: "interrupt_at", argumentCount: 1) { arguments in
            let number = try arguments.get(0, as: Int.self)
            if number == 1000 { handle.interrupt() }
            return .integer(Int64(number))
        }
        expect(.cancelled) {
            try connection.execute(
                """
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
                INSERT INTO t SELECT interrupt_at(i) FROM n LIMIT 100000
                """)
        }
        #expect(!connection.isInTransaction)
        #expect(try other.rows("SELECT * FROM t").isEmpty)
    }
}
