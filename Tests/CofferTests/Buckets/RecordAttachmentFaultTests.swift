import Crypto
import Foundation
import Testing

@testable import Coffer

/// What can go wrong while attachments of records are written, read and removed.
@Suite(.againstHanging, .onOwnThreads) struct RecordAttachmentFaultTests {
    private typealias Film = FilmFixture.Film
    private let fixture: FilmFixture
    private var store: Store { fixture.store }
    private var videos: AttachmentBucket<Int64> { fixture.videos }

    init() throws { fixture = try FilmFixture() }

    // MARK: Piece by piece

    @Test(arguments: [
        [], [0], [1], [262_143, 1], [262_144], [100_000, 0, 200_000, 300_000], [1 << 20, 7],
    ])
    func `a record and its attachment, in pieces, appear at once`(sizes: [Int]) async throws {
        let bytes = AttachmentFixture.bytes(sizes.reduce(0, +))
        let videos = videos
        let stored = try await store.write { tx in
            try tx.insert(Film(id: 3, title: "c"))
            return try tx.writeAttachment(3, in: videos) { video in
                var start = 0
                for size in sizes {
                    try video.append(bytes[start..<start + size])
                    start += size
                    #expect(video.byteCount == start)
                }
            }
        }
        #expect(stored == AttachmentFixture.information(bytes))
        #expect(try await fixture.video(3) == bytes)
    }

