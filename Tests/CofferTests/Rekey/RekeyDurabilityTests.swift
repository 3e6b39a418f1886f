import Foundation
import Testing

@testable import Coffer

/// A change of the key is on the disk when it returns.
@Suite(.againstHanging, .onOwnThreads) struct RekeyDurabilityTests {
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    private func make(_ mode: Configuration.JournalMode) throws {
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(mode))
        defer { connection.close() }
        try connection.execute("CREATE TABLE t(v)")
        try connection.execute("INSERT INTO t VALUES (zeroblob(30000))")
    }

    private func open(_ key: UInt8, _ configuration: Configuration) throws -> Connection {
        try Connection(
            path: path, key: .numbered(key), mode: .mustExist, configuration: configuration)
    }

    private func holdsAll(_ key: UInt8) -> Bool {
        unlinkIfPresent(path + "-shm")
        let connection = try? open(key, .testing(.existing))
        defer { connection?.close() }
        return (try? connection?.firstRow("SELECT length(v) FROM t"))?.values == [.integer(30000)]
    }

    @Test(arguments: Keeping.all)
    func `a rekey that has returned survives a power loss, whatever the durability`(
        keeping: Keeping
    ) throws {
        try make(keeping.journalMode)
        let disk = try FaultDisk.recording(powerOffAfter: nil, ignoringSyncs: false)
        let connection = try open(1, keeping.configuration(disk))
        // Keeps the checkpoint, which would sync the WAL, from doing anything.
        let reader = try open(1, keeping.configuration(disk))
        if keeping.journalMode == .wal {
            try reader.begin(.deferred)
            #expect(try reader.rows("SELECT * FROM t").count == 1)
        }
        try connection.rekey(to: .numbered(2))
        disk.cutPower()
        connection.close()
        reader.close()
        // Everything that was not synced is lost.
        try disk.restore(seed: 0)
        #expect(!holdsAll(1))
        #expect(holdsAll(2))
    }

    @Test(arguments: journalModes)
    func `the durability of other commits is unchanged`(mode: Configuration.JournalMode) throws {
        try make(mode)
        var configuration = Configuration.impatient(mode)
        configuration.durability = .process
        let connection = try open(1, configuration)
        defer { connection.close() }
        let other = try open(1, .testing(mode))
        // NORMAL with a WAL, otherwise EXTRA.
        let synchronous = mode == .wal ? 1 : 3
        #expect(try connection.current().firstInteger("PRAGMA synchronous") == synchronous)
        try other.begin(.immediate)
        expect(.busy) { try connection.rekey(to: .numbered(2)) }
        #expect(try connection.current().firstInteger("PRAGMA synchronous") == synchronous)
        try other.rollback()
        other.close()
        try connection.rekey(to: .numbered(2))
        #expect(try connection.current().firstInteger("PRAGMA synchronous") == synchronous)
    }
}
