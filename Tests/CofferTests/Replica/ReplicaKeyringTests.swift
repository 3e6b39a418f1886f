import Foundation
import Synchronization
import Testing
import Workload

@testable import Coffer
@testable import CofferReplica

/// Replicas of stores with a keyring.
@Suite(.againstHanging, .onOwnThreads) struct ReplicaKeyringTests {
    private let folder: TemporaryFolder
    private let remote = MemoryRemote()

    init() throws {
        folder = try TemporaryFolder()
    }

    private var options: ReplicaOptions {
        var options = ReplicaOptions.testing
        options.sleep = { _ in throw CancellationError() }
        return options
    }

    /// A store with slots for the credentials 1 and 2, and one row.
    private func makeStore(_ mode: Configuration.JournalMode = .wal) throws -> Store {
        let store = try Store(
            path: folder.path(), key: KeyringVerb.key(1), configuration: .testing(mode))
        try store.keys.add(KeyringVerb.slot(2), label: "2")
        try store.write { tx in try tx.execute("CREATE TABLE t(v INTEGER PRIMARY KEY, filler)") }
        try insert(1, in: store)
        return store
    }

    private func insert(_ number: Int, _ byteCount: Int = 5000, in store: Store) throws {
        try store.write { tx in
            try tx.execute("INSERT INTO t VALUES (\(number), randomblob(\(byteCount)))")
        }
    }

    private func rotate(_ store: Store) throws { try store.rotate() }

    private func add(_ credential: UInt8, to store: Store) throws {
        try store.keys.add(KeyringVerb.slot(credential), label: "\(credential)")
    }

    private func remove(_ id: KeySlot.ID, from store: Store) throws { try store.keys.remove(id) }

    private func epoch(of name: String) throws -> Int { try Keyring(of: folder.path(name)).epoch }

    /// The rows of a restored store, which the same credential opens.
    private func restored(
        by credential: UInt8, at moment: ReplicaMoment = .newest, atLeast: ReplicaPosition? = nil,
        from remote: MemoryRemote? = nil
    ) async throws -> [Int] {
        let path = folder.path("copy.db")
        defer {
            removeStore(path)
            unlinkIfPresent(path + KeyringFile.suffix)
        }
        try await Store.restore(
            from: remote ?? self.remote, to: path, key: KeyringVerb.key(credential), at: moment,
            atLeast: atLeast, configuration: .testing())
        let copy = try await Store(
            path: path, key: KeyringVerb.key(credential), configuration: .testing())
        let numbers: [Int] = try await copy.read { tx in
            try tx.rows("SELECT v FROM t ORDER BY v").map { try $0.get(0) }
        }
        try await copy.close()
        return numbers
    }

    private func keyrings() -> [String] {
        remote.objects.keys.filter { $0.hasPrefix("keyring/") }.sorted()
    }

    // MARK: Credentials

    @Test func `each credential of the keyring restores the store, with the keyring`() async throws
    {
        let store = try makeStore()
        let replica = try await store.replicate(to: remote, options)
        try insert(2, in: store)
        try await replica.close()
        #expect(try await restored(by: 1) == [1, 2])
        #expect(try await restored(by: 2) == [1, 2])
        await expect(.wrongKey) { _ = try await restored(by: 3) }
        let found = try #require(try await Keyring.replicated(to: remote))
        #expect(found.slots.map(\.label) == (try store.keys.slots.map(\.label)))
        try await store.close()
    }

    @Test func `a credential that was added restores, and one that was removed does not`()
        async throws
    {
        let store = try makeStore()
        let replica = try await store.replicate(to: remote, options)
        let before = try await replica.caughtUp()
        try add(3, to: store)
        try remove(2, from: store)
        let after = try await replica.caughtUp()
        #expect(before < after)
        #expect(try await replica.caughtUp() == after)
        // The one of before is there until the next maintenance.
        #expect(keyrings().count == 2)
        try await replica.maintain()
        #expect(keyrings().count == 1)
        #expect(try await restored(by: 3, at: .position(before)) == [1])
        await expect(.wrongKey) { _ = try await restored(by: 2) }
        await expect(.wrongKey) { _ = try await restored(by: 2, at: .position(before)) }
        #expect(try await ReplicaHistory(of: remote, key: KeyringVerb.key(3)).commits.count == 2)
        try await replica.close()
        try await store.close()
    }

    @Test func `a removed credential does not restore while its keyring is still in the remote`()
        async throws
    {
        let store = try makeStore()
        var options = options
        options.deletes = false
        let replica = try await store.replicate(to: remote, options)
        try remove(2, from: store)
        try await replica.caughtUp()
        try await replica.maintain()
        #expect(keyrings().count == 2)
        await expect(.wrongKey) { _ = try await restored(by: 2) }
        #expect(try await remote.purge(key: KeyringVerb.key(1)) == 1)
        #expect(keyrings().count == 1)
        #expect(try await restored(by: 1) == [1])
        try await replica.close()
        try await store.close()
    }

