import CSQLCipher
import Foundation
import Testing

@testable import Coffer

/// The report of a change of the key agrees with what is on the disk.
@Suite(.againstHanging, .onOwnThreads) struct RekeyReportTests {
    private static let rowCount = 40

    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    private func make(_ mode: Configuration.JournalMode, at path: String? = nil) throws {
        let connection = try Connection(
            path: path ?? self.path, key: .numbered(1), configuration: .testing(mode))
        defer { connection.close() }
        try connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, v)")
        try connection.transaction {
            for number in 0..<Self.rowCount {
                try connection.execute("INSERT INTO t VALUES (\(number), zeroblob(1000))")
            }
        }
    }

    private func open(
        _ key: UInt8, _ configuration: Configuration = .testing(.existing)
    ) throws -> Connection {
        try Connection(
            path: path, key: .numbered(key), mode: .mustExist, configuration: configuration)
    }

    /// Whether the file with this key, and nothing else, gives all rows.
    private func holdsAll(_ path: String, key: UInt8) -> Bool {
        unlinkIfPresent(path + "-shm")
        let connection = try? Connection(
            path: path, key: .numbered(key), mode: .mustExist, configuration: .testing(.existing))
        defer { connection?.close() }
        let row = try? connection?.firstRow("SELECT count(*), sum(length(v)) FROM t")
        return row?.values == [
            .integer(Int64(Self.rowCount)), .integer(Int64(Self.rowCount * 1000)),
        ]
    }

    /// The keys that open a copy of the main file without its WAL.
    private func keysOfMainFile() throws -> [UInt8] {
        let alone = folder.path("alone.db")
        defer { removeStore(alone) }
        // In a child process, because closing a descriptor of the file here would drop SQLite's
        // locks.
        #expect(try Tool.runProgram(["cp", path, alone]).exitCode == 0)
        return [1, 2].filter { holdsAll(alone, key: $0) }
    }

    // MARK: The file as a whole

    @Test(arguments: journalModes)
    func `a rekey without a concurrent reader has changed the whole file`(
        mode: Configuration.JournalMode
    ) throws {
        try make(mode)
        let connection = try open(1)
        defer { connection.close() }
        let report = try connection.rekey(to: .numbered(2))
        #expect(report.isWholeFile)
        #expect(report.oldPageCount == 0)
        #expect(report.pageCount > 10)
        #expect(report.pageCount == (try connection.current().firstInteger("PRAGMA page_count")))
        #expect(report.duration > .zero)
        #expect(try keysOfMainFile() == [2])
        #expect(try connection.finishRekey().isWholeFile)
    }

    @Test func `pages behind the end of the database are not counted as left behind`() throws {
        try make(.delete)
        let byteCount = try Damage.byteCount(path)
        try Damage.append(path, byteCount: 20_000)
        let connection = try open(1)
        defer { connection.close() }
        let open = try connection.fileState()
        let pages = RawPages(open.handle, key: open.key, profile: open.profile)
        #expect(try pages.foreignCount(of: byteCount / pages.byteCount) == 0)
        #expect(try pages.foreignCount(of: .max) == 20_000 / pages.byteCount)
    }

    @Test func `during a read of another process the main file keeps the old key, as reported`()
        throws
    {
        try make(.wal)
        // It waits for a lock for up to 20 seconds.
        let connection = try open(1)
        defer { connection.close() }
        let peer = try Peer(["hold-read", "wal", path, "1"])
        try #require(peer.line() == "ready")
        let report = try connection.rekey(to: .numbered(2))
        #expect(report.duration < .seconds(10), "waited for the read")
        #expect(!report.isWholeFile)
        #expect(report.oldPageCount == report.pageCount)
        #expect(report.checkpointFailure == nil)
        #expect(try keysOfMainFile() == [1])
        #expect(try connection.rows("SELECT * FROM t").count == Self.rowCount)
        #expect(try connection.finishRekey().oldPageCount == report.pageCount)

        peer.goOn()
        #expect(peer.finish() == ["released"])
        #expect(try connection.finishRekey().isWholeFile)
        #expect(try keysOfMainFile() == [2])
        #expect(try FileLocation(path).companionByteCount("-wal") == 0)
    }

    @Test func `a store's report of its rekey agrees with a connection's`() throws {
        try make(.wal)
        let store = try Store(
            path: path, key: .numbered(1), mode: .mustExist, configuration: .testing())
        defer { try? store.close() }
        let peer = try Peer(["hold-read", "wal", path, "1"])
        try #require(peer.line() == "ready")
        let report = try store.rekey(to: .numbered(2))
        #expect(!report.isWholeFile)
        #expect(report.oldPageCount == report.pageCount)
        #expect(try keysOfMainFile() == [1])
        peer.goOn()
        #expect(peer.finish() == ["released"])
        #expect(try store.core.finishRekey().isWholeFile)
        #expect(try keysOfMainFile() == [2])
    }

    @Test func `a writer goes on while the WAL of a rekey is checkpointed`() async throws {
        try make(.wal)
        let disk = try FaultDisk()
        var configuration = Configuration.testing()
        configuration.vfs = disk.name
        nonisolated(unsafe) let connection = try open(1, configuration)
        // The last connection to close moves the whole WAL under a lock, so another one stays open.
        let other = try open(1)
        #expect(try other.rows("SELECT * FROM t").count == Self.rowCount)
        disk.holdMainSyncs()
        nonisolated(unsafe) var report: RekeyReport?
        let rekey = onThread { report = try connection.rekey(to: .numbered(2)) }
        defer { disk.release() }
        try await disk.isHolding()
        var impatient = Configuration.testing()
        impatient.busyTimeout = .zero
        let writer = try open(2, impatient)
        try writer.execute("INSERT INTO t VALUES (1000, zeroblob(1000))")
        writer.close()
        disk.release()
        try await rekey.value
        #expect(report?.isWholeFile == true)
        #expect(try connection.rows("SELECT * FROM t").count == Self.rowCount + 1)
        other.close()
        connection.close()
    }

    // MARK: The main file alone

    private func withStore(_ body: (Store, FaultDisk) throws -> Void) throws {
        try make(.wal)
        let disk = try FaultDisk()
        var configuration = Configuration.testing()
        configuration.vfs = disk.name
        let store = try Store(
            path: path, key: .numbered(1), mode: .mustExist, configuration: configuration)
        // Opens the reader.
        #expect(try store.opensWithoutWAL())
        try body(store, disk)
        disk.disarm()
        try store.close()
    }

    @Test func `a main file that cannot be read is .io, not one under another key`() throws {
        try withStore { store, disk throws in
            disk.arm(.read, count: nil)
            expect(.io) { try store.opensWithoutWAL() }
            #expect(disk.struckCount > 0)
        }
    }

    @Test func `a first page that is just being written is read again`() throws {
        try withStore { store, disk throws in
            disk.arm(.read, code: SQLITE_CORRUPT)
            #expect(try store.opensWithoutWAL())
            #expect(disk.struckCount == 1)
        }
    }

    // MARK: Faults

    @Test(arguments: journalModes)
    func `whichever operation of the disk fails, the report of the key is true`(
        mode: Configuration.JournalMode
    ) throws {
        let template = folder.path("template.db")
        try make(mode, at: template)
        var changedCount = 0
        var failedCount = 0
        var skip = 0
        while true {
            _ = try folder.copy(template, as: "store.db")
            defer { removeStore(path) }
            let disk = try FaultDisk()
            var configuration = Configuration.testing(mode)
            configuration.vfs = disk.name
            let connection = try open(1, configuration)
            disk.arm(.changing, skip: skip)
            var holding = [UInt8(2)]
            do throws(RekeyFailure) {
                let report = try connection.changeKey(to: .numbered(2), .refuse).report
                disk.disarm()
                changedCount += 1
                let mainFile = try? keysOfMainFile()
                if report.isWholeFile { #expect(mainFile == [2], "operation \(skip)") }
            } catch {
                disk.disarm()
                failedCount += 1
                holding = error.key == .old ? [1] : error.key == .new ? [2] : [1, 2]
            }
            connection.close()
            let keys = [UInt8(1), 2].filter { holdsAll(path, key: $0) }
            #expect(keys.count == 1, "operation \(skip): \(keys)")
            #expect(keys.allSatisfy(holding.contains), "operation \(skip): \(keys), \(holding)")
            guard disk.struckCount > 0 else { break }
            skip += 1
        }
        #expect(changedCount > 0 && failedCount > 10)
    }
}
