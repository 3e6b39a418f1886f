import CSQLCipher
import Foundation
import Synchronization
import Testing

@testable import Coffer

/// Whatever goes wrong while a store is compacted, it has its old content or its new one, whole.
@Suite(.againstHanging, .onOwnThreads) struct CompactFaultTests {
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    private func make(
        _ mode: Configuration.JournalMode = .wal, vfs: String? = nil, rowCount: Int = 400,
        busyTimeout: Duration = .seconds(20)
    ) throws -> Store {
        var configuration = Configuration.testing(mode)
        configuration.vfs = vfs
        configuration.busyTimeout = busyTimeout
        let isNew = !FileManager.default.fileExists(atPath: path)
        let store = try Store(path: path, key: .numbered(1), configuration: configuration)
        guard isNew else { return store }
        try store.write { tx in
            try tx.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, v)")
            for number in 0..<rowCount {
                let value = [UInt8](repeating: UInt8(number % 251), count: 1900)
                try tx.execute("INSERT INTO t(v) VALUES (\(value))")
            }
        }
        try store.write { tx in try tx.execute("DELETE FROM t WHERE id % 4 <> 0") }
        return store
    }

    private func expectWhole(
        _ rowCount: Int = 100, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let store = try make()
        let found = try store.read { tx in
            try tx.firstRow("SELECT count(*), sum(id), sum(length(v)) FROM t")?.values
        }
        let expected = [rowCount, 4 * rowCount * (rowCount + 1) / 2, 1900 * rowCount]
        #expect(
            found == expected.map { .integer(Int64($0)) }, sourceLocation: sourceLocation)
        #expect(try store.verify().isGood, sourceLocation: sourceLocation)
        try store.close()
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.url.path)
        #expect(names == ["store.db"], sourceLocation: sourceLocation)
    }

    // MARK: Cancelled

    @Test(arguments: [CopyProgress.Step.verifyingPages, .verifyingRows], journalModes)
    func `a cancelled compaction changes nothing, and leaves no file`(
        step: CopyProgress.Step, mode: Configuration.JournalMode
    ) async throws {
        let store = try make(mode, rowCount: 4000)
        let error = await cancelled(at: step) { progress in
            try await store.compact(progress: progress)
        }
        #expect(error is CancellationError, "\(String(describing: error))")
        try await store.close()
        try expectWhole(1000)
    }

    @Test func `a compaction that is cancelled while it copies ends within the statement`()
        async throws
    {
        let store = try make(rowCount: 60_000)
        let error = await cancelled(at: .copyingPages) { progress in
            try await store.compact(progress: progress)
        }
        #expect(error is CancellationError, "\(String(describing: error))")
        #expect(store.waitingWriteCount == 0)
        try await store.write { tx in try tx.execute("UPDATE t SET v = v WHERE id = 4") }
    }

    @Test(arguments: journalModes)
    func `a cancellation while pages are replaced comes too late: the compaction is done`(
        mode: Configuration.JournalMode
    ) async throws {
        let store = try make(mode)
        let error = await cancelled(at: .replacingPages) { progress in
            try await store.compact(progress: progress)
        }
        #expect(error == nil)
        try await store.close()
        #expect(try Damage.byteCount(path) < 400_000)
        try expectWhole()
    }

    // MARK: Disk

    /// Fails one operation after the other, until a whole compaction passes.
    @Test(
        arguments: [FaultDisk.Kinds.write, .sync, .truncate, .read],
        journalModes)
    func `a failing operation is an error, or the compaction is done`(
        kinds: FaultDisk.Kinds, mode: Configuration.JournalMode
    ) throws {
        var skip = 0
        var failedCount = 0
        while true {
            removeStore(path)
            let disk = try FaultDisk()
            let store = try make(mode, vfs: disk.name, rowCount: 120)
            disk.arm(kinds, skip: skip, code: 0)
            do {
                try store.compact()
            } catch let error as StoreError {
                failedCount += 1
                #expect([.io, .full, .damaged, .busy].contains(error.code), "\(error)")
            }
            let isOver = disk.struckCount == 0
            disk.disarm()
            try? store.close()
            try expectWhole(30)
            if isOver { break }
            skip += max(1, skip / 8)
        }
        #expect(kinds == .truncate || failedCount > 0)
    }

    @Test(arguments: journalModes)
    func `a disk that fills up is .full, and everything stays`(
        mode: Configuration.JournalMode
    ) throws {
        for skip in [0, 20, 60, 110] {
            let disk = try FaultDisk()
            let store = try make(mode, vfs: disk.name)
            // SQLITE_FULL
            disk.arm(.write, skip: skip, count: nil, code: 13)
            let error = #expect(throws: StoreError.self) { try store.compact() }
            #expect(error?.code == .full, "\(String(describing: error))")
            disk.disarm()
            try store.write { tx in try tx.execute("UPDATE t SET v = v WHERE id = 8") }
            try store.close()
            try expectWhole()
        }
    }

    @Test(arguments: [8, 20, 40], journalModes)
    func `a disk that loses what the copy wrote is .damaged before a page is replaced`(
        skip: Int, mode: Configuration.JournalMode
    ) throws {
        let disk = try FaultDisk()
        let store = try make(mode, vfs: disk.name)
        // A lie about the store's own pages would be another test.
        try store.checkpoint(.truncate)
        disk.arm(.write, skip: skip, .lie)
        expect(.damaged) { try store.compact() }
        #expect(disk.struckCount == 1)
        disk.disarm()
        try store.close()
        try expectWhole()
    }

    @Test(.onSmallDisk, arguments: journalModes)
    func `too little room is .full before anything is written`(
        mode: Configuration.JournalMode
    ) throws {
        let lines = try SmallDisk.run(folder, "compact", mode)
        #expect(lines == ["ready", "full"])
    }

    // MARK: Damage and hostile files

    @Test(arguments: journalModes)
    func `a damaged page is .damaged, named, and never copied as zeros`(
        mode: Configuration.JournalMode
    ) throws {
        let store = try make(mode, rowCount: 8)
        let size = store.profile.pageByteCount
        try store.write { tx in
            try tx.execute("INSERT INTO t VALUES (100, \([UInt8](repeating: 9, count: size * 3)))")
        }
        try store.checkpoint(.truncate)
        try store.close()
        let page = try Damage.byteCount(path) / size
        try Damage.flip(path, at: (page - 1) * size + 10)
        let before = try Data(contentsOf: URL(filePath: path))
        let damaged = try make(mode)
        let error = expect(.damaged) { try damaged.compact() }
        #expect(error?.pages == [page], "\(String(describing: error))")
        try damaged.close()
        #expect(try Data(contentsOf: URL(filePath: path)) == before)
    }

    @Test func `a schema that SQLite never writes is .damaged, and nothing is run`() throws {
        let connection = try Connection(path: path, key: .numbered(1), configuration: .testing())
        let handle = try connection.current()
        handle.authorizer.isCoffer = true
        _ = coffer_set_option(handle.db, Int32(coffer_option_defensive), 0)
        try handle.run("CREATE TABLE t(id INTEGER PRIMARY KEY, v); PRAGMA writable_schema = ON")
        try handle.run(
            "CREATE TABLE two(a); UPDATE sqlite_master SET sql = 'CREATE  TABLE two(a)' "
                + "WHERE name = 'two'")
        connection.close()
        let store = try make()
        expect(.damaged) { try store.compact() }
        #expect(try store.read { tx in try tx.rows("SELECT * FROM two").count } == 0)
    }

    @Test func `tables that are named as the copy is, and views in place of tables, are kept`()
        throws
    {
        let store = try make()
        try store.write { tx in
            try tx.executeScript(
                """
                CREATE TABLE coffer_compact(sqlite_master, main, temp);
                INSERT INTO coffer_compact VALUES (1, 2, 3);
                CREATE VIEW main AS SELECT * FROM coffer_compact;
                CREATE TABLE "a ""quoted"" name; DROP TABLE t"("x y" TEXT DEFAULT ('it''s'));
                INSERT INTO "a ""quoted"" name; DROP TABLE t" DEFAULT VALUES;
                """)
        }
        let before = try Dump.store(path, key: 1)
        try store.compact()
        #expect(try Dump.store(path, key: 1) == before)
    }

    // MARK: Refusals

    @Test func `a store without a file, one for reading, a closed one and a body are refused`()
        throws
    {
        expect(.unsupported) { try Store(.memory).compact() }
        let store = try make()
        expect(.misuse) { try store.read { _ in try store.compact() } }
        expect(.misuse) { try store.write { _ in try store.compact() } }
        try store.close()
        expect(.closed) { try store.compact() }
        let reader = try Store(
            path: path, key: .numbered(1), mode: .readOnly, configuration: .testing())
        expect(.readOnly) { try reader.compact() }
    }

    @Test(arguments: journalModes)
    func `a peer that writes is .busy`(mode: Configuration.JournalMode) throws {
        let store = try make(mode, busyTimeout: .milliseconds(300))
        let peer = try Peer(["hold-write", mode.description, path, "1"])
        try #require(peer.line() == "ready")
        expect(.busy) { try store.compact() }
        peer.goOn()
        _ = peer.finish()
        try store.close()
        let patient = try make(mode)
        #expect(try patient.compact().isShortened)
        try patient.close()
        try expectWhole()
    }

    @Test func `without a WAL a peer that reads is .busy when the pages are replaced`() throws {
        let store = try make(.delete, busyTimeout: .milliseconds(300))
        let peer = try Peer(["hold-read", "delete", path, "1"])
        try #require(peer.line() == "ready")
        expect(.busy) { try store.compact() }
        peer.goOn()
        _ = peer.finish()
        try store.close()
        let patient = try make(.delete)
        try patient.compact()
        try patient.close()
        try expectWhole()
    }

    @Test(arguments: journalModes)
    func `files that a killed compaction left are removed by the next one`(
        mode: Configuration.JournalMode
    ) throws {
        try make(mode).close()
        let peer = try Peer(["compact-held", mode.description, path, "1"])
        try #require(peer.line() == "ready")
        peer.kill()
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.url.path)
        #expect(names.contains { $0.contains(".new-") })
        let store = try make(mode)
        try store.compact()
        try store.close()
        try expectWhole()
    }
}
