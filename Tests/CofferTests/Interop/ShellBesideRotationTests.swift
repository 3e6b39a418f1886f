import Foundation
import Testing

@testable import Coffer

/// A program without Coffer that has a store open by its data key while that is rotated.
@Suite(.againstHanging, .onOwnThreads) struct ShellBesideRotationTests {
    private let folder: TemporaryFolder
    private let path: String
    private static let file = [UInt8](repeating: 42, count: 32)

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    private func open(_ mode: OpenMode, _ journalMode: Configuration.JournalMode) throws -> Store {
        try Store(
            path: path, key: .keyring(.keyFile(Self.file)), mode: mode,
            configuration: .testing(journalMode, profile: .portable))
    }

    /// The data key of the first epoch, as SQL.
    private func firstKey() throws -> String {
        let areas = try #require(try KeyringFile(of: try FileLocation(path)).areas())
        let unlocked = try areas.unlocked(
            by: .keyFile(Self.file), memoryMax: KeyringFixture.memoryMax)
        return unlocked.root.dataKey(epoch: 1, id: unlocked.area.content.id).withKeyText {
            "\"\(String(decoding: $0, as: UTF8.self))\""
        }
    }

    /// Opens the store by the shell, and counts its rows.
    private func openShell(_ shell: Shell, _ rowCount: Int) throws -> Shell.Session {
        let session = try shell.open(path)
        let answer = try session.run(
            shell.pragmas(key: try firstKey(), .portable) + "SELECT count(*) FROM t;")
        #expect(answer.last == "\(rowCount)", "\(answer)")
        return session
    }

    /// Every row is there, and every page under the key that the keyring names.
    private func expectWhole(
        _ journalMode: Configuration.JournalMode, epoch: Int, _ rows: Int
    ) throws {
        let store = try open(.mustExist, journalMode)
        #expect(try store.verify().isGood)
        #expect(try store.keys.keyring.epoch == epoch)
        #expect(try store.keyID() == store.keys.keyring.keyID)
        let count = try store.read { tx in
            try tx.requireScalar("SELECT count(*) FROM t WHERE length(v) = 500", as: Int.self)
        }
        #expect(count == rows)
        try store.close()
    }

    @Test(arguments: Shell.all, journalModes)
    func `a shell that is open through two rotations and closes last harms nothing`(
        shell: Shell, journalMode: Configuration.JournalMode
    ) throws {
        let store = try open(.createIfMissing, journalMode)
        try store.write { tx in
            try tx.execute("CREATE TABLE t(v BLOB)")
            for _ in 0..<200 { try tx.execute("INSERT INTO t VALUES (randomblob(500))") }
        }
        let session = try openShell(shell, 200)
        try store.rotate()
        let epoch = try store.rotate().epoch
        try store.write { tx in try tx.execute("INSERT INTO t VALUES (randomblob(500))") }
        // Its key is not that of the pages any more: it reads nothing, and writes nothing.
        for statement in ["SELECT count(*) FROM t;", "INSERT INTO t VALUES ('shell');"] {
            let answer = try session.run(statement)
            #expect(answer.contains { $0.contains("rror") }, "\(answer)")
            #expect(!answer.contains { $0.contains("locked") }, "\(answer)")
        }
        try store.close()
        try session.close()
        try expectWhole(journalMode, epoch: epoch, 201)
    }

    @Test(arguments: Shell.all)
    func `a read of a shell goes on through a rotation, and its last frames are moved by it`(
        shell: Shell
    ) throws {
        let store = try open(.createIfMissing, .wal)
        try store.write { tx in
            try tx.execute("CREATE TABLE t(v BLOB)")
            for _ in 0..<200 { try tx.execute("INSERT INTO t VALUES (randomblob(500))") }
        }
        let session = try openShell(shell, 200)
        #expect(try session.run("BEGIN; SELECT count(*) FROM t;") == ["200"])
        let report = try store.rotate()
        // The read keeps the new pages in the WAL.
        #expect(!report.isWholeFile)
        try store.write { tx in try tx.execute("INSERT INTO t VALUES (randomblob(500))") }
        #expect(try session.run("SELECT count(*) FROM t WHERE length(v) = 500;") == ["200"])
        try store.close()
        let wal = try FileLocation(path).companionByteCount("-wal")
        #expect(wal > WriteAheadLog.headerByteCount)
        // The shell ends its read and is the last one: its engine moves the WAL.
        try session.close()
        #expect(try FileLocation(path).companionByteCount("-wal") == 0)
        try expectWhole(.wal, epoch: report.epoch, 201)
    }
}
