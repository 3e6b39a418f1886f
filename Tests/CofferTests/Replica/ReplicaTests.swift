import Foundation
import Testing
import Workload

@testable import Coffer
@testable import CofferReplica

@Suite(.againstHanging, .onOwnThreads) struct ReplicaTests {
    private let folder: TemporaryFolder
    private let remote = MemoryRemote()

    init() throws {
        folder = try TemporaryFolder()
    }

    private let options = ReplicaOptions.testing

    private func open(
        _ name: String = "store.db", _ mode: Configuration.JournalMode = .wal
    ) throws -> Store {
        try Store(path: folder.path(name), key: .numbered(1), configuration: .testing(mode))
    }

    /// A replica whose end does not wait for the next test of this process.
    private func replicate(_ store: Store, to remote: MemoryRemote? = nil) async throws -> Replica {
        var options = options
        options.sleep = { _ in throw CancellationError() }
        return try await store.replicate(to: remote ?? self.remote, options)
    }

    @discardableResult
    private func restore(
        _ name: String, at moment: ReplicaMoment = .newest, key: UInt8 = 1,
        from remote: MemoryRemote? = nil
    ) async throws -> ReplicaRestoreReport {
        try await Store.restore(
            from: remote ?? self.remote, to: folder.path(name), key: .numbered(key), at: moment,
            configuration: .testing())
    }

    private func values(_ name: String) throws -> [Int] {
        let store = try open(name)
        defer { try? store.close() }
        return try store.read { tx in try tx.rows("SELECT v FROM t").map { try $0.get(0) } }
    }

