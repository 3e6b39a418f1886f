import Foundation
import Testing

@testable import Coffer

@Suite(.againstHanging, .onOwnThreads) struct BlobTests {
    private static let page = 4096
    private static let sizes = [0, 1, page - 1, page, page + 1, 3 << 20]

    // MARK: Reading

    @Test(arguments: sizes, journalModes)
    func `a blob of any size comes in chunks of any size`(
        byteCount: Int, mode: Configuration.JournalMode
    ) throws {
        let fixture = try BlobFixture(mode)
        let data = BlobFixture.bytes(byteCount)
        try fixture.insert(data)
        let connection = try fixture.connection()
        for chunk in [1, 1000, Self.page, 64 << 10, 16 << 20] where byteCount / chunk < 10_000 {
            #expect(try connection.blob(maximumByteCount: chunk) == data, "\(chunk)")
        }
        #expect(!connection.isInTransaction)
        let store = try fixture.store()
        let read = try store.read { tx in
            try tx.withBlob("data", in: "t", row: 1) { blob throws in
                (blob.byteCount, try blob.bytes(in: 0..<blob.byteCount))
            }
        }
        #expect(read.0 == byteCount && read.1 == data)
    }

    @Test func `every chunk but the last is full`() throws {
        let fixture = try BlobFixture()
        try fixture.insert(BlobFixture.bytes(2500))
        var counts: [Int] = []
        try fixture.connection().withBlob("data", in: "t", row: 1) { blob throws in
            try blob.forEachChunk(maximumByteCount: 1000) { counts.append($0.count) }
        }
        #expect(counts == [1000, 1000, 500])
    }

    @Test func `bytes outside the value are misuse and the blob stays usable`() throws {
        let fixture = try BlobFixture()
        try fixture.insert(BlobFixture.bytes(10))
        let connection = try fixture.connection()
        try connection.withBlob("data", in: "t", row: 1) { blob throws in
            expect(.misuse) { try blob.bytes(in: 5..<11) }
            expect(.misuse) { try blob.bytes(in: -1..<2) }
            expect(.misuse) { try blob.bytes(in: 11..<11) }
            expect(.misuse) { try blob.bytes(in: Int.max - 1..<Int.max) }
            expect(.misuse) { try blob.forEachChunk(maximumByteCount: 0) { _ in } }
            #expect(try blob.bytes(in: 10..<10).isEmpty)
            #expect(try blob.bytes(in: 8..<10) == BlobFixture.bytes(10)[8..<10])
        }
        try connection.withWritableBlob("data", in: "t", row: 1) { blob throws in
            expect(.misuse) { try blob.write([1, 2], at: 9) }
            expect(.misuse) { try blob.write([1], at: -1) }
            try blob.write([UInt8](), at: 10)
        }
        #expect(try connection.blob() == BlobFixture.bytes(10))
    }

    // MARK: What a cell holds

    @Test func `NULL, an empty blob, other types and no row are distinguished`() throws {
        let connection = try BlobFixture().connection()
        try connection.execute(
            """
            INSERT INTO t(id, data) VALUES
            (1, NULL), (2, zeroblob(0)), (3, 'text'), (4, 4), (5, 5.5), (6, x'00')
            """)
        let classes = try (1...7).map {
            try connection.storageClass(of: "data", in: "t", row: $0)
        }
        #expect(classes == [.null, .blob, .text, .integer, .real, .blob, nil])
        let null = expect(.mismatch) { try connection.blob(1) }
        #expect(null?.message.contains("NULL") == true)
        #expect(null?.table == "t" && null?.column == "data")
        #expect(try connection.blob(2) == Data())
        for row in [3, 4, 5] as [Int64] { expect(.mismatch) { try connection.blob(row) } }
        #expect(try connection.blob(6) == Data([0]))
        expect(.notFound) { try connection.blob(7) }
        for row in [1, 3, 4, 5] as [Int64] {
            expect(.mismatch) {
                try connection.withWritableBlob("data", in: "t", row: row) { _ in }
            }
        }
        expect(.notFound) { try connection.withWritableBlob("data", in: "t", row: 7) { _ in } }
    }

