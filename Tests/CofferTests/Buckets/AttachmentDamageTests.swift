import Foundation
import Testing

@testable import Coffer

/// Attachments in a file that somebody damaged, or changed with another program.
@Suite(.againstHanging, .onOwnThreads) struct AttachmentDamageTests {
    private let fixture: AttachmentFixture
    private let bytes = AttachmentFixture.bytes(3 * Contents.chunkByteCount)
    private var store: Store { fixture.store }

    init() throws {
        fixture = try AttachmentFixture()
        let (bytes, films) = (bytes, fixture.films)
        try fixture.store.write { tx in
            try tx.set(bytes, for: "a", in: films)
            try tx.set(Data([1]), for: "b", in: films)
        }
    }

    private func readPart(_ range: Range<Int>) throws -> Data {
        try store.read { tx in
            try tx.withAttachment("a", in: fixture.films) { try $0.bytes(in: range) }
        }
    }

    @Test func `a chunk with other bytes is found at the end of a whole read`() async throws {
        try fixture.execute(
            "UPDATE \"coffer:chunks\" SET bytes = zeroblob(length(bytes)) WHERE id & 0xffffff = 2")
        await expect(.damaged) { try await fixture.stored("a") }
        await expect(.damaged) {
            try await store.append(
                contentsOf: AttachmentFixture.source(Data([1])), to: "a", in: fixture.films)
        }
        // A part is not compared with the digest of the whole.
        #expect(try readPart(0..<10) == bytes[..<10])
        #expect(try await fixture.stored("b") == Data([1]))
    }

    @Test(arguments: [
        "DELETE FROM \"coffer:chunks\" WHERE id & 0xffffff = 1",
        "UPDATE \"coffer:chunks\" SET bytes = x'01' WHERE id & 0xffffff = 1",
        "UPDATE \"coffer:chunks\" SET bytes = 'text' WHERE id & 0xffffff = 1",
    ])
    func `a chunk that is missing or of another size is damage, also in a part`(
        sql: String
    ) async throws {
        try fixture.execute(sql)
        await expect(.damaged) { try await fixture.stored("a") }
        expect(.damaged) { try readPart(Contents.chunkByteCount..<Contents.chunkByteCount + 1) }
        #expect(try readPart(0..<10) == bytes[..<10])
    }

    @Test(arguments: [
        "DELETE FROM \"coffer:contents\" WHERE id = 1",
        "UPDATE \"coffer:contents\" SET state = 'removed' WHERE id = 1",
        "UPDATE \"coffer:contents\" SET sha256 = NULL WHERE id = 1",
        "UPDATE \"bucket:films\" SET value = 7 WHERE key = 'a'",
    ])
    func `an entry without a whole content is damage`(sql: String) async throws {
        try fixture.execute(sql)
        expect(.damaged) { try store.attachment("a", in: fixture.films) }
        await expect(.damaged) { try await fixture.stored("a") }
        #expect(try await store.attachment("b", in: fixture.films)?.byteCount == 1)
        // It can be replaced and removed.
        try await store.write { tx in try tx.set(Data([2]), for: "a", in: fixture.films) }
        #expect(try await fixture.stored("a") == Data([2]))
    }

    @Test(arguments: [
        "UPDATE \"coffer:contents\" SET chunk = 0",
        "UPDATE \"coffer:contents\" SET chunk = 1 << 40",
        "UPDATE \"coffer:contents\" SET length = -1",
        "UPDATE \"coffer:contents\" SET length = 1 << 62",
        "UPDATE \"coffer:contents\" SET length = 'x'",
        "UPDATE \"coffer:contents\" SET state = 'other'",
        "UPDATE \"bucket:films\" SET value = 'text'",
        "UPDATE \"bucket:films\" SET value = NULL",
    ])
    func `a row that Coffer would not write is a mismatch`(sql: String) async throws {
        try fixture.execute(sql)
        expect(.mismatch) { try store.attachment("a", in: fixture.films) }
        await expect(.mismatch) { try await fixture.stored("a") }
    }

    @Test(arguments: [
        "ALTER TABLE \"coffer:chunks\" ADD COLUMN other",
        "ALTER TABLE \"coffer:contents\" RENAME TO other",
        "DROP TABLE \"coffer:chunks\"",
    ])
    func `tables of another form are refused`(sql: String) async throws {
        try fixture.execute(sql)
        expect(.mismatch) { try store.attachment("a", in: fixture.films) }
        await expect(.mismatch) {
            try await store.set(
                contentsOf: AttachmentFixture.source(Data([1])), for: "c", in: fixture.films)
        }
        expect(.mismatch) { try store.sweepExpiredEntries() }
    }

    @Test func `a trigger that keeps a chunk out makes the upload fail`() async throws {
        try fixture.execute(
            """
            CREATE TRIGGER t BEFORE INSERT ON "coffer:chunks" BEGIN SELECT RAISE(IGNORE); END
            """)
        await expect(.constraint) {
            try await store.set(
                contentsOf: AttachmentFixture.source(Data([1])), for: "c", in: fixture.films)
        }
        #expect(try await store.attachment("c", in: fixture.films) == nil)
    }

    @Test(arguments: journalModes)
    func `a damaged page is told, and the other attachments are read`(
        mode: Configuration.JournalMode
    ) async throws {
        let fixture = try AttachmentFixture(mode)
        let films = fixture.films
        for key in ["a", "b", "c"] {
            try await fixture.store.write { tx in try tx.set(bytes, for: key, in: films) }
        }
        try await fixture.store.close()
        let path = fixture.buckets.folder.path()
        // A page in the middle, which belongs to the second of three.
        let page = fixture.store.core.pool.profile.pageByteCount
        let middle = try Damage.byteCount(path) / 2 / page * page
        try Damage.flip(path, at: middle + 100)
        let store = try BucketFixture.open(fixture.buckets.folder, fixture.buckets.clock, mode)
        for key in ["a", "c"] {
            var read = Data()
            for try await chunk in store.chunks(of: key, in: films) { read += chunk }
            #expect(read == bytes)
        }
        await expect(.damaged) {
            for try await _ in store.chunks(of: "b", in: films) {}
        }
        let report = try await store.verify()
        #expect(report.damagedPages.count == 1)
        #expect("\(report.damagedPages)".contains("coffer:chunks"))
    }
}
