import CSQLCipher
import Foundation
import Testing

@testable import Coffer

/// Stores in memory and temporary ones: the verbs of a store, without a file.
@Suite(.againstHanging, .onOwnThreads) struct PrivateStoreTests {
    static let locations = [Location.memory, .temporary]

    private struct Note: Record, Equatable {
        var id: Int
        var title: String
    }

    private func make(
        _ location: Location, _ configuration: Configuration = .testing()
    ) throws -> Store {
        let store = try Store(location, configuration: configuration)
        try store.write { tx in try tx.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, v)") }
        return store
    }

    private static func add(_ values: Int..., to store: Store) throws {
        try store.write { tx in
            for value in values { try tx.execute("INSERT INTO t(v) VALUES (\(value))") }
        }
    }

    private static func values(_ store: Store) throws -> [Int] {
        try store.read { tx in try tx.rows("SELECT v FROM t ORDER BY id").map { try $0.get(0) } }
    }

    // MARK: Opening

    @Test(arguments: locations)
    func `stores without a file are many and separate, and leave none`(
        location: Location
    ) async throws {
        let stores = try [make(location), make(location)]
        try Self.add(1, to: stores[0])
        try Self.add(2, to: stores[1])
        #expect(try stores.map(Self.values) == [[1], [2]])
        for store in stores {
            #expect(store.path == "")
            #expect(store.journalMode.description == "memory")
            #expect(store.profile == (try Engine.capabilities.defaultProfile))
        }
        let other = try await Store(location)
        #expect(try await other.read { tx in try !tx.rows("SELECT 1").isEmpty })
        expect(.sql) { try Self.values(other) }
    }

    @Test(arguments: locations)
    func `a key, or a mode other than making a new database, is misuse`(
        location: Location
    ) async throws {
        expect(.misuse) { try Store(location, key: .numbered(1)) }
        expect(.misuse) { try Store(location, mode: .mustExist) }
        expect(.misuse) { try Store(location, mode: .readOnly) }
        await ObserveTests.expectError(.misuse) {
            _ = try await Store(location, key: .numbered(1))
        }
    }

    @Test func `a location that is a file opens with its key`() async throws {
        let folder = try TemporaryFolder()
        let location = Location.file(folder.path())
        expect(.misuse) { try Store(location) }
        try await make(at: location).close()
        let again = try await Store(
            Location.uri("file:\(folder.path())?mode=ro"), key: .numbered(1))
        let values = try await again.read { tx in try tx.rows("SELECT v FROM t").count }
        #expect(values == 1)
        expect(.readOnly) { try Self.add(2, to: again) }
        expect(.alreadyOpen) { try Store(location, key: .numbered(1)) }
    }

    private func make(at location: Location) throws -> Store {
        let store = try Store(location, key: .numbered(1), configuration: .testing())
        try store.write { tx in try tx.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, v)") }
        try Self.add(1, to: store)
        return store
    }

    @Test(arguments: locations, supportedProfiles)
    func `the profile is the configured one`(location: Location, profile: CipherProfile) throws {
        let store = try make(location, .testing(profile: profile))
        #expect(store.profile == profile)
        try Self.add(1, to: store)
        #expect(try Self.values(store) == [1])
    }

    // MARK: Transactions

