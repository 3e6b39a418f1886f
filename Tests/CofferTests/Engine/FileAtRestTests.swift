import CSQLCipher
import Foundation
import Testing

@testable import Coffer

/// A file that is read without locks is given up as soon as somebody else changes it.
@Suite struct FileAtRestTests {
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        // The name has every character that means something else in a URI.
        path = folder.path("odd name ?#%41&=é.db")
        let connection = try connect()
        try connection.execute("CREATE TABLE t(v)")
        try connection.execute("INSERT INTO t VALUES (1)")
        connection.close()
    }

    private func connect() throws -> Connection {
        try Connection(path: path, key: .numbered(1), configuration: .testing())
    }

    private func openAtRest() throws -> Connection {
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSinceNow: -3600)], ofItemAtPath: path)
        let file = try FileLocation(path)
        let known = try connect()
        let state = try known.fileState()
        let physical = PhysicalOpen(
            file: file, profile: state.profile, configuration: .testing(.existing),
            role: .readOnly, cacheByteCount: 1 << 20)
        let key = state.key.copy()
        known.close()
        let handle = try physical.openAtRest(in: .wal, key: key)
        return Connection(
            pooling: OpenFile(
                handle: handle, key: key, file: file, profile: state.profile),
            mode: .readOnly, configuration: .testing(.existing), cacheByteCount: 1 << 20)
    }

    private func names() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.url.path)
    }

    @Test func `it can be read any number of times, and no file is made next to it`() throws {
        let connection = try openAtRest()
        for _ in 0..<3 {
            #expect(try connection.firstRow("SELECT v FROM t")?[0] == 1)
            #expect(try names().count == 1)
        }
        #expect(try connection.current().journalMode() == .wal)
        expect(.readOnly) { try connection.execute("DELETE FROM t") }
    }

    @Test(arguments: [true, false])
    func `a commit by another connection ends it, before and after a checkpoint`(
        isCheckpointed: Bool
    ) throws {
        let connection = try openAtRest()
        #expect(try connection.firstRow("SELECT v FROM t")?[0] == 1)
        let writer = try connect()
        #expect(try connection.firstRow("SELECT v FROM t")?[0] == 1)
        try writer.execute("UPDATE t SET v = 2")
        if isCheckpointed { writer.close() }
        // This also holds for pages in its cache.
        expect(.busy) { try connection.firstRow("SELECT v FROM t") }
        expect(.busy) { try connection.firstRow("SELECT count(*) FROM t") }
        #expect(try openAtRestAfterwards(writer).firstRow("SELECT v FROM t")?[0] == 2)
    }

    private func openAtRestAfterwards(_ writer: Connection) throws -> Connection {
        writer.close()
        return try openAtRest()
    }

    @Test func `a store reads on with locks when the disk has room again`() throws {
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSinceNow: -3600)], ofItemAtPath: path)
        let disk = try FaultDisk()
        var configuration = Configuration.testing()
        configuration.vfs = disk.name
        disk.arm(.shm, count: nil, code: SQLITE_FULL)
        let store = try Store(
            path: path, key: .numbered(1), mode: .readOnly, configuration: configuration)
        func value() throws -> Value? { try store.read { try $0.firstRow("SELECT v FROM t")?[0] } }
        #expect(try value() == 1)
        try #require(disk.struckCount > 0)
        disk.disarm()
        #expect(try value() == 1)
        let writer = try connect()
        try writer.execute("UPDATE t SET v = 2")
        #expect(try value() == 2)
        try writer.execute("UPDATE t SET v = 3")
        #expect(try value() == 3)
        try store.read { tx in
            #expect(try tx.firstRow("SELECT v FROM t")?[0] == 3)
            try writer.execute("UPDATE t SET v = 4")
            #expect(try tx.firstRow("SELECT v FROM t")?[0] == 3)
        }
        writer.close()
        try store.close()
    }

    @Test func `a read during which the file changes is told to read again`() throws {
        let connection = try openAtRest()
        let writer = try connect()
        try writer.execute("UPDATE t SET v = 2")
        let error = expect(.busy) { try connection.firstRow("SELECT v FROM t") }
        #expect(error?.hint?.contains("Read it again") == true)
        #expect(error?.hint?.contains("room on the disk") == true)
        writer.close()
    }

    @Test func `a row is withheld if the file was changed while the rows were read`() throws {
        let connection = try openAtRest()
        let rows = try connection.prepare("SELECT v FROM t UNION ALL SELECT v FROM t")
        #expect(try rows.step())
        let writer = try connect()
        try writer.execute("UPDATE t SET v = 2")
        expect(.busy) { try rows.step() }
    }
}
