import Foundation
import Synchronization
import Testing

@testable import Coffer

/// New files whose makers were killed: the next maker removes them, and only them.
@Suite(.againstHanging, .onOwnThreads) struct UnfinishedFileTests {
    private let folder: TemporaryFolder
    private let path: String
    private let copy: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
        copy = folder.path("copy.db")
    }

    private func make(_ mode: Configuration.JournalMode) throws {
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(mode))
        try connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, v)")
        try connection.transaction {
            for _ in 0..<600 {
                try connection.execute("INSERT INTO t(v) VALUES (randomblob(2000))")
            }
        }
        connection.close()
    }

    private func backUp() throws {
        let store = try Store(
            path: path, key: .numbered(1), mode: .mustExist, configuration: .testing(.existing))
        defer { try? store.close() }
        try store.backup(to: copy)
    }

    private func names() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.url.path).sorted()
    }

    /// The copy's files that have not received their final name.
    private func unfinished() throws -> [String] {
        try names().filter { $0.contains(".new-") }
    }

    private func heldPeer(_ kind: String) throws -> Peer {
        let peer = try Peer(["copy-held", kind, path, copy, "1"])
        try #require(peer.line() == "ready")
        return peer
    }

    // MARK: Killed

    @Test(arguments: ["backup", "decrypt"], journalModes)
    func `files that a killed copy left are removed by the next one to the same path`(
        kind: String, mode: Configuration.JournalMode
    ) throws {
        try make(mode)
        try heldPeer(kind).kill()
        let left = UnfinishedFile.all(inFolder: folder.url.path)
        try #require(left.count == 1)
        #expect(left[0].state == .left)
        #expect(try unfinished().count == 2, "the file and its lock")
        try backUp()
        #expect(try unfinished().isEmpty)
        #expect(try StoreFileStatus(path: copy).format == .encrypted)
    }

    @Test(arguments: journalModes)
    func `the file of a living maker is not touched, and its maker goes on`(
        mode: Configuration.JournalMode
    ) throws {
        try make(mode)
        let peer = try heldPeer("backup")
        let held = try unfinished()
        try backUp()
        #expect(try unfinished() == held)
        #expect(UnfinishedFile.all(inFolder: folder.url.path).map(\.state) == [.held])
        #expect(UnfinishedFile.all(inFolder: folder.url.path).map { $0.removeIfLeft() } == [false])
        try FileManager.default.removeItem(atPath: copy)
        peer.goOn()
        #expect(peer.finish() == ["copied"])
        #expect(try unfinished().isEmpty)
        #expect(try StoreFileStatus(path: copy).format == .encrypted)
    }

    @Test func `a maker that loses the name leaves nothing`() throws {
        try make(.wal)
        let peer = try heldPeer("backup")
        try backUp()
        peer.goOn()
        #expect(peer.finish() == ["alreadyExists"])
        #expect(try unfinished().isEmpty)
    }

    @Test func `a new store cleans up at its path as well`() throws {
        try leave("store.db.new-0123456789abcdef")
        try make(.wal)
        #expect(try unfinished().isEmpty)
    }

    // MARK: What is one

    /// Makes a file with every companion that it can have, and with a lock that nobody holds.
    private func leave(_ name: String, locked: Bool = true) throws {
        for companion in ["", "-wal", "-shm", "-journal"] + (locked ? ["-lock"] : []) {
            try Data("x".utf8).write(to: URL(filePath: folder.path(name + companion)))
        }
    }

    @Test func `an unfinished file is removed with its WAL, index, journal and lock`() throws {
        try leave("copy.db.new-0123456789abcdef")
        do { _ = try NewFile(at: copy) }
        #expect(try names().isEmpty)
    }

    @Test func `a lock alone is removed, because its file has received its name`() throws {
        try Data().write(to: URL(filePath: folder.path("copy.db.new-0123456789abcdef-lock")))
        do { _ = try NewFile(at: copy) }
        #expect(try names().isEmpty)
    }

    @Test(arguments: [
        "copy.db.new-0123456789abcde", "copy.db.new-0123456789abcdef0",
        "copy.db.new-0123456789ABCDEF", "copy.db.new-0123456789abcdeg",
        "copy.db.new-0123456789abcdé", "copy.dbnew-0123456789abcdef",
        "opy.db.new-0123456789abcdef", "acopy.db.new-0123456789abcdef",
        "copy.db.new-0123456789abcdef.new-1", ".new-0123456789abcdef",
    ])
    func `a file of another name does not belong to this path`(name: String) throws {
        try leave(name)
        let before = try names()
        do { _ = try NewFile(at: copy) }
        #expect(try names() == before)
    }

    @Test func `a file without a lock may be anybody's and stays`() throws {
        try leave("copy.db.new-0123456789abcdef", locked: false)
        let before = try names()
        do { _ = try NewFile(at: copy) }
        #expect(try names() == before)
        #expect(UnfinishedFile.all(inFolder: folder.url.path).map(\.state) == [.unknown])
    }

    @Test func `a lock that is a link or a pipe is not followed and blocks nobody`() throws {
        let name = "copy.db.new-0123456789abcdef"
        try leave(name, locked: false)
        let other = folder.path("other")
        try Data().write(to: URL(filePath: other))
        try FileManager.default.createSymbolicLink(
            atPath: folder.path(name + "-lock"), withDestinationPath: other)
        do { _ = try NewFile(at: copy) }
        #expect(FileManager.default.fileExists(atPath: folder.path(name)))
        try FileManager.default.removeItem(atPath: folder.path(name + "-lock"))
        try #require(mkfifo(folder.path(name + "-lock"), 0o600) == 0)
        do { _ = try NewFile(at: copy) }
        #expect(FileManager.default.fileExists(atPath: folder.path(name)))
    }

    // MARK: Races

    @Test func `two makers in one process exclude each other`() throws {
        let first = try NewFile(at: copy)
        try Data("1".utf8).write(to: URL(filePath: first.temporaryPath))
        let second = try NewFile(at: copy)
        try Data("2".utf8).write(to: URL(filePath: second.temporaryPath))
        #expect(first.temporaryPath != second.temporaryPath)
        #expect(FileManager.default.fileExists(atPath: first.temporaryPath))
        #expect(try second.adopt())
        #expect(try !first.adopt())
    }

    @Test func `a maker whose lock was removed before it had it draws another name`() throws {
        // The window between making the lock's file and locking it, held open.
        let lock = folder.path("copy.db.new-0123456789abcdef-lock")
        let descriptor = open(lock, O_CREAT | O_EXCL | O_RDWR, 0o600)
        defer { close(descriptor) }
        let left = try #require(UnfinishedFile.all(inFolder: folder.url.path).first)
        #expect(left.removeIfLeft())
        guard case .failure(.unavailable) = MakerLock.taking(lock) else {
            Issue.record("the lock is there")
            return
        }
        // Another file has the same name, so a lock through the old descriptor locks nothing.
        #expect(flock(descriptor, LOCK_EX | LOCK_NB) == 0)
        #expect(try MakerLock.making(lock, for: lock) != nil)
    }

    @Test(arguments: [false, true])
    func `a lock whose file was removed before locking does not count`(isReplaced: Bool) throws {
        let path = folder.path("copy.db.new-0123456789abcdef-lock")
        let descriptor = open(path, O_CREAT | O_EXCL | O_RDWR, 0o600)
        let lock = MakerLock(descriptor: descriptor, path: path)
        unlinkIfPresent(path)
        if isReplaced { try Data().write(to: URL(filePath: path)) }
        #expect(lock.take() == .held)
    }

    private final class Race: Sendable {
        let lostCount = Atomic(0)
        let makerCount = Atomic(2)

        var isOver: Bool { makerCount.load(ordering: .relaxed) == 0 }

        func make(at path: String) async throws {
            defer { makerCount.subtract(1, ordering: .relaxed) }
            for _ in 0..<(isLongRun ? 20_000 : 150) {
                let new = try NewFile(at: path)
                try Data("x".utf8).write(to: URL(filePath: new.temporaryPath))
                await Task.yield()
                if access(new.temporaryPath, F_OK) != 0 { lostCount.add(1, ordering: .relaxed) }
            }
        }

        func clean(_ folder: String) async {
            while !isOver {
                for file in UnfinishedFile.all(inFolder: folder) { file.removeIfLeft() }
                await Task.yield()
            }
        }
    }

    /// Makers and cleaners without pause: a maker that has begun finds its file until it ends.
    @Test func `no cleaner ever takes the file of a living maker`() async throws {
        let race = Race()
        let (target, cleaned) = (copy, folder.url.path)
        async let cleaners: Void = race.clean(cleaned)
        async let first: Void = race.make(at: target)
        async let second: Void = race.make(at: target)
        try await first
        try await second
        await cleaners
        #expect(race.lostCount.load(ordering: .relaxed) == 0)
        #expect(try names().isEmpty)
    }
}
