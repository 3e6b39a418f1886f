import Foundation
import Logging
import Synchronization
import Testing

@testable import Coffer

/// What a store logs: each event once, at its level, and never a value, a key or an SQL text.
@Suite(.againstHanging, .onOwnThreads) struct StoreEventsTests {
    /// Appears in values, in SQL texts and in keys.
    private static let canary = "canary7f3a"

    private let folder: TemporaryFolder
    private let path: String
    private let log = LogRecorder()

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    private func make(_ configuration: Configuration = .testing()) throws -> Store {
        var configuration = configuration
        configuration.logger = log.logger
        let store = try Store(path: path, key: Self.key(1), configuration: configuration)
        try store.write { tx in
            try tx.execute("CREATE TABLE IF NOT EXISTS t(v UNIQUE, big)")
            try tx.execute(SQL(text: "INSERT INTO t(v) VALUES ('\(Self.canary)')"))
        }
        return store
    }

    private static func key(_ number: UInt8) -> StoreKey {
        .raw(Array("\(canary)-\(number)-0123456789abcdefghij".utf8.prefix(32)))
    }

    /// The messages logged since the last call.
    private func taken() -> [String] {
        for entry in log.entries {
            let text = "\(entry.message) \(entry.metadata)".lowercased()
            #expect(!text.contains(Self.canary))
            // The hexadecimal form in which the engine gets the key.
            #expect(!text.contains("63616e617279"))
            #expect(!text.contains("insert") && !text.contains("select"))
        }
        #expect(log.events.allSatisfy { $0.metadata["path"] == "\(path)" })
        defer { log.forget() }
        return log.texts
    }

    // MARK: Life

    @Test(arguments: journalModes)
    func `the life of a store is logged, each step once`(mode: Configuration.JournalMode) throws {
        let store = try make(.testing(mode))
        #expect(log.events.first?.metadata["profile"] == "\(store.profile)")
        #expect(log.events.first?.metadata["journalMode"] == "\(mode)")
        #expect(taken() == ["debug store opened"])
        for _ in 0..<2 { try store.suspend() }
        for _ in 0..<2 { try store.resume() }
        #expect(taken() == ["debug store suspended", "debug store resumed"])
        try store.rekey(to: Self.key(2))
        #expect(taken() == ["info rekey begins", "notice the key was changed"])
        expect(.wrongKey) { try store.reopen(with: Self.key(3)) }
        try store.reopen(with: Self.key(2))
        #expect(taken() == ["notice store reopened with another key"])
        for _ in 0..<2 { try store.close() }
        #expect(taken() == ["debug store closed"])
    }

    @Test func `a store that is deallocated is logged as closed`() throws {
        do { _ = try make() }
        #expect(taken() == ["debug store opened", "debug store closed"])
    }