    @Test func `a table or column without a blob to open says why`() throws {
        let connection = try BlobFixture().connection()
        try connection.execute("INSERT INTO t VALUES (1, 7, x'01')")
        try connection.execute("CREATE TABLE keyed(k INTEGER PRIMARY KEY, data) WITHOUT ROWID")
        try connection.execute("INSERT INTO keyed VALUES (1, x'01')")
        try connection.execute("CREATE VIEW seen AS SELECT * FROM t")
        try connection.execute("CREATE VIRTUAL TABLE found USING fts4(data)")
        try connection.execute("INSERT INTO found(rowid, data) VALUES (1, x'01')")
        for table in ["keyed", "seen", "found"] {
            expect(.unsupported) { try connection.withBlob("data", in: table, row: 1) { _ in } }
        }
        expect(.sql) { try connection.withBlob("data", in: "none", row: 1) { _ in } }
        expect(.sql) { try connection.withBlob("none", in: "t", row: 1) { _ in } }
        expect(.sql) { try connection.withBlob("", in: "t", row: 1) { _ in } }
        expect(.sql) { try connection.withBlob("data", in: "t\0", row: 1) { _ in } }
        try connection.execute("CREATE INDEX by_data ON t(data)")
        expect(.unsupported) { try connection.withWritableBlob("data", in: "t", row: 1) { _ in } }
        #expect(try connection.blob() == Data([1]))
    }

    @Test func `a column that is named like the row id is not taken for it`() throws {
        let connection = try BlobFixture().connection()
        try connection.execute("CREATE TABLE \"od\"\"d\"(RowID, \"a \"\"b\" BLOB, oid INT)")
        try connection.execute("INSERT INTO \"od\"\"d\" VALUES (2, x'01', 2), (1, NULL, 1)")
        let byte = try connection.withBlob("a \"b", in: "od\"d", row: 1) { blob throws in
            try blob.bytes(in: 0..<1)
        }
        #expect(byte == Data([1]))
        try connection.execute("CREATE TABLE full(rowid, _rowid_, oid, data)")
        expect(.unsupported) { try connection.withBlob("data", in: "full", row: 1) { _ in } }
    }

    // MARK: Writing

    @Test(arguments: sizes, journalModes)
    func `a blob is written piece by piece`(
        byteCount: Int, mode: Configuration.JournalMode
    ) throws {
        let fixture = try BlobFixture(mode)
        let data = BlobFixture.bytes(byteCount)
        let store = try fixture.store()
        try store.write { tx in
            try tx.execute("INSERT INTO t VALUES (1, 7, zeroblob(\(byteCount)))")
            try tx.withWritableBlob("data", in: "t", row: 1) { blob throws in
                #expect(blob.byteCount == byteCount)
                for start in stride(from: 0, to: byteCount, by: 1000) {
                    try blob.write(data[start..<min(start + 1000, byteCount)], at: start)
                }
            }
        }
        try store.close()
        let connection = try fixture.connection()
        #expect(try connection.blob() == data)
        #expect(try connection.firstRow("SELECT flag FROM t")?[0] == 7)
    }

