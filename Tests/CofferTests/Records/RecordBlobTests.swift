import Foundation
import Testing

@testable import Coffer

/// Properties of records that are read and written piece by piece.
@Suite(.againstHanging, .onOwnThreads) struct RecordBlobTests {
    private let fixture: RecordFixture
    private var store: Store { fixture.store }

    init() throws {
        fixture = try RecordFixture()
    }

    private struct Film: Record, Equatable {
        var id: Int
        var title = ""
        var parts: [String] = []
        var code = UUID()
        var poster: Data?
        var video = Data()
    }

    private struct Page: Record {
        static let table = "page"
        var id: UUID
        var body: [UInt8]
    }

    private struct TextPage: Record {
        static let table = "text_page"
        static var encodings: [PartialKeyPath<Self>: ColumnEncoding] { [\.id: .uuidText] }
        var id: UUID
        var body: Data?
    }

    private struct Named: Record {
        static let key = ["name"]
        var body: Data
        var other: Int
        var name: String
    }

    private func stream(_ data: Data) -> AsyncStream<Data> {
        AsyncStream { continuation in
            for start in stride(from: 0, to: data.count, by: 100_000) {
                continuation.yield(data[start..<min(start + 100_000, data.count)])
            }
            continuation.finish()
        }
    }

    private func collect(_ chunks: BlobChunks) async throws -> Data {
        var data = Data()
        for try await chunk in chunks { data.append(chunk) }
        return data
    }

    // MARK: Keys

    /// Streams bytes into a record, and out in three ways.
    private func roundTrip<R: Record>(
        _ record: R, _ path: PartialKeyPath<R> & Sendable, _ key: some ValueConvertible & Sendable,
        _ size: Int
    ) async throws {
        try await store.write { tx in try tx.upsert(record) }
        let data = BlobFixture.bytes(size)
        try await store.writeBlob(
            path, in: R.self, key: key, byteCount: size, from: stream(data))
        #expect(try await collect(store.chunks(of: path, in: R.self, key: key)) == data)
        try await store.write { tx throws in
            guard size > 0 else { return }
            try tx.withWritableBlob(path, in: R.self, key: key) { blob in
                try blob.write([1], at: size - 1)
            }
        }
        let read = try await store.read { tx throws in
            #expect(try tx.storageClass(of: path, in: R.self, key: key) == .blob)
            return try tx.withBlob(path, in: R.self, key: key) { blob throws in
                try blob.bytes(in: 0..<blob.byteCount)
            }
        }
        #expect(read == data.dropLast() + (size > 0 ? [1] : []))
    }

    @Test(arguments: [0, 1, 5000, 300_000])
    func `bytes of a record go in and come out by its key, of any type`(size: Int) async throws {
        let id = UUID()
        // Other rows, so that the row ids differ from the keys.
        try await store.write { tx throws in
            for number in [70, 80] { try tx.insert(Film(id: number)) }
            for name in ["x", "y"] {
                try tx.insert(Page(id: UUID(), body: [7]))
                try tx.insert(TextPage(id: UUID(), body: nil))
                try tx.insert(Named(body: Data(), other: 3, name: name))
            }
        }
        try await roundTrip(Film(id: 7), \.video, 7, size)
        try await roundTrip(Film(id: 7), \.poster, 7, size)
        try await roundTrip(Page(id: id, body: []), \.body, id, size)
        try await roundTrip(TextPage(id: id, body: nil), \.body, id, size)
        try await roundTrip(Named(body: Data(), other: 9, name: "ä"), \.body, "ä", size)
        try await store.read { tx throws in
            let named = try tx.find(Named.self, "ä")
            #expect(named?.other == 9 && named?.body.count == size)
            #expect(try tx.find(Film.self, 7)?.poster?.count == size)
            #expect(try tx.fetch(Film.where(\.id > 7)).allSatisfy { $0.video.isEmpty })
        }
    }

    // MARK: Errors

    @Test func `a missing record, a missing table and nil differ`() async throws {
        let chunks = store.chunks(of: \.video, in: Film.self, key: 1)
        let noTable = await expect(.notFound) { try await collect(chunks) }
        #expect(noTable?.table == "film")
        try await store.write { tx in try tx.insert(Film(id: 2)) }
        let noRow = await expect(.notFound) { try await collect(chunks) }
        #expect(noRow?.table == "film" && noRow?.column == "video")
        let endless = AsyncStream { Data(count: 1000) }
        await expect(.notFound) {
            try await store.writeBlob(
                \.video, in: Film.self, key: 1, byteCount: 9, from: endless)
        }
        try await store.write { tx throws in
            expect(.notFound) { try tx.withWritableBlob(\.video, in: Film.self, key: 1) { _ in } }
            expect(.mismatch) { try tx.withBlob(\.poster, in: Film.self, key: 2) { _ in } }
            #expect(try tx.storageClass(of: \.video, in: Film.self, key: 1) == nil)
            #expect(try tx.storageClass(of: \.poster, in: Film.self, key: 2) == .null)
            #expect(try tx.storageClass(of: \.video, in: Film.self, key: Int?.none) == nil)
            expect(.mismatch) { try tx.withBlob(\.video, in: Film.self, key: "2") { _ in } }
        }
        #expect(try await collect(store.chunks(of: \.video, in: Film.self, key: 2)).isEmpty)
        await expect(.mismatch) {
            try await collect(store.chunks(of: \.poster, in: Film.self, key: 2))
        }
    }