    @Test(arguments: locations)
    func `a write that throws is rolled back, and so is a savepoint`(location: Location) throws {
        let store = try make(location)
        try Self.add(1, to: store)
        #expect(throws: Undo.self) {
            try store.write { tx in
                try tx.execute("DELETE FROM t")
                throw Undo()
            }
        }
        expect(.constraint) {
            try store.write { tx in try tx.execute("INSERT INTO t(id) VALUES (7), (7)") }
        }
        expect(.constraint) {
            try store.write { tx in try tx.execute("INSERT OR ROLLBACK INTO t(id) VALUES (1)") }
        }
        try store.write { tx in
            try? tx.savepoint { part in
                try part.execute("DELETE FROM t")
                throw Undo()
            }
            try store.write { inner in try inner.execute("INSERT INTO t(v) VALUES (2)") }
            #expect(try store.read { inner in try inner.rows("SELECT * FROM t").count } == 2)
        }
        expect(.misuse) { try store.read { _ in try store.write { _ in } } }
        expect(.readOnly) { try store.read { tx in try tx.rows("DELETE FROM t") } }
        for mode in [TransactionMode.deferred, .immediate, .exclusive] {
            try store.write(mode: mode) { tx in try tx.execute("UPDATE t SET v = v") }
        }
        #expect(try Self.values(store) == [1, 2])
    }

    @Test(arguments: locations)
    func `writes that wait share a commit, and reads queue`(
        location: Location
    ) async throws {
        var configuration = Configuration.testing()
        configuration.groupCommit.maximumDuration = .seconds(60)
        let store = try make(location, configuration)
        let hold = Hold()
        let first = Task {
            try await store.write(mode: .deferred) { tx in
                try tx.execute("INSERT INTO t(v) VALUES (-1)")
                hold.stay()
            }
        }
        await hold.isEntered()
        var tasks: [Task<Void, any Error>] = []
        for number in 0..<10 {
            tasks.append(
                number % 2 == 0
                    ? onThread { try Self.add(number, to: store) }
                    : Task { try await store.write { tx in try Self.insert(number, tx) } })
            try await yieldWhile { store.waitingWriteCount <= number }
        }
        let read = Task {
            try await store.read { tx in try tx.rows("SELECT * FROM t").count }
        }
        try await yieldWhile { store.waitingWriteCount <= tasks.count }
        hold.release()
        try await first.value
        for task in tasks { try await task.value }
        let count = try await read.value
        #expect(count == 11)
        let statistics = store.statistics
        #expect(statistics.openReaderCount == 0)
        #expect(statistics.writes.maximumGroupWriteCount == 10)
        #expect(statistics.writes.committedCount == 12)
        #expect(statistics.checkpoints.count == 0)
        #expect(statistics.derivationDuration == .zero)
    }

    private static func insert(_ value: Int, _ tx: borrowing WriteTransaction) throws {
        try tx.execute("INSERT INTO t(v) VALUES (\(value))")
    }

    @Test(arguments: locations)
    func `a cancelled task leaves the queue, or is rolled back in its body`(
        location: Location
    ) async throws {
        let store = try make(location)
        let hold = Hold()
        let inside = Task {
            try await store.write { tx in
                try Self.insert(1, tx)
                hold.stay()
                try Self.insert(2, tx)
            }
        }
        await hold.isEntered()
        let waiting = Task { try await store.read { _ in } }
        try await yieldWhile { store.waitingWriteCount == 0 }
        for task in [waiting, inside] {
            task.cancel()
            if task == inside { hold.release() }
            await #expect(throws: CancellationError.self) { try await task.value }
        }
        #expect(try Self.values(store) == [])
    }

    // MARK: Verbs of other rooms

    @Test(arguments: locations)
    func `records, buckets and migrations work`(location: Location) async throws {
        let store = try await Store(location)
        let bucket = Bucket<String, Date>("seen")
        let date = Date(timeIntervalSince1970: 7)
        let steps = [
            VersionStep(1) { tx in try tx.execute("CREATE TABLE made(a)") },
            VersionStep(2) { tx in try tx.execute("INSERT INTO made VALUES (1)") },
        ]
        let counts = try await [
            store.migrate(byUserVersion: steps), store.migrate(byUserVersion: steps),
        ]
        #expect(counts == [2, 0])
        try await store.write { tx in
            try tx.insert(Note(id: 1, title: "Buy milk"))
            try tx.set(date, for: "ada", in: bucket)
        }
        let notes = try await store.read { tx in try tx.fetch(Note.where(\.title == "Buy milk")) }
        #expect(notes == [Note(id: 1, title: "Buy milk")])
        let seen = try await store.read { tx in try tx.get("ada", in: bucket) }
        #expect(seen == date)
        let later = try await store.migrate(
            byUserVersion: steps + [VersionStep(3) { tx in try tx.execute("DROP TABLE made") }])
        #expect(later == 1)
    }

    @Test(arguments: locations)
    func `commits are observed without polling for other connections' commits`(
        location: Location
    ) async throws {
        var configuration = Configuration.testing()
        configuration.foreignCommitInterval = .milliseconds(1)
        let store = try make(location, configuration)
        let loop = store.observe { tx in try tx.rows("SELECT * FROM t").count }
            .makeAsyncIterator()
        let events = store.changes(in: "t").makeAsyncIterator()
        let first = try await loop.next()
        #expect(first == 0)
        #expect(!store.core.observation.isPolling)
        try await store.write { tx in try Self.insert(1, tx) }
        let second = try await loop.next()
        #expect(second == 1)
        let told = try await events.rows()
        #expect(told == ["insert t 1"])
    }

    @Test(arguments: locations)
    func `changes since a token are reported`(location: Location) async throws {
        let store = try make(location)
        try await store.write { tx in try tx.keepHistory(of: "t") }
        let token = try await store.read { tx in try tx.changeToken() }
        try await store.write { tx in try Self.insert(1, tx) }
        let batch = try await store.changes(since: token)
        #expect(batch.changes.map(\.text) == ["insert t 1"])
    }

    @Test(arguments: locations)
    func `blobs go in and out in pieces`(location: Location) async throws {
        let store = try make(location)
        try Self.add(1, to: store)
        let data = BlobFixture.bytes(300_000)
        let source = AsyncStream<Data> { continuation in
            continuation.yield(data.prefix(100_000))
            continuation.yield(Data(data.dropFirst(100_000)))
            continuation.finish()
        }
        try await store.writeBlob("v", in: "t", row: 1, byteCount: data.count, from: source)
        var received = Data()
        for try await chunk in store.chunks(of: "v", in: "t", row: 1) { received += chunk }
        #expect(received == data)
        let size = try await store.read { tx in
            try tx.withBlob("v", in: "t", row: 1) { blob in blob.byteCount }
        }
        #expect(size == data.count)
    }

    // MARK: Copies and checks

    @Test(arguments: locations, supportedProfiles)
    func `a backup under another key holds what the store holds`(
        location: Location, profile: CipherProfile
    ) async throws {
        let folder = try TemporaryFolder()
        let store = try make(location, .testing(profile: profile))
        try Self.add(1, 2, 3, to: store)
        expect(.misuse) { try store.backup(to: folder.path()) }
        #expect(!FileManager.default.fileExists(atPath: folder.path()))
        let report = try await store.backup(to: folder.path(), key: .numbered(2))
        #expect(report.rowCount == 3 && report.profile == profile)
        let copy = try await Store(
            path: folder.path(), key: .numbered(2), configuration: .testing())
        #expect(copy.journalMode == .wal)
        #expect(try Self.values(copy) == [1, 2, 3])
        let verification = try await copy.verify()
        #expect(verification.isGood && verification.pageCount > 0)
        try Self.add(4, to: store)
        #expect(try Self.values(store) == [1, 2, 3, 4])
    }

    @Test(arguments: locations)
    func `a plaintext copy holds what the store holds`(location: Location) async throws {
        let folder = try TemporaryFolder()
        let store = try make(location)
        try Self.add(1, 2, to: store)
        let report = try await store.decrypt(to: folder.path("plain.db"))
        #expect(report.rowCount == 2)
        let plain = try RawConnection(folder.path("plain.db"))
        #expect(plain.first("SELECT sum(v) FROM t") == "3")
    }

    @Test(arguments: locations, [VerificationScope.everything, .sample(maximumPageCount: 3)])
    func `verify checks the structure, whatever the scope`(
        location: Location, scope: VerificationScope
    ) async throws {
        var configuration = Configuration.testing()
        configuration.prepare = { connection in
            try connection.withUnsafeHandle { db in
                // Coffer's authorizer refuses the pragma.
                sqlite3_set_authorizer(db, nil, nil)
                _ = sqlite3_exec(db, "PRAGMA foreign_keys = OFF", nil, nil, nil)
            }
        }
        let store = try make(location, configuration)
        let good = try await store.verify(scope)
        #expect(good.isGood && good.isStructureChecked)
        #expect(good.pageCount == 0 && good.pageCountTotal == 0 && good.frameCount == 0)
        try await store.write { tx in
            try tx.execute("CREATE TABLE c(t REFERENCES t)")
            try tx.execute("INSERT INTO c VALUES (42)")
        }
        let bad = try await store.verify(scope)
        #expect(!bad.isGood && bad.problems.count == 1)
    }

    // MARK: Lifetime

    @Test(arguments: locations)
    func `verbs that need a file say so and lose nothing`(location: Location) async throws {
        let store = try make(location)
        try Self.add(1, to: store)
        expect(.unsupported) { try store.snapshot() }
        expect(.unsupported) { try store.suspend() }
        expect(.unsupported) { try store.rekey(to: .numbered(2)) }
        expect(.unsupported) { try store.reopen(with: .numbered(2)) }
        await ObserveTests.expectError(.unsupported) { _ = try await store.snapshot() }
        try await store.resume()
        #expect(try Self.values(store) == [1])
        try Self.add(2, to: store)
        #expect(try Self.values(store) == [1, 2])
    }

    @Test(arguments: locations)
    func `everything after close is .closed`(location: Location) async throws {
        let store = try make(location)
        let loop = store.observe { tx in try tx.rows("SELECT * FROM t").count }
            .makeAsyncIterator()
        _ = try await loop.next()
        try await store.write { _ in _ = expect(.misuse) { try store.close() } }
        try await store.close()
        try await store.close()
        expect(.closed) { try Self.add(1, to: store) }
        expect(.closed) { try Self.values(store) }
        expect(.closed) { try store.suspend() }
        await ObserveTests.expectError(.closed) { _ = try await loop.next() }
    }

    @Test(arguments: locations)
    func `if a rollback fails the store says that its contents are lost`(
        location: Location
    ) async throws {
        let store = try make(location)
        try Self.add(1, to: store)
        let loop = store.observe { tx in try tx.rows("SELECT * FROM t").count }
            .makeAsyncIterator()
        _ = try await loop.next()
        let events = store.changes(in: "t").makeAsyncIterator()
        #expect(throws: Undo.self) {
            try store.write { tx in
                try RecoveryTests.refuseRollback(tx.connection())
                throw Undo()
            }
        }
        let error = expect(.closed) { try Self.values(store) }
        #expect(error?.message.contains("memory") == true)
        expect(.closed) { try Self.add(1, to: store) }
        await ObserveTests.expectError(.closed) { _ = try await loop.next() }
        await ObserveTests.expectError(.closed) { _ = try await events.next() }
        try await store.close()
    }
}
