import Foundation
import Synchronization
import Testing

@testable import Coffer

/// `rotate`: a store gets the key of a new epoch while it is used.
@Suite(.againstHanging, .onOwnThreads) struct RotationTests {
    private let folder: TemporaryFolder
    private let path: String
    private static let file = [UInt8](repeating: 42, count: 32)

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    /// A store with a keyring, and a table of 200 rows.
    private func make(
        _ journalMode: Configuration.JournalMode = .wal,
        _ change: (inout Configuration) -> Void = { _ in }
    ) throws -> Store {
        let store = try open(journalMode, mode: .createIfMissing, change)
        try store.write { tx in
            try tx.execute("CREATE TABLE t(v BLOB)")
            for _ in 0..<200 { try tx.execute("INSERT INTO t VALUES (randomblob(500))") }
        }
        return store
    }

    private func open(
        _ journalMode: Configuration.JournalMode = .wal, mode: OpenMode = .mustExist,
        keepsRoot: Bool = true, acceptsOlderFile: Bool = false,
        _ change: (inout Configuration) -> Void = { _ in }
    ) throws -> Store {
        var configuration = Configuration.testing(journalMode)
        change(&configuration)
        return try Store(
            path: path,
            key: .keyring(
                .keyFile(Self.file), acceptsOlderFile: acceptsOlderFile, keepsRoot: keepsRoot),
            mode: mode, configuration: configuration)
    }

    private var keyring: KeyringFile {
        get throws { KeyringFile(of: try FileLocation(path)) }
    }