    @Test func `changes of a keyring are logged, without a label`() throws {
        var configuration = Configuration.testing()
        configuration.logger = log.logger
        let secret = Array("\(Self.canary)-0123456789abcdefghijklmnop".utf8.prefix(32))
        let store = try Store(
            path: path, key: .keyring(.keyFile(secret)), configuration: configuration)
        #expect(taken() == ["debug store opened"])
        let other = [UInt8](repeating: 2, count: 32)
        let slot = try store.keys.add(.keyFile(other), label: Self.canary).id
        #expect(log.events.last?.metadata["slot"] == "2")
        #expect(log.events.last?.metadata["kind"] == "key file")
        try store.keys.change(slot, to: .recoveryKey())
        #expect(log.events.last?.metadata["kind"] == "recovery key")
        try store.keys.rename(slot, to: "\(Self.canary) 2")
        try store.keys.remove(slot)
        expect(.lastSlot) { try store.keys.remove(1) }
        try store.keys.withRootBackup { _ in }
        #expect(log.events.last?.metadata["count"] == "1")
        let verbs = ["added", "changed", "renamed", "removed"]
        #expect(
            taken() == verbs.map { "notice a slot of the keyring was \($0)" }
                + ["notice the root key is shown as a root backup"])
        try store.close()
        log.forget()
    }

    @Test func `successful work, and errors of its caller, log nothing`() throws {
        let store = try make()
        _ = taken()
        for number in 0..<20 {
            try store.write { tx in try tx.execute("INSERT INTO t(v) VALUES (\(number))") }
            _ = try store.read { tx in try tx.rows("SELECT * FROM t").count }
        }
        let double = SQL(text: "INSERT INTO t(v) VALUES ('\(Self.canary)')")
        expect(.constraint) { try store.write { tx in try tx.execute(double) } }
        expect(.sql) { try store.read { tx in try tx.rows("SELECT * FROM nowhere").count } }
        expect(.misuse) { try store.read { _ in try store.write { _ in } } }
        #expect(taken() == [])
    }

    @Test(arguments: journalModes)
    func `a key that is not changed is logged, with the error's code`(
        mode: Configuration.JournalMode
    ) throws {
        let store = try make(.impatient(mode))
        let other = try Connection(
            path: path, key: Self.key(1), configuration: .testing(mode))
        try other.begin(.immediate)
        _ = taken()
        expect(.busy) { try store.rekey(to: Self.key(2)) }
        #expect(log.events.last?.metadata["code"] == "busy")
        #expect(log.events.last?.metadata["resultCode"] == "5")
        #expect(taken() == ["info rekey begins", "error the key was not changed"])
        try other.rollback()
    }

    @Test func `a main file that keeps the old key after a rekey is logged`() throws {
        let store = try make(.impatient())
        let other = try Connection(path: path, key: Self.key(1), configuration: .testing())
        try other.begin(.deferred)
        #expect(try other.rows("SELECT v FROM t").count == 1)
        _ = taken()
        let report = try store.rekey(to: Self.key(2))
        #expect(log.events.last?.metadata["pages"] == "\(report.oldPageCount)")
        #expect(
            taken() == [
                "info rekey begins", "notice the key was changed",
                "warning the main file keeps the old key until a checkpoint completes",
            ])
        try other.rollback()
    }

    @Test func `a key that was changed is not logged as one that was not`() throws {
        let isFirst = Mutex(true)
        var configuration = Configuration.testing()
        configuration.prepare = { _ in
            // The call for the connection that replaces the first one fails.
            guard
                isFirst.withLock({ isFirst in
                    defer { isFirst = false }
                    return isFirst
                })
            else { throw CancellationError() }
        }
        let store = try make(configuration)
        _ = taken()
        expect(.misuse) { try store.rekey(to: Self.key(2)) }
        #expect(
            taken() == [
                "info rekey begins",
                "error the key was changed, but the store could not continue",
            ])
    }

    // MARK: Other processes, and damage

    @Test(arguments: journalModes)
    func `a key that another connection has changed is logged`(
        mode: Configuration.JournalMode
    ) throws {
        let store = try make(.testing(mode))
        let other = try Connection(
            path: path, key: Self.key(1), configuration: .testing(mode))
        try other.rekey(to: Self.key(2))
        other.close()
        _ = taken()
        expect(.wrongKey) { try store.read { tx in try tx.rows("SELECT * FROM t").count } }
        #expect(taken() == ["error another process has changed the key"])
        expect(.wrongKey) { try store.write { tx in try tx.execute("DELETE FROM t") } }
        #expect(taken() == ["error another process has changed the key"])
        guard mode == .wal else { return }
        store.core.checkpointer.start(.besideWrites)
        try waitUntil { !log.events.isEmpty }
        #expect(log.events.first?.metadata["code"] == "wrongKey")
        #expect(taken() == ["warning checkpoint failed"])
    }

    @Test func `the error of another store is not logged as this one's`() throws {
        let store = try make()
        _ = taken()
        for code in [.damaged, .wrongKey] as [StoreError.Code] {
            expect(code) { try store.write { _ in throw StoreError(code, "of another store") } }
            expect(code) { try store.read { _ in throw StoreError(code, "of another store") } }
        }
        #expect(taken() == [])
    }

    @Test(arguments: journalModes)
    func `damage is logged by the verb that reads it`(mode: Configuration.JournalMode) throws {
        let store = try make(.testing(mode))
        let size = store.profile.pageByteCount
        try store.write { tx in
            try tx.execute("INSERT INTO t(big) VALUES (zeroblob(\(size * 3)))")
        }
        let pageCount = try store.read { tx in try tx.scalar("PRAGMA page_count", as: Int.self) }
        try store.close()
        try Damage.flip(path, at: (try #require(pageCount) - 1) * size + 10)
        let again = try Store(path: path, key: Self.key(1), configuration: logging(mode))
        _ = taken()
        expect(.damaged) { try again.read { tx in try tx.rows("SELECT big FROM t").count } }
        #expect(log.events.first?.metadata["pages"] == "\(try #require(pageCount))")
        #expect(taken() == ["error damage found"])
        expect(.damaged) {
            try again.write { tx in try tx.execute("CREATE TABLE u AS SELECT big FROM t") }
        }
        #expect(taken() == ["error damage found"])
        let report = try again.verify()
        #expect(!report.isGood)
        #expect(log.events.last?.metadata["pages"] == "\(try #require(pageCount))")
        // SQLite's check of the structure reads the page as well.
        #expect(taken() == ["error damage found", "error verification found damage"])
        guard mode == .wal else { return }
        let snapshot = try again.snapshot()
        expect(.damaged) { try snapshot.read { tx in try tx.rows("SELECT big FROM t").count } }
        #expect(taken() == ["error damage found"])
    }

    private func logging(_ mode: Configuration.JournalMode) -> Configuration {
        var configuration = Configuration.testing(mode)
        configuration.logger = log.logger
        return configuration
    }

    // MARK: Writes

    /// Queues the bodies behind a write that does not share its commit, then releases them.
    private func group(
        _ store: Store, _ bodies: [@Sendable (inout WriteTransaction) throws -> Void]
    ) async throws -> [StoreError.Code?] {
        let hold = Hold()
        let first = Task { try await store.write(mode: .deferred) { _ in hold.stay() } }
        await hold.isEntered()
        var tasks: [Task<Void, any Error>] = []
        for (index, body) in bodies.enumerated() {
            tasks.append(Task { try await store.write(body) })
            while store.waitingWriteCount <= index { try await Task.sleep(for: .microseconds(50)) }
        }
        hold.release()
        try await first.value
        var codes: [StoreError.Code?] = []
        for task in tasks { codes.append(await code(task)) }
        return codes
    }

    @Test func `writes that are rolled back with another one are logged once`() async throws {
        var configuration = Configuration.testing()
        configuration.groupCommit.maximumDuration = .seconds(60)
        let store = try make(configuration)
        _ = taken()
        let insert: @Sendable (inout WriteTransaction) throws -> Void = { tx in
            try tx.execute("INSERT INTO t(v) VALUES (NULL)")
        }
        let codes = try await group(
            store,
            [
                insert, insert,
                { tx in
                    try tx.execute(SQL(text: "INSERT OR ROLLBACK INTO t VALUES ('canary7f3a', 1)"))
                },
            ])
        #expect(codes.prefix(2) == [.rolledBack, .rolledBack])
        #expect(log.events.first?.metadata["count"] == "2")
        #expect(taken() == ["warning writes were rolled back with another one"])
    }

    @Test func `a commit that fails is logged once for all its writes`() async throws {
        let store = try make(.impatient(.delete))
        let reader = try Connection(
            path: path, key: Self.key(1), configuration: .testing(.delete))
        try reader.begin(.deferred)
        #expect(try reader.rows("SELECT * FROM t").count == 1)
        _ = taken()
        // Nobody can commit next to the reader.
        let codes = try await group(
            store, [{ tx in try tx.execute("DELETE FROM t") }, { tx in try tx.execute("ANALYZE") }])
        #expect(codes == [.busy, .busy])
        #expect(log.events.first?.metadata["count"] == "2")
        #expect(log.events.first?.metadata["code"] == "busy")
        #expect(taken() == ["warning commit failed"])
        try reader.commit()
    }

    // MARK: The WAL

    @Test
    func `a WAL that readers keep too long is logged once, and so is the read that had to end`()
        async throws
    {
        var configuration = Configuration.testing()
        configuration.maximumWALByteCount = 4 << 20
        configuration.maximumSnapshotAge = .seconds(600)
        let store = try make(configuration)
        let snapshot = try await store.snapshot()
        func fill() throws {
            try store.write { tx in
                for _ in 0..<20 { try tx.execute("INSERT INTO t(big) VALUES (randomblob(100000))") }
            }
        }
        _ = taken()
        for _ in 0..<12 { try fill() }
        let maximumPageCount = configuration.maximumWALByteCount / store.profile.pageByteCount
        #expect(log.events.first?.metadata["maximumPageCount"] == "\(maximumPageCount)")
        #expect(taken() == ["warning readers keep the write-ahead log above its bound"])
        try snapshot.close()
        for _ in 0..<4 { try fill() }
        #expect(taken() == [])
    }

    @Test func `a snapshot that had to end is logged`() async throws {
        var configuration = Configuration.testing()
        configuration.maximumWALByteCount = 4 << 20
        configuration.maximumSnapshotAge = .milliseconds(1)
        let store = try make(configuration)
        let snapshot = try await store.snapshot()
        _ = taken()
        for _ in 0..<12 {
            try await store.write { tx in
                for _ in 0..<20 { try tx.execute("INSERT INTO t(big) VALUES (randomblob(100000))") }
            }
        }
        expect(.snapshotExpired) { try snapshot.read { _ in } }
        #expect(log.events.last?.metadata["count"] == "1")
        #expect(
            taken() == [
                "warning readers keep the write-ahead log above its bound",
                "warning snapshots were ended for the write-ahead log",
            ])
    }
}
