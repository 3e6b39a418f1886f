import Dispatch
import Foundation
import Synchronization
import Testing

@testable import Coffer

/// What FMDB's pool and queue did, as a store does it.
@Suite(.againstHanging, .onOwnThreads) struct StoreBehaviourTests {
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    private func open(
        _ mode: OpenMode = .createIfMissing, _ configuration: Configuration = .testing()
    ) throws -> Store {
        try Store(path: path, key: .numbered(7), mode: mode, configuration: configuration)
    }

    /// `easy` with three numbers, `easy2`, and `likefoo` with hi, hello and not.
    private func pool() throws -> Store {
        let store = try open()
        try store.write { tx in
            try tx.execute("CREATE TABLE easy(a text)")
            for number in 1001...1003 { try tx.execute("INSERT INTO easy VALUES (\(number))") }
            try tx.execute("CREATE TABLE easy2(a text)")
            try tx.execute("CREATE TABLE likefoo(foo text)")
            for text in ["hi", "hello", "not"] {
                try tx.execute("INSERT INTO likefoo VALUES (\(text))")
            }
        }
        return store
    }

    /// `easy` without rows and `qfoo` with hi, hello and not.
    private func queue() throws -> Store {
        let store = try open(.createIfMissing, .testing(.delete))
        try store.write { tx in
            try tx.execute("CREATE TABLE easy(a text)")
            try tx.execute("CREATE TABLE qfoo(foo text)")
            for text in ["hi", "hello", "not"] {
                try tx.execute("INSERT INTO qfoo VALUES (\(text))")
            }
        }
        return store
    }

    private func count(_ store: Store, _ sql: SQL) throws -> Int {
        try store.read { tx in try tx.rows(sql).count }
    }

    // MARK: Opening

    @Test func `F097 a store without a file cannot be`() throws {
        expect(.misuse) { try Store(path: "", key: .numbered(7)) }
        #expect(try open().path.hasSuffix("store.db"))
    }

    @Test func `F098 a store opens at a URL`() throws {
        let url = folder.url.appending(path: "url.db")
        let store = try Store(url: url, key: .numbered(7), configuration: .testing())
        #expect(FileManager.default.fileExists(atPath: url.path))
        #expect(try count(store, "SELECT 1") == 1)
    }

    @Test func `F099 a store opens at a URL without blocking`() async throws {
        let url = folder.url.appending(path: "url.db")
        let store = try await Store(url: url, key: .numbered(7), configuration: .testing())
        #expect(FileManager.default.fileExists(atPath: url.path))
        #expect(try await store.read { tx in try tx.rows("SELECT 1").count } == 1)
    }

