import Foundation
import Testing

@testable import Coffer

/// What can happen while a property of a record is read or written piece by piece.
@Suite(.againstHanging, .onOwnThreads) struct RecordBlobFaultTests {
    /// The table of `BlobFixture`.
    private struct Item: Record {
        static let table = "t"
        var id: Int
        var flag: Int
        var data: Data
    }

    /// The same table, without its bytes.
    private struct Head: Record, Equatable {
        static let table = "t"
        var id: Int
        var flag: Int
    }

    private struct Page: Record {
        var id: UUID
        var body: Data
    }

    private func collect(_ chunks: BlobChunks) async throws -> Data {
        var data = Data()
        for try await chunk in chunks { data.append(chunk) }
        return data
    }

    @Test(arguments: journalModes)
    func `a record that another replaces while the source is read gets nothing`(
        mode: Configuration.JournalMode
    ) async throws {
        let fixture = try BlobFixture(mode)
        let store = try fixture.store()
        let (first, second) = (UUID(), UUID())
        try await store.write { tx in _ = try tx.insert(Page(id: first, body: Data([1]))) }
        let source = AsyncThrowingStream<Data, any Error> {
            let isFirst = try await store.write { tx throws in
                guard try tx.delete(Page.self, key: first) else { return false }
                // Gets the row id of the row that is gone.
                #expect(try tx.insert(Page(id: second, body: Data([2]))) == 1)
                return true
            }
            return isFirst ? Data(count: 1000) : nil
        }
        await expect(.notFound) {
            try await store.writeBlob(
                \.body, in: Page.self, key: first, byteCount: 1000, from: source)
        }
        let page = try await store.read { tx in try tx.find(Page.self, second) }
        #expect(page?.body == Data([2]))
    }

    @Test(arguments: BlobFixture.DamagedPart.allCases, journalModes)
    func `a stream of a record over a damaged page ends with the error`(
        part: BlobFixture.DamagedPart, mode: Configuration.JournalMode
    ) async throws {
        let fixture = try BlobFixture(mode)
        let data = try fixture.insertDamaged(part)
        let store = try fixture.store()
        var received = Data()
        do {
            for try await chunk in store.chunks(
                of: \.data, in: Item.self, key: 1, maximumByteCount: 1000)
            {
                received.append(chunk)
            }
            Issue.record("nothing was thrown")
        } catch let error as StoreError {
            #expect(error.code == .damaged, "\(error)")
        }
        #expect(data.starts(with: received) && received.count < data.count)
    }

    @Test(arguments: BlobFixture.DamagedPart.allCases, journalModes)
    func `a type without the bytes of its table reads none of their pages`(
        part: BlobFixture.DamagedPart, mode: Configuration.JournalMode
    ) throws {
        let fixture = try BlobFixture(mode)
        _ = try fixture.insertDamaged(part)
        let store = try fixture.store()
        // Reading a damaged page would be an error.
        try store.read { tx throws in
            #expect(try tx.fetch(Head.all) == [Head(id: 1, flag: 7)])
            #expect(try tx.fetch(Head.where(\.flag > 3).order(by: \.flag)).count == 1)
            #expect(try tx.find(Head.self, 1)?.flag == 7)
        }
        expect(.damaged) { try store.read { tx in try tx.fetch(Item.all) } }
    }

    @Test(arguments: journalModes)
    func `a type without the bytes of its table leaves them as they are`(
        mode: Configuration.JournalMode
    ) throws {
        let fixture = try BlobFixture(mode)
        let data = BlobFixture.bytes(100_000)
        try fixture.insert(data)
        let store = try fixture.store()
        try store.write { tx throws in
            try tx.update(Head(id: 1, flag: 1))
            #expect(try tx.find(Item.self, 1)?.data == data)
            try tx.upsert(Head(id: 1, flag: 2))
            try tx.upsert(Head(id: 1, flag: 3), conflictingOn: \.id)
            try tx.update(Head(id: 1, flag: 4), only: \.flag)
            try tx.update(Head.all.set(\.flag, to: 5))
        }
        let item = try store.read { tx in try tx.find(Item.self, 1) }
        #expect(item?.data == data && item?.flag == 5)
    }

    @Test(arguments: journalModes)
    func `another connection that writes makes the stream busy, and a closed store says so`(
        mode: Configuration.JournalMode
    ) async throws {
        let fixture = try BlobFixture(mode)
        try fixture.insert(Data([1, 2, 3]))
        let store = try fixture.store(.impatient(mode))
        let other = try fixture.connection()
        let source = AsyncStream { continuation in
            continuation.yield(Data([4]))
            continuation.finish()
        }
        try other.execute("BEGIN IMMEDIATE")
        await expect(.busy) {
            try await store.writeBlob(
                \.data, in: Item.self, key: 1, byteCount: 1, from: source)
        }
        try other.execute("ROLLBACK")
        other.close()
        let kept = try await collect(store.chunks(of: \.data, in: Item.self, key: 1))
        #expect(kept == Data([1, 2, 3]))
        try await store.close()
        await expect(.closed) {
            try await collect(store.chunks(of: \.data, in: Item.self, key: 1))
        }
        await expect(.closed) {
            try await store.writeBlob(
                \.data, in: Item.self, key: 1, byteCount: 1, from: source)
        }
    }

    @Test(arguments: journalModes)
    func `a cancelled stream changes nothing, and a cancelled loop throws`(
        mode: Configuration.JournalMode
    ) async throws {
        let fixture = try BlobFixture(mode)
        try fixture.insert(Data([1, 2, 3]))
        let store = try fixture.store()
        let (source, feed) = AsyncStream<Data>.makeStream()
        let task = Task {
            try await store.writeBlob(
                \.data, in: Item.self, key: 1, byteCount: 9000, from: source)
        }
        feed.yield(Data(count: 4000))
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        let loop = Task {
            while !Task.isCancelled { await Task.yield() }
            return try await collect(store.chunks(of: \.data, in: Item.self, key: 1))
        }
        loop.cancel()
        await #expect(throws: CancellationError.self) { try await loop.value }
        let begun = Task {
            let chunks = store.chunks(of: \.data, in: Item.self, key: 1, maximumByteCount: 1)
            let iterator = chunks.makeAsyncIterator()
            #expect(try await iterator.next() == Data([1]))
            withUnsafeCurrentTask { $0?.cancel() }
            // Whether the next byte has been read ahead by now or not.
            return try await iterator.next()
        }
        await #expect(throws: CancellationError.self) { try await begun.value }
        let kept = try await collect(store.chunks(of: \.data, in: Item.self, key: 1))
        #expect(kept == Data([1, 2, 3]))
    }

    @Test func `a history notes the bytes that are written in place`() throws {
        let fixture = try BlobFixture()
        let store = try fixture.store()
        let id = UUID()
        let token = try store.write { tx throws in
            try tx.insert(Page(id: id, body: Data([1, 2])))
            try tx.keepHistory(of: "page")
            return try tx.changeToken()
        }
        try store.write { tx throws in
            try tx.withWritableBlob(\.body, in: Page.self, key: id) { try $0.write([7], at: 1) }
        }
        let batch = try store.changes(since: token)
        #expect(batch.changes.count == 1)
        #expect(try store.read { tx in try tx.find(Page.self, id)?.body } == Data([1, 7]))
    }
}
