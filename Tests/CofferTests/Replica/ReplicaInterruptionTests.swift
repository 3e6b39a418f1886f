import Foundation
import Synchronization
import Testing
import Workload

@testable import Coffer
@testable import CofferReplica

/// Transfers that end before everything is in the remote, and the run after them.
@Suite(.againstHanging, .onOwnThreads) struct ReplicaInterruptionTests {
    private let folder: TemporaryFolder
    private let remote = MemoryRemote()
    private let log = LogRecorder()

    init() throws {
        folder = try TemporaryFolder()
    }

    private let options = ReplicaOptions.testing

    /// A store with records of some number of bytes, in records of a remote of 8 MiB.
    private func makeStore(megabytes: Int) throws -> Store {
        var configuration = Configuration.testing()
        configuration.logger = log.logger
        let store = try Store(
            path: folder.path(), key: .numbered(1), configuration: configuration)
        try store.write { tx in try tx.execute("CREATE TABLE t(v, filler)") }
        try fill(store, megabytes)
        return store
    }

    private func fill(_ store: Store, _ megabytes: Int) throws {
        try store.write { tx in
            for number in 0..<megabytes {
                try tx.execute("INSERT INTO t VALUES (\(number), randomblob(1000000))")
            }
        }
    }

    private func change(_ number: Int, in store: Store) throws {
        try store.write { tx in
            try tx.execute("UPDATE t SET filler = randomblob(1000000) WHERE v = \(number)")
        }
    }

    private func rowCount(_ name: String) async throws -> Int {
        try await Store.restore(
            from: remote, to: folder.path(name), key: .numbered(1), configuration: .testing())
        let copy = try await Store(
            path: folder.path(name), key: .numbered(1), configuration: .testing())
        let count: Int? = try await copy.read { tx in
            try tx.firstRow("SELECT count(*) FROM t")?.get(0)
        }
        try await copy.close()
        return try #require(count)
    }

    /// Bytes that the remote has got since it had these objects.
    private func byteCount(since objects: [String: [UInt8]]) -> Int {
        remote.objects.filter { objects[$0.key] == nil }.values.map(\.count).reduce(0, +)
    }