    @Test func `a keyring of a change that no record names opens by what the change added`()
        async throws
    {
        let store = try makeStore()
        let replica = try await store.replicate(to: remote, options)
        try add(3, to: store)
        try remove(2, from: store)
        // The keyring is there, and its record is not.
        remote.denyAfterCreate { $0.hasPrefix("keyring/") }
        await expect(.remoteDenied) { try await replica.caughtUp() }
        #expect(keyrings().count == 2)
        #expect(try await restored(by: 1) == [1])
        // The change has not ended: both of its sides restore.
        #expect(try await restored(by: 2) == [1])
        #expect(try await restored(by: 3) == [1])
        try await replica.caughtUp()
        await expect(.wrongKey) { _ = try await restored(by: 2) }
        try await replica.close()
        try await store.close()
    }

    @Test func `a credential of before a rebuilt keyring does not restore`() async throws {
        let store = try makeStore()
        for number in UInt8(3)...6 { try add(number, to: store) }
        try await store.replicate(to: remote, options).close()
        let letters = try store.keys.withRootBackup { Array($0) }
        try await store.close()
        try rebuild(letters)
        let rebuilt = try await Store(
            path: folder.path(), key: KeyringVerb.key(1), configuration: .testing())
        var options = options
        options.deletes = false
        try await rebuilt.replicate(to: remote, options).close()
        try await rebuilt.close()
        // The former keyring has the later generation.
        #expect(keyrings().count == 2)
        await expect(.wrongKey) { _ = try await restored(by: 2) }
        #expect(try await restored(by: 1) == [1])
    }

    private func rebuild(_ letters: [UInt8]) throws {
        try Keyring.rebuild(
            for: folder.path(), rootBackup: letters, as: KeyringVerb.slot(1), label: "1",
            configuration: .testing())
    }

    @Test func `a first transfer that has sent nothing is not damage`() async throws {
        let store = try makeStore()
        remote.denyAfterCreate { $0.hasPrefix("keyring/") }
        await expect(.remoteDenied) { _ = try await store.replicate(to: remote, .testing) }
        for name in keyrings() { remote.objects[name] = nil }
        await expect(.notFound) { _ = try await restored(by: 1) }
        try await store.replicate(to: remote, .testing).close()
        #expect(try await restored(by: 1) == [1])
        try await store.close()
    }

    @Test func `a remote that lets no keyring be deleted gets snapshots`() async throws {
        let store = try makeStore()
        let now = Mutex(ContinuousClock.now)
        var options = options
        options.currentInstant = { now.withLock(\.self) }
        options.currentDate = { Date.now + 90_000 }
        let replica = try await store.replicate(to: remote, options)
        try add(3, to: store)
        try insert(2, in: store)
        try await replica.caughtUp()
        remote.advance(100_000)
        remote.deniesDeletion = true
        await expect(.remoteDenied) { try await replica.maintain() }
        #expect(remote.objects.keys.contains { $0.hasPrefix("snap/") })
        remote.deniesDeletion = false
        now.withLock { $0 += .seconds(3601) }
        try await replica.maintain()
        #expect(keyrings().count == 1)
        try await replica.close()
        try await store.close()
    }

    @Test func `a run from time to time deletes what the one before could not`() async throws {
        let store = try makeStore()
        try await store.replicateOnce(to: remote, options)
        try remove(2, from: store)
        remote.deniesDeletion = true
        try await store.replicateOnce(to: remote, options)
        #expect(keyrings().count == 2)
        remote.deniesDeletion = false
        let position = try await store.replicateOnce(to: remote, options)
        #expect(keyrings().count == 1)
        #expect(try await store.replicateOnce(to: remote, options) == position)
        try await store.close()
    }

    @Test func `a key of its own is refused, and so is a credential for a store without keyring`()
        async throws
    {
        let store = try makeStore()
        try await store.replicate(to: remote, options).close()
        try await store.close()
        await expect(.wrongKey) {
            try await Store.restore(
                from: remote, to: folder.path("copy.db"), key: .numbered(1),
                configuration: .testing())
        }
        let plain = try await Store(
            path: folder.path("plain.db"), key: .numbered(1), configuration: .testing())
        let other = MemoryRemote(place: "other")
        try await plain.replicate(to: other, options).close()
        try await plain.close()
        await expect(.keyringMissing) {
            try await Store.restore(
                from: other, to: folder.path("copy.db"), key: KeyringVerb.key(1),
                configuration: .testing())
        }
        #expect(try await Keyring.replicated(to: other) == nil)
    }

