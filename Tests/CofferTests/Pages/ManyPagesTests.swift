import Foundation
import Testing

@testable import Coffer

/// Large files as the engine makes them, authenticated without the engine.
@Suite(.againstHanging, .onOwnThreads) struct ManyPagesTests {
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    /// 30 000 pages over all profiles; in a long run 30 000 of each.
    private static let pageCount = isLongRun ? 30_000 : 30_000 / supportedProfiles.count

    /// Writes a file of at least this many pages: leaves, interior pages, an index, and overflow.
    /// Returns the engine's count of pages.
    private func write(_ pageCount: Int, _ profile: CipherProfile) throws -> Int {
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(.delete, profile: profile))
        try connection.execute("CREATE TABLE rows(id INTEGER PRIMARY KEY, v, w)")
        try connection.execute("CREATE INDEX rows_w ON rows(w)")
        let rowByteCount = profile.pageByteCount / 3
        let rowCount = pageCount / 2
        try connection.execute(
            """
            INSERT INTO rows(v, w)
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT \(rowCount))
            SELECT randomblob(\(rowByteCount)), randomblob(16) FROM n
            """)
        try connection.execute("CREATE TABLE rest(v)")
        let handle = try connection.current()
        let missingCount = pageCount - (try handle.firstInteger("PRAGMA page_count"))
        try #require(missingCount > 0)
        // This many overflow pages, or more where the engine reserves more of each page.
        let overflowByteCount = profile.pageByteCount - profile.reserveByteCount - 4
        try connection.execute(
            "INSERT INTO rest VALUES (zeroblob(\(missingCount * overflowByteCount + 500)))")
        let writtenCount = try handle.firstInteger("PRAGMA page_count")
        connection.close()
        return writtenCount
    }

    @Test(arguments: supportedProfiles)
    func `30 000 pages that the engine wrote are authentic`(profile: CipherProfile) throws {
        let pageCount = try write(Self.pageCount, profile)
        #expect(pageCount >= Self.pageCount)
        let file = try Data(contentsOf: URL(filePath: path), options: .alwaysMapped)
        let size = profile.pageByteCount
        #expect(file.count == pageCount * size)
        let key = RawKey(
            bytes: KeyVectors.secret([UInt8](repeating: 1, count: 32)),
            salt: [UInt8](file.prefix(RawKey.saltByteCount)))
        let authenticator = PageAuthenticator(key: key, profile: profile)
        let authenticCount = file.withUnsafeBytes { bytes in
            (0..<file.count / size).count { index in
                let page = UnsafeRawBufferPointer(
                    rebasing: bytes[index * size..<(index + 1) * size])
                return authenticator.authenticates(page, number: index + 1)
            }
        }
        #expect(authenticCount == pageCount)
    }
}