    @Test func `only bytes that the file has as they are can be read in pieces`() async throws {
        try await store.write { tx in try tx.insert(Film(id: 1, title: "Metropolis")) }
        let others: [PartialKeyPath<Film> & Sendable] = [
            \.id, \.title, \.parts, \.code, \.title.count,
        ]
        for path in others {
            await expect(.misuse) {
                try await collect(store.chunks(of: path, in: Film.self, key: 1))
            }
            try await store.write { tx throws in
                expect(.misuse) { try tx.withWritableBlob(path, in: Film.self, key: 1) { _ in } }
                expect(.misuse) { try tx.withBlob(path, in: Film.self, key: 1) { _ in } }
                expect(.misuse) { try tx.storageClass(of: path, in: Film.self, key: 1) }
            }
            await expect(.misuse) {
                try await store.writeBlob(
                    path, in: Film.self, key: 1, byteCount: 1, from: stream(Data([1])))
            }
        }
        #expect(try await store.read { tx in try tx.find(Film.self, 1)?.title } == "Metropolis")
    }

    private struct Cell: Record {
        static let key = ["row", "column"]
        var row: Int
        var column: Int
        var content: Data
    }

    private struct Tight: Record {
        static var isWithoutRowID: Bool { true }
        var id: Int
        var content: Data
    }

    @Test func `a key of two columns and a table without row ids are refused`() throws {
        try store.write { tx throws in
            try tx.insert(Cell(row: 1, column: 1, content: Data([1])))
            try tx.insert(Tight(id: 1, content: Data([1])))
            expect(.misuse) { try tx.withBlob(\.content, in: Cell.self, key: 1) { _ in } }
            let error = expect(.unsupported) {
                try tx.withBlob(\.content, in: Tight.self, key: 1) { _ in }
            }
            #expect(error?.hint?.contains("update the whole record") == true)
        }
    }

    @Test func `a property of an index is read in pieces and not written`() throws {
        try store.write { tx throws in
            let key = UUID()
            try tx.insert(Page(id: key, body: [1, 2]))
            try tx.execute("CREATE INDEX page_body ON page(body)")
            expect(.unsupported) {
                try tx.withWritableBlob(\.body, in: Page.self, key: key) { _ in }
            }
            #expect(try tx.withBlob(\.body, in: Page.self, key: key) { $0.byteCount } == 2)
        }
    }

    // MARK: Others' tables

    @Test func `a view, a missing column and a key of several rows are errors`() throws {
        try store.write { tx throws in
            try tx.execute("CREATE TABLE base(id BLOB, body BLOB)")
            try tx.execute("CREATE VIEW page AS SELECT * FROM base")
            let key = UUID()
            expect(.unsupported) { try tx.withBlob(\.body, in: Page.self, key: key) { _ in } }
            try tx.execute("DROP VIEW page")
            try tx.execute("CREATE TABLE page(id BLOB)")
            try tx.execute("INSERT INTO page VALUES (\(key))")
            let missing = expect(.mismatch) {
                try tx.withBlob(\.body, in: Page.self, key: key) { _ in }
            }
            #expect(missing?.column == "body")
            try tx.execute("ALTER TABLE page ADD COLUMN body BLOB")
            try tx.execute("UPDATE page SET body = x'01'")
            #expect(try tx.withBlob(\.body, in: Page.self, key: key) { $0.byteCount } == 1)
            try tx.execute("INSERT INTO page VALUES (\(key), x'0203')")
            expect(.mismatch) { try tx.withBlob(\.body, in: Page.self, key: key) { _ in } }
            expect(.mismatch) { try tx.withWritableBlob(\.body, in: Page.self, key: key) { _ in } }
        }
    }

    @Test func `columns named like row ids or tables hide nothing`() throws {
        try store.write { tx throws in
            let key = UUID()
            try tx.execute("CREATE TABLE page(\"rowid\" TEXT, \"page\" TEXT, id BLOB, body BLOB)")
            try tx.execute("INSERT INTO page VALUES ('2', 'id', \(UUID()), x'00')")
            try tx.execute("INSERT INTO page VALUES ('1', 'id', \(key), x'010203')")
            #expect(try tx.withBlob(\.body, in: Page.self, key: key) { $0.byteCount } == 3)
            try tx.execute("ALTER TABLE page ADD COLUMN oid")
            try tx.execute("ALTER TABLE page ADD COLUMN _rowid_")
            expect(.unsupported) { try tx.withBlob(\.body, in: Page.self, key: key) { _ in } }
        }
    }

    @Test func `a temporary table hides the file's, as it does for find`() throws {
        let key = UUID()
        try store.write { tx throws in
            try tx.insert(Page(id: key, body: [1]))
            try tx.execute("CREATE TEMP TABLE page(id BLOB, body BLOB)")
            try tx.execute("INSERT INTO temp.page VALUES (\(key), x'0203')")
            #expect(try tx.find(Page.self, key)?.body == [2, 3])
            try tx.withWritableBlob(\.body, in: Page.self, key: key) { try $0.write([9], at: 0) }
            #expect(try tx.find(Page.self, key)?.body == [9, 3])
            try tx.execute("DROP TABLE temp.page")
            #expect(try tx.find(Page.self, key)?.body == [1])
        }
    }
}
