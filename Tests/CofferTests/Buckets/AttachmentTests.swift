import Foundation
import Testing

@testable import Coffer

@Suite(.againstHanging, .onOwnThreads) struct AttachmentTests {
    private static let chunk = Contents.chunkByteCount
    private static let sizes = [0, 1, chunk - 1, chunk, chunk + 1, 5 << 20]

    @Test(arguments: sizes, journalModes)
    func `an attachment goes in and comes out as streams`(
        byteCount: Int, mode: Configuration.JournalMode
    ) async throws {
        let fixture = try AttachmentFixture(mode)
        let bytes = AttachmentFixture.bytes(byteCount)
        let expected = AttachmentFixture.information(bytes)
        let set = try await fixture.store.set(
            contentsOf: AttachmentFixture.source(bytes), for: "a", in: fixture.films)
        #expect(set == expected)
        #expect(try await fixture.stored("a") == bytes)
        #expect(try await fixture.store.attachment("a", in: fixture.films) == expected)
        #expect(try fixture.rowCounts() == [1, (byteCount + Self.chunk - 1) / Self.chunk])
    }

    @Test func `an attachment that is refused leaves no bytes, also if the error is caught`() throws
    {
        let fixture = try AttachmentFixture()
        let others = Bucket<String, Int>("others")
        try fixture.store.write { tx in
            try tx.set(1, for: "a", in: others)
            _ = try? tx.set(
                Data([1]), for: "a", in: fixture.films,
                expiring: .at(Date(timeIntervalSince1970: .infinity)))
            _ = try? tx.set(Data([1]), for: "a", in: AttachmentBucket<String>("others"))
        }
        try fixture.store.read { tx throws in
            guard try tx.tableExists("coffer:contents") else { return }
            #expect(
                try tx.requireScalar("SELECT count(*) FROM \"coffer:contents\"", as: Int.self) == 0)
        }
    }

    @Test func `a part is read from the chunks that have it`() async throws {
        let fixture = try AttachmentFixture()
        let bytes = AttachmentFixture.bytes(3 * Self.chunk + 5)
        try await fixture.store.write { tx in try tx.set(bytes, for: "a", in: fixture.films) }
        let ranges = [
            0..<0, 0..<1, Self.chunk - 1..<Self.chunk + 1, 0..<bytes.count,
            bytes.count..<bytes.count, 2 * Self.chunk..<bytes.count,
        ]
        for range in ranges {
            #expect(try await fixture.stored("a", range) == bytes[range])
            let read = try await fixture.store.read { tx in
                try tx.withAttachment("a", in: fixture.films) { try $0.bytes(in: range) }
            }
            #expect(read == bytes[range])
        }
        for range in [-1..<1, 0..<bytes.count + 1, bytes.count + 1..<bytes.count + 1] {
            await #expect(throws: StoreError.self) { try await fixture.stored("a", range) }
            expect(.misuse) {
                try fixture.store.read { tx in
                    try tx.withAttachment("a", in: fixture.films) { try $0.bytes(in: range) }
                }
            }
        }
    }

    @Test func `an attachment is replaced at once, and the old chunks are freed in slices`()
        async throws
    {
        let fixture = try AttachmentFixture()
        let (old, new) = (
            AttachmentFixture.bytes(40 * Self.chunk), AttachmentFixture.bytes(10, seed: 1)
        )
        try await fixture.store.set(
            contentsOf: AttachmentFixture.source(old), for: "a", in: fixture.films)
        let loop = fixture.store.chunks(of: "a", in: fixture.films).makeAsyncIterator()
        var read = try #require(try await loop.next())
        try await fixture.store.set(
            contentsOf: AttachmentFixture.source(new), for: "a", in: fixture.films)
        #expect(try await fixture.stored("a") == new)
        while let chunk = try await loop.next() { read.append(chunk) }
        #expect(read == old)
        #expect(try fixture.rowCounts() == [2, 41])
        for expected in [[2, 25], [2, 9], [1, 1], [1, 1]] {
            _ = try await fixture.store.write { tx in try Contents.free(tx.connection()) }
            #expect(try fixture.rowCounts() == expected)
        }
        #expect(try await fixture.stored("a") == new)
    }

    @Test func `what was removed, dropped or has expired is gone at once, and then from the file`()
        async throws
    {
        let fixture = try AttachmentFixture()
        let (store, films) = (fixture.store, fixture.films)
        for key in ["a", "b", "c", "d"] {
            try await store.write { tx in
                try tx.set(
                    AttachmentFixture.bytes(10), for: key, in: films,
                    expiring: key == "b" ? .after(.seconds(10)) : .standard)
            }
        }
        #expect(try await store.remove("a", in: films))
        #expect(try await !store.remove("a", in: films))
        fixture.buckets.clock.advance(by: 11)
        #expect(try await store.attachment("b", in: films) == nil)
        await #expect(throws: StoreError.self) { try await fixture.stored("b") }
        let left = try await store.read { tx in try tx.attachments(in: films).map(\.key) }
        #expect(left == ["c", "d"])
        try await store.sweepExpiredEntries()
        #expect(try fixture.rowCounts() == [2, 2])
        // A statement of the user's own frees the chunks as well.
        try fixture.execute("DELETE FROM \"bucket:films\" WHERE key = 'c'")
        try await store.sweepExpiredEntries()
        #expect(try fixture.rowCounts() == [1, 1])
        #expect(try await store.write { tx in try tx.dropBucket("films") })
        try await store.sweepExpiredEntries()
        #expect(try fixture.rowCounts() == [0, 0])
    }

    @Test func `a store frees chunks without a call`() async throws {
        let folder = try TemporaryFolder()
        var configuration = Configuration.testing()
        configuration.expirySweepInterval = .milliseconds(1)
        let store = try await Store(
            path: folder.path(), key: .numbered(1), configuration: configuration)
        let films = AttachmentBucket<Int>("films")
        try await store.set(
            contentsOf: AttachmentFixture.source(AttachmentFixture.bytes(20 * Self.chunk)), for: 1,
            in: films)
        try await store.remove(1, in: films)
        let isFreed = try await comes {
            try store.read { tx in
                try tx.requireScalar("SELECT count(*) FROM \"coffer:contents\"", as: Int.self) == 0
            }
        }
        #expect(isFreed)
    }

    @Test(arguments: journalModes)
    func `bytes are added at the end, and the digest is of all of them`(
        mode: Configuration.JournalMode
    ) async throws {
        let fixture = try AttachmentFixture(mode)
        var all = Data()
        for (number, count) in [0, 10, Self.chunk - 10, 1, 3 * Self.chunk, 5].enumerated() {
            let bytes = AttachmentFixture.bytes(count, seed: UInt8(number))
            all += bytes
            let added = try await fixture.store.append(
                contentsOf: AttachmentFixture.source(bytes), to: "log", in: fixture.films)
            #expect(added == AttachmentFixture.information(all))
            #expect(try await fixture.stored("log") == all)
        }
        #expect(try fixture.rowCounts() == [1, 5])
    }

    @Test func `many who add to one attachment lose no byte`() async throws {
        let fixture = try AttachmentFixture()
        let (store, films) = (fixture.store, fixture.films)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<6 {
                group.addTask {
                    let piece = Data(repeating: UInt8(number), count: 1000)
                    while true {
                        do {
                            try await store.append(
                                contentsOf: AttachmentFixture.source([piece]), to: "log", in: films)
                            return
                        } catch let error as StoreError where error.code == .conflict {
                            continue
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        let bytes = try await fixture.stored("log")
        #expect(bytes.count == 6000)
        for number in 0..<6 { #expect(bytes.count { $0 == UInt8(number) } == 1000) }
    }

    @Test func `an attachment and a record are one transaction`() throws {
        let fixture = try AttachmentFixture()
        try fixture.execute("CREATE TABLE film(id TEXT)")
        struct Undone: Error {}
        #expect(throws: Undone.self) {
            try fixture.store.write { tx in
                try tx.execute("INSERT INTO film VALUES ('a')")
                try tx.set(Data([1]), for: "a", in: fixture.films)
                #expect(try tx.contains("a", in: fixture.films))
                throw Undone()
            }
        }
        #expect(try fixture.store.attachment("a", in: fixture.films) == nil)
        #expect(try fixture.rowCounts() == [0, 0])
    }

    @Test func `UUIDs and composites are keys, and attachments are listed in their order`() throws {
        let fixture = try AttachmentFixture()
        let store = fixture.store
        let photos = AttachmentBucket<CompositeKey<UUID, Int>>("photos")
        let user = UUID()
        try store.write { tx in
            for number in [3, 1, 2] {
                try tx.set(Data(count: number), for: CompositeKey(user, number), in: photos)
            }
            try tx.set(Data(), for: CompositeKey(UUID(), 1), in: photos)
        }
        try store.read { tx in
            let found = try tx.attachments(in: photos, .starting(with: user), order: .descending)
            #expect(found.map(\.value.byteCount) == [3, 2, 1])
            #expect(try tx.count(in: photos) == 4)
            #expect(try tx.contains(CompositeKey(user, 2), in: photos))
        }
        #expect(
            try store.write { tx in try tx.removeAll(in: photos, .starting(with: user)) } == 3)
    }

    @Test func `the time of expiry can be asked for and changed, and adding bytes keeps it`()
        async throws
    {
        let fixture = try AttachmentFixture()
        let (store, films) = (fixture.store, AttachmentBucket<Int>("films", lifetime: .seconds(60)))
        try await store.write { tx in try tx.set(Data([1]), for: 1, in: films) }
        #expect(
            try await store.read { tx in try tx.remainingLifetime(of: 1, in: films) }
                == .limited(.seconds(60)))
        try await store.write { tx throws in
            #expect(try tx.touch(1, in: films, expiring: .after(.seconds(90))))
        }
        try await store.append(contentsOf: AttachmentFixture.source([Data([2])]), to: 1, in: films)
        #expect(
            try await store.read { tx in try tx.remainingLifetime(of: 1, in: films) }
                == .limited(.seconds(90)))
        fixture.buckets.clock.advance(by: 91)
        #expect(try await store.attachment(1, in: films) == nil)
        // A new one, with the bucket's lifetime.
        try await store.append(contentsOf: AttachmentFixture.source([Data([3])]), to: 1, in: films)
        #expect(
            try await store.attachment(1, in: films) == AttachmentFixture.information(Data([3])))
        #expect(
            try await store.read { tx in try tx.remainingLifetime(of: 1, in: films) }
                == .limited(.seconds(60)))
    }

    @Test func `the bucket is listed with the bytes of its attachments, renamed, and not copied`()
        async throws
    {
        let fixture = try AttachmentFixture()
        try await fixture.store.write { tx in
            try tx.set(Data(count: 1_000_000), for: "key", in: fixture.films)
        }
        let listed = try await fixture.store.read { tx in try tx.buckets() }
        #expect(listed.map(\.codec) == ["attachment"])
        #expect((1_000_003...1_000_012).contains(listed[0].byteCount))
        expect(.unsupported) {
            try fixture.store.write { tx in try tx.copyBucket("films", to: "other") }
        }
        try await fixture.store.write { tx in try tx.renameBucket("films", to: "movies") }
        let movies = AttachmentBucket<String>("movies")
        #expect(try await fixture.store.attachment("key", in: movies)?.byteCount == 1_000_000)
        #expect(try await fixture.store.attachment("key", in: fixture.films) == nil)
        try await fixture.store.remove("key", in: movies)
        try await fixture.store.sweepExpiredEntries()
        #expect(try fixture.rowCounts() == [0, 0])
    }

    @Test func `another bucket's verbs refuse attachments, and the other way round`() throws {
        let fixture = try AttachmentFixture()
        try fixture.store.write { tx in try tx.set(Data(), for: "a", in: fixture.films) }
        expect(.mismatch) {
            try fixture.store.get("a", in: Bucket<String, Int64>("films"))
        }
        expect(.mismatch) {
            try fixture.store.set(Data(), for: "a", in: Bucket<String, Data>("films"))
        }
        try fixture.store.set(1, for: "a", in: Bucket<String, Int64>("numbers"))
        let numbers = AttachmentBucket<String>("numbers")
        expect(.mismatch) { try fixture.store.attachment("a", in: numbers) }
        expect(.mismatch) {
            try fixture.store.write { tx in try tx.set(Data(), for: "a", in: numbers) }
        }
        expect(.mismatch) {
            try fixture.store.attachment(1, in: AttachmentBucket<Int>("films"))
        }
        #expect(try fixture.rowCounts() == [1, 0])
        let codec = BucketCodec<Int>(
            name: "attachment", encode: { _ in Data() }, decode: { _ in 0 })
        expect(.misuse) { try fixture.store.get(1, in: Bucket<Int, Int>("n", codec: codec)) }
    }

    @Test func `changes and a history hear of each attachment by its key`() async throws {
        let fixture = try AttachmentFixture()
        let (store, films) = (fixture.store, fixture.films)
        try await store.write { tx in
            try tx.set(Data([1]), for: "a", in: films)
            try tx.keepHistory(of: "bucket:films")
        }
        let loop = store.changes(in: films).makeAsyncIterator()
        async let first = loop.next()
        try await store.append(
            contentsOf: AttachmentFixture.source([Data([2])]), to: "a", in: films)
        guard case .commit(let rows)? = try await first else {
            Issue.record("no commit")
            return
        }
        #expect(try rows.map { try $0.key(as: String.self) } == ["a"])
        let count = try await store.read { tx in
            try tx.requireScalar("SELECT count(*) FROM \"coffer:log\"", as: Int.self)
        }
        #expect(count == 1)
    }

    @Test func `salvage saves attachments, and tells by their digest which are whole`() async throws
    {
        let fixture = try AttachmentFixture()
        let bytes = AttachmentFixture.bytes(2 * Self.chunk)
        for key in ["a", "b", "c"] {
            try await fixture.store.set(
                contentsOf: AttachmentFixture.source(bytes), for: key, in: fixture.films)
        }
        let page = fixture.store.core.pool.profile.pageByteCount
        try await fixture.store.close()
        let path = fixture.buckets.folder.path()
        try Damage.flip(path, at: try Damage.byteCount(path) / 2 / page * page + 100)
        let copy = fixture.buckets.folder.path("copy.db")
        let report = try await Store.salvage(damagedAt: path, key: .numbered(1), to: copy)
        #expect(!report.isComplete)
        let saved = try await Store(path: copy, key: .numbered(1))
        var whole: [String] = []
        for key in ["a", "b", "c"] {
            do {
                var read = Data()
                for try await chunk in saved.chunks(of: key, in: fixture.films) { read += chunk }
                #expect(read == bytes)
                whole.append(key)
            } catch let error as StoreError where error.code == .damaged {
                continue
            }
        }
        #expect(whole == ["a", "c"])
        try await saved.remove("b", in: fixture.films)
        try await saved.sweepExpiredEntries()
        #expect(try await saved.read { tx in try tx.attachments(in: fixture.films).count } == 2)
    }

    @Test(arguments: journalModes)
    func `compact, rekey and a backup keep every attachment`(
        mode: Configuration.JournalMode
    ) async throws {
        let fixture = try AttachmentFixture(mode)
        let bytes = AttachmentFixture.bytes(2 * Self.chunk + 1)
        try await fixture.store.set(
            contentsOf: AttachmentFixture.source(bytes), for: "a", in: fixture.films)
        try await fixture.store.write { tx in
            try tx.set(AttachmentFixture.bytes(5), for: "b", in: fixture.films)
        }
        try await fixture.store.remove("b", in: fixture.films)
        try await fixture.store.compact()
        try await fixture.store.rekey(to: .numbered(2))
        #expect(try await fixture.stored("a") == bytes)
        try await fixture.store.sweepExpiredEntries()
        #expect(try fixture.rowCounts() == [1, 3])
        let path = fixture.buckets.folder.path("copy.db")
        try await fixture.store.backup(to: path, key: .numbered(3))
        let copy = try await Store(path: path, key: .numbered(3))
        var copied = Data()
        for try await chunk in copy.chunks(of: "a", in: fixture.films) { copied += chunk }
        #expect(copied == bytes)
        // The triggers came along, and ids are not used again.
        try await copy.remove("a", in: fixture.films)
        try await copy.sweepExpiredEntries()
        try await copy.write { tx in
            try tx.set(Data([1]), for: "c", in: fixture.films)
            #expect(try tx.get("c", in: fixture.films.entries) == 3)
        }
    }
}
