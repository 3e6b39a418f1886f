import Foundation
import Synchronization
import Testing
import Workload

@testable import Coffer

/// Gets of a store that keeps decoded values, and commits that make them useless.
@Suite(.againstHanging, .onOwnThreads) struct BucketCacheTests {
    private let folder: TemporaryFolder
    private let clock = HandClock()
    private let numbers = Bucket<String, Int>("numbers")

    init() throws { folder = try TemporaryFolder() }

    private func open(
        _ mode: Configuration.JournalMode = .wal, _ cache: BucketCache? = BucketCache()
    ) throws -> Store {
        try BucketFixture.open(folder, clock, mode, cache)
    }

    /// How many of the gets in `body` found their value in the cache.
    private func hits(_ store: Store, _ body: () throws -> Void) rethrows -> Int {
        let before = store.statistics.bucketCache.hitCount
        try body()
        return store.statistics.bucketCache.hitCount - before
    }

    /// Gets twice, so that the second finds the value in the cache.
    private func warm<V>(_ store: Store, _ key: String, _ bucket: Bucket<String, V>) throws {
        for _ in 0..<3 { _ = try store.get(key, in: bucket) }
        let count = try hits(store) { _ = try store.get(key, in: bucket) }
        #expect(count == 1)
    }

    // MARK: Kept

    @Test func `a repeated get finds its value in the cache, also an absent one`() throws {
        let store = try open()
        try store.set(1, for: "a", in: numbers)
        try warm(store, "a", numbers)
        try warm(store, "nobody", numbers)
        let count = try hits(store) { () throws in
            #expect(try store.get("a", in: numbers) == 1)
            #expect(try store.get("nobody", in: numbers) == nil)
            #expect(try store.get("nobody", default: 7, in: numbers) == 7)
        }
        #expect(count == 3)
    }

    @Test func `asynchronous gets and settings use it`() async throws {
        let store = try open()
        let theme = Setting("theme", default: "light")
        try await store.set("dark", for: theme)
        for _ in 0..<3 { _ = try await store.get(theme) }
        let before = store.statistics.bucketCache.hitCount
        #expect(try await store.get(theme) == "dark")
        #expect(try await store.get(theme) == "dark")
        #expect(store.statistics.bucketCache.hitCount - before == 2)
    }

