import Foundation
import Testing

@testable import Coffer

/// The tables of attachments that belong to records: made, compared, changed and copied.
@Suite(.againstHanging, .onOwnThreads) struct RecordAttachmentSchemaTests {
    private typealias Film = FilmFixture.Film
    private let fixture: FilmFixture
    private var store: Store { fixture.store }
    private var videos: AttachmentBucket<Int64> { fixture.videos }

    init() throws { fixture = try FilmFixture() }

    private func schema(of names: [String]) throws -> [String?] {
        try store.read { tx throws in
            try names.map { name in
                try tx.scalar("SELECT sql FROM sqlite_master WHERE name = \(name)", as: String.self)
            }
        }
    }

    @Test func `the file has a foreign key and two triggers`() throws {
        let names = [
            "bucket:videos", "coffer:bucket:videos:record-deleted",
            "coffer:bucket:videos:record-changed",
        ]
        #expect(
            try schema(of: names) == [
                """
                CREATE TABLE "bucket:videos" (key INTEGER PRIMARY KEY NOT NULL REFERENCES "film" \
                ("id") ON DELETE CASCADE ON UPDATE CASCADE, value)
                """,
                """
                CREATE TRIGGER "coffer:bucket:videos:record-deleted" AFTER DELETE ON "film" \
                BEGIN DELETE FROM "bucket:videos" WHERE key = old."id"; \
                UPDATE "coffer:contents" SET state = 'removed' WHERE state <> 'whole' \
                AND state = 'unfinished' AND bucket = 'videos' AND key = old."id"; END
                """,
                """
                CREATE TRIGGER "coffer:bucket:videos:record-changed" AFTER UPDATE OF "id" ON \
                "film" WHEN old."id" IS NOT new."id" BEGIN UPDATE "bucket:videos" \
                SET key = new."id" WHERE key = old."id"; \
                UPDATE "coffer:contents" SET key = new."id" WHERE state <> 'whole' \
                AND state = 'unfinished' AND bucket = 'videos' AND key = old."id"; END
                """,
            ])
    }

    // MARK: Names

    private struct Hostile: Record {
        static let table = "fi\"lm'; -- é"
        static let key = ["i\"d'"]
        var id: String
        enum CodingKeys: String, CodingKey { case id = "i\"d'" }
    }

    @Test(arguments: ["v\"ideos'; DROP TABLE x; --", "🎬 conflict", "a:record-deleted"])
    func `any name will do for bucket, table and key`(name: String) async throws {
        let bucket = AttachmentBucket(name, of: \Hostile.id)
        let key = "'\"\u{0}--"
        try await store.write { tx in try tx.insert(Hostile(id: key)) }
        try await store.set(
            contentsOf: AttachmentFixture.source(Data([1])), for: key, in: bucket)
        try await store.write { tx in
            try tx.update(Hostile(id: key))
            try tx.renameBucket(name, to: name + "\"2")
        }
        let renamed = AttachmentBucket(name + "\"2", of: \Hostile.id)
        #expect(try await store.attachment(key, in: renamed)?.byteCount == 1)
        try await store.write { tx in _ = try tx.delete(Hostile.self, key: key) }
        #expect(try await store.attachment(key, in: renamed) == nil)
        #expect(try fixture.rowCounts() == [2, 6])
        expect(.sql) {
            try store.write { tx in try tx.create(AttachmentBucket("a\0", of: \Film.id)) }
        }
        expect(.misuse) {
            try store.write { tx in try tx.create(AttachmentBucket("", of: \Film.id)) }
        }
    }

    @Test func `a bucket that is renamed or dropped leaves the records free`() async throws {
        try await store.write { tx in try tx.renameBucket("videos", to: "movies") }
        let movies = AttachmentBucket("movies", of: \Film.id)
        try fixture.execute("DELETE FROM film WHERE id = 1")
        try await store.read { tx throws in
            #expect(try tx.attachments(in: movies).map(\.key) == [2])
        }
        try await store.write { tx in _ = try tx.dropBucket("movies") }
        try fixture.execute("UPDATE film SET id = 5")
        try fixture.execute("DELETE FROM film")
        #expect(try fixture.rowCounts() == [0, 0])
    }

    // MARK: Types

    private struct Odd: Record {
        var id: UInt64
        var created: Date
        var title: String
        var other: String { title }
        static var indexes: [Index<Odd>] { [Index(\.created, isUnique: true)] }
    }

    private struct Pair: Record {
        var left: Int
        var right: Int
        static let key = ["left", "right"]
    }

    @Test func `a property that cannot be the key of attachments is misuse`() async throws {
        func expectMisuse<K: BucketKey>(_ bucket: AttachmentBucket<K>, _ key: K) async {
            expect(.misuse) { try store.attachment(key, in: bucket) }
            expect(.misuse) { try store.write { tx in try tx.create(bucket) } }
            expect(.misuse) { try store.write { tx in try tx.set(Data(), for: key, in: bucket) } }
            await expect(.misuse) {
                try await store.set(
                    contentsOf: AttachmentFixture.source(Data()), for: key, in: bucket)
            }
        }
        await expectMisuse(AttachmentBucket("o", of: \Odd.id), 1)
        await expectMisuse(AttachmentBucket("o", of: \Odd.created), .now)
        await expectMisuse(AttachmentBucket("o", of: \Odd.title), "a")
        await expectMisuse(AttachmentBucket("o", of: \Odd.other), "a")
        await expectMisuse(AttachmentBucket("o", of: \Pair.left), 1)
    }

    @Test func `a bucket of other records, of none, or of other keys is a mismatch`() throws {
        struct Other: Record {
            var id: Int64
        }
        struct Text: Record {
            var id: String
        }
        expect(.mismatch) {
            try store.attachment(1, in: AttachmentBucket("videos", of: \Other.id))
        }
        expect(.mismatch) {
            try store.attachment("1", in: AttachmentBucket("videos", of: \Text.id))
        }
        try store.write { tx in
            try tx.set(Data([1]), for: 1, in: AttachmentBucket<Int64>("free"))
            try tx.set(1, for: 1, in: Bucket<Int64, Int>("numbers"))
        }
        expect(.mismatch) { try store.attachment(1, in: AttachmentBucket("free", of: \Film.id)) }
        expect(.mismatch) {
            try store.write { tx in try tx.create(AttachmentBucket("numbers", of: \Film.id)) }
        }
        // A program that knows nothing of the records reads and writes their attachments.
        let plain = AttachmentBucket<Int64>("videos")
        #expect(try store.attachment(1, in: plain) != nil)
        expect(.constraint) { try store.write { tx in try tx.set(Data(), for: 9, in: plain) } }
    }

    // MARK: Tables of another form

    @Test(arguments: [
        "CREATE TABLE clip (id INTEGER, title TEXT)",
        "CREATE VIEW clip AS SELECT 1 AS id, 'a' AS title",
    ])
    func `a table whose keys are not unique in the file is a mismatch`(sql: String) async throws {
        struct Clip: Record {
            var id: Int64
            var title: String
        }
        let clips = AttachmentBucket("clips", of: \Clip.id)
        try fixture.execute(sql)
        if sql.contains("TABLE") { try fixture.execute("INSERT INTO clip VALUES (1, 'a')") }
        await expect(.mismatch) {
            try await store.set(contentsOf: AttachmentFixture.source(Data([1])), for: 1, in: clips)
        }
        expect(.mismatch) { try store.write { tx in try tx.create(clips) } }
        // The table can still be changed.
        if sql.contains("TABLE") { try fixture.execute("DELETE FROM clip") }
        #expect(try fixture.rowCounts() == [2, 6])
    }

    @Test func `a table without the column is an error, and nothing is stored`() throws {
        struct Clip: Record {
            var id: Int64
        }
        try fixture.execute("CREATE TABLE clip (other INTEGER PRIMARY KEY)")
        let clips = AttachmentBucket("clips", of: \Clip.id)
        expect(.sql) { try store.write { tx in try tx.set(Data(), for: 1, in: clips) } }
        expect(.mismatch) { try store.write { tx in try tx.create(clips) } }
        try fixture.execute("INSERT INTO clip VALUES (1)")
        try fixture.execute("DELETE FROM clip")
    }

    @Test func `a temporary table of the name has no attachments`() throws {
        try store.write { tx in
            try tx.execute("CREATE TEMP TABLE film (id INTEGER PRIMARY KEY)")
            try tx.execute("INSERT INTO temp.film VALUES (9)")
            expect(.notFound) { try tx.set(Data(), for: 9, in: videos) }
            try tx.set(Data([1]), for: 1, in: videos)
            try tx.execute("DROP TABLE temp.film")
        }
    }

    // MARK: create

    @Test(arguments: [false, true])
    func `an existing bucket is given to records, with its bytes and times of expiry`(
        isMigration: Bool
    ) async throws {
        let free = AttachmentBucket<Int64>("trailers")
        let trailers = AttachmentBucket("trailers", of: \Film.id)
        let bytes = AttachmentFixture.bytes(300_000)
        try await store.write { tx in
            try tx.set(bytes, for: 1, in: free)
            try tx.set(bytes, for: 2, in: free, expiring: .after(.seconds(60)))
            try tx.set(bytes, for: 3, in: free)
        }
        let before = try schema(of: ["bucket:trailers"])
        let give: @Sendable (inout WriteTransaction) throws -> Void = { tx in
            try tx.create(trailers)
        }
        // The film 3 does not exist.
        expect(.constraint) {
            if isMigration {
                try store.migrate([Migration("m", give)])
            } else {
                try store.write { tx in try give(&tx) }
            }
        }
        #expect(try schema(of: ["bucket:trailers"]) == before)
        try await store.remove(3, in: free)
        if isMigration {
            try await store.migrate([Migration("m", give)])
        } else {
            try await store.write(give)
        }
        var read = Data()
        for try await chunk in store.chunks(of: 1, in: trailers) { read += chunk }
        #expect(read == bytes)
        try await store.write { tx throws in
            #expect(try tx.remainingLifetime(of: 2, in: trailers) == .limited(.seconds(60)))
            #expect(try tx.remainingLifetime(of: 1, in: trailers) == .unlimited)
        }
        fixture.buckets.clock.advance(by: 60)
        try fixture.execute("DELETE FROM film WHERE id = 1")
        #expect(try fixture.rowCounts() == [1, 3])
        let version = try await store.read { tx in
            try tx.requireScalar("PRAGMA schema_version", as: Int.self)
        }
        try await store.write(give)
        let after = try await store.read { tx in
            try tx.requireScalar("PRAGMA schema_version", as: Int.self)
        }
        #expect(version == after)
    }

    @Test func `a bucket with a history or triggers is given to nobody`() throws {
        let trailers = AttachmentBucket("trailers", of: \Film.id)
        try store.write { tx in
            try tx.set(Data(), for: 1, in: AttachmentBucket<Int64>("trailers"))
            try tx.execute(
                "CREATE TRIGGER t AFTER INSERT ON \"bucket:trailers\" BEGIN SELECT 1; END")
        }
        expect(.unsupported) { try store.write { tx in try tx.create(trailers) } }
    }

    @Test(arguments: [
        "CREATE TABLE caption(film REFERENCES \"bucket:plain\"(key) ON DELETE CASCADE, text)",
        "CREATE TRIGGER gone AFTER DELETE ON film BEGIN DELETE FROM \"bucket:plain\"; END",
        "CREATE VIEW keys AS SELECT key FROM \"Bucket:Plain\"",
    ])
    func `a bucket whose table others name is given to nobody`(sql: String) async throws {
        let plain = AttachmentBucket<Int64>("plain")
        try await store.write { tx in
            try tx.set(Data(count: 3), for: 1, in: plain)
            try tx.execute(SQL(text: sql))
        }
        let owned = AttachmentBucket("plain", of: \Film.id)
        await expect(.unsupported) { try await store.write { tx in try tx.create(owned) } }
        #expect(try await store.attachment(1, in: plain)?.byteCount == 3)
    }

    @Test func `records whose keys are compared by another collation have no attachments`() throws {
        struct Page: Record {
            static let table = "page"
            static let key = ["slug"]
            var slug: String
        }
        let pictures = AttachmentBucket("pictures", of: \Page.slug)
        try store.write { tx in
            try tx.execute("CREATE TABLE page (slug TEXT NOT NULL COLLATE NOCASE PRIMARY KEY)")
            try tx.insert(Page(slug: "a"))
        }
        #expect(throws: StoreError.self) {
            try store.write { tx in try tx.set(Data(count: 3), for: "a", in: pictures) }
        }
        #expect(throws: StoreError.self) { try store.write { tx in try tx.create(pictures) } }
    }

    @Test func `create makes the tables of both, and the store can begin with it`() async throws {
        struct New: Record {
            var id: UUID
        }
        let files = AttachmentBucket("files", of: \New.id)
        try await store.write { tx in
            try tx.create(files)
            #expect(try tx.count(New.all) == 0)
            try tx.create(AttachmentBucket<String>("free"))
        }
        let record = New(id: UUID())
        try await store.write { tx in
            try tx.insert(record)
            try tx.set(Data([1]), for: record.id, in: files)
        }
        #expect(try await store.attachment(record.id, in: files)?.byteCount == 1)
    }

    // MARK: Migrations

    @Test func `a table that a migration makes anew keeps the attachments`() async throws {
        let videos = videos
        try await store.migrate([
            Migration("anew") { tx in
                try tx.execute(
                    """
                    CREATE TABLE film_new (id INTEGER PRIMARY KEY, title TEXT NOT NULL UNIQUE,
                        studio TEXT REFERENCES studio (id) ON DELETE CASCADE)
                    """)
                try tx.execute("INSERT INTO film_new SELECT * FROM film")
                try tx.execute("DROP TABLE film")
                try tx.execute("ALTER TABLE film_new RENAME TO film")
                // For programs that have foreign keys switched off.
                try tx.create(videos)
            }
        ])
        #expect(try await fixture.video(1) == fixture.bytes)
        try fixture.buckets.withConnection { connection in
            try connection.execute("PRAGMA foreign_keys = OFF")
            try connection.execute("DELETE FROM film WHERE id = 1")
        }
        try fixture.execute("REPLACE INTO film (id, title) VALUES (2, 'b')")
        #expect(try fixture.rowCounts() == [0, 0])
    }

    @Test func `a migration that gives the table another name has to say it of the bucket`()
        async throws
    {
        struct Movie: Record {
            var id: Int64
            var title: String
            var studio: String?
        }
        let movies = AttachmentBucket("videos", of: \Movie.id)
        let rename: @Sendable (inout WriteTransaction) throws -> Void = { tx in
            try tx.execute("ALTER TABLE film RENAME TO movie")
        }
        expect(.constraint) { try store.migrate([Migration("m", rename)]) }
        #expect(try fixture.ids() == [1, 2])
        try await store.migrate([
            Migration("m") { tx in
                try rename(&tx)
                try tx.create(movies)
            }
        ])
        #expect(try await store.attachment(1, in: movies) != nil)
        expect(.mismatch) { try store.attachment(1, in: videos) }
        try fixture.execute("DELETE FROM movie WHERE id = 1")
        #expect(try fixture.rowCounts() == [1, 3])
    }

    @Test func `a migration that leaves an attachment without its record is undone`() throws {
        expect(.constraint) {
            try store.migrate([
                Migration("m") { tx in
                    try tx.execute("DROP TRIGGER \"coffer:bucket:videos:record-deleted\"")
                    try tx.execute("DELETE FROM film WHERE id = 1")
                }
            ])
        }
        #expect(try fixture.ids() == [1, 2])
    }

    // MARK: Copies

    @Test(arguments: journalModes)
    func `compact, rekey, backup, conversion and salvage keep attachments and records together`(
        mode: Configuration.JournalMode
    ) async throws {
        let fixture = try FilmFixture(mode)
        try await fixture.store.compact()
        try await fixture.store.rekey(to: .numbered(2))
        #expect(try await fixture.video(2) == fixture.bytes)
        #expect(try await fixture.store.verify().isGood)
        let folder = fixture.buckets.folder
        try await fixture.store.backup(to: folder.path("backup.db"), key: .numbered(3))
        try await fixture.store.decrypt(to: folder.path("plain.db"))
        try await fixture.store.close()
        _ = try await Store.salvage(
            damagedAt: folder.path(), key: .numbered(2), to: folder.path("salvaged.db"))
        try await Store.encrypt(
            plaintextAt: folder.path("plain.db"), to: folder.path("encrypted.db"),
            key: .numbered(2))
        for (name, key) in [("backup.db", 3), ("salvaged.db", 2), ("encrypted.db", 2)] {
            let copy = try await Store(path: folder.path(name), key: .numbered(UInt8(key)))
            try await copy.write { tx in _ = try tx.delete(Film.self, key: 1) }
            var read = Data()
            for try await chunk in copy.chunks(of: 2, in: fixture.videos) { read += chunk }
            #expect(read == fixture.bytes)
            #expect(try await copy.attachment(1, in: fixture.videos) == nil)
            try await copy.sweepExpiredEntries()
            let count = try await copy.read { tx in
                try tx.requireScalar("SELECT count(*) FROM \"coffer:chunks\"", as: Int.self)
            }
            #expect(count == 3)
        }
    }
}
