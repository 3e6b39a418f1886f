import Foundation
import Testing

@testable import Coffer

/// A file with a table of blobs, in its own folder.
struct BlobFixture {
    let folder: TemporaryFolder
    let path: String
    let mode: Configuration.JournalMode

    init(_ mode: Configuration.JournalMode = .wal) throws {
        folder = try TemporaryFolder()
        path = folder.path()
        self.mode = mode
        try connection().execute("CREATE TABLE t(id INTEGER PRIMARY KEY, flag INT, data BLOB)")
    }

    func connection() throws -> Connection {
        try Connection(path: path, key: .numbered(1), configuration: .testing(mode))
    }

    func store(_ configuration: Configuration? = nil) throws -> Store {
        try Store(path: path, key: .numbered(1), configuration: configuration ?? .testing(mode))
    }

    func insert(_ data: Data) throws {
        try connection().execute("INSERT INTO t VALUES (1, 7, \(data))")
    }

    /// Bytes of which no two pages, and no two neighbours, are equal.
    static func bytes(_ count: Int) -> Data {
        Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8 &* 7) })
    }

    /// Inserts a value of 40 pages with one of its overflow pages damaged: the first, the middle or
    /// the last. In a fresh file they are consecutive, at its end.
    func insertDamaged(_ part: DamagedPart) throws -> Data {
        let connection = try connection()
        try connection.execute("CREATE TABLE good(v)")
        try connection.execute("INSERT INTO good VALUES ('as it was')")
        let first = try connection.current().firstInteger("PRAGMA page_count")
        let pageByteCount = try #require(connection.profile).pageByteCount
        let data = Self.bytes(40 * pageByteCount)
        try connection.execute("INSERT INTO t VALUES (1, 7, \(data))")
        let last = try connection.current().firstInteger("PRAGMA page_count")
        try #require(last - first > 39)
        connection.close()
        let page =
            switch part {
            case .first: first + 1
            case .middle: (first + last) / 2
            case .last: last
            }
        try Damage.flip(path, at: (page - 1) * pageByteCount + 100)
        return data
    }

    enum DamagedPart: CaseIterable { case first, middle, last }
}

extension Connection {
    /// Reads a whole blob, chunk by chunk.
    func blob(_ row: Int64 = 1, maximumByteCount: Int = 64 << 10) throws -> Data {
        try withBlob("data", in: "t", row: row) { blob in
            var data = Data()
            try blob.forEachChunk(maximumByteCount: maximumByteCount) {
                data.append(contentsOf: $0)
            }
            return data
        }
    }
}

/// The same as `expect(_:_:)`, for asynchronous work.
@discardableResult
func expect<T>(
    _ code: StoreError.Code, sourceLocation: SourceLocation = #_sourceLocation,
    _ work: () async throws -> T
) async -> StoreError? {
    let result: Result<T, any Error>
    do {
        result = .success(try await work())
    } catch {
        result = .failure(error)
    }
    return expect(code, sourceLocation: sourceLocation) { try result.get() }
}
