import Foundation
import Testing

@testable import Coffer

/// Attachments that belong to records: stored, read, and removed with them.
@Suite(.againstHanging, .onOwnThreads) struct RecordAttachmentTests {
    private typealias Film = FilmFixture.Film
    private let fixture: FilmFixture
    private var store: Store { fixture.store }
    private var videos: AttachmentBucket<Int64> { fixture.videos }
    private static let chunk = Contents.chunkByteCount

    init() throws { fixture = try FilmFixture() }

    // MARK: Keys

    private struct Reel: Record {
        var id: Int
        static let key = ["id"]
    }

    private struct Sheet: Record {
        var id: UUID
    }

    private struct Scan: Record {
        var id: UUID
        static var encodings: [PartialKeyPath<Scan>: ColumnEncoding] { [\.id: .uuidText] }
    }

    private struct Page: Record {
        var id: String
        static let isWithoutRowID = true
    }

    private struct PageID: RawRepresentable, Codable, Hashable, Sendable, BucketKey {
        let rawValue: UUID
    }

    private struct Typed: Record {
        var id: PageID
    }

    private struct Seal: Record {
        var number: Int
        var digest: Data
        static let key = ["number"]
        static var indexes: [Index<Seal>] { [Index(\.digest, isUnique: true)] }
    }