    private func files() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.url.path)
    }

    private func insert(_ value: Int, in store: Store) throws {
        try store.write { tx in
            try tx.execute("INSERT INTO t VALUES (\(value), randomblob(3000))")
        }
    }

    private func makeTable(in store: Store) throws {
        try store.write { tx in try tx.execute("CREATE TABLE t(v, filler)") }
    }

    @Test(arguments: journalModes)
    func `every position of a history restores as the store was then`(
        mode: Configuration.JournalMode
    ) async throws {
        let store = try open("store.db", mode)
        try makeTable(in: store)
        let replica = try await replicate(store)
        var positions: [(ReplicaPosition, [Int])] = []
        for value in 1...12 {
            try insert(value, in: store)
            if value == 6 {
                try await store.write { tx in
                    try tx.execute("DELETE FROM t WHERE v < 4")
                }
            }
            if value == 8 { try await store.compact() }
            positions.append(
                (try await replica.caughtUp(), value < 6 ? Array(1...value) : Array(4...value)))
        }
        #expect(positions.map(\.0) == positions.map(\.0).sorted())
        let last = try await ReplicaHistory(of: remote, key: .numbered(1))
        #expect(last.commits.last?.position == positions.last?.0 && !last.isClosed)
        try await replica.close()
        let history = try await ReplicaHistory(of: remote, key: .numbered(1))
        #expect(Set(history.commits.map(\.position)).isSuperset(of: positions.map(\.0)))
        #expect(history.commits.map(\.position) == history.commits.map(\.position).sorted())
        #expect(history.owner == "tests" && history.isClosed)
        #expect(history.commits.allSatisfy { $0.byteCount > 4000 })
        await expect(.wrongKey) { _ = try await ReplicaHistory(of: remote, key: .numbered(2)) }
        try await store.close()
        for (index, (position, expected)) in positions.enumerated() {
            let report = try await restore("copy\(index)", at: .position(position))
            #expect(report.position == position)
            #expect(try values("copy\(index)").sorted() == expected)
            #expect(ReplicaPosition("\(position)") == position)
        }
        try await restore("newest")
        #expect(try Dump.store(folder.path("newest"), key: 1) == Dump.store(folder.path(), key: 1))
    }

    @Test func `a store that does not change puts nothing into the remote`() async throws {
        let store = try open()
        try makeTable(in: store)
        let replica = try await replicate(store)
        let count = remote.objects.count
        let position = try await replica.caughtUp()
        #expect(try await replica.caughtUp() == position)
        #expect(remote.objects.count == count)
        try await replica.close()
        try await store.close()
    }

    @Test func `a replica goes on after a restart, and sends only what has changed`() async throws {
        let store = try open()
        try makeTable(in: store)
        for value in 1...200 { try insert(value, in: store) }
        let first = try await replicate(store)
        try await first.close()
        let before = remote.objects
        let second = try await replicate(store)
        try insert(201, in: store)
        try await second.caughtUp()
        let new = remote.objects.filter { before[$0.key] == nil }
        #expect(new.values.map(\.count).reduce(0, +) < 60_000)
        try await second.close()
        // Commits of a time without a replica: all pages are sent again.
        try insert(202, in: store)
        let third = try await replicate(store)
        try await third.close()
        try await store.close()
        try await restore("copy")
        #expect(try values("copy") == Array(1...202))
    }

    @Test func `after a crash only the pages that differ are sent, unless the tags are not right`()
        async throws
    {
        let store = try open()
        try makeTable(in: store)
        for value in 1...200 { try insert(value, in: store) }
        var taking = options
        taking.takesOverFrom = "tests"
        taking.sleep = { _ in throw CancellationError() }
        var sent: [Int] = []
        for (index, damage) in ["none", "torn", "missing", "none"].enumerated() {
            let before = remote.objects
            // The owner of before is killed: it says nothing more.
            let replica = try await store.replicate(to: remote, taking)
            sent.append(
                remote.objects.filter { before[$0.key] == nil }.values.map(\.count).reduce(0, +))
            try insert(201 + index, in: store)
            try await replica.caughtUp()
            try insert(301 + index, in: store)
            let name = try #require(try files().first { $0.hasPrefix("store.db-tags-") })
            let file = folder.url.appending(path: name)
            switch damage {
            case "torn":
                var bytes = try Data(contentsOf: file)
                bytes[200] ^= 1
                try bytes.write(to: file)
            case "missing": try FileManager.default.removeItem(at: file)
            default: break
            }
        }
        let last = try await store.replicate(to: remote, taking)
        try await last.close()
        try await store.close()
        // All at first, then what differs, all after damage, all without the file.
        #expect(sent[0] > 700_000 && sent[1] < 60_000 && sent[2] > 700_000 && sent[3] > 700_000)
        try await restore("copy")
        #expect(try values("copy").count == 208)
    }

    @Test func `an owner that is taken over is fenced, and its store goes on`() async throws {
        let store = try open()
        try makeTable(in: store)
        let replica = try await replicate(store)
        let begin = try await replica.caughtUp()
        try FileManager.default.copyItem(
            atPath: try copyWhileOpen(store), toPath: folder.path("staging.db"))
        let staging = try open("staging.db")
        var other = options
        other.owner = "staging"
        let refused = await #expect(throws: StoreError.self) {
            try await staging.replicate(to: remote, other)
        }
        #expect(refused?.code == .ownedElsewhere)
        try insert(1, in: store)
        try await replica.caughtUp()
        other.takesOverFrom = "somebody"
        let stale = await #expect(throws: StoreError.self) {
            try await staging.replicate(to: remote, other)
        }
        #expect(stale?.code == .ownedElsewhere)
        other.takesOverFrom = "tests"
        // Nothing was written to the copy since.
        let ahead = await #expect(throws: StoreError.self) {
            try await staging.replicate(to: remote, other)
        }
        #expect(ahead?.code == .remoteAhead)
        other.keepsFileAt = begin
        let taken = try await staging.replicate(to: remote, other)
        try insert(2, in: store)
        for _ in 0..<2 {
            let fenced = await #expect(throws: StoreError.self) { try await replica.caughtUp() }
            #expect(fenced?.code == .fenced)
        }
        #expect(await replica.status.end?.code == .fenced)
        try insert(3, in: store)
        try await taken.close()
        try await store.close()
        try await staging.close()
    }

    /// The path of a copy with everything that was committed.
    private func copyWhileOpen(_ store: Store) throws -> String {
        let path = folder.path("backup.db")
        try store.backup(to: path)
        // A backup has a salt of its own, which makes it another store.
        try store.checkpoint(.truncate)
        let copy = folder.path("raw.db")
        let process = Process()
        process.executableURL = URL(filePath: "/bin/cp")
        process.arguments = [folder.path(), copy]
        try process.run()
        process.waitUntilExit()
        return copy
    }

    @Test func `a run from time to time writes only if something was committed, or once a day`()
        async throws
    {
        let remote = MemoryRemote()
        let store = try open()
        try makeTable(in: store)
        var options = ReplicaOptions.testing
        let first = try await store.replicateOnce(to: remote, options)
        let objects = remote.objects
        #expect(try await store.replicateOnce(to: remote, options) == first)
        #expect(remote.objects == objects)
        try insert(5, in: store)
        let second = try await store.replicateOnce(to: remote, options)
        #expect(first < second)
        #expect(try await store.replicateOnce(to: remote, options) == second)
        // Another owner, an unfinished run, and a snapshot that may be due are not passed over.
        var other = options
        other.owner = "other"
        await expect(.ownedElsewhere) { try await store.replicateOnce(to: remote, other) }
        options.currentDate = { Date.now + 90_000 }
        let count = remote.objects.count
        let third = try await store.replicateOnce(to: remote, options)
        #expect(second < third)
        #expect(remote.objects.count > count)
        try await store.close()
    }

    @Test func `a remote of another store is refused, and a store in memory`() async throws {
        let store = try open()
        try makeTable(in: store)
        let replica = try await replicate(store)
        try await replica.close()
        let other = try open("other.db")
        let error = await #expect(throws: StoreError.self) { try await replicate(other) }
        #expect(error?.code == .remoteOfAnotherStore)
        let inMemory = try await Store(.memory)
        let memory = await #expect(throws: StoreError.self) { try await replicate(inMemory) }
        #expect(memory?.code == .unsupported)
        for store in [store, other] { try await store.close() }
    }

    @Test func `a wrong key, a taken path and an empty remote are told apart`() async throws {
        let empty = await #expect(throws: StoreError.self) { try await restore("copy") }
        #expect(empty?.code == .notFound)
        let store = try open()
        try makeTable(in: store)
        let replica = try await replicate(store)
        let end = try await replica.caughtUp()
        try await replica.close()
        try await store.close()
        let wrong = await #expect(throws: StoreError.self) { try await restore("copy", key: 2) }
        #expect(wrong?.code == .wrongKey)
        let taken = await #expect(throws: StoreError.self) { try await restore("store.db") }
        #expect(taken?.code == .alreadyExists)
        let later = ReplicaPosition(
            Slot(term: end.slot.term, number: end.slot.number + 50),
            [UInt8](repeating: 1, count: 32))
        let hidden = await #expect(throws: StoreError.self) {
            try await restore("copy", at: .position(later))
        }
        #expect(hidden?.code == .remoteDamaged)
        #expect(hidden?.hint?.contains("hides them") == true)
        let early = await #expect(throws: StoreError.self) {
            try await restore("copy", at: .time(Date(timeIntervalSince1970: 1)))
        }
        #expect(early?.code == .notFound)
        #expect(try files().filter { !$0.hasPrefix("store.db-tags-") } == ["store.db"])
    }

    @Test func `each changed or missing object is told, and no file is made`() async throws {
        let store = try open()
        try makeTable(in: store)
        let replica = try await replicate(store)
        for value in 1...3 {
            try insert(value, in: store)
            try await replica.caughtUp()
        }
        try await replica.close()
        try await store.close()
        let objects = remote.objects
        for (name, bytes) in objects {
            for index in Set([
                0, 8, 9, 16, 39, 47, 48, 60, 90, 121, bytes.count / 2, bytes.count - 1,
            ])
            where index < bytes.count {
                var changed = bytes
                changed[index] ^= 1
                remote.objects[name] = changed
                await #expect(throws: StoreError.self, "\(name), byte \(index)") {
                    try await restore("copy")
                }
            }
            remote.objects[name] = nil
            // What says that the owner has stopped can be missing: it has no commit.
            if name != objects.keys.filter({ $0 != ReplicaDescription.name }).max() {
                await #expect(throws: StoreError.self, "\(name) is missing") {
                    try await restore("copy")
                }
            }
            remote.objects[name] = bytes
        }
        #expect(!FileManager.default.fileExists(atPath: folder.path("copy")))
        try await restore("copy")
        #expect(try values("copy") == [1, 2, 3])
    }

    /// A store with the value 1 and an empty WAL, whose file has the same stamp all the time: as
    /// after a clock that was set back.
    private func storeWithOneStamp() throws -> Store {
        var configuration = Configuration.testing()
        configuration.stampOfOldFile = { _ in .numbered(1) }
        let store = try Store(path: folder.path(), key: .numbered(1), configuration: configuration)
        try makeTable(in: store)
        try insert(1, in: store)
        try store.checkpoint(.truncate)
        return store
    }

    @Test func `a caller gets what was committed although the file has the same stamp`()
        async throws
    {
        let store = try storeWithOneStamp()
        let replica = try await replicate(store)
        try await replica.caughtUp()
        // While a pass that has compared all waits for the remote.
        let (reading, goesOn) = (Hold(), Hold())
        remote.beforeReads {
            reading.pass()
            await goesOn.isEntered()
        }
        let first = Task { try await replica.caughtUp() }
        await reading.isEntered()
        remote.beforeReads(nil)
        try await store.write { tx in try tx.execute("UPDATE t SET v = 2") }
        try await store.checkpoint(.truncate)
        let second = Task { try await replica.caughtUp() }
        while await replica.waitingCallCount < 2 { await Task.yield() }
        goesOn.pass()
        _ = try await (first.value, second.value)
        try await restore("second")
        #expect(try values("second") == [2])

        try await store.write { tx in try tx.execute("UPDATE t SET v = 3") }
        try await store.checkpoint(.truncate)
        try await replica.close()
        try await store.close()
        try await restore("third")
        #expect(try values("third") == [3])
    }

    /// No caller waits for a pass.
    @Test func `a pass every five minutes compares all tags and asks the remote`() async throws {
        let store = try storeWithOneStamp()
        let (sleeps, wakes, clock) = (Hold(), Hold(), HandInstant())
        var options = options
        options.sleep = { _ in
            sleeps.pass()
            await wakes.isEntered()
            try Task.checkCancellation()
        }
        options.currentInstant = { clock.now }
        let replica = try await store.replicate(to: remote, options)
        await sleeps.isEntered()
        func pass(after pause: Duration) async -> Int {
            clock.advance(by: pause)
            let before = remote.readCount
            wakes.pass()
            await sleeps.isEntered()
            return remote.readCount - before
        }
        _ = await pass(after: .seconds(301))
        try await store.write { tx in try tx.execute("UPDATE t SET v = 2") }
        try await store.checkpoint(.truncate)
        _ = await pass(after: .seconds(299))
        try await restore("before")
        #expect(try values("before") == [1])
        _ = await pass(after: .seconds(2))
        try await restore("after")
        #expect(try values("after") == [2])
        // Nothing to send: the remote is asked.
        #expect(await pass(after: .seconds(301)) > 0)
        let closing = Task { try await replica.close() }
        wakes.pass()
        try await closing.value
        try await store.close()
    }

    @Test func `a page that a record leaves out is noticed by the digest`() async throws {
        let store = try open()
        try makeTable(in: store)
        for value in 1...30 { try insert(value, in: store) }
        let source = try store.replicaSource()
        let replica = try await replicate(store)
        try await store.write { tx in try tx.execute("UPDATE t SET filler = randomblob(3000)") }
        let position = try await replica.caughtUp()
        try await replica.close()
        try await store.close()
        let description = try ReplicaDescription(
            #require(remote.objects[ReplicaDescription.name]), at: "memory")
        let keys = ReplicaKeys(source.secret(), replica: description.replicaNumber)
        let slot = position.slot
        let sealed = SealedRecord(try #require(remote.objects[slot.name]), at: slot)
        var (header, record) = try sealed.open(by: keys)
        // An older page is authentic too, and the structure may be sound.
        record.pages.removeLast()
        remote.objects = remote.objects.filter { $0.key <= slot.name || $0.key == "store" }
        remote.objects[slot.name] = try SealedRecord(
            .segment, record, at: slot, after: header.previous, by: keys
        ).bytes
        let error = await #expect(throws: StoreError.self) { try await restore("copy") }
        #expect(error?.code == .remoteDamaged)
        #expect(error?.message.contains("not those that its owner had") == true)
    }

    @Test func `a record in the place of another is noticed by the one after it`() async throws {
        let store = try open()
        try makeTable(in: store)
        let source = try store.replicaSource()
        let replica = try await replicate(store)
        try insert(1, in: store)
        let slot = try await replica.caughtUp().slot
        try await replica.close()
        try await store.close()
        let description = try ReplicaDescription(
            #require(remote.objects[ReplicaDescription.name]), at: "memory")
        let keys = ReplicaKeys(source.secret(), replica: description.replicaNumber)
        // As an owner that lost the race for the slot had sealed it.
        let (header, record) = try SealedRecord(
            #require(remote.objects[slot.name]), at: slot
        ).open(by: keys)
        remote.objects[slot.name] = try SealedRecord(
            .segment, record, at: slot, after: header.previous, by: keys
        ).bytes
        let error = await #expect(throws: StoreError.self) { try await restore("copy") }
        #expect(error?.code == .remoteDamaged)
        #expect(error?.message.contains("does not follow the record before") == true)
    }

    @Test func `a commit of several records counts when its last one is there`() async throws {
        let store = try open()
        try makeTable(in: store)
        try insert(1, in: store)
        let first = try await replicate(store)
        let before = try await first.caughtUp()
        // Four records.
        try await store.write { tx in
            for _ in 0..<30 {
                try tx.execute("INSERT INTO t VALUES (2, randomblob(1000000))")
            }
        }
        let after = try await first.caughtUp()
        #expect(after.slot.number >= before.slot.number + 4)
        let whole = remote.objects
        for number in (before.slot.number + 1..<after.slot.number).reversed() {
            remote.objects = whole.filter { name, _ in
                !name.hasPrefix("log/") || name <= Slot(term: 1, number: number).name
            }
            let report = try await restore("copy\(number)")
            #expect(report.position == before)
            #expect(try values("copy\(number)") == [1])
        }
        // Another owner goes on after a commit that never ended.
        try await store.close()
        let again = try open()
        var taking = options
        taking.takesOverFrom = "tests"
        let second = try await again.replicate(to: remote, taking)
        try await second.close()
        try await again.close()
        try await restore("copy")
        #expect(try values("copy").count == 31)
        remote.objects = whole
        try await restore("all")
        #expect(try values("all").count == 31)
    }

    @Test func `no text of the store is in the remote`() async throws {
        let store = try open()
        let canary = "canary of the replica"
        try await store.write { tx in
            try tx.execute("CREATE TABLE secret_table(v)")
            try tx.execute("INSERT INTO secret_table VALUES (\(canary))")
        }
        let replica = try await replicate(store)
        try await replica.close()
        try await store.close()
        for (name, bytes) in remote.objects {
            let text = String(decoding: bytes, as: UTF8.self)
            #expect(!text.contains(canary) && !text.contains("secret_table"), "\(name)")
            #expect(!text.contains("SQLite format"), "\(name)")
            #expect(!text.contains("tests"), "\(name)")
        }
    }

    @Test func `commits beside a replica are in it when caughtUp returns`() async throws {
        var configuration = Configuration.testing()
        configuration.checkpointPageCount = 20
        let store = try await Store(
            path: folder.path(), key: .numbered(1), configuration: configuration)
        try await store.write { tx in
            try tx.execute("CREATE TABLE a(v, filler)")
            try tx.execute("CREATE TABLE b(v, filler)")
        }
        let replica = try await replicate(store)
        let writer = Task.detached {
            for value in 1...400 {
                try await store.write { tx in
                    try tx.execute("INSERT INTO a VALUES (\(value), randomblob(900))")
                    try tx.execute("INSERT INTO b VALUES (\(value), randomblob(900))")
                }
            }
        }
        var positions: [(ReplicaPosition, Int)] = []
        var count = 0
        while count < 400 {
            count = try await store.read { tx in
                try tx.firstRow("SELECT count(*) FROM a")?.get(0) ?? 0
            }
            positions.append((try await replica.caughtUp(), count))
        }
        try await writer.value
        try await replica.close()
        try await store.close()
        for (index, (position, count)) in positions.enumerated()
        where index % max(1, positions.count / 8) == 0 || index == positions.count - 1 {
            let name = "copy\(index)"
            try await restore(name, at: .position(position))
            let copy = try open(name)
            let counts: [Int] = try await copy.read { tx in
                [
                    try tx.firstRow("SELECT count(*) FROM a")?.get(0) ?? 0,
                    try tx.firstRow("SELECT count(*) FROM b")?.get(0) ?? 0,
                ]
            }
            #expect(counts[0] == counts[1] && counts[0] >= count)
            try await copy.close()
        }
    }

    @Test func `a remote that fails again and again loses nothing`() async throws {
        let remote = MemoryRemote(.init(failurePercentage: 30), seed: testSeed())
        let store = try open()
        try makeTable(in: store)
        var options = options
        options.sleep = { _ in throw CancellationError() }
        // The proof of a remote does not ask again.
        let access = RemoteAccess(remote, patience: options.patience)
        let beginning = ReplicaBeginning(
            store: store, source: try store.replicaSource(), access: access, options: options,
            health: ReplicaHealth(options, store.replicaReports(remote: remote.place)))
        let replica = try await beginning.run()
        for value in 1...20 {
            try insert(value, in: store)
            try await replica.caughtUp()
        }
        try await replica.close()
        try await store.close()
        let whole = MemoryRemote()
        whole.objects = remote.objects
        try await restore("copy", from: whole)
        #expect(try values("copy") == Array(1...20))
    }

    @Test func `an old copy that was put back is refused, and kept if the caller says so`()
        async throws
    {
        let store = try open()
        try makeTable(in: store)
        let replica = try await replicate(store)
        var positions: [ReplicaPosition] = []
        for value in 1...3 {
            try insert(value, in: store)
            positions.append(try await replica.caughtUp())
        }
        try await replica.close()
        try await store.close()
        try await restore("noon", at: .position(positions[1]))
        let old = try open("noon")
        let count = remote.objects.count
        let refused = await #expect(throws: StoreError.self) { try await replicate(old) }
        #expect(refused?.code == .remoteAhead)
        #expect(refused?.message.contains("as it was at \(positions[1])") == true)
        #expect(remote.objects.count == count)
        var keeping = options
        keeping.keepsFileAt = positions[0]
        await #expect(throws: StoreError.self) { try await old.replicate(to: remote, keeping) }
        keeping.keepsFileAt = positions[1]
        let kept = try await old.replicate(to: remote, keeping)
        try insert(4, in: old)
        try await kept.close()
        try await old.close()
        try await restore("newest")
        #expect(try values("newest") == [1, 2, 4])
        try await restore("later", at: .position(positions[2]))
        #expect(try values("later") == [1, 2, 3])
    }

    @Test func `a new key ends the replica, and no position is told under it`() async throws {
        let store = try open()
        try makeTable(in: store)
        let replica = try await replicate(store)
        try insert(1, in: store)
        let last = try await replica.caughtUp()
        try await store.rekey(to: .numbered(2))
        try insert(2, in: store)
        let count = remote.objects.count
        for _ in 0..<2 {
            let error = await #expect(throws: StoreError.self) { try await replica.caughtUp() }
            #expect(error?.code == .wrongKey)
        }
        #expect(await replica.status.end?.code == .wrongKey)
        #expect(remote.objects.count == count)
        try await store.close()
        try await restore("copy", at: .position(last))
        #expect(try values("copy") == [1])
    }

    @Test(arguments: journalModes)
    func `a commit before a pause of the store is in the replica after it`(
        mode: Configuration.JournalMode
    ) async throws {
        let made = try open("store.db", mode)
        try makeTable(in: made)
        try await made.close()
        let store = try open("store.db", mode)
        let replica = try await replicate(store)
        for value in 1...3 {
            try insert(value, in: store)
            try await store.suspend()
            let paused = await #expect(throws: StoreError.self) { try await replica.caughtUp() }
            #expect(paused?.code == .suspended)
            try await store.resume()
            try await replica.caughtUp()
            try await restore("copy\(value)")
            #expect(try values("copy\(value)") == Array(1...value))
        }
        try await replica.close()
        try await store.close()
    }

    @Test func `a journal mode that another program has changed is followed`() async throws {
        let made = try open("store.db", .delete)
        try makeTable(in: made)
        try await made.close()
        let store = try open("store.db", .existing)
        let replica = try await replicate(store)
        // While one connection has the file in WAL mode, none leaves it.
        let other = try Connection(
            path: folder.path(), key: .numbered(1), configuration: .testing(.wal))
        for value in 1...3 {
            try other.execute("INSERT INTO t VALUES (\(value), randomblob(3000))")
            try await replica.caughtUp()
            try await restore("copy\(value)")
            #expect(try values("copy\(value)") == Array(1...value))
        }
        other.close()
        try await replica.close()
        try await store.close()
    }

    @Test func `a position that was told can be restored, also after a restart without commits`()
        async throws
    {
        let store = try open()
        try makeTable(in: store)
        try insert(1, in: store)
        for _ in 0..<3 {
            let replica = try await replicate(store)
            let position = try await replica.caughtUp()
            try await replica.close()
            let name = "copy\(position.slot.term)"
            let report = try await restore(name, at: .position(position))
            #expect(report.position == position)
            #expect(try values(name) == [1])
        }
        try await store.close()
    }

    @Test func `a remote with an older or another history is refused by a position kept elsewhere`()
        async throws
    {
        let store = try open()
        try makeTable(in: store)
        let replica = try await replicate(store)
        let old = remote.objects
        try insert(1, in: store)
        let kept = try await replica.caughtUp()
        try await store.close()
        func restoreKept(_ name: String) async throws {
            _ = try await Store.restore(
                from: remote, to: folder.path(name), key: .numbered(1), atLeast: kept,
                configuration: .testing())
        }
        try await restoreKept("whole")
        let whole = remote.objects
        remote.objects = old
        let hidden = await #expect(throws: StoreError.self) { try await restoreKept("hidden") }
        #expect(hidden?.code == .remoteDamaged)
        // Another owner goes on from the old state, and fills the same slot with something else.
        var other = options
        other.takesOverFrom = "tests"
        let again = try open()
        let second = try await again.replicate(to: remote, other)
        for value in 2...9 {
            try insert(value, in: again)
            try await second.caughtUp()
        }
        try await second.close()
        try await again.close()
        #expect(remote.objects[kept.slot.name] != whole[kept.slot.name])
        let exchanged = await #expect(throws: StoreError.self) { try await restoreKept("other") }
        #expect(exchanged?.code == .remoteDamaged)
        #expect(exchanged?.message.contains("another record") == true)
    }

    @Test func `a remote that loses its records ends the replica instead of starting anew`()
        async throws
    {
        let store = try open()
        try makeTable(in: store)
        let replica = try await replicate(store)
        try insert(1, in: store)
        remote.objects = [:]
        let error = await #expect(throws: StoreError.self) { try await replica.caughtUp() }
        #expect(error?.code == .remoteDamaged)
        #expect(remote.objects.isEmpty)
        #expect(await replica.status.end?.code == .remoteDamaged)
        try insert(2, in: store)
        try await store.close()
    }

    @Test func `a cancelled caller stops waiting, and the pass goes on`() async throws {
        let store = try open()
        try makeTable(in: store)
        var waiting = options
        waiting.sleep = { _ in throw CancellationError() }
        let failures = Shared(0)
        waiting.failed = { _ in failures.update { $0 += 1 } }
        let replica = try await store.replicate(to: remote, waiting)
        try insert(1, in: store)
        remote.isDown = true
        let task = Task { try await replica.caughtUp() }
        try await yieldWhile { failures.value == 0 }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(await replica.status.failure != nil)
        remote.isDown = false
        try await replica.caughtUp()
        #expect(await replica.status.failure == nil)
        try await replica.close()
        try await store.close()
        try await restore("copy")
        #expect(try values("copy") == [1])
    }

    @Test func `callers that close and wait at once are not taken for another owner`() async throws
    {
        let store = try open()
        try makeTable(in: store)
        for value in 1...10 {
            let replica = try await replicate(store)
            try insert(value, in: store)
            await withTaskGroup(of: Void.self) { group in
                for index in 0..<8 {
                    group.addTask {
                        do {
                            if index % 3 == 0 {
                                try await replica.close()
                            } else {
                                try await replica.caughtUp()
                            }
                        } catch let error as StoreError {
                            #expect(error.code == .closed)
                        } catch {
                            Issue.record(error)
                        }
                    }
                }
            }
            // Everybody may take over at once.
            #expect(await replica.status.end?.code == .closed)
        }
        try await store.close()
        try await restore("copy")
        #expect(try values("copy") == Array(1...10))
    }

    @Test func `a large store is sent in parts, and restored whole`() async throws {
        let store = try open()
        try makeTable(in: store)
        try await store.write { tx in
            for value in 1...150 {
                try tx.execute("INSERT INTO t VALUES (\(value), randomblob(1000000))")
            }
        }
        let replica = try await replicate(store)
        try insert(151, in: store)
        try await replica.close()
        try await store.close()
        try await restore("copy")
        #expect(try values("copy") == Array(1...151))
    }
}
