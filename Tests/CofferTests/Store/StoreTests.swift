import Foundation
import Testing

@testable import Coffer

@Suite(.againstHanging) struct StoreTests {
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    private func make(
        _ configuration: Configuration = .testing(), mode: OpenMode = .createIfMissing
    ) throws -> Store {
        let store = try Store(
            path: path, key: .numbered(1), mode: mode, configuration: configuration)
        if mode == .createIfMissing {
            try store.write { tx in try tx.execute("CREATE TABLE IF NOT EXISTS t(v)") }
        }
        return store
    }

    private func openAgain() throws { _ = try Store(path: path, key: .numbered(1)) }

    private func values(_ store: Store) throws -> [Int] {
        try store.read { tx in try tx.rows("SELECT v FROM t ORDER BY rowid").map { try $0.get(0) } }
    }

    // MARK: Transactions

    @Test(arguments: journalModes)
    func `a returned write is read back and a thrown one is undone`(
        mode: Configuration.JournalMode
    ) throws {
        struct Undo: Error {}
        let store = try make(.testing(mode))
        let count = try store.write { tx in try tx.execute("INSERT INTO t VALUES (1), (2)") }
        #expect(count == 2)
        #expect(throws: Undo.self) {
            try store.write { tx in
                try tx.execute("DELETE FROM t")
                throw Undo()
            }
        }
        #expect(try values(store) == [1, 2])
    }

    @Test func `the async twins do the same`() async throws {
        let store = try await Store(path: path, key: .numbered(1), configuration: .testing())
        try await store.write { tx in
            try tx.execute("CREATE TABLE t(v)")
            try tx.execute("INSERT INTO t VALUES (\(7))")
        }
        let value = try await store.read { tx in
            try tx.firstRow("SELECT v FROM t")?.get(0, as: Int.self)
        }
        #expect(value == 7)
        try await store.rekey(to: .numbered(2))
        try await store.close()
        let again = try await Store(path: path, key: .numbered(2), configuration: .testing())
        #expect(try await again.read { tx in try tx.rows("SELECT * FROM t").count } == 1)
    }

    @Test func `a savepoint that throws undoes its part only`() throws {
        let store = try make()
        try store.write { tx in
            try tx.execute("INSERT INTO t VALUES (1)")
            try? tx.savepoint { part in
                try part.execute("INSERT INTO t VALUES (2)")
                throw CancellationError()
            }
            try tx.savepoint { part in
                try part.execute("INSERT INTO t VALUES (3)")
                try part.savepoint { inner in try inner.execute("INSERT INTO t VALUES (4)") }
            }
        }
        #expect(try values(store) == [1, 3, 4])
    }

    @Test func `a write inside a write joins it as a savepoint`() throws {
        let store = try make()
        try store.write { tx in
            try tx.execute("INSERT INTO t VALUES (1)")
            try store.write { inner in try inner.execute("INSERT INTO t VALUES (2)") }
            try? store.write { inner in
                try inner.execute("INSERT INTO t VALUES (3)")
                throw CancellationError()
            }
        }
        #expect(try values(store) == [1, 2])
        try? store.write { tx in
            try store.write { inner in try inner.execute("INSERT INTO t VALUES (9)") }
            throw CancellationError()
        }
        #expect(try values(store) == [1, 2], "the outer throw undoes the inner write too")
    }

    @Test func `the outer transaction is misuse while an inner one is open`() throws {
        let store = try make()
        try store.write { tx in
            let outer = tx.access
            try store.write { _ in
                expect(.misuse) { try outer.connection() }
            }
            try tx.execute("INSERT INTO t VALUES (1)")
        }
        #expect(try values(store) == [1])
    }

    @Test func `a transaction is misuse after its body`() throws {
        let store = try make()
        let access = try store.write { tx in tx.access }
        expect(.misuse) { try access.connection() }
    }

    @Test func `a read inside a write sees the write, inside a read its snapshot`() throws {
        let store = try make()
        try store.write { tx in
            try tx.execute("INSERT INTO t VALUES (1)")
            #expect(try store.read { inner in try inner.rows("SELECT * FROM t").count } == 1)
        }
        let counts = try store.read { tx -> [Int] in
            let before = try tx.rows("SELECT * FROM t").count
            let thread = Thread {
                try? store.write { _ = try $0.execute("INSERT INTO t VALUES (2)") }
            }
            thread.start()
            try waitUntil { thread.isFinished }
            let after = try store.read { inner in try inner.rows("SELECT * FROM t").count }
            return [before, after]
        }
        #expect(counts == [1, 1])
        #expect(try values(store) == [1, 2])
    }

    @Test func `a write inside a read is misuse`() throws {
        let store = try make()
        try store.read { _ in
            _ = expect(.misuse) {
                try store.write { tx in try tx.execute("INSERT INTO t VALUES (1)") }
            }
        }
        #expect(try values(store) == [])
    }

    @Test func `two stores may be nested in each other`() throws {
        let store = try make()
        let other = try Store(
            path: folder.path("other.db"), key: .numbered(3), configuration: .testing())
        try store.write { tx in
            try other.write { inner in
                try inner.execute("CREATE TABLE u(v)")
                try store.write { joined in try joined.execute("INSERT INTO t VALUES (5)") }
            }
        }
        #expect(try values(store) == [5])
    }

    @Test(arguments: journalModes)
    func `a change in a read is refused in every journal mode, also inside a write`(
        mode: Configuration.JournalMode
    ) throws {
        let store = try make(.testing(mode))
        for sql: SQL in ["INSERT INTO t VALUES (1)", "DROP TABLE t", "PRAGMA user_version = 7"] {
            expect(.readOnly) { try store.read { tx in try tx.rows(sql).count } }
            expect(.readOnly) { try store.read { tx in try tx.firstRow(sql)?.values } }
            try store.write { tx in
                _ = expect(.readOnly) { try store.read { inner in try inner.rows(sql).count } }
                try tx.execute("SELECT 1")
            }
        }
        #expect(try values(store) == [])
    }

    @Test(arguments: [
        "BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT s", "RELEASE s", "ROLLBACK TO s",
        "/* hidden */ commit", "PRAGMA key = 'x'", "PRAGMA rekey = 'x'", "PRAGMA hexkey = '00'",
        "PRAGMA journal_mode = DELETE", "PRAGMA temp_store = 1", "PRAGMA locking_mode = EXCLUSIVE",
        "PRAGMA cipher_page_size = 1024", "PRAGMA kdf_iter = 1", "PRAGMA query_only = 0",
        "PRAGMA writable_schema = 1", "PRAGMA synchronous = OFF", "PRAGMA recursive_triggers = OFF",
        "ATTACH 'other.db' AS other", "DETACH other", "SELECT load_extension('x')",
        "SELECT fts3_tokenizer('x')",
    ])
    func `SQL that would break the transaction or the connection is misuse`(sql: String) throws {
        let store = try make()
        let error = expect(.misuse) {
            try store.write { tx in
                try tx.execute("INSERT INTO t VALUES (1)")
                try tx.execute(SQL(text: sql))
            }
        }
        #expect(error?.sql == (sql.contains("key") ? "PRAGMA …" : sql), "no key in an error")
        #expect(try values(store) == [])
        try store.write { tx in try tx.execute("INSERT INTO t VALUES (2)") }
        #expect(try values(store) == [2])
    }

    @Test func `pragmas that only ask are allowed`() throws {
        let store = try make()
        let names = try store.read { tx in
            try tx.rows("PRAGMA table_info(t)").map { try $0.get("name", as: String.self) }
        }
        #expect(names == ["v"])
        #expect(try store.read { tx in try tx.firstRow("PRAGMA foreign_keys")?[0] } == .integer(1))
        #expect(try store.read { tx in try tx.firstRow("PRAGMA synchronous")?[0] } == .integer(2))
        #expect(try store.read { tx in try tx.firstRow("PRAGMA temp_store")?[0] } == .integer(2))
    }

    @Test(.enabled(if: isEngine4), arguments: journalModes)
    func `RETURNING changes nothing in a read of records`(
        mode: Configuration.JournalMode
    ) throws {
        struct Mark: Record { var id: Int }
        let store = try make(.testing(mode))
        try store.write { tx in try tx.insert(Mark(id: 1)) }
        let sql: SQL = "DELETE FROM mark RETURNING *"
        expect(.readOnly) { try store.read { tx in try tx.fetch(Mark.self, sql: sql).count } }
        let count = try store.write { tx -> Int in
            _ = expect(.readOnly) {
                try store.read { inner in try inner.fetch(Mark.self, sql: sql).count }
            }
            return try tx.count(Mark.all)
        }
        #expect(count == 1)
    }

    @Test func `records see columns that another connection has added since`() throws {
        struct Thing: Record {
            var id: Int
            var extra: String?
        }
        let store = try make()
        try store.write { tx in
            try tx.execute("CREATE TABLE thing(id INTEGER PRIMARY KEY NOT NULL)")
            try tx.execute("INSERT INTO thing VALUES (1)")
        }
        let sql: SQL = "SELECT * FROM thing"
        let before = try store.read { tx in try tx.fetch(Thing.self, sql: sql).map(\.extra) }
        try store.write { tx in
            try tx.execute("ALTER TABLE thing ADD COLUMN extra TEXT")
            try tx.execute("UPDATE thing SET extra = 'there'")
        }
        let after = try store.read { tx in try tx.fetch(Thing.self, sql: sql).map(\.extra) }
        #expect(before == [nil] && after == ["there"])
    }

    @Test func `a pool of any size opens and closes at once`() throws {
        var configuration = Configuration.testing()
        configuration.maximumReaderCount = .max
        #expect(configuration.maximumReaderCount == 256)
        try make(configuration).close()
        configuration.maximumReaderCount = -1
        #expect(configuration.maximumReaderCount == 1)
    }

    @Test func `eight threads lose no write`() throws {
        let store = try make()
        DispatchQueue.concurrentPerform(iterations: 8) { _ in
            for _ in 0..<25 {
                try? store.write { tx in
                    let count = try tx.rows("SELECT v FROM t").count
                    try tx.execute("INSERT INTO t VALUES (\(count))")
                }
            }
        }
        #expect(try values(store) == Array(0..<200))
    }

    @Test func `a deferred foreign key that fails at COMMIT undoes the write with .constraint`()
        throws
    {
        let store = try make()
        try store.write { tx in
            try tx.execute("CREATE TABLE p(id INTEGER PRIMARY KEY)")
            try tx.execute("CREATE TABLE c(p REFERENCES p DEFERRABLE INITIALLY DEFERRED)")
        }
        expect(.constraint) {
            try store.write { tx in
                try tx.execute("INSERT INTO t VALUES (1)")
                try tx.execute("INSERT INTO c VALUES (42)")
            }
        }
        #expect(try values(store) == [])
        try store.write { tx in try tx.execute("INSERT INTO t VALUES (2)") }
        #expect(try values(store) == [2])
    }

    @Test func `ON CONFLICT ROLLBACK tells the body that all is undone`() throws {
        let store = try make()
        try store.write { tx in try tx.execute("CREATE TABLE u(v UNIQUE)") }
        expect(.rolledBack) {
            try store.write { tx in
                try tx.execute("INSERT INTO u VALUES (1)")
                _ = try? tx.execute("INSERT OR ROLLBACK INTO u VALUES (1)")
                try tx.execute("INSERT INTO t VALUES (1)")
            }
        }
        expect(.rolledBack) {
            try store.write { tx in
                try tx.execute("INSERT INTO u VALUES (1)")
                _ = try? tx.execute("INSERT OR ROLLBACK INTO u VALUES (1)")
            }
        }
        #expect(try values(store) == [])
        #expect(try store.read { tx in try tx.rows("SELECT * FROM u").count } == 0)
    }

    // MARK: Opening and closing

    @Test func `a second store on the same file is .alreadyOpen until the first is closed`() throws
    {
        let store = try make()
        let link = folder.path("link.db")
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: path)
        expect(.alreadyOpen) { _ = try Store(path: path, key: .numbered(1)) }
        expect(.alreadyOpen) { _ = try Store(path: link, key: .numbered(1)) }
        try store.close()
        let second = try Store(path: link, key: .numbered(1))
        try store.close()
        expect(.alreadyOpen) { _ = try Store(path: path, key: .numbered(1)) }
        _ = second.path
    }

    @Test func `a store that is let go gives the file free`() throws {
        do { _ = try make() }
        _ = try make()
    }

    @Test func `everything after close is .closed`() async throws {
        let store = try make()
        try await store.close()
        try await store.close()
        let late: [() throws -> Void] = [
            { try store.read { _ in } }, { try store.write { _ in } }, { try store.suspend() },
            { try store.rekey(to: .numbered(2)) }, { try store.reopen(with: .numbered(1)) },
            { _ = try store.snapshot() },
        ]
        for verb in late { _ = expect(.closed) { try verb() } }
        await #expect {
            try await store.write { _ in }
        } throws: { ($0 as? StoreError)?.code == .closed }
        #expect(!FileManager.default.fileExists(atPath: path + "-wal"))
    }

    @Test func `close, rekey and verbs of one's own transaction are misuse inside a body`() throws {
        let store = try make()
        let changes: [() throws -> Void] = [
            { try store.close() }, { try store.suspend() }, { try store.resume() },
            { try store.rekey(to: .numbered(2)) }, { try store.reopen(with: .numbered(1)) },
        ]
        for change in changes {
            try store.write { _ in _ = expect(.misuse) { try change() } }
            try store.read { _ in _ = expect(.misuse) { try change() } }
        }
        try store.write { tx in try tx.execute("INSERT INTO t VALUES (1)") }
        #expect(try values(store) == [1])
    }

    @Test(arguments: [
        ("PRAGMA journal_mode = DELETE", "Configuration.journalMode"),
        ("PRAGMA key = 'x'", "store.rekey(to:)"), ("PRAGMA rekey = 'x'", "store.rekey(to:)"),
        ("ATTACH 'other.db' AS other", "another Store"),
        ("PRAGMA synchronous = OFF", "Configuration"), ("COMMIT", "throw to roll back"),
    ])
    func `misuse in a body says what to do instead`(sql: String, words: String) throws {
        let store = try make()
        let error = expect(.misuse) {
            try store.write { tx in try tx.execute(SQL(text: sql)) }
        }
        let text = try #require(error).description
        #expect(text.contains(words), "\(text)")
    }

    @Test(arguments: journalModes)
    func `a read-only store reads and refuses to write`(mode: Configuration.JournalMode) throws {
        do { try make(.testing(mode)).close() }
        let store = try make(.testing(mode), mode: .readOnly)
        #expect(try values(store) == [])
        expect(.readOnly) { try store.write { tx in try tx.execute("INSERT INTO t VALUES (1)") } }
        expect(.readOnly) { try store.rekey(to: .numbered(2)) }
    }

    @Test func `a store with all its connections costs one derivation, made or opened`() throws {
        // In a process of its own: the counter is the process's, and tests run side by side.
        #expect(
            try Peer.run(["derivations", path])
                == ["4 readers, 1 derivations", "4 readers, 2 derivations"])
    }

    // MARK: Other processes

    @Test(arguments: journalModes)
    func `a write beside another process's write is .busy and loses nothing`(
        mode: Configuration.JournalMode
    ) throws {
        let store = try make(.impatient(mode))
        let peer = try Peer(["hold-write", mode.description, path, "1"])
        try #require(peer.line() == "ready")
        expect(.busy) { try store.write { tx in try tx.execute("INSERT INTO t VALUES (1)") } }
        peer.goOn()
        #expect(peer.finish() == ["released"])
        try store.write { tx in try tx.execute("INSERT INTO t VALUES (2)") }
        #expect(try values(store) == [2])
    }

    @Test(arguments: journalModes)
    func `a store that another process rekeys gets .wrongKey, not garbage`(
        mode: Configuration.JournalMode
    ) throws {
        let store = try make(.testing(mode))
        try store.write { tx in try tx.execute("INSERT INTO t VALUES (1)") }
        #expect(try values(store) == [1])
        #expect(try Peer.run(["rekey-now", mode.description, path, "1", "2"]) == ["rekeyed"])
        expect(.wrongKey) { _ = try values(store) }
        expect(.wrongKey) { try store.write { tx in try tx.execute("INSERT INTO t VALUES (2)") } }
        try store.close()
        let again = try Store(path: path, key: .numbered(2), configuration: .testing(mode))
        #expect(try values(again) == [1])
    }

    // MARK: Rekey

    @Test(arguments: journalModes)
    func `rekey re-opens every connection under the new key`(
        mode: Configuration.JournalMode
    ) async throws {
        var configuration = Configuration.testing(mode)
        configuration.checkpointPageCount = 1
        let store = try make(configuration)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<16 {
                group.addTask { try await Self.insert(number, into: store) }
                group.addTask { try await store.read { tx in _ = try tx.rows("SELECT * FROM t") } }
            }
            try await group.waitForAll()
        }
        try await store.rekey(to: .numbered(2))
        #expect(try await store.read { tx in try tx.rows("SELECT * FROM t").count } == 16)
        // Those of the checkpoints too.
        let count = store.statistics.checkpoints.count
        try await store.write { tx in try tx.execute("INSERT INTO t VALUES (99)") }
        // A minute would be short where other tests have all threads; the suite's limit ends it.
        while mode == .wal, store.statistics.checkpoints.count == count {
            // A write asks for none while one that is counted already ends.
            try await store.write { tx in try tx.execute("UPDATE t SET v = v WHERE v = 99") }
            try await Task.sleep(for: .milliseconds(1))
        }
        try await store.close()
        expect(.wrongKey) { try openAgain() }
        let again = try await Store(path: path, key: .numbered(2), configuration: .testing(mode))
        #expect(try values(again).count == 17)
    }

    @Test func `rekey waits for a reader and gives .busy after the deadline`() async throws {
        let store = try make(.impatient())
        let hold = Hold()
        let reading = Task {
            try await store.read { tx in
                hold.stay()
                return try tx.rows("SELECT * FROM t").count
            }
        }
        await hold.isEntered()
        await #expect {
            try await store.rekey(to: .numbered(2))
        } throws: { ($0 as? StoreError)?.code == .busy }
        hold.release()
        #expect(try await reading.value == 0)
        try await store.rekey(to: .numbered(2))
        #expect(try await store.read { tx in try tx.rows("SELECT * FROM t").count } == 0)
    }

    // MARK: Waiting

    @Test func `writes run in the order they came`() async throws {
        let store = try make()
        let hold = Hold()
        let first = Task {
            try await store.write { _ in
                hold.stay()
            }
        }
        await hold.isEntered()
        var tasks: [Task<Void, any Error>] = []
        for number in 0..<20 {
            let count = store.waitingWriteCount
            tasks.append(Task { try await Self.insert(number, into: store) })
            while store.waitingWriteCount == count { await Task.yield() }
        }
        hold.release()
        try await first.value
        for task in tasks { try await task.value }
        #expect(try values(store) == Array(0..<20))
    }

    @Test func `a task cancelled before its turn never starts`() async throws {
        let store = try make()
        let hold = Hold()
        let holder = Task {
            try await store.write { _ in
                hold.stay()
            }
        }
        await hold.isEntered()
        let cancelled = Task {
            try await store.write { tx in try tx.execute("INSERT INTO t VALUES (1)") }
        }
        while store.waitingWriteCount == 0 { await Task.yield() }
        cancelled.cancel()
        await #expect {
            _ = try await cancelled.value
        } throws: { ($0 as? StoreError)?.code == .cancelled }
        hold.release()
        try await holder.value
        #expect(try values(store) == [])
    }

    @Test func `a task cancelled inside is undone at the next verb`() async throws {
        let store = try make()
        let hold = Hold()
        let task = Task {
            try await store.write { tx in
                try tx.execute("INSERT INTO t VALUES (1)")
                hold.stay()
                try tx.execute("INSERT INTO t VALUES (2)")
            }
        }
        await hold.isEntered()
        task.cancel()
        hold.release()
        await #expect {
            _ = try await task.value
        } throws: { ($0 as? StoreError)?.code == .cancelled }
        #expect(try values(store) == [])
    }

    @Test func `a cancelled body that swallows the error commits nothing`() async throws {
        let store = try make()
        let hold = Hold()
        let task = Task {
            try await store.write { tx in
                try tx.execute("INSERT INTO t VALUES (1)")
                hold.stay()
                _ = try? tx.execute("INSERT INTO t VALUES (2)")
            }
        }
        await hold.isEntered()
        task.cancel()
        hold.release()
        await #expect {
            _ = try await task.value
        } throws: { ($0 as? StoreError)?.code == .cancelled }
        #expect(try values(store) == [])
    }

    @Test(arguments: journalModes)
    func `a read beyond the pool waits and gives .busy after the deadline`(
        mode: Configuration.JournalMode
    ) async throws {
        var configuration = Configuration.impatient(mode)
        configuration.maximumReaderCount = 1
        let store = try make(configuration)
        let hold = Hold()
        let reading = Task {
            try await store.read { _ in
                hold.stay()
            }
        }
        await hold.isEntered()
        await #expect {
            try await store.read { _ in }
        } throws: { ($0 as? StoreError)?.code == .busy }
        let blocked = Task.detached { () -> StoreError.Code? in
            do { try Self.readSynchronously(store) } catch { return (error as? StoreError)?.code }
            return nil
        }
        #expect(await blocked.value == .busy)
        hold.release()
        try await reading.value
        try await store.read { _ in }
    }

    private static func readSynchronously(_ store: Store) throws { try store.read { _ in } }

    @Test func `64 tasks lose no write`() async throws {
        let store = try make(.testing())
        let perWriter = isLongRun ? 200 : 20
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<64 {
                group.addTask {
                    for _ in 0..<perWriter {
                        try await store.write { tx in
                            let last = try tx.firstRow("SELECT max(v) FROM t")?.get(
                                0, as: Int?.self)
                            try tx.execute(
                                "INSERT INTO t VALUES (\((last.flatMap { $0 } ?? -1) + 1))")
                        }
                        _ = try await store.read { tx in try tx.rows("SELECT count(*) FROM t") }
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try values(store) == Array(0..<(64 * perWriter)))
    }

    private static func insert(_ number: Int, into store: Store) async throws {
        try await store.write { tx in try tx.execute("INSERT INTO t VALUES (\(number))") }
    }
}
