import Foundation
import Synchronization
import Testing

@testable import Coffer

@Suite(.againstHanging, .onOwnThreads) struct BlobStreamTests {
    private static let sizes = [0, 1, 4095, 4096, 4097, 3 << 20]

    /// The stored blob; `nil` for NULL.
    private func stored(_ store: Store) async throws -> Data? {
        try await store.read { tx in
            try tx.firstRow("SELECT data FROM t WHERE id = 1")?.get(0, as: Data?.self) ?? nil
        }
    }

    private func stream(
        _ chunks: [Data], then error: (any Error)? = nil
    )
        -> AsyncThrowingStream<Data, any Error>
    {
        AsyncThrowingStream { continuation in
            for chunk in chunks { continuation.yield(chunk) }
            continuation.finish(throwing: error)
        }
    }

    private func collect(_ chunks: BlobChunks) async throws -> Data {
        var data = Data()
        for try await chunk in chunks { data.append(chunk) }
        return data
    }

    // MARK: Out

    @Test(arguments: sizes, journalModes)
    func `a blob goes in and comes out as streams`(
        byteCount: Int, mode: Configuration.JournalMode
    ) async throws {
        let fixture = try BlobFixture(mode)
        let store = try fixture.store()
        let data = BlobFixture.bytes(byteCount)
        try await store.write { tx in try tx.execute("INSERT INTO t(id) VALUES (1)") }
        let pieces = stride(from: 0, to: byteCount, by: 100_000).map {
            data[$0..<min($0 + 100_000, byteCount)]
        }
        let source = stream(pieces)
        try await store.writeBlob("data", in: "t", row: 1, byteCount: byteCount, from: source)
        #expect(try await stored(store) == data)
        for chunk in [1000, 1 << 20] {
            let out = store.chunks(of: "data", in: "t", row: 1, maximumByteCount: chunk)
            #expect(try await collect(out) == data)
        }
    }

    @Test(arguments: journalModes)
    func `a loop that ends early releases its connection`(
        mode: Configuration.JournalMode
    ) async throws {
        let fixture = try BlobFixture(mode)
        try fixture.insert(BlobFixture.bytes(1 << 20))
        var configuration = Configuration.testing(mode)
        configuration.maximumReaderCount = 1
        let store = try fixture.store(configuration)
        for _ in 0..<3 {
            for try await chunk in store.chunks(of: "data", in: "t", row: 1) {
                #expect(chunk.count == 64 << 10)
                break
            }
        }
        #expect(try await stored(store)?.count == 1 << 20)
        try await store.write { tx in try tx.execute("DELETE FROM t") }
        try await store.close()
    }

    @Test(arguments: journalModes)
    func `a cancelled loop throws and releases its connection`(
        mode: Configuration.JournalMode
    ) async throws {
        let fixture = try BlobFixture(mode)
        try fixture.insert(BlobFixture.bytes(1 << 20))
        let store = try fixture.store()
        let (started, start) = AsyncStream<Void>.makeStream()
        let task = Task {
            var count = 0
            for try await _ in store.chunks(of: "data", in: "t", row: 1, maximumByteCount: 1000) {
                count += 1
                if count == 3 { start.finish() }
                while count == 3, !Task.isCancelled { await Task.yield() }
            }
            return count
        }
        for await _ in started {}
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        try await store.write { tx in try tx.execute("DELETE FROM t") }
        try await store.close()
    }

    @Test func `a loop reads one snapshot`() async throws {
        let fixture = try BlobFixture(.wal)
        let data = BlobFixture.bytes(1 << 20)
        try fixture.insert(data)
        let store = try fixture.store()
        var received = Data()
        for try await chunk in store.chunks(of: "data", in: "t", row: 1) {
            received.append(chunk)
            try await store.write { tx in try tx.execute("UPDATE t SET data = zeroblob(9)") }
        }
        #expect(received == data)
        #expect(try await stored(store) == Data(count: 9))
    }

    @Test func `without WAL a loop that waits for a write ends instead of hanging`() async throws {
        let fixture = try BlobFixture(.delete)
        try fixture.insert(BlobFixture.bytes(1 << 20))
        let store = try fixture.store(.impatient(.delete))
        await expect(.busy) {
            for try await _ in store.chunks(of: "data", in: "t", row: 1) {
                try await store.write { tx in try tx.execute("UPDATE t SET flag = 8") }
            }
        }
        let count = try await store.write { tx in try tx.execute("UPDATE t SET flag = 9") }
        #expect(count == 1, "the store goes on")
    }

    @Test(arguments: BlobFixture.DamagedPart.allCases, journalModes)
    func `a stream over a damaged page ends with the error, not with zeros`(
        part: BlobFixture.DamagedPart, mode: Configuration.JournalMode
    ) async throws {
        let fixture = try BlobFixture(mode)
        let data = try fixture.insertDamaged(part)
        let store = try fixture.store()
        var received = Data()
        do {
            for try await chunk in store.chunks(of: "data", in: "t", row: 1, maximumByteCount: 1000)
            {
                received.append(chunk)
            }
            Issue.record("nothing was thrown")
        } catch let error as StoreError {
            #expect(error.code == .damaged, "\(error)")
        }
        #expect(data.starts(with: received) && received.count < data.count)
        #expect(try await store.read { tx in try tx.rows("SELECT v FROM good").count } == 1)
    }