    @Test func `an error in the body rolls back what it wrote`() throws {
        let fixture = try BlobFixture()
        try fixture.insert(Data([1, 2, 3]))
        let connection = try fixture.connection()
        #expect(throws: CancellationError.self) {
            try connection.withWritableBlob("data", in: "t", row: 1) { blob throws in
                try blob.write([9], at: 0)
                throw CancellationError()
            }
        }
        #expect(try connection.blob() == Data([1, 2, 3]))
        try connection.withWritableBlob("data", in: "t", row: 1) { try $0.write([9], at: 1) }
        #expect(try connection.blob() == Data([1, 9, 3]))
    }

    @Test func `a read-only connection writes no blob`() throws {
        let fixture = try BlobFixture(.delete)
        try fixture.insert(Data([1]))
        let connection = try Connection(path: fixture.path, key: .numbered(1), mode: .readOnly)
        expect(.readOnly) {
            try connection.withWritableBlob("data", in: "t", row: 1) { try $0.write([2], at: 0) }
        }
        #expect(try connection.blob() == Data([1]))
    }

    // MARK: The transaction around it

    @Test(arguments: ["UPDATE t SET flag = 8", "DELETE FROM t"])
    func `a row that changes under an open blob is a clear error`(change: String) throws {
        let fixture = try BlobFixture()
        try fixture.insert(BlobFixture.bytes(10_000))
        let connection = try fixture.connection()
        try connection.transaction {
            let error = expect(.misuse) {
                try connection.withBlob("data", in: "t", row: 1) { blob throws in
                    try connection.execute(SQL(text: change))
                    _ = try blob.bytes(in: 0..<1)
                }
            }
            #expect(error?.message.contains("changed") == true)
            try connection.execute("INSERT INTO t VALUES (2, 2, x'02')")
        }
        #expect(try connection.blob(2) == Data([2]), "the transaction went on")
    }

    @Test func `nothing ends the transaction of an open blob`() throws {
        let fixture = try BlobFixture()
        try fixture.insert(Data([1, 2, 3]))
        let connection = try fixture.connection()
        let commit = try connection.prepare("COMMIT")
        func tryToEnd() throws {
            try connection.withBlob("data", in: "t", row: 1) { blob throws in
                for end in ["COMMIT", "ROLLBACK", "END"] {
                    expect(.misuse) { try connection.execute(SQL(text: end)) }
                }
                expect(.misuse) { try commit.step() }
                expect(.misuse) { try connection.transaction {} }
                #expect(try blob.bytes(in: 0..<3) == Data([1, 2, 3]))
            }
        }
        try tryToEnd()
        #expect(!connection.isInTransaction)
        try connection.execute("BEGIN")
        try tryToEnd()
        try connection.execute("INSERT INTO t VALUES (2, 2, x'02')")
        try connection.execute("COMMIT")
        #expect(try connection.blob(2) == Data([2]))
    }

    @Test func `a blob whose connection is closed says so`() throws {
        let fixture = try BlobFixture()
        try fixture.insert(Data([1, 2, 3]))
        let connection = try fixture.connection()
        expect(.closed) {
            try connection.withBlob("data", in: "t", row: 1) { blob throws in
                connection.close()
                _ = try blob.bytes(in: 0..<1)
            }
        }
        #expect(try fixture.connection().blob() == Data([1, 2, 3]))
    }

    @Test func `a blob whose transaction SQLite rolls back says so`() throws {
        let fixture = try BlobFixture()
        try fixture.insert(Data([1, 2, 3]))
        let connection = try fixture.connection()
        expect(.rolledBack) {
            try connection.withWritableBlob("data", in: "t", row: 1) { blob throws in
                expect(.constraint) {
                    try connection.execute("INSERT OR ROLLBACK INTO t VALUES (1, 1, NULL)")
                }
                try blob.write([9], at: 0)
            }
        }
        #expect(try connection.blob() == Data([1, 2, 3]))
    }

    @Test func `blobs are read while a cursor has a current row`() throws {
        let connection = try BlobFixture().connection()
        for id in 1...3 { try connection.execute("INSERT INTO t VALUES (\(id), 0, x'0102')") }
        let cursor = try connection.prepare("SELECT id FROM t")
        var count = 0
        while try cursor.step() {
            let row = try cursor.value(at: 0, as: Int64.self)
            #expect(try connection.blob(row) == Data([1, 2]))
            expect(.misuse) {
                try connection.withWritableBlob("data", in: "t", row: row) { _ in }
            }
            expect(.notFound) { try connection.blob(99) }
            count += 1
        }
        #expect(count == 3)
        try connection.transaction { try connection.execute("DELETE FROM t") }
    }
}
