import CSQLCipher
import Foundation
import Synchronization
import Testing

@testable import Coffer

/// Story: a program opened a store just before `restore` gave the path to the backup. It waited
/// for the lock of the old file, got it after the rename, and then opened the WAL by its name: the
/// new store's. Its commits landed there, for pages of the old file, and the last of its
/// connections to close moved them into the wrong file. Now a connection takes its first lock, asks
/// whether the path still leads to its file, and only then reads; if not, it opens the file again.
@Suite(.againstHanging, .onOwnThreads) struct RestoreRaceTests {
    private let folder: TemporaryFolder
    private let path: String
    private let backup: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
        backup = folder.path("backup.db")
    }

    private func make(_ path: String, _ text: String, _ mode: Configuration.JournalMode) throws {
        let connection = try Connection(
            path: path, key: .numbered(2), configuration: .testing(mode))
        try connection.execute("CREATE TABLE note(body)")
        try connection.execute("INSERT INTO note VALUES (\(text))")
        connection.close()
    }

    private func bodies(_ path: String) throws -> [Value] {
        let connection = try Connection(
            path: path, key: .numbered(2), mode: .mustExist, configuration: .testing(.existing))
        defer { connection.close() }
        return try connection.rows("SELECT body FROM note").map { try #require($0[0]) }
    }

    /// Descriptors of this process on the file.
    private static func descriptorCount(_ path: String) -> Int {
        var named = stat()
        guard stat(path, &named) == 0 else { return 0 }
        return (Int32(0)..<4096).count { number in
            var found = stat()
            return fstat(number, &found) == 0
                && (found.st_dev, found.st_ino) == (named.st_dev, named.st_ino)
        }
    }

    /// Work on a thread of its own: a task might wait for the thread that waits for it here.
    private final class Work: Sendable {
        private let result = Mutex<Result<Void, any Error>?>(nil)
        private let isDone = DispatchSemaphore(value: 0)

        init(_ work: @escaping @Sendable () throws -> Void) {
            Thread.detachNewThread { [self] in
                let ended = Result { try work() }
                result.withLock { $0 = ended }
                isDone.signal()
            }
        }

        func finish() throws {
            isDone.wait()
            try result.withLock { $0 }?.get()
        }
    }

    /// Restores, and begins other work while the restore holds its lock: as soon as that work has
    /// the old file open, the names change.
    private func restore(during work: @escaping @Sendable () throws -> Void) throws -> String {
        var other: Work?
        let path = path
        let restoration = Restoration(
            configuration: .testing(.existing), monitor: CopyMonitor(progress: nil)
        ) { () throws(StoreError) in
            guard other == nil else { return }
            let own = Self.descriptorCount(path)
            other = Work(work)
            try? waitUntil { Self.descriptorCount(path) > own }
        }
        let report = try restoration.run(from: backup, key: .numbered(2), to: path)
        try other?.finish()
        return try #require(report.oldPath)
    }

    @Test(arguments: journalModes)
    func `a store that opens while its file is replaced works on the new file`(
        mode: Configuration.JournalMode
    ) throws {
        try make(path, "old", mode)
        try make(backup, "new", mode)
        let path = path
        let old = try restore {
            let store = try Store(
                path: path, key: .numbered(2), mode: .mustExist, configuration: .testing(mode))
            try store.write { tx in try tx.execute("INSERT INTO note VALUES ('later')") }
            let count = try store.read { tx in try tx.rows("SELECT 1 FROM note").count }
            #expect(count == 2)
            try store.close()
        }
        #expect(try bodies(path) == [.text("new"), .text("later")])
        #expect(try bodies(old) == [.text("old")])
    }

    @Test(arguments: journalModes)
    func `a connection that opens while its file is replaced works on the new file`(
        mode: Configuration.JournalMode
    ) throws {
        try make(path, "old", mode)
        try make(backup, "new", mode)
        let path = path
        let old = try restore {
            let connection = try Connection(
                path: path, key: .numbered(2), mode: .mustExist, configuration: .testing(mode))
            try connection.execute("INSERT INTO note VALUES ('later')")
            connection.close()
        }
        #expect(try bodies(path) == [.text("new"), .text("later")])
        #expect(try bodies(old) == [.text("old")])
    }

    @Test func `of two restores at once, the second replaces what the first has made`()
        throws
    {
        try make(path, "old", .wal)
        try make(backup, "new", .wal)
        let second = folder.path("second.db")
        try make(second, "second", .wal)
        let path = path
        let old = try restore {
            try Store.restore(
                from: second, key: .numbered(2), to: path, configuration: .testing(.existing))
        }
        #expect(try bodies(path) == [.text("second")])
        #expect(try bodies(old) == [.text("old")])
        #expect(try bodies(path + ".old-2") == [.text("new")])
    }

    @Test(arguments: [PhysicalOpen.Role.writer, .reader, .readOnly, .source])
    func `a connection whose file has lost its path touches no WAL of the file there`(
        role: PhysicalOpen.Role
    ) throws {
        try make(path, "old", .wal)
        let file = try FileLocation(path)
        let handle = try Handle(path: path, flags: role.flags)
        defer { handle.close() }
        let salt = try #require(try handle.rawBytes(at: 0, count: RawKey.saltByteCount))
        try FileManager.default.moveItem(atPath: path, toPath: path + ".old-1")
        try make(path, "new", .wal)
        let other = try Connection(
            path: path, key: .numbered(2), mode: .mustExist, configuration: .testing(.wal))
        defer { other.close() }
        try other.execute("INSERT INTO note VALUES ('later')")
        let log = try Data(contentsOf: URL(filePath: path + "-wal"))
        let profile = try Engine.capabilities.defaultProfile
        let physical = PhysicalOpen(
            file: file, profile: profile, configuration: .testing(.existing), role: role,
            cacheByteCount: 1 << 20)
        let key = try KeyDerivation.rawKey(from: .numbered(2), salt: salt, profile: profile)
        do throws(StoreError) {
            try physical.prepare(handle, key: key)
            Issue.record("it opened")
        } catch {
            #expect(error.code == .busy && error.isAboutReplacement, "\(error)")
        }
        handle.close()
        #expect(try Data(contentsOf: URL(filePath: path + "-wal")) == log)
    }

    @Test func `a connection without WAL does not get one of the file that has its path now`()
        throws
    {
        try make(path, "old", .delete)
        let connection = try Connection(
            path: path, key: .numbered(2), mode: .mustExist, configuration: .testing(.existing))
        defer { connection.close() }
        try FileManager.default.moveItem(atPath: path, toPath: path + ".old-1")
        try make(path, "new", .wal)
        let other = try Connection(
            path: path, key: .numbered(2), mode: .mustExist, configuration: .testing(.wal))
        defer { other.close() }
        try other.execute("INSERT INTO note VALUES ('later')")
        let handle = try connection.current()
        let change = JournalModeChange(handle: handle, file: try FileLocation(path))
        expect(.busy) { try change.set(.testing(.wal)) }
        #expect(!WALFile(handle: handle).isOpen)
    }
}
