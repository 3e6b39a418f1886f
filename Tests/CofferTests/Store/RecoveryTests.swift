import CSQLCipher
import Synchronization
import Testing

@testable import Coffer

/// A store whose writer was closed, or could not be set up, goes on.
@Suite(.againstHanging, .onOwnThreads) struct RecoveryTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func make(_ configuration: Configuration) throws -> Store {
        let store = try Store(
            path: folder.path(), key: .numbered(1), configuration: configuration)
        try store.write { tx in try tx.execute("CREATE TABLE t(v)") }
        return store
    }

    private static func add(_ value: Int, to store: Store) throws {
        try store.write { tx in try tx.execute("INSERT INTO t VALUES (\(value))") }
    }

    private static func values(_ store: Store) throws -> [Int] {
        try store.read { tx in try tx.rows("SELECT v FROM t").map { try $0.get(0) } }
    }

    /// Runs a write that throws, and whose rollback fails as well, so the writer must be closed.
    private static func closeWriter(_ store: Store) throws {
        #expect(throws: Undo.self) {
            try store.write { tx in
                try tx.execute("INSERT INTO t VALUES (99)")
                try refuseRollback(tx.connection())
                throw Undo()
            }
        }
    }

    static func refuseRollback(_ connection: Connection) throws {
        try connection.withUnsafeHandle { db in
            _ = sqlite3_set_authorizer(
                db,
                { _, action, verb, _, _, _ in
                    let isRollback = verb.map { String(cString: $0) } == "ROLLBACK"
                    return action == SQLITE_TRANSACTION && isRollback ? SQLITE_DENY : SQLITE_OK
                }, nil)
        }
    }

    // MARK: A rollback that fails

    @Test(arguments: journalModes)
    func `a rollback that fails costs only its write`(mode: Configuration.JournalMode) throws {
        let store = try make(.testing(mode))
        try Self.add(1, to: store)
        try Self.closeWriter(store)
        #expect(try Self.values(store) == [1])
        try Self.closeWriter(store)
        try Self.add(2, to: store)
        #expect(try Self.values(store) == [1, 2])
        try Self.closeWriter(store)
        try store.rekey(to: .numbered(2))
        #expect(try Self.values(store) == [1, 2])
    }

    @Test(arguments: journalModes)
    func `observers go on after a rollback that failed`(
        mode: Configuration.JournalMode
    ) async throws {
        let store = try make(.testing(mode))
        let loop = store.observe { tx in try tx.rows("SELECT v FROM t").count }
            .makeAsyncIterator()
        let events = store.changes(in: "t").makeAsyncIterator()
        let first = try await loop.next()
        #expect(first == 0)
        try Self.closeWriter(store)
        try await store.write { tx in try tx.execute("INSERT INTO t VALUES (1)") }
        let second = try await loop.next()
        #expect(second == 1)
        // Nobody polled for other connections' commits in the meantime.
        let missed = try await events.rows()
        #expect(missed == ["rescan elsewhere"])
        try await store.write { tx in try tx.execute("INSERT INTO t VALUES (2)") }
        let told = try await events.rows()
        #expect(told == ["insert t 2"])
    }

    @Test(arguments: journalModes)
    func `a writer that does not open again says why, until it does`(
        mode: Configuration.JournalMode
    ) throws {
        let disk = try FaultDisk()
        var configuration = Configuration.testing(mode)
        configuration.vfs = disk.name
        let store = try make(configuration)
        try Self.closeWriter(store)
        disk.arm(.open, count: nil)
        for _ in 0..<2 { expect(.io) { try Self.add(1, to: store) } }
        disk.disarm()
        try Self.add(2, to: store)
        #expect(try Self.values(store) == [2])
    }

    // MARK: A connection that cannot be set up

    /// A configuration whose `prepare` throws on demand.
    private final class Refusal: Sendable {
        private let isOn = Atomic(false)

        func set(_ value: Bool) { isOn.store(value, ordering: .sequentiallyConsistent) }

        func configuration(_ mode: Configuration.JournalMode) -> Configuration {
            var configuration = Configuration.testing(mode)
            configuration.prepare = { [self] _ in
                if isOn.load(ordering: .sequentiallyConsistent) { throw Undo() }
            }
            return configuration
        }
    }

    @Test(arguments: journalModes)
    func `a store that cannot be reopened goes on unchanged`(
        mode: Configuration.JournalMode
    ) throws {
        let refusal = Refusal()
        let store = try make(refusal.configuration(mode))
        #expect(try Self.values(store) == [])
        refusal.set(true)
        let error = expect(.misuse) { try store.reopen(with: .numbered(1)) }
        #expect(error?.cause is Undo)
        try Self.add(1, to: store)
        #expect(try Self.values(store) == [1])
        refusal.set(false)
        try store.reopen(with: .numbered(1))
        try Self.add(2, to: store)
        #expect(try Self.values(store) == [1, 2])
    }

    @Test(arguments: journalModes)
    func `a suspended store that cannot be reopened stays suspended`(
        mode: Configuration.JournalMode
    ) throws {
        let refusal = Refusal()
        let store = try make(refusal.configuration(mode))
        try store.suspend()
        refusal.set(true)
        expect(.misuse) { try store.reopen(with: .numbered(1)) }
        expect(.misuse) { try store.resume() }
        expect(.suspended) { try Self.add(1, to: store) }
        refusal.set(false)
        try store.resume()
        try Self.add(1, to: store)
        #expect(try Self.values(store) == [1])
    }
}
