import Foundation
import Testing
import Workload

@testable import Coffer

@Suite(.againstHanging, .onOwnThreads) struct StoreFileStatusTests {
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    private func write(_ bytes: [UInt8]) throws {
        try Data(bytes).write(to: URL(filePath: path))
    }

    @Test(arguments: [
        (0, StoreFileStatus.Format.empty), (1, .notAStore), (511, .notAStore), (512, .encrypted),
        (5000, .encrypted),
    ])
    func `random bytes are recognised by their number`(
        count: Int, format: StoreFileStatus.Format
    ) throws {
        var random = SeededGenerator(for: #function)
        try write((0..<count).map { _ in .random(in: 0...0xff, using: &random) })
        let status = try StoreFileStatus(path: path)
        #expect(status.format == format)
        #expect(status.byteCount == count)
        #expect(status.walByteCount == 0)
        #expect(status.journalByteCount == 0)
    }

    @Test func `text and plaintext databases are recognised`() throws {
        try write(Array(String(repeating: "Liberty, equality. ", count: 60).utf8))
        #expect(try StoreFileStatus(path: path).format == .notAStore)
        try FileManager.default.removeItem(atPath: path)
        let raw = try RawConnection(path)
        raw.run("CREATE TABLE t(v)")
        #expect(try StoreFileStatus(path: path).format == .plaintext)
    }

    @Test func `the status of an open store includes its WAL, and no lock is lost`() throws {
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing())
        try connection.execute("CREATE TABLE t(v)")
        let status = try connection.transaction(.immediate) {
            let status = try StoreFileStatus(path: path)
            // This process still has the lock: another process does not get it.
            let peer = try Peer(["hold-write", "wal", path, "1"])
            #expect(peer.finish() == ["busy"])
            return status
        }
        #expect(status.format == .encrypted)
        #expect(status.walByteCount > 0)
        #expect(status.path == URL(filePath: path).resolvingSymlinksInPath().path)
    }

    @Test func `a missing file is .notFound and a folder .notAStore`() throws {
        expect(.notFound) { try StoreFileStatus(path: path) }
        expect(.notAStore) { try StoreFileStatus(path: folder.url.path) }
    }
}