    @Test func `a store that was opened by its raw key is not replicated beside its keyring`()
        async throws
    {
        let store = try makeStore()
        let key = try #require(store.core.pool.file).cipher.key.bytes
            .withUnsafeBytes(Array.init)
        try await store.close()
        let raw = try await Store(
            path: folder.path(), key: .raw(key), configuration: .testing())
        await expect(.misuse) { _ = try await raw.replicate(to: remote, options) }
        #expect(remote.objects.isEmpty)
        try await raw.close()
    }

    @Test func `a keyring that the remote has lost is sent again`() async throws {
        let store = try makeStore()
        let now = Mutex(ContinuousClock.now)
        var options = options
        options.currentInstant = { now.withLock(\.self) }
        for change in [nil, [UInt8](repeating: 0, count: 16_384)] as [[UInt8]?] {
            try await store.replicateOnce(to: remote, options)
            remote.objects[try #require(keyrings().last)] = change
            try await store.replicateOnce(to: remote, options)
            #expect(try await restored(by: 1) == [1])
        }
        let replica = try await store.replicate(to: remote, options)
        remote.objects[try #require(keyrings().last)] = nil
        now.withLock { $0 += .seconds(3601) }
        try await replica.caughtUp()
        #expect(try await restored(by: 1) == [1])
        try await replica.close()
        try await store.close()
    }

    // MARK: Rotations

    @Test(arguments: [Configuration.JournalMode.wal, .delete])
    func `a rotation is replicated, and a credential of today restores the time before it`(
        mode: Configuration.JournalMode
    ) async throws {
        let store = try makeStore(mode)
        let replica = try await store.replicate(to: remote, options)
        let first = try await replica.caughtUp()
        try rotate(store)
        try insert(2, in: store)
        let second = try await replica.caughtUp()
        try rotate(store)
        try insert(3, in: store)
        try remove(2, from: store)
        try await replica.close()
        #expect(try await restored(by: 1) == [1, 2, 3])
        #expect(try await restored(by: 1, at: .position(second)) == [1, 2])
        #expect(try await restored(by: 1, at: .position(first)) == [1])
        try await store.close()
    }

    @Test func `a restored store has the epoch of its pages, and goes on from there`() async throws
    {
        let store = try makeStore()
        let replica = try await store.replicate(to: remote, options)
        let first = try await replica.caughtUp()
        try rotate(store)
        try await replica.close()
        let rotated = try epoch(of: "store.db")
        try await store.close()
        let report = try await Store.restore(
            from: remote, to: folder.path("old.db"), key: KeyringVerb.key(1), at: .position(first),
            configuration: .testing())
        #expect(try epoch(of: "old.db") == 1)
        #expect(report.isFromBeforeRotation)
        let copy = try await Store(
            path: folder.path("old.db"), key: KeyringVerb.key(1), configuration: .testing())
        try rotate(copy)
        // No key is used for two contents of a page.
        #expect(try epoch(of: "old.db") > rotated)
        // Its pages are those of no earlier commit.
        try await copy.replicate(to: remote, options).close()
        #expect(try await restored(by: 1) == [1])
        try await copy.close()
    }

    @Test func `a rotation amid a transfer and a snapshot is restored whole`() async throws {
        let store = try makeStore()
        for number in 2...12 { try insert(number, 4_000_000, in: store) }
        let rotated = Mutex(false)
        var options = options
        options.snapshotInterval = .seconds(60)
        options.progress = { _ in
            guard
                rotated.withLock({ done in
                    done
                        ? false
                        : {
                            done = true
                            return true
                        }()
                })
            else {
                return
            }
            #expect(throws: Never.self) { try store.rotate() }
        }
        let replica = try await store.replicate(to: remote, options)
        #expect(try await restored(by: 1) == Array(1...12))
        try await replica.close()
        try await store.close()
    }

    @Test func `a rotation while nothing replicates is sent by the next run`() async throws {
        let store = try makeStore()
        try await store.replicate(to: remote, options).close()
        try rotate(store)
        try insert(2, in: store)
        let replica = try await store.replicate(to: remote, options)
        try await replica.close()
        #expect(try await restored(by: 2) == [1, 2])
        try await store.close()
    }

    @Test func `each commit that is listed is restored, although a rotation was half sent`()
        async throws
    {
        let store = try makeStore()
        for number in 2...4 { try insert(number, 4_000_000, in: store) }
        try await store.replicate(to: remote, options).close()
        try rotate(store)
        remote.denyAfterCreate { $0 == Slot(term: 2, number: 1).name }
        // It has the time to say that it has stopped.
        await expect(.remoteDenied) { _ = try await store.replicate(to: remote, .testing) }
        try await store.replicate(to: remote, options).close()
        try await store.close()
        let commits = try await ReplicaHistory(of: remote, key: KeyringVerb.key(1)).commits
        #expect(commits.count == 4)
        for commit in commits {
            #expect(try await restored(by: 1, at: .position(commit.position)) == Array(1...4))
        }
    }

    @Test func `a new root ends the replica, which stays under the former one`() async throws {
        let store = try makeStore()
        let replica = try await store.replicate(to: remote, options)
        _ = try await store.replaceRootKey(dropping: [2])
        await expect(.wrongKey) { try await replica.caughtUp() }
        await expect(.wrongKey) { _ = try await store.replicate(to: remote, options) }
        // The new root is not shown to the former remote.
        #expect(keyrings().count == 1)
        #expect(try await restored(by: 1) == [1])
        let other = MemoryRemote(place: "other")
        try await store.replicate(to: other, options).close()
        #expect(try await restored(by: 1, from: other) == [1])
        await expect(.wrongKey) { _ = try await restored(by: 2, from: other) }
        try await store.close()
    }

    @Test func `a store that gets a keyring needs a new remote`() async throws {
        let path = folder.path()
        let store = try await Store(path: path, key: KeyringVerb.key(0), configuration: .testing())
        try await store.replicate(to: remote, options).close()
        try await store.close()
        try enable(path)
        let enabled = try await Store(
            path: path, key: KeyringVerb.key(1), configuration: .testing())
        await expect(.wrongKey) { _ = try await enabled.replicate(to: remote, options) }
        try await enabled.close()
    }

    private func enable(_ path: String) throws {
        try KeyringVerb.enable.run(path, .testing())
    }

    @Test func `a store that does not keep its root begins no replica, and goes on with one`()
        async throws
    {
        let store = try makeStore()
        try store.keys.lock()
        await expect(.misuse) { _ = try await store.replicate(to: remote, options) }
        try unlock(store)
        let replica = try await store.replicate(to: remote, options)
        try store.keys.lock()
        try insert(2, in: store)
        try await replica.close()
        #expect(try await restored(by: 1) == [1, 2])
        try await store.close()
    }

    private func unlock(_ store: Store) throws {
        try store.keys.unlock(KeyringVerb.credential(1))
    }

    // MARK: A remote that lies

    @Test func `a remote that shows an older keyring is found out`() async throws {
        let store = try makeStore()
        let replica = try await store.replicate(to: remote, options)
        let old = keyrings()[0]
        let bytes = try #require(remote.objects[old])
        try remove(2, from: store)
        try await replica.close()
        try await store.close()
        let new = keyrings()[1]
        // The newest one is hidden.
        remote.objects[new] = nil
        await expect(.remoteDamaged) { _ = try await restored(by: 2) }
        // The older one has its name.
        remote.objects[new] = bytes
        await expect(.remoteDamaged) { _ = try await restored(by: 2) }
        // One of another store has a later name.
        remote.objects[new] = nil
        remote.objects[old] = bytes
        remote.objects[KeyringName(term: 98, number: 0).name] = try await foreignKeyring()
        await expect(.remoteDamaged) { _ = try await restored(by: 2) }
        // The older one has a later name.
        remote.objects[KeyringName(term: 99, number: 0).name] = bytes
        await expect(.remoteDamaged) { _ = try await restored(by: 2) }
    }

    /// The keyring of another store, which the same credential opens.
    private func foreignKeyring() async throws -> [UInt8] {
        let store = try await Store(
            path: folder.path("foreign.db"), key: KeyringVerb.key(2), configuration: .testing())
        let remote = MemoryRemote(place: "foreign")
        try await store.replicate(to: remote, options).close()
        try await store.close()
        return try #require(remote.objects[KeyringName(term: 1, number: 0).name])
    }

    @Test func `a keyring that is missing or changed is damage, and no other file is made`()
        async throws
    {
        let store = try makeStore()
        try await store.replicate(to: remote, options).close()
        try await store.close()
        let name = try #require(keyrings().first)
        let bytes = try #require(remote.objects[name])
        for offset in [0, 20, 200, 600, bytes.count - 40, bytes.count - 1] {
            var changed = bytes
            changed[offset] ^= 1
            remote.objects[name] = changed
            await expect(.remoteDamaged) { _ = try await restored(by: 1) }
        }
        remote.objects[name] = nil
        await expect(.remoteDamaged) { _ = try await restored(by: 1) }
        await expect(.remoteDamaged) { _ = try await Keyring.replicated(to: remote) }
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: folder.url.path)
                .filter { $0.hasPrefix("copy") } == [])
    }
}
