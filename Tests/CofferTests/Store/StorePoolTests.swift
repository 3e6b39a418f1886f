import Foundation
import Testing

@testable import Coffer

/// The uses of a pool: who gets which store, and what a failure reaches.
@Suite(.againstHanging, .onOwnThreads) struct StorePoolTests: StorePoolSuite {
    let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func makePool(_ source: KeySource, count: Int = 4) throws -> StorePool {
        let key: @Sendable (String) async throws -> StoreKey = { try await source.key($0) }
        return try StorePool(configuration: configuration(count), key: key)
    }

    @Test func `callers that ask for a store at once share one key, one opening and one store`()
        async throws
    {
        let source = KeySource()
        source.hold()
        let pool = try makePool(source)
        let path = folder.path()
        let uses = (0..<20).map { number in
            Task {
                try await pool.withStore(at: path) { store in
                    try await store.write { tx in
                        _ = try tx.execute("INSERT INTO t VALUES (\(number))")
                    }
                    return ObjectIdentifier(store)
                }
            }
        }
        #expect(await comes { pool.statistics.waitingUseCount == 20 })
        source.release()
        var stores: Set<ObjectIdentifier> = []
        for use in uses { stores.insert(try await use.value) }
        #expect(stores.count == 1)
        #expect(source.paths == [path])
        #expect(pool.statistics.counts.openedCount == 1)
        #expect(try await pool.values(at: path).sorted() == Array(0..<20))
        try await pool.close()
    }

    @Test func `an error of the key provider reaches every caller, and the next ask tries again`()
        async throws
    {
        let source = KeySource()
        source.hold()
        source.set(failure: StoreError(.io, "the key service is away"))
        let pool = try makePool(source)
        let path = folder.path()
        let uses = (0..<3).map { _ in Task { try await pool.insert(1, at: path) } }
        #expect(await comes { pool.statistics.waitingUseCount == 3 })
        source.release()
        for use in uses { #expect(await code(use) == .io) }
        #expect(source.paths.count == 1)
        source.set(failure: nil)
        try await pool.insert(2, at: path)
        #expect(try await pool.values(at: path) == [2])
        #expect(pool.statistics.counts.failedCount == 1)
    }

    @Test func `a cancelled caller leaves the others alone`() async throws {
        let source = KeySource()
        source.hold()
        let pool = try makePool(source)
        let path = folder.path()
        let cancelled = Task { try await pool.insert(1, at: path) }
        let other = Task { try await pool.insert(2, at: path) }
        #expect(await comes { pool.statistics.waitingUseCount == 2 })
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        #expect(source.cancelledCount == 0)
        source.release()
        try await other.value
        #expect(try await pool.values(at: path) == [2])
    }

    @Test func `a source that does not answer keeps no cancelled caller, and no place`()
        async throws
    {
        let source = KeySource()
        source.hold()
        let pool = try makePool(source, count: 1)
        let path = folder.path()
        let cancelled = Task { try await pool.insert(1, at: path) }
        #expect(await comes { source.paths.count == 1 })
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        #expect(await comes { source.cancelledCount == 1 })
        #expect(pool.statistics.openStoreCount == 0)
        // The next caller gets a key of its own, and the late answer is for nobody.
        let next = Task { try await pool.insert(2, at: path) }
        #expect(await comes { source.paths.count == 2 })
        source.release()
        try await next.value
        #expect(try await pool.values(at: path) == [2])
        #expect(pool.statistics.counts.openedCount == 1)
    }

    @Test func `a caller that was cancelled before it asks gets no store`() async throws {
        let pool = try makePool(KeySource())
        let path = folder.path()
        let use = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            try await pool.insert(1, at: path)
        }
        await #expect(throws: CancellationError.self) { try await use.value }
        #expect(await comes { pool.statistics.pinnedStoreCount == 0 })
    }

    @Test func `a source that is too slow is .busy, and names the key`() async throws {
        let source = KeySource()
        source.hold()
        var configuration = configuration()
        configuration.waitTimeout = .milliseconds(20)
        let key: @Sendable (String) async throws -> StoreKey = { try await source.key($0) }
        let pool = try StorePool(configuration: configuration, key: key)
        let error = await error(Task { try await pool.insert(1, at: folder.path()) })
        #expect(error?.code == .busy)
        #expect(error?.message.contains("the key of") == true)
        #expect(pool.statistics.counts.timedOutCount == 1)
        source.release()
    }

    @Test(arguments: ["link", "hard link", "path"])
    func `all names of a file lead to one store`(kind: String) async throws {
        let pool = try makePool(configuration())
        let path = folder.path()
        try await pool.insert(1, at: path)
        let other: String
        switch kind {
        case "link":
            other = folder.path("link.db")
            try FileManager.default.createSymbolicLink(atPath: other, withDestinationPath: path)
        case "hard link":
            other = folder.path("hard.db")
            try FileManager.default.linkItem(atPath: path, toPath: other)
        default:
            other = "\(folder.url.path)/./store.db"
        }
        try await pool.withStore(at: path) { first in
            try await pool.withStore(at: other) { second in #expect(first === second) }
        }
        #expect(pool.statistics.counts.openedCount == 1)
        try await pool.close()
    }

    @Test func `a link that leads elsewhere by now leads to the other store`() async throws {
        let pool = try makePool(configuration())
        let link = folder.path("link.db")
        for number in 1...2 {
            let path = folder.path("\(number).db")
            try await pool.insert(number, at: path)
            unlinkIfPresent(link)
            try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: path)
            #expect(try await pool.values(at: link) == [number])
        }
    }

