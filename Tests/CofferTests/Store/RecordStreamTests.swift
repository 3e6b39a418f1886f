import Foundation
import Synchronization
import Testing

@testable import Coffer

@Suite(.againstHanging, .onOwnThreads) struct RecordStreamTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func store(
        _ count: Int, _ configuration: Configuration = .testing()
    ) throws -> Store {
        let store = try Store(path: folder.path(), key: .numbered(1), configuration: configuration)
        try store.write { tx in
            try tx.create(Note.self)
            try tx.insert((0..<count).map(Note.numbered))
        }
        return store
    }

    @Test(arguments: journalModes, [0, 1, 128, 200])
    func `a stream gives what a fetch gives`(
        mode: Configuration.JournalMode, count: Int
    ) async throws {
        let store = try store(count, .testing(mode))
        let query = Note.where(\.pinned == true).order(by: \.rank, .descending)
        for query in [Note.all, query, query.limit(3), query.limit(0)] {
            let all = try await store.read { tx in try tx.fetch(query) }
            for portion in [-1, 1, 64, 1000] {
                var found: [Note] = []
                for try await note in store.stream(query, portion: portion) { found.append(note) }
                #expect(found == all)
            }
        }
    }

    @Test func `a stream ends once, and each loop over it is a separate read`() async throws {
        let store = try store(3)
        let stream = store.stream(Note.order(by: \.id))
        var loop = stream.makeAsyncIterator()
        #expect(try await loop.next()?.id == 0)
        try await store.write { tx in _ = try tx.delete(Note.self, key: 0) }
        #expect(try await loop.next()?.id == 1)
        #expect(try await loop.next()?.id == 2)
        #expect(try await loop.next() == nil)
        #expect(try await loop.next() == nil)
        var second = stream.makeAsyncIterator()
        #expect(try await second.next()?.id == 1)
    }

    @Test func `a loop reads one snapshot`() async throws {
        let store = try store(500)
        var ids: [Int] = []
        for try await note in store.stream(Note.order(by: \.id), portion: 7) {
            ids.append(note.id)
            if note.id % 50 == 0 { try await store.write { tx in _ = try tx.delete(Note.all) } }
        }
        #expect(ids == Array(0..<500))
        #expect(try await store.read { tx in try tx.count(Note.all) } == 0)
    }

    @Test(arguments: journalModes)
    func `a loop that ends early releases its connection`(
        mode: Configuration.JournalMode
    ) async throws {
        var configuration = Configuration.testing(mode)
        configuration.maximumReaderCount = 1
        let store = try store(1000, configuration)
        struct Stop: Error {}
        for _ in 0..<3 {
            for try await note in store.stream(Note.order(by: \.id), portion: 10) {
                if note.id == 15 { break }
            }
            await #expect(throws: Stop.self) {
                for try await _ in store.stream(Note.all, portion: 10) { throw Stop() }
            }
        }
        #expect(try await store.read { tx in try tx.count(Note.all) } == 1000)
        try await store.write { tx in _ = try tx.delete(Note.all) }
        try await store.close()
    }

    @Test(arguments: journalModes, [1, 10_000])
    func `a cancelled loop throws and releases its connection`(
        mode: Configuration.JournalMode, portion: Int
    ) async throws {
        let store = try store(1000, .testing(mode))
        let (started, start) = AsyncStream<Void>.makeStream()
        let task = Task {
            var count = 0
            for try await _ in store.stream(Note.all, portion: portion) {
                count += 1
                if count == 3 { start.finish() }
                while count == 3, !Task.isCancelled { await Task.yield() }
            }
            return count
        }
        for await _ in started {}
        task.cancel()
        // This also holds where all rows were read ahead, because the loop has not seen them.
        await #expect(throws: CancellationError.self) { try await task.value }
        try await store.write { tx in _ = try tx.delete(Note.all) }
        try await store.close()
    }

    struct Counted: Record {
        static let madeCount = Mutex(0)
        var id: Int

        init(id: Int) { self.id = id }

        init(from decoder: any Decoder) throws {
            id = try decoder.container(keyedBy: CodingKeys.self).decode(Int.self, forKey: .id)
            Self.madeCount.withLock { $0 += 1 }
        }

        enum CodingKeys: CodingKey { case id }
    }

    @Test func `no more than three portions are in memory`() async throws {
        let store = try store(0)
        try await store.write { tx in try tx.insert((0..<2000).map(Counted.init)) }
        let before = Counted.madeCount.withLock { $0 }
        var count = 0
        for try await _ in store.stream(Counted.all, portion: 10) {
            // Gives a reader that does not wait the time to show it.
            if count % 500 == 0 { try await Task.sleep(for: .milliseconds(20)) }
            try #require(Counted.madeCount.withLock { $0 } - before <= count + 30)
            count += 1
        }
        #expect(count == 2000)
    }

    @Test func `without WAL a loop that waits for a write ends instead of hanging`() async throws {
        let store = try store(1000, .impatient(.delete))
        let deleted = Shared(0)
        await expect(.busy) {
            for try await _ in store.stream(Note.all, portion: 1) {
                // Either side may give up first. If it is the stream, the write succeeds, and the
                // loop gets the error.
                deleted.value = try await store.write { tx in try tx.delete(Note.all) }
            }
        }
        let count = try await store.write { tx in try tx.delete(Note.all) }
        #expect(count + deleted.value == 1000, "the store goes on")
    }

    @Test func `a row that does not fit ends the loop with the error`() async throws {
        var configuration = Configuration.testing()
        configuration.maximumReaderCount = 1
        let store = try store(100, configuration)
        try await store.write { tx in
            _ = try tx.execute("UPDATE note SET rank = x'00' WHERE id = 55")
        }
        var ids: [Int] = []
        let error = await expect(.mismatch) {
            for try await note in store.stream(Note.order(by: \.id), portion: 10) {
                ids.append(note.id)
                // Long enough for the error to come before the last good portion is taken.
                if note.id == 39 { try await Task.sleep(for: .milliseconds(100)) }
            }
        }
        #expect(ids == Array(0..<50))
        #expect(error?.table == "note" && error?.column == "rank")
        #expect(try await store.read { tx in try tx.count(Note.all) } == 100)
    }

    @Test func `an error of the fetch ends the loop`() async throws {
        struct Nothing: Record {
            var id: Int
        }
        let store = try store(3)
        func drain<R: Record>(_ query: Query<R>) async throws {
            for try await _ in store.stream(query) {}
        }
        for try await row in store.stream(Nothing.all) { Issue.record("there is \(row)") }
        await expect(.misuse) { try await drain(Note.where(\.title.count == 1)) }
        await expect(.sql) { try await drain(Note.where(.sql("nothing = 1"))) }
        try await store.close()
        await expect(.closed) { try await drain(Note.all) }
    }

    struct Sheet: Record, Equatable {
        var id: Int
        var data: Data
    }

    @Test(arguments: journalModes)
    func `a damaged page ends the loop before its rows`(
        mode: Configuration.JournalMode
    ) async throws {
        let path = folder.path()
        func open(_ mode: Configuration.JournalMode) async throws -> Store {
            try await Store(path: path, key: .numbered(1), configuration: .testing(mode))
        }
        let sheets = (0..<200).map { Sheet(id: $0, data: BlobFixture.bytes(1000 + $0)) }
        let pages: (count: Int, byteCount: Int)
        do {
            let store = try await open(mode)
            try await store.write { tx in try tx.insert(sheets) }
            let byteCount = store.profile.pageByteCount
            try await store.close()
            pages = (try Damage.byteCount(path) / byteCount, byteCount)
        }
        try Damage.flip(path, at: (pages.count - 1) * pages.byteCount + 100)
        let store = try await open(mode)
        var received: [Sheet] = []
        await expect(.damaged) {
            for try await sheet in store.stream(Sheet.all, portion: 8) { received.append(sheet) }
        }
        #expect(received == Array(sheets[..<received.count]))
        #expect(received.count > 100 && received.count < 200)
    }
}
