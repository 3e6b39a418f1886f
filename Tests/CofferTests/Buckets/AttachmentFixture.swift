import Crypto
import Foundation

@testable import Coffer

/// A store with attachments under text keys, and a clock that the test sets.
struct AttachmentFixture {
    let buckets: BucketFixture
    let films = AttachmentBucket<String>("films")

    var store: Store { buckets.store }

    init(_ mode: Configuration.JournalMode = .wal) throws {
        buckets = try BucketFixture(mode)
    }

    /// Bytes that differ in every chunk, whose size is no multiple of their period.
    static func bytes(_ count: Int, seed: UInt8 = 0) -> Data {
        let period = Data((0..<4099).map { UInt8(truncatingIfNeeded: $0 &* 31) &+ seed })
        var bytes = Data(capacity: count + period.count)
        while bytes.count < count { bytes.append(period) }
        return bytes.prefix(count)
    }

    static func information(_ bytes: Data) -> AttachmentInformation {
        AttachmentInformation(byteCount: bytes.count, sha256: Data(SHA256.hash(data: bytes)))
    }

    /// Gives pieces, and then an error or the end.
    static func source(
        _ pieces: [Data], then error: (any Error)? = nil
    ) -> AsyncThrowingStream<Data, any Error> {
        AsyncThrowingStream { continuation in
            for piece in pieces { continuation.yield(piece) }
            continuation.finish(throwing: error)
        }
    }

    /// Gives bytes in pieces of one size.
    static func source(
        _ bytes: Data, by size: Int = 100_000, then error: (any Error)? = nil
    ) -> AsyncThrowingStream<Data, any Error> {
        source(
            stride(from: bytes.startIndex, to: bytes.endIndex, by: size).map {
                bytes[$0..<min($0 + size, bytes.endIndex)]
            }, then: error)
    }

    func stored(_ key: String, _ range: Range<Int>? = nil) async throws -> Data {
        var bytes = Data()
        for try await chunk in store.chunks(of: key, in: films, range: range) {
            bytes.append(chunk)
        }
        return bytes
    }

    /// The rows of both tables of contents.
    func rowCounts() throws -> [Int] {
        try store.read { tx in
            guard try tx.tableExists("coffer:contents") else { return [0, 0] }
            return [
                try tx.requireScalar("SELECT count(*) FROM \"coffer:contents\""),
                try tx.requireScalar("SELECT count(*) FROM \"coffer:chunks\""),
            ]
        }
    }

    func execute(_ sql: String) throws {
        _ = try store.write { tx in try tx.execute(SQL(text: sql)) }
    }
}
