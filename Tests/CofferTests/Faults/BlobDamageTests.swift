import Foundation
import Testing

@testable import Coffer

/// `sqlite3_blob_read` over a page that failed authentication returns zeros with success, on both
/// engines. So Coffer checks what it returns before handing it out.
@Suite(.againstHanging, .onOwnThreads) struct BlobDamageTests {
    @Test(arguments: BlobFixture.DamagedPart.allCases, journalModes)
    func `no byte of a damaged page leaves a blob`(
        part: BlobFixture.DamagedPart, mode: Configuration.JournalMode
    ) throws {
        let fixture = try BlobFixture(mode)
        let data = try fixture.insertDamaged(part)
        let store = try fixture.store()
        for maximumByteCount in [100, 4096, 1 << 20] {
            var received = Data()
            let error = expect(.damaged) {
                try store.read { tx in
                    try tx.withBlob("data", in: "t", row: 1) { blob in
                        try blob.forEachChunk(maximumByteCount: maximumByteCount) {
                            received.append(contentsOf: $0)
                        }
                    }
                }
            }
            #expect(error?.table == "t" && error?.column == "data")
            #expect(data.starts(with: received) && received.count < data.count)
            if part == .last, maximumByteCount < 1 << 20 {
                #expect(received.count > data.count / 2, "what is good comes out")
            }
            #expect(try store.read { tx in try tx.rows("SELECT v FROM good").count } == 1)
        }
        try store.close()
        let connection = try fixture.connection()
        expect(.damaged) { try connection.blob() }
        #expect(!connection.isInTransaction)
        #expect(try connection.rows("SELECT v FROM good").count == 1)
    }

    @Test(arguments: journalModes)
    func `a damaged blob whose error is swallowed lets nothing out`(
        mode: Configuration.JournalMode
    ) throws {
        let fixture = try BlobFixture(mode)
        _ = try fixture.insertDamaged(.last)
        let store = try fixture.store()
        expect(.damaged) {
            try store.write { tx in
                try tx.execute("INSERT INTO good VALUES ('from wrong data')")
                _ = try? tx.withBlob("data", in: "t", row: 1) { blob in
                    try blob.bytes(in: blob.byteCount - 1..<blob.byteCount)
                }
            }
        }
        #expect(try store.read { tx in try tx.rows("SELECT v FROM good").count } == 1)
    }

    @Test(arguments: BlobFixture.DamagedPart.allCases, journalModes)
    func `a write over a damaged page is damage and rolled back`(
        part: BlobFixture.DamagedPart, mode: Configuration.JournalMode
    ) throws {
        let fixture = try BlobFixture(mode)
        let data = try fixture.insertDamaged(part)
        let store = try fixture.store()
        expect(.damaged) {
            try store.write { tx in
                try tx.withWritableBlob("data", in: "t", row: 1) { blob in
                    for offset in stride(from: 0, to: blob.byteCount, by: 1024) {
                        try blob.write([UInt8](repeating: 1, count: 1024), at: offset)
                    }
                }
            }
        }
        try store.write { tx in try tx.execute("INSERT INTO good VALUES ('next')") }
        let start = try store.read { tx in
            try tx.withBlob("data", in: "t", row: 1) { try $0.bytes(in: 0..<16) }
        }
        #expect(start == data.prefix(16))
    }
}