    @Test func `without being asked for, nothing is kept`() throws {
        let store = try open(.wal, nil)
        try store.set(1, for: "a", in: numbers)
        for _ in 0..<3 { #expect(try store.get("a", in: numbers) == 1) }
        #expect(store.statistics.bucketCache == BucketCacheStatistics())
    }

    @Test func `without a WAL, and without a file, nothing is kept`() throws {
        var configuration = Configuration.testing()
        configuration.bucketCache = BucketCache()
        for store in [try open(.delete), try Store(.memory, configuration: configuration)] {
            try store.set(1, for: "a", in: numbers)
            for _ in 0..<3 { #expect(try store.get("a", in: numbers) == 1) }
            #expect(store.statistics.bucketCache.hitCount == 0)
            #expect(store.statistics.bucketCache.entryCount == 0)
        }
    }

    @Test func `a value is kept for one bucket, key and type`() throws {
        let store = try open()
        let texts = Bucket<String, String>("texts")
        let others = Bucket<String, Int>("others")
        try store.set("one", for: "a", in: texts)
        try store.set(1, for: "a", in: numbers)
        try store.set(2, for: "a", in: others)
        try store.set(3, for: "\u{E9}", in: numbers)
        try store.set(4, for: "e\u{301}", in: numbers)
        for _ in 0..<3 {
            #expect(try store.get("a", in: texts) == "one")
            #expect(try store.get("a", in: numbers) == 1)
            #expect(try store.get("a", in: others) == 2)
            #expect(try store.get("\u{E9}", in: numbers) == 3)
            #expect(try store.get("e\u{301}", in: numbers) == 4)
            expect(.mismatch) { try store.get("a", in: Bucket<String, String>("numbers")) }
        }
    }

    // MARK: Never stale

    @Test func `a commit of this store is seen at once`() throws {
        let store = try open()
        for number in 1...5 {
            try store.set(number, for: "a", in: numbers)
            #expect(try store.get("a", in: numbers) == number)
            try warm(store, "a", numbers)
        }
        try store.remove("a", in: numbers)
        #expect(try store.get("a", in: numbers) == nil)
    }

    @Test func `a commit of another connection and of another process is seen at once`() throws {
        let store = try open()
        try store.set(1, for: "a", in: numbers)
        try warm(store, "a", numbers)
        let other = try Connection(path: folder.path(), key: .numbered(1))
        try other.execute("UPDATE \"bucket:numbers\" SET value = 2")
        #expect(try store.get("a", in: numbers) == 2)
        try warm(store, "a", numbers)
        other.close()
        let change = "UPDATE \"bucket:numbers\" SET value = 3"
        #expect(try Peer.run(["execute", "wal", folder.path(), "1", change]) == ["executed"])
        #expect(try store.get("a", in: numbers) == 3)
    }

    @Test func `a transaction sees its own changes, and a rollback leaves no trace`() throws {
        struct Undo: Error {}
        let store = try open()
        try store.set(1, for: "a", in: numbers)
        try warm(store, "a", numbers)
        #expect(throws: Undo.self) {
            try store.write { tx in
                try tx.set(2, for: "a", in: numbers)
                #expect(try tx.get("a", in: numbers) == 2)
                // Inside the body, also the store's own verb.
                #expect(try store.get("a", in: numbers) == 2)
                throw Undo()
            }
        }
        for _ in 0..<3 { #expect(try store.get("a", in: numbers) == 1) }
    }

    @Test func `a read on an older snapshot keeps its value, and gives the cache none`() throws {
        let store = try open()
        try store.set(1, for: "a", in: numbers)
        try store.read { tx in
            #expect(try tx.get("a", in: numbers) == 1)
            let other = try Connection(path: folder.path(), key: .numbered(1))
            try other.execute("UPDATE \"bucket:numbers\" SET value = 2")
            other.close()
            #expect(try tx.get("a", in: numbers) == 1)
            #expect(try store.get("a", in: numbers) == 1)
        }
        #expect(try store.get("a", in: numbers) == 2)
    }

    @Test func `a commit between the look and the read keeps nothing`() throws {
        let store = try open()
        try store.set(1, for: "a", in: numbers)
        try warm(store, "a", numbers)
        let cache = try #require(store.core.decodedValues)
        let place = CachedPlace(.text("a"), in: numbers.plan, of: Int.self)
        try store.set(2, for: "a", in: numbers)
        let look = cache.look(for: place)
        #expect(look.entry == nil, "an old value was found")
        try store.set(3, for: "a", in: numbers)
        let read = CachedEntry(2, expires: nil, byteCount: 9, commitNumber: look.commitNumber)
        cache.keep(read, at: place)
        #expect(try store.get("a", in: numbers) == 3)
    }

    @Test func `a read that began before the cache could see commits keeps nothing`() throws {
        let store = try open()
        try store.set(1, for: "a", in: numbers)
        let cache = try #require(store.core.decodedValues)
        let place = CachedPlace(.text("a"), in: numbers.plan, of: Int.self)
        let number = cache.look(for: place).commitNumber
        try store.read { tx in
            #expect(try tx.get("a", in: numbers) == 1)
            let other = try Connection(path: folder.path(), key: .numbered(1))
            try other.execute("UPDATE \"bucket:numbers\" SET value = 2")
            other.close()
            cache.attach(to: try tx.connection().current())
            let read = CachedEntry(1, expires: nil, byteCount: 9, commitNumber: number)
            cache.keep(read, at: place)
        }
        #expect(try store.get("a", in: numbers) == 2)
    }

    @Test func `an entry that has expired is gone at that moment, and may come back`() throws {
        let store = try open()
        try store.set(1, for: "a", in: numbers, expiring: .after(.seconds(10)))
        try warm(store, "a", numbers)
        clock.advance(by: 9)
        #expect(try store.get("a", in: numbers) == 1)
        clock.advance(by: 1)
        for _ in 0..<3 { #expect(try store.get("a", in: numbers) == nil) }
        // A clock that is set back.
        clock.advance(by: -1)
        #expect(try store.get("a", in: numbers) == 1)
    }

    @Test func `a rename, a drop and another key of the file are seen`() throws {
        let store = try open()
        try store.set(1, for: "a", in: numbers)
        try warm(store, "a", numbers)
        try store.write { tx in try tx.renameBucket("numbers", to: "former") }
        #expect(try store.get("a", in: numbers) == nil)
        #expect(try store.get("a", in: Bucket<String, Int>("former")) == 1)
        try store.rekey(to: .numbered(2))
        try store.set(2, for: "a", in: numbers)
        for _ in 0..<3 { #expect(try store.get("a", in: numbers) == 2) }
    }

    @Test func `while a store is suspended or closed its cache answers nothing`() async throws {
        let store = try open()
        try await store.set(1, for: "a", in: numbers)
        for _ in 0..<3 { _ = try await store.get("a", in: numbers) }
        try await store.suspend()
        #expect(store.statistics.bucketCache.entryCount == 0)
        await expect(.suspended) { _ = try await store.get("a", in: numbers) }
        // Another program has the file for itself, and leaves a WAL without a commit, as it was.
        let other = try Connection(path: folder.path(), key: .numbered(1))
        try other.execute("UPDATE \"bucket:numbers\" SET value = 2")
        other.close()
        try await store.resume()
        #expect(try await store.get("a", in: numbers) == 2)
        try await store.close()
        await expect(.closed) { _ = try await store.get("a", in: numbers) }
    }

    @Test func `a cancelled task gets CancellationError, also for a value in the cache`()
        async throws
    {
        let store = try open()
        try await store.set(1, for: "a", in: numbers)
        for _ in 0..<3 { _ = try await store.get("a", in: numbers) }
        let numbers = numbers
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await store.get("a", in: numbers)
        }
        await #expect(throws: CancellationError.self) { _ = try await task.value }
    }

    // MARK: Bounds

    @Test func `the cache keeps to its bounds, and keeps what is used`() throws {
        let store = try open(.wal, BucketCache(maximumCount: 20, maximumByteCount: 1 << 20))
        try store.write { tx in
            for number in 0..<100 { try tx.set(number, for: "\(number)", in: numbers) }
        }
        _ = try store.get("0", in: numbers)
        for number in 1..<100 {
            #expect(try store.get("\(number)", in: numbers) == number)
            #expect(try store.get("0", in: numbers) == 0)
            #expect(store.statistics.bucketCache.entryCount <= 20)
        }
        #expect(try hits(store) { _ = try store.get("0", in: numbers) } == 1)
        #expect(try hits(store) { _ = try store.get("1", in: numbers) } == 0)
    }

    @Test func `large values push others out, and one that is too large is not kept`() throws {
        let store = try open(.wal, BucketCache(maximumCount: 100, maximumByteCount: 10_000))
        let blobs = Bucket<String, Data>("blobs")
        try store.write { tx in
            for number in 0..<10 { try tx.set(Data(count: 2000), for: "\(number)", in: blobs) }
            try tx.set(Data(count: 5001), for: "large", in: blobs)
        }
        _ = try store.get("0", in: blobs)
        for number in 0..<10 {
            for _ in 0..<2 { #expect(try store.get("\(number)", in: blobs)?.count == 2000) }
            #expect(store.statistics.bucketCache.byteCount <= 10_000)
        }
        #expect(store.statistics.bucketCache.hitCount >= 9)
        #expect(try hits(store) { for _ in 0..<3 { _ = try store.get("large", in: blobs) } } == 0)
    }

    @Test(arguments: [0, -5, 1])
    func `bounds without room keep nothing`(count: Int) throws {
        let store = try open(.wal, BucketCache(maximumCount: count, maximumByteCount: count))
        try store.set(1, for: "a", in: numbers)
        for _ in 0..<3 { #expect(try store.get("a", in: numbers) == 1) }
        #expect(store.statistics.bucketCache.hitCount == 0)
    }

    // MARK: Many at once

    /// Reads never go back: whoever has seen a number sees no smaller one later, on any thread.
    @Test func `beside a writer no get sees an older value than one before it`() async throws {
        let store = try open()
        let numbers = numbers
        try await store.set(0, for: "a", in: numbers)
        let progress = Progress()
        try await withThrowingTaskGroup { group in
            for _ in 0..<4 {
                group.addTask {
                    while !progress.isOver.load(ordering: .acquiring) {
                        let bound = progress.newest.load(ordering: .acquiring)
                        for _ in 0..<50 {
                            let found = try await store.get("a", in: numbers) ?? -1
                            #expect(found >= bound)
                            progress.newest.max(found, ordering: .acquiringAndReleasing)
                        }
                        // Others need the threads of the tasks.
                        await Task.yield()
                    }
                }
            }
            for number in 1...300 {
                try await store.set(number, for: "a", in: numbers)
                progress.newest.max(number, ordering: .acquiringAndReleasing)
            }
            progress.isOver.store(true, ordering: .releasing)
            try await group.waitForAll()
        }
        #expect(store.statistics.bucketCache.hitCount > 0)
    }

    private final class Progress: Sendable {
        /// The largest number that anybody has seen or written.
        let newest = Atomic(0)
        let isOver = Atomic(false)
    }

    /// A value of the program that uses the store while it is released.
    private final class Watcher: Codable, Sendable {
        let number: Int
        init(_ number: Int) { self.number = number }
        deinit { Self.last.withLock { $0?() } }
        static let last = Mutex<(@Sendable () -> Void)?>(nil)
    }

    @Test func `a value that uses the store when it is released does not block`() throws {
        let store = try open(.wal, BucketCache(maximumCount: 4))
        let watchers = Bucket<Int, Watcher>("watchers")
        let numbers = numbers
        try store.write { tx in
            for number in 0..<10 { try tx.set(Watcher(number), for: number, in: watchers) }
            try tx.set(1, for: "a", in: numbers)
        }
        Watcher.last.withLock { $0 = { _ = try? store.get("a", in: numbers) } }
        for number in 0..<10 { #expect(try store.get(number, in: watchers)?.number == number) }
        Watcher.last.withLock { $0 = nil }
    }
}