    @Test func `a stream reports the same errors as a blob`() async throws {
        let fixture = try BlobFixture()
        let store = try fixture.store()
        try await store.write { tx in try tx.execute("INSERT INTO t(id) VALUES (1)") }
        await expect(.mismatch) { try await collect(store.chunks(of: "data", in: "t", row: 1)) }
        await expect(.notFound) { try await collect(store.chunks(of: "data", in: "t", row: 2)) }
        await expect(.sql) { try await collect(store.chunks(of: "none", in: "t", row: 1)) }
        try await store.close()
        await expect(.closed) { try await collect(store.chunks(of: "data", in: "t", row: 1)) }
    }

    // MARK: In

    @Test func `the statistics name the caller of a blob that is written`() async throws {
        let fixture = try BlobFixture()
        let store = try fixture.store()
        let hold = Hold()
        try await store.prepareConnections { connection in
            // A trigger calls it.
            try connection.register(function: "stay", argumentCount: 0, options: .schema) { _ in
                hold.stay()
                return .null
            }
        }
        try await store.write { tx in
            try tx.execute("INSERT INTO t VALUES (1, 7, NULL)")
            try tx.execute("CREATE TRIGGER s AFTER UPDATE ON t BEGIN SELECT stay(); END")
        }
        let source = stream([Data(count: 100)])
        let line = #line + 2
        let writing = Task {
            try await store.writeBlob("data", in: "t", row: 1, byteCount: 100, from: source)
        }
        await hold.isEntered()
        let running = store.statistics.runningWrite
        hold.release()
        try await writing.value
        #expect(running?.line == line && running?.fileID.hasSuffix("BlobStreamTests.swift") == true)
    }

    @Test(arguments: journalModes, [99, 101, 0])
    func `a source of another size changes nothing`(
        mode: Configuration.JournalMode, byteCount: Int
    ) async throws {
        let fixture = try BlobFixture(mode)
        try fixture.insert(Data([1, 2, 3]))
        let store = try fixture.store()
        let error = await expect(.mismatch) {
            let source = stream(BlobFixture.bytes(byteCount).map { Data([$0]) })
            try await store.writeBlob("data", in: "t", row: 1, byteCount: 100, from: source)
        }
        #expect(error?.column == "data")
        #expect(try await stored(store) == Data([1, 2, 3]))
    }

    @Test(arguments: journalModes)
    func `an error of the source is thrown and changes nothing`(
        mode: Configuration.JournalMode
    ) async throws {
        struct Lost: Error {}
        let fixture = try BlobFixture(mode)
        try fixture.insert(Data([1, 2, 3]))
        let store = try fixture.store()
        await #expect(throws: Lost.self) {
            let source = stream([BlobFixture.bytes(9000)], then: Lost())
            try await store.writeBlob("data", in: "t", row: 1, byteCount: 9000, from: source)
        }
        #expect(try await stored(store) == Data([1, 2, 3]))
    }

    @Test func `an endless source is released`() async throws {
        let fixture = try BlobFixture()
        let store = try fixture.store()
        try await store.write { tx in try tx.execute("INSERT INTO t(id) VALUES (1)") }
        let endless = AsyncStream { Data(count: 1000) }
        await expect(.mismatch) {
            try await store.writeBlob("data", in: "t", row: 1, byteCount: 5000, from: endless)
        }
        await expect(.notFound) {
            try await store.writeBlob("data", in: "t", row: 2, byteCount: 5000, from: endless)
        }
        await expect(.misuse) {
            try await store.writeBlob("data", in: "t", row: 1, byteCount: -1, from: endless)
        }
        await expect(.tooBig) {
            try await store.writeBlob("data", in: "t", row: 1, byteCount: 1 << 40, from: endless)
        }
        try await store.close()
        await expect(.closed) {
            try await store.writeBlob("data", in: "t", row: 1, byteCount: 5000, from: endless)
        }
    }

    @Test(arguments: journalModes)
    func `a cancelled stream into a blob changes nothing`(
        mode: Configuration.JournalMode
    ) async throws {
        let fixture = try BlobFixture(mode)
        try fixture.insert(Data([1, 2, 3]))
        let store = try fixture.store()
        let (source, feed) = AsyncStream<Data>.makeStream()
        let task = Task {
            try await store.writeBlob("data", in: "t", row: 1, byteCount: 9000, from: source)
        }
        feed.yield(BlobFixture.bytes(4000))
        // The stream behaves as one that ends when its task is cancelled.
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(try await stored(store) == Data([1, 2, 3]))
    }

    @Test(arguments: journalModes)
    func `a source may use the store it goes to`(mode: Configuration.JournalMode) async throws {
        let fixture = try BlobFixture(mode)
        try fixture.insert(Data([1, 2, 3]))
        let store = try fixture.store()
        let calls = Mutex(0)
        let source = AsyncThrowingStream<Data, any Error> {
            let call = calls.withLock { count in
                count += 1
                return count
            }
            if call < 3 { return Data(count: 1000) }
            try await store.write { tx in _ = try tx.execute("UPDATE t SET flag = 8") }
            return nil
        }
        try await store.writeBlob("data", in: "t", row: 1, byteCount: 2000, from: source)
        #expect(try await stored(store) == Data(count: 2000))
        let row = try await store.read { tx in try tx.firstRow("SELECT flag FROM t") }
        #expect(try row?.get(0, as: Int.self) == 8)
    }
}