    /// Stores, reads, replaces and removes the attachments of three records, whose keys ascend.
    private func live<R: Record, K: BucketKey>(
        _ bucket: AttachmentBucket<K>, _ records: [R], _ keys: [K], _ delete: (K) throws -> Void
    ) async throws {
        let (old, new) = (AttachmentFixture.bytes(Self.chunk + 7), Data([1, 2, 3]))
        try await store.write { tx in try tx.insert(records) }
        for key in keys {
            let set = try await store.set(
                contentsOf: AttachmentFixture.source(old), for: key, in: bucket)
            #expect(set == AttachmentFixture.information(old))
        }
        try await store.write { tx in try tx.set(new, for: keys[1], in: bucket) }
        let whole = try await store.append(
            contentsOf: AttachmentFixture.source(new), to: keys[1], in: bucket)
        #expect(whole == AttachmentFixture.information(new + new))
        try await store.read { tx throws in
            let all = try tx.attachments(in: bucket)
            #expect(all.map(\.key) == keys)
            #expect(
                try tx.attachments(in: bucket, .from(keys[1])).map(\.key) == [keys[1], keys[2]])
            #expect(try tx.count(in: bucket, .below(keys[1])) == 1)
            let part = try tx.withAttachment(keys[0], in: bucket) {
                try $0.bytes(in: Self.chunk..<Self.chunk + 7)
            }
            #expect(part == old.suffix(7))
        }
        try delete(keys[1])
        #expect(try await store.attachment(keys[1], in: bucket) == nil)
        #expect(try await store.attachment(keys[2], in: bucket) != nil)
        for key in keys { try delete(key) }
        #expect(try await store.read { tx in try tx.attachments(in: bucket).isEmpty })
        #expect(try fixture.rowCounts() == [2, 6])
    }

    @Test func `records have attachments by integers, texts, UUIDs in both forms and bytes`()
        async throws
    {
        try await live(
            AttachmentBucket("reels", of: \Reel.id), [-1, 5, 7].map(Reel.init), [-1, 5, 7]
        ) { id in try store.write { tx in _ = try tx.delete(Reel.self, key: id) } }
        try await live(
            AttachmentBucket("pages", of: \Page.id), ["", "a\0b", "é"].map(Page.init),
            ["", "a\0b", "é"]
        ) { id in try store.write { tx in _ = try tx.delete(Page.self, key: id) } }
        let ids = (1...3).map { number in
            UUID(uuid: (0xab, UInt8(number), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xcd))
        }
        try await live(AttachmentBucket("sheets", of: \Sheet.id), ids.map(Sheet.init), ids) { id in
            try store.write { tx in _ = try tx.delete(Sheet.self, key: id) }
        }
        try await live(AttachmentBucket("scans", of: \Scan.id), ids.map(Scan.init), ids) { id in
            try store.write { tx in _ = try tx.delete(Scan.self, key: id) }
        }
        let typed = ids.map(PageID.init)
        try await live(AttachmentBucket("typed", of: \Typed.id), typed.map(Typed.init), typed) {
            id in try store.write { tx in _ = try tx.delete(Typed(id: id)) }
        }
        let digests = (1...3).map { Data([UInt8($0)]) }
        let seals = digests.enumerated().map { Seal(number: $0, digest: $1) }
        try await live(AttachmentBucket("seals", of: \Seal.digest), seals, digests) { digest in
            try store.write { tx in _ = try tx.delete(Seal.where(\.digest == digest)) }
        }
    }

    // MARK: Removed with the record

    enum Route: CaseIterable {
        case record, key, query, sql, everything, cascade, replaced, uniqueReplaced, elsewhere
        case migration, dropped
    }

    /// Deletes the film 1, by a route; returns the films that are left.
    private func delete(_ route: Route) throws -> [Int64] {
        switch route {
        case .record:
            try store.write { tx in
                let film = try #require(try tx.find(Film.self, 1))
                _ = try tx.delete(film)
            }
        case .key: try store.write { tx in _ = try tx.delete(Film.self, key: 1) }
        case .query: try store.write { tx in _ = try tx.delete(Film.where(\.title == "film 1")) }
        case .sql: try fixture.execute("DELETE FROM film WHERE studio IS NOT NULL")
        case .everything:
            try fixture.execute("DELETE FROM film")
            return []
        case .cascade:
            try store.write { tx in _ = try tx.delete(FilmFixture.Studio.self, key: "a") }
        case .replaced: try fixture.execute("REPLACE INTO film (id, title) VALUES (1, 'new')")
        case .uniqueReplaced:
            try fixture.execute("INSERT OR REPLACE INTO film (id, title) VALUES (3, 'film 1')")
        case .elsewhere:
            try fixture.buckets.withConnection { connection in
                try connection.execute("PRAGMA foreign_keys = OFF")
                try connection.execute("DELETE FROM film WHERE id = 1")
            }
        case .migration:
            try store.migrate([
                Migration("m") { tx in _ = try tx.execute("DELETE FROM film WHERE id = 1") }
            ])
        case .dropped:
            try fixture.execute("DROP TABLE film")
            return []
        }
        return [2]
    }

    @Test(arguments: Route.allCases)
    func `an attachment is removed with its record, by whatever statement`(
        route: Route
    ) async throws {
        let left = try delete(route)
        #expect(try fixture.ids() == left)
        #expect(try fixture.rowCounts() == [left.count, 3 * left.count])
        for id in left { #expect(try await fixture.video(id) == fixture.bytes) }
        await expect(.notFound) { try await fixture.video(1) }
        if route == .dropped {
            // The table can be made again, and its records get new attachments.
            await expect(.notFound) {
                try await store.set(
                    contentsOf: AttachmentFixture.source(Data([1])), for: 1, in: videos)
            }
            try await store.write { tx in
                try tx.insert(Film(id: 1, title: "again"))
                try tx.set(Data([1]), for: 1, in: videos)
            }
            try fixture.execute("DELETE FROM film")
            #expect(try fixture.rowCounts() == [0, 0])
            try await store.write { tx in
                try tx.table("film").drop()
                _ = try tx.dropBucket("videos")
            }
            #expect(try fixture.rowCounts() == [0, 0])
        }
    }

    @Test func `a change of the record that keeps its key keeps the attachment`() async throws {
        try await store.write { tx in
            try tx.upsert(Film(id: 1, title: "a"))
            try tx.update(Film(id: 1, title: "b"))
            try tx.execute("UPDATE film SET id = id, title = 'c' WHERE id = 1")
        }
        #expect(try await fixture.video(1) == fixture.bytes)
    }

    @Test(arguments: ["here", "elsewhere", "in a migration"])
    func `an attachment follows its record to another key`(place: String) async throws {
        let sql = "UPDATE film SET id = 10 - id"
        switch place {
        case "here": try fixture.execute(sql)
        case "elsewhere":
            try fixture.buckets.withConnection { connection in
                try connection.execute("PRAGMA foreign_keys = OFF")
                try connection.execute(SQL(text: sql))
            }
        default:
            try await store.migrate([
                Migration("m") { tx in _ = try tx.execute(SQL(text: sql)) }
            ])
        }
        #expect(try fixture.ids() == [8, 9])
        #expect(try await fixture.video(9) == fixture.bytes)
        #expect(try fixture.rowCounts() == [2, 6])
    }

    @Test func `a deletion that is undone brings the attachment back`() async throws {
        struct Undone: Error {}
        let videos = videos
        try await store.write { tx throws in
            try? tx.savepoint { part throws in
                _ = try part.delete(Film.self, key: 1)
                #expect(try part.attachment(1, in: videos) == nil)
                throw Undone()
            }
            #expect(try tx.attachment(1, in: videos) != nil)
        }
        await #expect(throws: Undone.self) {
            try await store.write { tx in
                _ = try tx.delete(Film.all)
                try tx.insert(Film(id: 7, title: "new"))
                try tx.set(Data([1]), for: 7, in: videos)
                throw Undone()
            }
        }
        #expect(try fixture.rowCounts() == [2, 6])
        #expect(try await fixture.video(1) == fixture.bytes)
    }

    @Test(arguments: journalModes)
    func `a stream goes on to its end while the record is deleted`(
        mode: Configuration.JournalMode
    ) async throws {
        let fixture = try FilmFixture(mode)
        let loop = fixture.store.chunks(of: 1, in: fixture.videos).makeAsyncIterator()
        var read = try #require(try await loop.next())
        // Without a WAL the deletion waits for the stream.
        let deletion = Task {
            try await fixture.store.write { tx in _ = try tx.delete(Film.self, key: 1) }
            try await fixture.store.sweepExpiredEntries()
        }
        if mode == .wal { _ = try await deletion.value }
        while let chunk = try await loop.next() { read.append(chunk) }
        #expect(read == fixture.bytes)
        _ = try await deletion.value
        #expect(try fixture.ids() == [2])
    }

    // MARK: No record

    @Test func `no attachment is stored for a record that does not exist`() async throws {
        let isAsked = Shared(false)
        let source = AsyncStream<Data> {
            isAsked.value = true
            return nil
        }
        await expect(.notFound) {
            try await store.set(contentsOf: source, for: 9, in: videos)
        }
        await expect(.notFound) { try await store.append(contentsOf: source, to: 9, in: videos) }
        #expect(!isAsked.value)
        try await store.write { tx in
            // Also if the error is caught.
            expect(.notFound) { try tx.set(Data([1]), for: 9, in: videos) }
            expect(.notFound) { try tx.writeAttachment(9, in: videos) { try $0.append(Data([1])) } }
        }
        #expect(try fixture.rowCounts() == [2, 6])
        #expect(try await store.attachment(9, in: videos) == nil)
        #expect(try await store.remove(9, in: videos) == false)
        let empty = AttachmentBucket("others", of: \Film.id)
        #expect(try await store.attachment(1, in: empty) == nil)
    }

    /// A source of one piece, which writes to the store before it gives the piece.
    private func source(
        _ byteCount: Int, after write: @escaping @Sendable () async throws -> Void
    ) -> AsyncThrowingStream<Data, any Error> {
        let isFirst = Shared(true)
        return AsyncThrowingStream {
            guard isFirst.value else { return nil }
            isFirst.value = false
            try await write()
            return Data(count: byteCount)
        }
    }

    @Test(arguments: [1, 20 << 20])
    func `an upload for a record that is deleted meanwhile stores nothing`(
        byteCount: Int
    ) async throws {
        let store = store
        let source = source(byteCount) {
            try await store.write { tx in _ = try tx.delete(Film.self, key: 1) }
        }
        await expect(.notFound) {
            try await store.set(contentsOf: source, for: 1, in: videos)
        }
        let addition = self.source(10) {
            try await store.write { tx in _ = try tx.delete(Film.self, key: 2) }
        }
        await expect(.notFound) {
            try await store.append(contentsOf: addition, to: 2, in: videos)
        }
        #expect(try fixture.rowCounts() == [0, 0])
    }

    @Test(arguments: [1, 20 << 20])
    func `an upload never becomes the attachment of another record with the same key`(
        byteCount: Int
    ) async throws {
        let store = store
        let source = source(byteCount) {
            try await store.write { tx in
                _ = try tx.delete(Film.self, key: 2)
                #expect(try tx.insert(Film(id: nil, title: "another", studio: nil)) == 2)
            }
        }
        await expect(.conflict) {
            try await store.set(contentsOf: source, for: 2, in: videos)
        }
        #expect(try await store.attachment(2, in: videos) == nil)
        #expect(try fixture.ids() == [1])
    }

    @Test func `an upload that broke off ends with its record, or follows its key`() async throws {
        struct BrokenOff: Error {}
        let (store, isFirst) = (store, Shared(true))
        let source = AsyncThrowingStream<Data, any Error> {
            guard isFirst.value else { throw BrokenOff() }
            isFirst.value = false
            return Data(count: 10)
        }
        await #expect(throws: BrokenOff.self) {
            try await store.set(contentsOf: source, for: 2, in: videos, isResumable: true)
        }
        func uploads() throws -> [Int64] {
            try store.read { tx in try tx.uploads(in: videos).map(\.key) }
        }
        try fixture.execute("UPDATE film SET id = 9 WHERE id = 2")
        #expect(try uploads() == [9])
        try fixture.execute("DELETE FROM film WHERE id = 9")
        #expect(try uploads().isEmpty)
    }

    // MARK: Observation

    @Test func `a loop over the attachments hears of those that go with their records`()
        async throws
    {
        let loop = store.changes(in: videos).makeAsyncIterator()
        try await store.write { tx in
            _ = try tx.delete(Film.self, key: 1)
            try tx.execute("UPDATE film SET id = 7 WHERE id = 2")
        }
        guard case .commit(let rows)? = try await loop.next() else {
            Issue.record("no rows")
            return
        }
        var kinds: [Int64: ChangedRow.Kind] = [:]
        for row in rows { kinds[try row.key(in: videos)] = row.kind }
        #expect(kinds == [1: .delete, 2: .delete, 7: .insert])
    }

    @Test func `an observed attachment ends with its record`() async throws {
        let videos = videos
        let loop = store.observe { tx in try tx.attachment(1, in: videos)?.byteCount }
            .makeAsyncIterator()
        #expect(try await loop.next() == fixture.bytes.count)
        try await store.write { tx in _ = try tx.delete(Film.self, key: 1) }
        #expect(try await loop.next() == .some(nil))
    }

    // MARK: Speed

    @Test func `the triggers of attachments leave an update of a record as it is`() throws {
        try store.write { tx throws in
            let schema = RecordSchema(try RecordPlan.of(Film.self), try tx.connection())
            #expect(try schema.updatesOneRowAlone())
            try tx.execute("CREATE TRIGGER t AFTER UPDATE ON film BEGIN SELECT 1; END")
            #expect(try !schema.updatesOneRowAlone())
        }
    }
}