    @Test func `a body that throws stores nothing, also if its error is caught`() async throws {
        struct Stop: Error {}
        try await store.write { tx in
            #expect(throws: Stop.self) {
                try tx.writeAttachment(1, in: videos) { video in
                    try video.append(Data(count: 1 << 20))
                    throw Stop()
                }
            }
        }
        #expect(try await fixture.video(1) == fixture.bytes)
        #expect(try fixture.rowCounts() == [2, 6])
    }

    @Test func `an attachment of which a piece was refused is not stored`() async throws {
        try fixture.execute(
            """
            CREATE TRIGGER t BEFORE INSERT ON "coffer:chunks" WHEN new.id & 0xffffff = 1
            BEGIN SELECT RAISE(ABORT, 'no'); END
            """)
        try await store.write { tx in
            expect(.constraint) {
                try tx.writeAttachment(1, in: videos) { video in
                    try video.append(Data(count: 262_144))
                    try? video.append(Data(count: 262_144))
                }
            }
            expect(.constraint) {
                try tx.writeAttachment(1, in: videos) { video in
                    try? video.append(Data(count: 600_000))
                    try video.append(Data())
                }
            }
        }
        try fixture.execute("DROP TRIGGER t")
        #expect(try await fixture.video(1) == fixture.bytes)
        #expect(try fixture.rowCounts() == [2, 6])
    }

    @Test func `a cancelled task ends within the attachment, and nothing is changed`() async throws
    {
        let (store, videos, hold) = (store, videos, Hold())
        let task = Task {
            try await store.write { tx in
                try tx.insert(Film(id: 3, title: "c"))
                try tx.writeAttachment(3, in: videos) { video in
                    try video.append(Data(count: 1 << 20))
                    hold.pass()
                    while true { try video.append(Data(count: 1)) }
                }
            }
        }
        await hold.isEntered()
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(try fixture.ids() == [1, 2])
        #expect(try await store.read { tx in try tx.find(Film.self, 3) } == nil)
        #expect(try fixture.rowCounts() == [2, 6])
    }

    @Test func `a store that is closed, or opened for reading only, refuses`() async throws {
        try await store.close()
        expect(.closed) { try store.attachment(1, in: videos) }
        expect(.closed) { try store.write { tx in try tx.create(videos) } }
        await expect(.closed) {
            try await store.set(contentsOf: AttachmentFixture.source(Data()), for: 1, in: videos)
        }
        await expect(.closed) { for try await _ in store.chunks(of: 1, in: videos) {} }
        let reader = try await Store(
            path: fixture.buckets.folder.path(), key: .numbered(1), mode: .readOnly)
        await expect(.readOnly) {
            try await reader.set(contentsOf: AttachmentFixture.source(Data()), for: 1, in: videos)
        }
        var read = Data()
        for try await chunk in reader.chunks(of: 1, in: videos) { read += chunk }
        #expect(read == fixture.bytes)
    }

    // MARK: Damage

    @Test func `a damaged chunk is an error, and goes with its record`() async throws {
        try fixture.execute(
            "UPDATE \"coffer:chunks\" SET bytes = zeroblob(length(bytes)) WHERE id >> 24 = 1")
        await expect(.damaged) { try await fixture.video(1) }
        try fixture.execute("DELETE FROM \"coffer:chunks\" WHERE id >> 24 = 2 AND id & 1")
        await expect(.damaged) { try await fixture.video(2) }
        try fixture.execute("DELETE FROM film")
        #expect(try fixture.rowCounts() == [0, 0])
    }

    // MARK: The disk

    @Test func `an attachment that does not fit leaves record and old attachment`() async throws {
        let (bytes, videos) = (AttachmentFixture.bytes(20 << 20), videos)
        try await store.write { tx in
            try tx.connection().current().run("PRAGMA max_page_count = 1000")
        }
        await expect(.full) {
            try await store.set(
                contentsOf: AttachmentFixture.source(bytes), for: 1, in: videos)
        }
        let error = await expect(.rolledBack) {
            try await store.write { tx in
                try tx.insert(Film(id: 3, title: "c"))
                try tx.set(bytes, for: 3, in: videos)
            }
        }
        #expect((error?.cause as? StoreError)?.code == .full)
        #expect(try await fixture.video(1) == fixture.bytes)
        #expect(try fixture.ids() == [1, 2])
        #expect(try await store.read { tx in try tx.count(Film.all) } == 2)
        // There is room again once the record of another one is deleted.
        try await store.write { tx in _ = try tx.delete(Film.self, key: 2) }
        #expect(try fixture.rowCounts() == [1, 3])
        try await store.write { tx in
            try tx.insert(Film(id: 3, title: "c"))
            try tx.set(fixture.bytes, for: 3, in: videos)
        }
    }

    @Test(arguments: journalModes)
    func `a write that fails at any step leaves records and attachments together`(
        mode: Configuration.JournalMode
    ) throws {
        let bytes = AttachmentFixture.bytes(600_000)
        var skip = 0
        while true {
            let (folder, disk) = (try TemporaryFolder(), try FaultDisk())
            var configuration = Configuration.testing(mode)
            configuration.vfs = disk.name
            configuration.expirySweepInterval = nil
            let videos = videos
            let store = try Store(
                path: folder.path(), key: .numbered(1), configuration: configuration)
            try store.write { tx in
                try tx.insert(Film(id: 1, title: "a"))
                try tx.set(bytes, for: 1, in: videos)
            }
            disk.arm(.changing, skip: skip)
            let isDone: Bool
            do {
                try store.write { tx in
                    _ = try tx.delete(Film.self, key: 1)
                    try tx.insert(Film(id: 2, title: "b"))
                    try tx.set(bytes, for: 2, in: videos)
                }
                isDone = true
            } catch {
                isDone = false
            }
            let isStruck = disk.struckCount > 0
            disk.disarm()
            try? store.close()
            let again = try Store(
                path: folder.path(), key: .numbered(1), configuration: configuration)
            try again.read { tx throws in
                let ids = try tx.fetch(Film.all).compactMap(\.id)
                #expect(try tx.attachments(in: videos).map(\.key) == ids)
                #expect(ids == [2] || !isDone && ids == [1])
                let read = try tx.withAttachment(ids[0], in: videos) { video in
                    var read = Data()
                    try video.forEachChunk { read.append($0) }
                    return read
                }
                #expect(read == bytes)
            }
            #expect(try again.verify().isGood)
            guard isStruck else { break }
            // The pages of the bytes are alike.
            skip += isLongRun || skip < 10 ? 1 : 29
        }
        #expect(skip > 0)
    }

    // MARK: Beyond the engine's limit

    @Test(.enabled(if: isLongRun, "it writes 4 GiB"))
    func `a record has an attachment of four gigabytes`() async throws {
        let piece = AttachmentFixture.bytes(1 << 20)
        let count = 4096
        let number = Shared(0)
        let source = AsyncStream<Data> {
            number.update { $0 += 1 }
            guard number.value <= count else { return nil }
            return withUnsafeBytes(of: number.value.littleEndian) { Data($0) } + piece.dropFirst(8)
        }
        let begin = ContinuousClock.now
        let stored = try await store.set(contentsOf: source, for: 1, in: videos)
        let written = ContinuousClock.now
        #expect(stored.byteCount == 4 << 30)
        var hash = SHA256()
        var byteCount = 0
        for try await chunk in store.chunks(of: 1, in: videos) {
            hash.update(data: chunk)
            byteCount += chunk.count
        }
        #expect(byteCount == stored.byteCount && Data(hash.finalize()) == stored.sha256)
        let read = ContinuousClock.now
        let end = stored.byteCount
        #expect(try await fixture.video(1, end - 5..<end) == piece.suffix(5))
        try await store.write { tx in _ = try tx.delete(Film.self, key: 1) }
        let deleted = ContinuousClock.now
        #expect(try await store.attachment(1, in: videos) == nil)
        #expect(try fixture.rowCounts() == [1, 3])
        print(
            "4 GiB of a record: written in \(begin.duration(to: written)), read in "
                + "\(written.duration(to: read)), deleted in \(read.duration(to: deleted)), "
                + "freed in \(deleted.duration(to: .now))")
    }
}
