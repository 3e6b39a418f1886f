import Foundation

@testable import Coffer

/// A store with records whose attachments belong to them, and a clock that the test sets.
struct FilmFixture {
    struct Studio: Record {
        var id: String
    }

    struct Film: Record, Equatable {
        var id: Int64?
        var title: String
        var studio: String?

        static var indexes: [Index<Film>] { [Index(\.title, isUnique: true)] }
        static var references: [Reference<Film>] {
            [Reference(\.studio, to: Studio.self, onDelete: .cascade)]
        }
        static let videos = AttachmentBucket("videos", of: \Film.id)
    }

    let buckets: BucketFixture
    let videos = Film.videos
    let bytes = AttachmentFixture.bytes(2 * Contents.chunkByteCount + 5)

    var store: Store { buckets.store }

    /// Makes the films 1 and 2, each with a video; the studio of the first is `"a"`.
    init(_ mode: Configuration.JournalMode = .wal) throws {
        buckets = try BucketFixture(mode)
        let bytes = bytes
        try store.write { tx in
            try tx.insert(Studio(id: "a"))
            for (id, studio) in [(1, "a"), (2, nil)] as [(Int64, String?)] {
                try tx.insert(Film(id: id, title: "film \(id)", studio: studio))
                try tx.set(bytes, for: id, in: Film.videos)
            }
        }
    }

    func execute(_ sql: String) throws {
        _ = try store.write { tx in try tx.execute(SQL(text: sql)) }
    }

    func video(_ id: Int64, _ range: Range<Int>? = nil) async throws -> Data {
        var bytes = Data()
        for try await chunk in store.chunks(of: id, in: videos, range: range) {
            bytes.append(chunk)
        }
        return bytes
    }

    /// The keys of all videos.
    func ids() throws -> [Int64] {
        try store.read { tx in try tx.attachments(in: videos).map(\.key) }
    }

    /// The rows of both tables of contents, after a sweep.
    func rowCounts() throws -> [Int] {
        try store.sweepExpiredEntries()
        return try store.read { tx in
            [
                try tx.requireScalar("SELECT count(*) FROM \"coffer:contents\""),
                try tx.requireScalar("SELECT count(*) FROM \"coffer:chunks\""),
            ]
        }
    }
}