    @Test func `F100 a store that must exist is .notFound and makes no file`() throws {
        expect(.notFound) { try open(.mustExist) }
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    private func openWithModes(_ configuration: Configuration) throws {
        expect(.notFound) { try open(.mustExist, configuration) }
        #expect(!FileManager.default.fileExists(atPath: path))
        let store = try open(.createIfMissing, configuration)
        try store.write { tx in
            try tx.execute("create table foo (bar integer)")
            try tx.execute("insert into foo (bar) values (\(42))")
        }
        try store.close()
        let reader = try open(.readOnly, configuration)
        #expect(try count(reader, "select * from foo where bar = 42") == 1)
        expect(.readOnly) { try reader.write { tx in try tx.execute("create table u (v)") } }
        expect(.readOnly) { try reader.read { tx in try tx.rows("create table u (v)").count } }
        try reader.close()
        // The engine's own word for it.
        let connection = try Connection(
            path: path, key: .numbered(7), mode: .readOnly, configuration: configuration)
        let error = expect(.readOnly) { try connection.execute("create table u (v)") }
        #expect(error.flatMap(\.resultCode).map { $0 & 0xff } == 8)
    }

    @Test func `F101 the mode decides whether a store is made, and whether it is written`() throws {
        try openWithModes(.testing(.wal))
    }

    private func openThroughVFS(_ name: String, _ mode: Configuration.JournalMode) throws {
        let vfs = try CustomVFS(name)
        var configuration = Configuration.testing(mode)
        configuration.vfs = name
        let store = try open(.createIfMissing, configuration)
        try store.write { tx in
            try tx.execute("CREATE TABLE t(v)")
            try tx.execute("INSERT INTO t VALUES (1)")
        }
        #expect(try count(store, "SELECT * FROM t") == 1)
        try store.close()
        #expect(vfs.unregister() == 0)
    }

    @Test func `F102 a pool of readers works through a VFS of one's own`() throws {
        try openThroughVFS("MyCustomVFSPool", .wal)
    }

    // MARK: Counting readers

    @Test func `F103 no reader is open before the first read`() throws {
        let store = try open()
        #expect(store.statistics.openReaderCount == 0)
    }

    @Test func `F104 a reader opens on demand, is used again, and closes with the store`()
        async throws
    {
        let store = try pool()
        try readTwice(store)
        // Two reads at once take two.
        let hold = Hold()
        async let held = store.read { tx in
            hold.stay()
            return try tx.rows("SELECT * FROM easy").count
        }
        await hold.isEntered()
        #expect(try count(store, "SELECT * FROM easy") == 3)
        #expect(store.statistics.openReaderCount == 2)
        hold.release()
        #expect(try await held == 3)
        try await store.close()
        #expect(store.statistics.openReaderCount == 0)
    }

    private func readTwice(_ store: Store) throws {
        let first = try store.read { tx in ObjectIdentifier(try tx.connection()) }
        #expect(store.statistics.openReaderCount == 1)
        // A read inside reads the same snapshot: it takes no second connection.
        let (second, nested) = try store.read { tx in
            let outer = ObjectIdentifier(try tx.connection())
            let inner = try store.read { ObjectIdentifier(try $0.connection()) }
            return (outer, inner)
        }
        #expect(first == second)
        #expect(second == nested)
        #expect(store.statistics.openReaderCount == 1)
    }

    @Test func `F105 a reader in use is counted as such, and idle afterwards`() throws {
        let store = try pool()
        try store.write { tx in try tx.execute("INSERT INTO easy VALUES (\("hi"))") }
        try store.read { tx in
            let before = store.statistics
            #expect(before.idleReaderCount == 0 && before.readerInUseCount == 1)
            let rowCount = try tx.rows("select * from easy").count
            #expect(rowCount == 4)
            #expect(store.statistics == before)
            #expect(before.openReaderCount == 1)
        }
        let after = store.statistics
        #expect(after.openReaderCount == 1)
        #expect(after.idleReaderCount == 1 && after.readerInUseCount == 0)
    }

    // MARK: Transactions

    @Test func `F107 three inserts in a transaction are committed`() throws {
        let store = try pool()
        try store.write { tx in
            for number in 1004...1006 { try tx.execute("INSERT INTO easy VALUES (\(number))") }
            // The writer is no reader.
            #expect(store.statistics.openReaderCount == 0)
        }
        #expect(try count(store, "SELECT * FROM easy WHERE a IN (1004, 1005, 1006)") == 3)
        let statistics = store.statistics
        #expect(statistics.openReaderCount == 1 && statistics.idleReaderCount == 1)
    }

    @Test func `F108 a select finds exactly its row`() throws {
        #expect(try count(pool(), "select * from easy where a = \(1001)") == 1)
    }

    @Test func `F109 a transaction that throws is undone`() throws {
        let store = try pool()
        expect(.notFound) {
            try store.write { tx in
                try tx.execute("INSERT INTO easy VALUES (\(1004))")
                try tx.execute("INSERT INTO easy VALUES (\(1005))")
                let seen = try tx.rows("SELECT * FROM easy WHERE a = \(1004)").count
                #expect(seen == 1)
                throw StoreError(.notFound, "roll back")
            }
        }
        #expect(try count(store, "SELECT * FROM easy WHERE a = \(1004)") == 0)
        #expect(store.statistics.openReaderCount == 1)
        #expect(store.statistics.readerInUseCount == 0)
    }

    @Test func `F110 an insert in a savepoint is kept`() throws {
        let store = try pool()
        try store.write { tx in
            try tx.savepoint { part in try part.execute("INSERT INTO easy VALUES (\(1006))") }
        }
        #expect(try count(store, "SELECT * FROM easy WHERE a = \(1006)") == 1)
    }

    @Test func `F112 a pattern works as literal and as argument in a pool`() throws {
        let store = try pool()
        #expect(try count(store, "select * from likefoo where foo like 'h%'") == 2)
        #expect(try count(store, "select * from likefoo where foo like \("h%")") == 2)
    }

    @Test func `F113 128 reads at once each find their rows`() throws {
        let store = try pool()
        let wrong = Mutex(0)
        let mostOpen = Mutex(0)
        DispatchQueue.concurrentPerform(iterations: 128) { number in
            if number % 2 == 1 { usleep(1000) }
            let rows = try? store.read { tx in
                let rows = try tx.rows("select * from likefoo where foo like 'h%'")
                for _ in rows where number % 3 == 0 { usleep(500) }
                return rows.count
            }
            if rows != 2 { wrong.withLock { $0 += 1 } }
            let open = store.statistics.openReaderCount
            mostOpen.withLock { $0 = max($0, open) }
        }
        #expect(wrong.withLock { $0 } == 0)
        #expect(mostOpen.withLock { $0 } <= 4)
        #expect(store.statistics.openReaderCount < 64)
    }

    /// 16 jobs, each with a transaction of three inserts; every other one reads before.
    private func stress(_ store: Store, _ table: String) throws {
        let failures = Mutex<[String]>([])
        DispatchQueue.concurrentPerform(iterations: 16) { number in
            do {
                if number % 2 == 1 {
                    _ = try store.read { tx in
                        try tx.rows("SELECT * FROM \(identifier: table)").count
                    }
                }
                try store.write { tx in
                    for value in 1...3 { try tx.execute("INSERT INTO easy VALUES (\(value))") }
                }
            } catch {
                failures.withLock { $0.append("\(error)") }
            }
        }
        #expect(failures.withLock { $0 } == [])
    }

    @Test func `F114 sixteen readers and writers at once lose nothing`() throws {
        let store = try pool()
        let before = try count(store, "SELECT * FROM easy")
        try stress(store, "likefoo")
        #expect(try count(store, "SELECT * FROM easy") == before + 48)
        try store.write { tx in try tx.execute("INSERT INTO easy VALUES (\(2001))") }
        #expect(try count(store, "SELECT * FROM easy") == before + 49)
    }

    // MARK: A queue of one connection

    @Test func `F115 a database without a path is in memory`() throws {
        let connection = try Connection(.memory)
        #expect(connection.isOpen)
        #expect(connection.url == nil)
    }

    @Test func `F116 a database without a URL is in memory`() throws {
        #expect(Location.memory.url == nil)
        #expect(try Connection(Location.memory).isOpen)
    }

    @Test func `F117 a URL in a missing folder is .notFound`() throws {
        let url = folder.url.appending(path: "missing/store.db")
        expect(.notFound) { try Store(url: url, key: .numbered(7)) }
        expect(.notFound) { try Connection(url: url, key: .numbered(7)) }
        #expect(!FileManager.default.fileExists(atPath: folder.path("missing")))
    }

    @Test func `F118 a path in a missing folder is .notFound`() throws {
        let missing = folder.path("missing/store.db")
        expect(.notFound) { try Store(path: missing, key: .numbered(7)) }
        expect(.notFound) { try Connection(path: missing, key: .numbered(7)) }
    }

    @Test func `F120 a store in DELETE mode opens at a URL`() throws {
        let url = folder.url.appending(path: "queue.db")
        let store = try Store(url: url, key: .numbered(7), configuration: .testing(.delete))
        #expect(try count(store, "SELECT 1") == 1)
        #expect(FileManager.default.fileExists(atPath: url.path))
    }

    @Test func `F121 a store in DELETE mode opens at a URL without blocking`() async throws {
        let url = folder.url.appending(path: "queue.db")
        let store = try await Store(
            url: url, key: .numbered(7), configuration: .testing(.delete))
        #expect(try await store.read { tx in try tx.rows("SELECT 1").count } == 1)
        #expect(FileManager.default.fileExists(atPath: url.path))
    }

    @Test func `F122 a store in DELETE mode that must exist is .notFound`() throws {
        expect(.notFound) { try open(.mustExist, .testing(.delete)) }
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test func `F123 the mode decides in DELETE mode as well`() throws {
        try openWithModes(.testing(.delete))
    }

    @Test func `F124 a store of one connection works through a VFS of one's own`() throws {
        try openThroughVFS("MyCustomVFSQueue", .delete)
    }

    @Test func `F125 a pattern works as literal and as argument in a queue`() throws {
        let store = try queue()
        #expect(try count(store, "select * from qfoo where foo like 'h%'") == 2)
        #expect(try count(store, "select * from qfoo where foo like \("h%")") == 2)
    }

    @Test func `F127 sixteen jobs in a queue lose nothing, and it opens again`() throws {
        let store = try queue()
        try stress(store, "qfoo")
        try store.close()
        let again = try open(.mustExist, .testing(.delete))
        #expect(try count(again, "SELECT * FROM easy") == 48)
        try again.write { tx in try tx.execute("INSERT INTO easy VALUES (\(2001))") }
        #expect(try count(again, "SELECT * FROM easy") == 49)
    }

    @Test func `F128 an early end by throwing undoes the transaction and leaves no cursor`() throws
    {
        let store = try queue()
        try store.write { tx in
            try tx.execute("create table transtest (a integer)")
            try tx.execute("insert into transtest values (1)")
            try tx.execute("insert into transtest values (2)")
        }
        #expect(try count(store, "select * from transtest") == 2)
        expect(.cancelled) {
            try store.write { tx in
                try tx.execute("insert into transtest values (3)")
                if true { throw StoreError(.cancelled, "early") }
                try tx.execute("insert into transtest values (4)")
            }
        }
        #expect(try count(store, "select * from transtest") == 2)
        // An open cursor would hold the lock.
        try store.close()
        let connection = try Connection(
            path: path, key: .numbered(7), configuration: .impatient(.delete))
        try connection.begin(.exclusive)
        try connection.rollback()
    }

    @Test func `F130 closed is closed, and a new store reads what was there`() throws {
        let store = try queue()
        try store.write { tx in
            try tx.execute("create table close_test (a integer)")
            try tx.execute("insert into close_test values (1)")
        }
        // Inside a use it is refused: it would wait for itself.
        expect(.misuse) { try store.read { _ in try store.close() } }
        try store.close()
        expect(.closed) { try count(store, "select * from close_test") }
        #expect(try count(open(.mustExist, .testing(.delete)), "select * from close_test") == 1)
    }

    // MARK: Pitfalls

    @Test func `P8 a wait for oneself is refused in every build, not waited for`() throws {
        let store = try pool()
        expect(.misuse) { try store.read { _ in try store.write { _ in } } }
        expect(.misuse) { try store.write { _ in try store.close() } }
        expect(.misuse) { try store.write { _ in try store.rekey(to: .numbered(8)) } }
        // Nested the other way they join.
        try store.write { tx in
            try tx.execute("INSERT INTO easy VALUES (1)")
            try store.write { inner in try inner.execute("INSERT INTO easy VALUES (2)") }
            let seen = try store.read { inner in try inner.rows("SELECT * FROM easy").count }
            #expect(seen == 5)
        }
        // Over another store and back again.
        let other = try Store(
            path: folder.path("other.db"), key: .numbered(7), configuration: .testing())
        try store.write { tx in
            try other.write { _ in
                try store.write { inner in try inner.execute("INSERT INTO easy VALUES (3)") }
            }
            try tx.execute("INSERT INTO easy VALUES (4)")
        }
        #expect(try count(store, "SELECT * FROM easy") == 7)
    }

    @Test func `P11 a read waits in line for a connection, or is told that it waited in vain`()
        async throws
    {
        var configuration = Configuration.impatient(.wal)
        configuration.maximumReaderCount = 1
        let store = try open(.createIfMissing, configuration)
        let hold = Hold()
        async let held: Void = store.read { _ in hold.stay() }
        await hold.isEntered()
        var hasRun = false
        expect(.busy) { try store.read { _ in hasRun = true } }
        #expect(!hasRun)
        #expect(store.statistics.openReaderCount == 1)
        hold.release()
        try await held
        // Nobody is counted as reading for ever.
        #expect(store.statistics.readerInUseCount == 0)
        expect(.notFound) { try store.read { _ in throw StoreError(.notFound, "thrown") } }
        #expect(store.statistics.readerInUseCount == 0)
    }
}