    @Test func `a store that cannot be opened fails alone, each time`() async throws {
        let pool = try makePool(configuration())
        let good = folder.path("good.db")
        try await pool.insert(1, at: good)
        try await Store(path: folder.path("wrong.db"), key: .numbered(2)).close()
        try Data("a text, and no store".utf8).write(to: URL(filePath: folder.path("text.db")))
        for _ in 0..<2 {
            for (name, expected) in [
                ("wrong.db", StoreError.Code.wrongKey), ("text.db", .notAStore),
            ] {
                let path = folder.path(name)
                #expect(await code(Task { try await pool.insert(1, at: path) }) == expected)
            }
        }
        #expect(try await pool.values(at: good) == [1])
        #expect(pool.statistics.openStoreCount == 1)
    }

    @Test func `a set-up that throws closes the store`() async throws {
        var configuration = configuration()
        configuration.setUp = { _ in throw StoreError(.mismatch, "the schema is another one") }
        let pool = try makePool(configuration)
        let path = folder.path()
        #expect(await code(Task { try await pool.insert(1, at: path) }) == .mismatch)
        #expect(!isOpenElsewhere("store.db"))
        #expect(pool.statistics.openStoreCount == 0)
    }

    @Test func `threads and tasks share a store`() async throws {
        let pool = try makePool(configuration())
        let path = folder.path()
        let threads = (0..<4).map { number in
            onThread {
                try pool.withStore(at: path) { store in
                    try store.write { tx in
                        _ = try tx.execute("INSERT INTO t VALUES (\(number))")
                    }
                }
            }
        }
        for number in 4..<8 { try await pool.insert(number, at: path) }
        for thread in threads { try await thread.value }
        #expect(try await pool.values(at: path).sorted() == Array(0..<8))
        #expect(pool.statistics.counts.openedCount == 1)
    }

    @Test func `a thread cannot wait for an asynchronous source`() throws {
        let pool = try makePool(KeySource())
        expect(.misuse) { try pool.withStore(at: folder.path()) { _ in } }
    }

    @Test func `bounds that admit no store are misuse`() throws {
        for count in [0, -1] {
            expect(.misuse) { _ = try makePool(configuration(count)) }
            var few = configuration()
            few.maximumDescriptorCount = count
            expect(.misuse) { _ = try makePool(few) }
        }
        var late = configuration(1, idleDuration: .seconds(-1))
        expect(.misuse) { _ = try makePool(late) }
        late = configuration()
        late.waitTimeout = .seconds(-1)
        expect(.misuse) { _ = try makePool(late) }
    }

    @Test func `descriptors and page cache bound the stores as well`() throws {
        var configuration = configuration(500)
        configuration.maximumDescriptorCount = 70
        configuration.store.cacheBudget = PageCacheBudget(maximumByteCount: 64 << 20)
        #expect(try makePool(configuration).statistics.maximumOpenStoreCount == 10)
        configuration.maximumDescriptorCount = 100_000
        #expect(try makePool(configuration).statistics.maximumOpenStoreCount == 128)
        configuration.store.cacheBudget.maximumByteCount = 0
        #expect(try makePool(configuration).statistics.maximumOpenStoreCount == 1)
    }

    @Test func `a store gets a dimension in its metrics only on request`() async throws {
        var configuration = configuration()
        #expect(configuration.configuration(of: "/users/anna.db").metricsLabel == "")
        configuration.metricsLabel = { path in path.contains("anna") ? "paying" : "free" }
        #expect(configuration.configuration(of: "/users/anna.db").metricsLabel == "paying")
    }

    @Test func `a key that was changed in a use is asked for at the next opening`() async throws {
        let number = Shared<UInt8>(1)
        let key: @Sendable (String) throws -> StoreKey = { _ in .numbered(number.value) }
        let pool = try StorePool(configuration: configuration(), key: key)
        let path = folder.path()
        try await pool.insert(1, at: path)
        try await pool.withStore(at: path) { store in
            _ = try await store.rekey(to: .numbered(2))
        }
        try await pool.insert(2, at: path)
        try await pool.parkIdleStores()
        #expect(await code(Task { try await pool.insert(3, at: path) }) == .wrongKey)
        number.value = 2
        #expect(try await pool.values(at: path) == [1, 2])
    }

    private func error(_ task: Task<some Sendable, any Error>) async -> StoreError? {
        if case .failure(let error) = await task.result { return error as? StoreError }
        return nil
    }
}