    private func tagFile() throws -> URL {
        try #require(
            FileManager.default.contentsOfDirectory(at: folder.url, includingPropertiesForKeys: nil)
                .first { $0.lastPathComponent.contains("-tags-") })
    }

    @Test func `a remote that goes away in the first transfer is an error in the end`()
        async throws
    {
        let store = try makeStore(megabytes: 10)
        var options = options
        options.patience.limit = .seconds(60)
        options.progress = { [remote] _ in remote.isDown = true }
        await #expect(throws: CocoaError.self) { try await store.replicate(to: remote, options) }
        remote.isDown = false
        options.progress = { _ in }
        // That run could not say that it has ended.
        options.takesOverFrom = "tests"
        let replica = try await store.replicate(to: remote, options)
        try await replica.close()
        try await store.close()
        #expect(try await rowCount("copy") == 10)
    }

    @Test func `a replica waits for its remote as long as it takes, once it has begun`()
        async throws
    {
        let store = try makeStore(megabytes: 1)
        let pauses = Mutex(0)
        var options = options
        options.patience.limit = .seconds(60)
        options.patience.sleep = { [remote] _ in
            pauses.withLock { $0 += 1 }
            // 200 pauses of up to 30 s.
            if pauses.withLock(\.self) == 200 { remote.isDown = false }
            await Task.yield()
        }
        let replica = try await store.replicate(to: remote, options)
        try fill(store, 1)
        remote.isDown = true
        try await replica.caughtUp()
        #expect(pauses.withLock(\.self) == 200)
        try await replica.close()
        try await store.close()
        #expect(try await rowCount("copy") == 2)
        #expect(
            log.texts.filter { $0.contains("replica") } == [
                "notice replica begins", "warning replica cannot be brought up to date",
                "notice replica has everything again", "debug replica closed",
            ])
    }

    @Test func `after a cancelled first transfer the next run need not wait`() async throws {
        let store = try makeStore(megabytes: 10)
        let begun = Mutex<Task<Void, any Error>?>(nil)
        var cancelled = options
        cancelled.progress = { _ in begun.withLock(\.self)?.cancel() }
        let task = Task { [remote, cancelled] in
            // The task knows itself before it sends anything.
            while begun.withLock({ $0 == nil }) { await Task.yield() }
            _ = try await store.replicate(to: remote, cancelled)
        }
        begun.withLock { $0 = task }
        await #expect(throws: CancellationError.self) { try await task.value }
        var next = options
        next.sleep = { _ in throw CancellationError() }
        let replica = try await store.replicate(to: remote, next)
        try await replica.close()
        try await store.close()
        #expect(try await rowCount("copy") == 10)
    }

    @Test(arguments: [false, true])
    func `a first transfer whose last answer was lost is in the replica, and the next run goes on`(
        hasChanged: Bool
    ) async throws {
        let store = try makeStore(megabytes: 1)
        try await store.replicate(to: remote, options).close()
        try fill(store, 1)
        // The object is made. Only the end of the run finds out.
        remote.denyAfterCreate { $0 == Slot(term: 2, number: 1).name }
        await expect(.remoteDenied) { _ = try await store.replicate(to: remote, options) }
        if hasChanged { try fill(store, 1) }
        var next = options
        next.sleep = { _ in throw CancellationError() }
        let replica = try await store.replicate(to: remote, next)
        try await replica.close()
        try await store.close()
        #expect(try await rowCount("copy") == (hasChanged ? 3 : 2))
    }

    @Test func `after a crash in the middle of a transfer only the pages that differ are sent`()
        async throws
    {
        let store = try makeStore(megabytes: 17)
        var first = options
        let isSecond = Mutex(false)
        // The first of three records is sent. After the second one the machine is gone.
        first.progress = { [remote] _ in
            if isSecond.withLock(\.self) { remote.denyAfterNextCreate() }
        }
        let replica = try await store.replicate(to: remote, first)
        isSecond.withLock { $0 = true }
        try fill(store, 17)
        await expect(.remoteDenied) { try await replica.caughtUp() }
        let before = remote.objects
        var taking = options
        taking.takesOverFrom = "tests"
        let second = try await store.replicate(to: remote, taking)
        try await second.close()
        try await store.close()
        #expect((17_000_000..<19_000_000).contains(byteCount(since: before)))
        #expect(try await rowCount("copy") == 34)
    }

    /// The state of the tags beside the store when the third run begins.
    enum KeptTags: CaseIterable {
        case whole, oneRecordBehind, threeRecordsBehind, torn, missing

        /// Whether the tags show which pages the remote has.
        var isUseful: Bool { self == .whole || self == .oneRecordBehind }
    }

    @Test(arguments: KeptTags.allCases)
    func `a first transfer that broke off twice goes on behind its last record`(
        tags: KeptTags
    ) async throws {
        // Five records.
        let store = try makeStore(megabytes: 34)
        var taking = options
        taking.takesOverFrom = "tests"
        taking.patience.limit = .seconds(60)
        var old = Data()
        for run in 1...2 {
            let before = remote.objects
            var broken = taking
            broken.progress = { [remote] _ in
                // The next record gets there, but its answer does not come back.
                if tags == .whole { remote.isDown = true } else { remote.denyAfterNextCreate() }
            }
            await #expect(throws: (any Error).self) {
                try await store.replicate(to: remote, broken)
            }
            remote.isDown = false
            let recordCount = tags == .whole ? 1 : 2
            let sent = byteCount(since: before)
            #expect(sent / 8_300_000 == recordCount, "run \(run): \(sent)")
            if run == 1 { old = try Data(contentsOf: try tagFile()) }
            try change(run, in: store)
        }
        let file = try tagFile()
        switch tags {
        case .whole, .oneRecordBehind: break
        case .threeRecordsBehind: try old.write(to: file)
        case .torn:
            var bytes = try Data(contentsOf: file)
            bytes[200] ^= 1
            try bytes.write(to: file)
        case .missing: try FileManager.default.removeItem(at: file)
        }
        await expect(.notFound) { _ = try await rowCount("none") }
        let before = remote.objects
        try await store.replicate(to: remote, taking).close()
        let rest = tags == .whole ? 21_000_000 : 4_000_000
        let sent = byteCount(since: before)
        #expect(sent > (tags.isUseful ? 0 : 34_000_000))
        #expect(sent < (tags.isUseful ? rest + 2_000_000 : 40_000_000))
        #expect(try await rowCount("copy") == 34)
        // A further run has nothing to send.
        try await store.replicate(to: remote, options).close()
        try await store.close()
        #expect(byteCount(since: before) < sent + 10_000)
    }

    @Test func `a run long after a crash does not wait, at a remote that tells no time of reads`()
        async throws
    {
        let store = try makeStore(megabytes: 1)
        let remote = MemoryRemote(place: "first", tellsTimeOfReads: false)
        // It says nothing more.
        _ = try await store.replicate(to: remote, options)
        // Another process would have no lock of this one.
        try FileManager.default.removeItem(at: try tagFile())
        // A remote of another name is proven again, as in another process.
        let later = MemoryRemote(place: "second", tellsTimeOfReads: false)
        later.objects = remote.objects
        var impatient = options
        impatient.sleep = { _ in throw CancellationError() }
        await #expect(throws: (any Error).self) {
            try await store.replicate(to: later, impatient)
        }
        let muchLater = MemoryRemote(place: "third", tellsTimeOfReads: false)
        muchLater.objects = remote.objects
        muchLater.advance(24 * 3600)
        let waits = Mutex(0)
        impatient.waiting = { _ in waits.withLock { $0 += 1 } }
        let replica = try await store.replicate(to: muchLater, impatient)
        #expect(waits.withLock(\.self) == 0)
        try await replica.close()
        try await store.close()
    }

    @Test func `a child process that is being started does not keep the lock of a replica`()
        throws
    {
        let file = PageTagFile(beside: folder.path(), of: .testing())
        var lock: PageTagFile.Lock?
        if case .taken(let taken) = file.lock() { lock = taken }
        // As a child has it until it runs its program.
        let copy = dup(try #require(lock).descriptor)
        defer { close(copy) }
        if case .held = file.lock() {} else { Issue.record("two replicas have the lock") }
        lock = nil
        if case .taken = file.lock() {} else { Issue.record("the lock has not ended") }
    }

    @Test func `tags that could not be written are written whole the next time`() throws {
        let keys = ReplicaKeys.testing()
        let file = PageTagFile(beside: folder.path(), of: keys)
        var tags = PageTags()
        for byte in 1...3 { tags.append([UInt8](repeating: UInt8(byte), count: 16)[...], keys) }
        let path = folder.path() + "-tags-09090909"
        try FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: false)
        #expect(!file.write(tags, since: PageTags()))
        try FileManager.default.removeItem(atPath: path)
        #expect(file.write(tags, since: PageTags()))
        #expect(file.tags(countMax: 3, keys) == tags)
        #expect(file.tags(countMax: 2, keys) == nil)
    }
}