    private func unlocked() throws -> UnlockedKeyring {
        try #require(try keyring.areas()).unlocked(
            by: .keyFile(Self.file), memoryMax: KeyringFixture.memoryMax)
    }

    private func dataKey(_ epoch: Int) throws -> StoreKey {
        let unlocked = try unlocked()
        return unlocked.root.dataKey(
            epoch: UInt32(epoch), id: unlocked.area.content.id
        ).storeKey()
    }

    private func count(_ store: Store) throws -> Int {
        try store.read { tx in try tx.firstRow("SELECT count(*) FROM t")?.get(0) ?? -1 }
    }

    /// Rotates the key as another process does that is killed before it records the epoch.
    private func rotateElsewhere(
        from old: Int, to new: Int, _ journalMode: Configuration.JournalMode
    ) throws {
        var configuration = Configuration.testing(journalMode)
        configuration.busyTimeout = .seconds(20)
        let other = try Connection(
            path: path, key: try dataKey(old), mode: .mustExist, configuration: configuration)
        defer { other.close() }
        _ = try other.changeKey(to: try dataKey(new), .keep)
    }

    // MARK: One store

    @Test(arguments: journalModes)
    func `the file gets the key of the hour, every row stays, and the old key is out`(
        journalMode: Configuration.JournalMode
    ) throws {
        let store = try make(journalMode)
        let before = try store.keyID()
        let hour = EpochCandidates.hour(of: store.core.configuration.secondsSince1970)
        let report = try store.rotate()
        #expect(report.oldEpoch == 1 && report.epoch == Int(hour))
        #expect(report.oldKeyID == before)
        #expect(try report.keyID == store.keyID() && report.keyID != before)
        #expect(report.isFinished && report.isWholeFile && report.isRecorded)
        #expect(report.pause > .zero && report.pause <= report.duration)
        #expect(try report.rootID == store.keys.keyring.rootID)
        #expect(try count(store) == 200)
        try store.write { tx in try tx.execute("INSERT INTO t VALUES ('later')") }
        let keyring = try store.keys.keyring
        #expect(keyring.epoch == report.epoch && keyring.keyID == report.keyID)
        #expect(try store.verify().isGood)
        try store.close()
        expect(.wrongKey) { try Connection(path: path, key: dataKey(1), mode: .mustExist) }
        let plain = try Connection(path: path, key: dataKey(report.epoch), mode: .mustExist)
        #expect(try plain.rows("SELECT v FROM t").count == 201)
        plain.close()
        let again = try open(journalMode)
        #expect(try count(again) == 201)
        try again.close()
    }

    @Test func `a second rotation within the hour takes the next epoch`() throws {
        let store = try make()
        let first = try store.rotate()
        let second = try store.rotate()
        #expect(second.oldEpoch == first.epoch && second.epoch == first.epoch + 1)
        #expect(try count(store) == 200)
        try store.close()
    }

    @Test func `an asynchronous rotation does the same`() async throws {
        let store = try make()
        let report = try await store.rotate()
        #expect(report.isFinished)
        #expect(try store.keyID() == report.keyID)
        try await store.close()
    }

    @Test func `progress names each step in its order, with the estimate before the pause`()
        throws
    {
        let store = try make()
        let seen = Shared<[RotationProgress]>([])
        try store.rotate { progress in seen.update { $0.append(progress) } }
        let phases = seen.value.map(\.phase)
        let order = RotationProgress.Phase.allCases
        #expect(Set(phases) == Set(order))
        let places = phases.compactMap { order.firstIndex(of: $0) }
        #expect(places == places.sorted())
        let pausing = try #require(seen.value.first { $0.phase == .rotating })
        #expect(try #require(pausing.estimatedPause) > .zero)
        try store.close()
    }

    // MARK: Reads and writes meanwhile

    @Test func `a read of WAL goes on under the old key, and its connection ends with it`()
        async throws
    {
        let store = try make { $0.maximumReaderCount = 2 }
        let hold = Hold()
        let reading = onThread { [store] in
            try store.read { tx in
                let before = try tx.rows("SELECT v FROM t").count
                hold.stay()
                // Pages that were not read yet, and are only in the main file.
                let sum: Int? = try tx.firstRow("SELECT sum(length(v)) FROM t")?.get(0)
                #expect(before == 200 && sum == 200 * 500)
            }
        }
        await hold.isEntered()
        let report = try await store.rotate()
        #expect(!report.isWholeFile && report.oldPageCount > 0)
        #expect(report.isRecorded && !report.isFinished)
        try await store.write { tx in try tx.execute("INSERT INTO t VALUES ('new')") }
        #expect(try await store.read { tx in try tx.rows("SELECT v FROM t").count } == 201)
        hold.release()
        try await reading.value
        // The owed checkpoint moves the rest.
        #expect(try await comes { try store.opensWithoutWAL() })
        // Takes the connection of that read, if it is still there.
        #expect(try await store.read { tx in try tx.rows("SELECT v FROM t").count } == 201)
        #expect(try await store.verify().isGood)
        try await store.close()
    }

    @Test func `a backup that spans a rotation by another process is whole, under the old key`()
        throws
    {
        let store = try make()
        // More pages than the copy takes at once.
        try store.write { tx in
            for _ in 0..<3000 { try tx.execute("INSERT INTO t VALUES (randomblob(500))") }
        }
        let copy = folder.path("copy.db")
        let key = try dataKey(1)
        let before = try store.keyID()
        let isRotated = Mutex(false)
        try store.backup(to: copy) { [self] progress in
            guard progress.step == .copyingPages, progress.count < progress.countTotal else {
                return
            }
            isRotated.withLock {
                if !$0 { $0 = (try? rotateElsewhere(from: 1, to: 2, .wal)) != nil }
            }
        }
        #expect(isRotated.withLock { $0 })
        let again = try Store(
            path: copy, key: key, mode: .mustExist, configuration: .testing())
        #expect(try again.verify().isGood && count(again) == 3200)
        #expect(try store.verify().isGood && count(store) == 3200)
        #expect(try store.keyID() != before)
    }

    @Test func `a snapshot stays whole through two rotations`() async throws {
        let store = try make()
        let snapshot = try await store.snapshot()
        try await store.write { tx in try tx.execute("DELETE FROM t") }
        try await store.rotate()
        let count = try await snapshot.read { tx in try tx.rows("SELECT v FROM t").count }
        #expect(count == 200)
        try snapshot.close()
        try await store.rotate()
        #expect(try await store.read { tx in try tx.rows("SELECT v FROM t").count } == 0)
        try await store.close()
    }

    @Test(arguments: journalModes)
    func `work of many tasks meets no error while the key is rotated`(
        journalMode: Configuration.JournalMode
    ) async throws {
        let store = try make(journalMode)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    for _ in 0..<20 {
                        try await store.write { tx in
                            try tx.execute("INSERT INTO t VALUES (randomblob(100))")
                        }
                        _ = try await store.read { tx in
                            try tx.firstRow("SELECT sum(length(v)) FROM t")
                        }
                    }
                }
            }
            group.addTask {
                for _ in 0..<3 { try await store.rotate() }
            }
            try await group.waitForAll()
        }
        #expect(try await store.read { tx in try tx.rows("SELECT v FROM t").count } == 360)
        #expect(try await store.verify().isGood)
        try await store.close()
    }

    // MARK: Another process

    @Test(arguments: journalModes)
    func `a read, a write and a snapshot go on after another process has rotated`(
        journalMode: Configuration.JournalMode
    ) throws {
        let store = try make(journalMode)
        #expect(try count(store) == 200)
        try rotateElsewhere(from: 1, to: 5, journalMode)
        #expect(try count(store) == 200)
        try rotateElsewhere(from: 5, to: 6, journalMode)
        try store.write { tx in try tx.execute("INSERT INTO t VALUES (1)") }
        if journalMode == .wal {
            try rotateElsewhere(from: 6, to: 9, journalMode)
            let snapshot = try store.snapshot()
            #expect(try snapshot.read { tx in try tx.rows("SELECT v FROM t").count } == 201)
            try snapshot.close()
        }
        #expect(try count(store) == 201)
        #expect(try store.verify().isGood)
        try store.close()
        let again = try open(journalMode)
        #expect(try again.keys.keyring.epoch == (journalMode == .wal ? 9 : 6))
        try again.close()
    }

    @Test func `a suspended store goes on after another process has rotated`() throws {
        let store = try make()
        try store.suspend()
        try rotateElsewhere(from: 1, to: 2, .wal)
        try store.resume()
        #expect(try count(store) == 200)
        try store.close()
    }

    @Test func `a rotation follows one that was not recorded, and takes a later epoch`() throws {
        let store = try make()
        let hour = Int(EpochCandidates.hour(of: store.core.configuration.secondsSince1970))
        try rotateElsewhere(from: 1, to: hour, .wal)
        let report = try store.rotate()
        #expect(report.oldEpoch == hour && report.epoch == hour + 1)
        #expect(try count(store) == 200)
        try store.close()
    }

    @Test func `a store that does not keep the root says how to go on`() throws {
        try make().close()
        let store = try open(keepsRoot: false)
        #expect(try count(store) == 200)
        try rotateElsewhere(from: 1, to: 2, .wal)
        let error = expect(.wrongKey) { try count(store) }
        #expect(error?.hint?.contains("reopen") == true)
        try store.reopen(with: .keyring(.keyFile(Self.file)))
        #expect(try count(store) == 200)
        try store.close()
    }

    @Test func `a store whose root was replaced elsewhere says how to go on`() throws {
        let store = try make()
        #expect(try count(store) == 200)
        let other = RootKey.random()
        let (id, profile) = (try unlocked().area.content.id, store.profile)
        var content = KeyringContent(
            new: other, id: id, profile: profile, state: .isInUse, now: 1)
        let slot = try PreparedSlot(
            .keyFile(Self.file), label: SlotLabel("x"), cost: .standard,
            memoryMax: KeyringFixture.memoryMax, for: content)
        _ = try content.add(slot, under: other, now: 1)
        let area = try KeyringArea(content, under: other)
        try rotateElsewhere(from: 1, to: 2, .wal)
        _ = try keyring.replace(timeout: .seconds(1)) { area }
        let error = expect(.wrongKey) { try count(store) }
        #expect(error?.hint?.contains("replaced the root") == true)
        try store.close()
    }

    @Test(arguments: journalModes)
    func `a write waits for a rotation by another process beyond the busy timeout`(
        journalMode: Configuration.JournalMode
    ) async throws {
        let store = try make(journalMode) { $0.busyTimeout = .milliseconds(1) }
        let other = try Connection(
            path: path, key: try dataKey(1), mode: .mustExist, configuration: .testing(journalMode))
        let file = try keyring
        let hold = Hold()
        let rotating = onThread {
            let lock = try KeyringByteLock(file, .rotates, timeout: .zero)
            hold.stay()
            lock.release()
        }
        await hold.isEntered()
        try other.execute("BEGIN EXCLUSIVE")
        let writing = onThread { [store] in
            try store.write { tx in try tx.execute("INSERT INTO t VALUES (1)") }
        }
        // Long enough for many times the busy timeout.
        try await Task.sleep(for: .milliseconds(200))
        try other.execute("ROLLBACK")
        try await writing.value
        hold.release()
        try await rotating.value
        // Without the rotation's lock, the busy timeout counts.
        try other.execute("BEGIN EXCLUSIVE")
        expect(.busy) { try store.write { tx in try tx.execute("INSERT INTO t VALUES (2)") } }
        try other.execute("ROLLBACK")
        other.close()
        #expect(try count(store) == 201)
        try await store.close()
    }

    @Test func `a write that may have waited for a rotation waits once more for another lock`()
        throws
    {
        let wait = Duration.milliseconds(300)
        let store = try make(.delete) { $0.busyTimeout = wait }
        let secret = folder.path("key")
        try Data(Self.file).write(to: URL(filePath: secret))
        try #require(try Tool.run(["rotate", path, "--key-file", secret]).exitCode == 0)
        let other = try Connection(
            path: path, key: try dataKey(try Keyring(of: path).epoch), mode: .mustExist,
            configuration: .testing(.delete))
        try other.execute("BEGIN EXCLUSIVE")
        let beginning = ContinuousClock.now
        expect(.busy) { try store.write { tx in try tx.execute("INSERT INTO t VALUES (1)") } }
        #expect(beginning.duration(to: .now) >= wait * 2)
        try other.execute("ROLLBACK")
        other.close()
        try store.write { tx in try tx.execute("INSERT INTO t VALUES (1)") }
        #expect(try count(store) == 201)
        try store.close()
    }

    @Test func `a writer lets a rotation go first, once`() async throws {
        let store = try make()
        let open = try #require(store.core.pool.file?.keyring)
        let rotations = ForeignRotations()
        let lock = try KeyringByteLock(try keyring, .rotates, timeout: .zero)
        func wait() async throws -> Duration {
            // The interval between two looks.
            try await Task.sleep(for: .milliseconds(150))
            let beginning = ContinuousClock.now
            rotations.standBack(for: open)
            return beginning.duration(to: .now)
        }
        #expect(try await wait() >= .seconds(2))
        #expect(try await wait() < .seconds(1))
        lock.release()
        #expect(try await wait() < .seconds(1))
        let next = try KeyringByteLock(try keyring, .rotates, timeout: .zero)
        rotations.didFollow()
        #expect(try await wait() < .seconds(1))
        next.release()
        try await store.close()
    }

    @Test func `a writer that met the rotation of its own store too early goes on`() async throws {
        let store = try make()
        let open = try #require(store.core.pool.file?.keyring)
        let rotations = ForeignRotations()
        // The store takes the lock, and then says that the rotation is its own.
        let lock = try KeyringByteLock(try keyring, .rotates, timeout: .zero)
        // The interval between two looks.
        try await Task.sleep(for: .milliseconds(150))
        let waited = DispatchSemaphore(value: 0)
        let duration = Mutex(Duration.zero)
        Thread.detachNewThread {
            let beginning = ContinuousClock.now
            rotations.standBack(for: open)
            duration.withLock { $0 = beginning.duration(to: .now) }
            waited.signal()
        }
        // For the first look. A thread that comes later would only prove less.
        try await Task.sleep(for: .milliseconds(100))
        rotations.duringOwn { waited.wait() }
        #expect(duration.withLock { $0 } < .seconds(1.5))
        lock.release()
        try await store.close()
    }

    @Test func `two rotations exclude each other`() throws {
        let store = try make { $0.busyTimeout = .milliseconds(50) }
        let lock = try KeyringByteLock(try keyring, .rotates, timeout: .zero)
        let error = expect(.busy) { try store.rotate() }
        #expect(error?.message.contains("rotating") == true)
        #expect(try store.keys.keyring.epoch == 1)
        lock.release()
        #expect(try store.rotate().isFinished)
        try store.close()
    }

    @Test(arguments: journalModes)
    func `a rotation gives up on a writer that leaves no gap, and changes nothing`(
        journalMode: Configuration.JournalMode
    ) throws {
        let store = try make(journalMode) {
            $0.busyTimeout = .milliseconds(1)
            $0.rotationTimeout = .milliseconds(100)
        }
        let other = try Connection(
            path: path, key: try dataKey(1), mode: .mustExist, configuration: .testing(journalMode))
        try other.execute("BEGIN IMMEDIATE")
        expect(.busy) { try store.rotate() }
        try other.execute("ROLLBACK")
        other.close()
        #expect(try store.keys.keyring.epoch == 1)
        #expect(try count(store) == 200)
        #expect(try store.rotate().isFinished)
        try store.close()
    }

    @Test func `a deferred write, a compaction and a closure for connections go on too`() throws {
        let store = try make()
        try rotateElsewhere(from: 1, to: 2, .wal)
        let seen = try store.write(mode: .deferred) { tx in try tx.rows("SELECT v FROM t").count }
        #expect(seen == 200)
        try rotateElsewhere(from: 2, to: 3, .wal)
        try store.compact()
        try rotateElsewhere(from: 3, to: 4, .wal)
        try store.prepareConnections { connection in
            _ = try connection.rows("SELECT count(*) FROM t")
        }
        try rotateElsewhere(from: 4, to: 5, .wal)
        _ = try store.checkpoint(.passive)
        #expect(try count(store) == 200)
        try store.close()
    }

    @Test func `observers hear of commits that come after a rotation by another process`()
        async throws
    {
        let store = try make { $0.foreignCommitInterval = .milliseconds(5) }
        let values = store.observe { tx in
            try tx.scalar("SELECT count(*) FROM t", as: Int.self)
        }
        let loop = values.makeAsyncIterator()
        #expect(try await loop.next() == 200)
        try rotateElsewhere(from: 1, to: 2, .wal)
        for count in 201...203 {
            let other = try Connection(
                path: path, key: try dataKey(2), mode: .mustExist, configuration: .testing(.wal))
            try other.execute("INSERT INTO t VALUES (1)")
            other.close()
            var value = try await loop.next()
            // The rotation itself is told as well.
            while value == count - 1 { value = try await loop.next() }
            #expect(value == count)
        }
        try await store.close()
    }

    @Test func `a store that cannot be checked again is rotated all the same`() throws {
        let store = try make { $0.busyTimeout = .milliseconds(1) }
        nonisolated(unsafe) var other: Connection?
        let (path, key) = (path, try KeyBox(unlocked().root.copy()))
        let id = try unlocked().area.content.id
        let hour = EpochCandidates.hour(of: store.core.configuration.secondsSince1970)
        let report = try store.rotate { progress in
            guard progress.phase == .verifyingAgain, other == nil else { return }
            other = try? Connection(
                path: path, key: key.key.dataKey(epoch: hour, id: id).storeKey(),
                mode: .mustExist, configuration: .testing(.wal))
            _ = try? other?.execute("BEGIN IMMEDIATE")
        }
        #expect(report.verificationFailure?.code == .busy)
        #expect(report.isRecorded && report.isWholeFile && !report.isFinished)
        #expect(try store.keys.keyring.epoch == Int(hour))
        other?.close()
        #expect(try store.verify().isGood)
        try store.close()
    }

    @Test func `a suspended store does not rotate, and opens no connection`() throws {
        let store = try make()
        try store.suspend()
        expect(.suspended) { try store.rotate() }
        #expect(try Keyring(of: path).epoch == 1)
        try store.resume()
        #expect(try store.rotate().isFinished)
        try store.close()
    }

    @Test func `damage in a store without its keyring is told as damage`() throws {
        let made = try make(.delete)
        let pageByteCount = made.profile.pageByteCount
        try made.close()
        let store = try open(.delete, keepsRoot: false)
        try FileManager.default.removeItem(atPath: path + ".keyring")
        try Damage.flip(path, at: pageByteCount * 5 + 100)
        let error = expect(.damaged) {
            try store.read { tx in try tx.rows("SELECT v FROM t").count }
        }
        #expect(error?.hint?.contains("reopen") != true)
        try store.close()
    }

    @Test func `a rotation gives up once it has kept others from the file for the longest pause`()
        throws
    {
        let store = try make(.delete) {
            $0.busyTimeout = .milliseconds(100)
            $0.rotationTimeout = .seconds(600)
        }
        let other = try Connection(
            path: path, key: try dataKey(1), mode: .mustExist, configuration: .testing(.delete))
        try other.execute("BEGIN")
        _ = try other.rows("SELECT count(*) FROM t")
        let beginning = ContinuousClock.now
        expect(.busy) { try store.rotate(maximumPause: .seconds(1)) }
        #expect(beginning.duration(to: .now) < .seconds(120))
        try other.execute("ROLLBACK")
        other.close()
        #expect(try store.keys.keyring.epoch == 1)
        #expect(try store.rotate().isFinished)
        try store.close()
    }

    // MARK: Refusals

    @Test func `a pause beyond the limit is refused with the estimate, and nothing is changed`()
        throws
    {
        let store = try make()
        let before = try Data(contentsOf: URL(filePath: path + ".keyring"))
        let error = expect(.tooBig) { try store.rotate(maximumPause: .nanoseconds(1)) }
        #expect(error?.message.contains("would wait") == true)
        #expect(try Data(contentsOf: URL(filePath: path + ".keyring")) == before)
        #expect(try store.keys.keyring.epoch == 1)
        try store.close()
    }

    @Test func `a store without keyring, a reader and a locked root are refused`() throws {
        let plain = try Store(path: folder.path("plain.db"), key: .random())
        expect(.misuse) { try plain.rotate() }
        try plain.close()
        let store = try make()
        try store.keys.lock()
        expect(.misuse) { try store.rotate() }
        try store.keys.unlock(.keyFile(Self.file))
        expect(.misuse) { try store.write { _ in try store.rotate() } }
        #expect(try store.rotate().isFinished)
        try store.close()
        expect(.closed) { try store.rotate() }
        let reader = try open(mode: .readOnly)
        expect(.readOnly) { try reader.rotate() }
        try reader.close()
    }

    @Test(arguments: journalModes)
    func `a damaged page prevents a rotation`(journalMode: Configuration.JournalMode) throws {
        try make(journalMode).close()
        let pageByteCount = try Keyring(of: path).profile.pageByteCount
        try Damage.flip(path, at: 5 * pageByteCount + 100)
        let store = try open(journalMode)
        let error = expect(.damaged) { try store.rotate() }
        #expect(error?.pages.isEmpty == false)
        #expect(try store.keys.keyring.epoch == 1)
        try store.close()
    }

    @Test func `a keyring that cannot be written leaves a rotation that holds`() throws {
        let fails = Shared(false)
        let store = try make {
            $0.keyringWillStep = { (step, _) throws(StoreError) in
                if fails.value, step == .write(area: 0) || step == .write(area: 1) {
                    throw StoreError(.full, "the test's disk is full")
                }
            }
        }
        fails.update { $0 = true }
        let report = try store.rotate()
        fails.update { $0 = false }
        #expect(report.recordFailure?.code == .full)
        #expect(!report.isRecorded && !report.isFinished && report.isWholeFile)
        #expect(try Keyring(of: path).epoch == 1)
        #expect(try count(store) == 200)
        try store.close()
        let again = try open()
        #expect(try again.keys.keyring.epoch == report.epoch)
        #expect(try count(again) == 200)
        try again.close()
    }

    @Test func `a rotation that is not needed by its turn changes nothing`() async throws {
        let store = try make()
        for limit in 0...1 {
            let calls = Mutex(0)
            let report = try await store.rotate(
                newRoot: nil, maximumPause: nil,
                if: { keyring in
                    #expect(keyring.epoch == 1)
                    return calls.withLock { calls in
                        calls += 1
                        return calls <= limit
                    }
                }, progress: nil)
            // Asked at the beginning, and with the lock of rotations.
            #expect(report == nil && calls.withLock { $0 } == limit + 1)
            #expect(try store.keys.keyring.epoch == 1)
        }
        let report = try await store.rotate(
            newRoot: nil, maximumPause: nil, if: { _ in true }, progress: nil)
        #expect(try report?.epoch == store.keys.keyring.epoch)
        try await store.close()
    }

    /// While a read keeps the new pages in the WAL, the check after a rotation takes no write lock.
    @Test func `a check without the write lock finds no damage where another process rotates`()
        throws
    {
        let store = try make()
        let first = try store.keyID()
        var verification = Verification(core: store.core, scope: .everything, progress: nil)
        verification.locksWriters = false
        let count = Shared(0)
        verification.willRecheck = { [path] in
            count.update { $0 += 1 }
            guard count.value == 1, let peer = try? Peer(["rotation", path, "wal"]) else { return }
            while let line = peer.line(), Int(line) == nil {}
            peer.kill()
        }
        let report = try verification.run()
        #expect(report.isGood, "\(report)")
        #expect(count.value == 2)
        #expect(try store.keyID() != first)
        try store.close()
    }
}
