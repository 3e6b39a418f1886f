// Leaving WAL by `PRAGMA journal_mode=DELETE` alone discarded another process's last commit in 47
// of 324 runs: another process's UPDATE that does not dirty page 1 left our page cache "valid" once
// the WAL index was removed, and our next write on that leaf erased theirs. `JournalModeChange`
// holds the lock, refreshes the cache and checkpoints first.

import Foundation
import Testing

@testable import Coffer

@Suite(.againstHanging, .onOwnThreads) struct JournalModeTests {
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(.wal))
        try connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, n INTEGER NOT NULL)")
        try connection.execute("INSERT INTO t VALUES (1, 0), (2, 0)")
        connection.close()
    }

    private func open(_ mode: Configuration.JournalMode) throws -> Connection {
        try Connection(
            path: path, key: .numbered(1), mode: .mustExist, configuration: .testing(mode))
    }

    private func count(_ id: Int) throws -> Int {
        try open(.existing).firstRow("SELECT n FROM t WHERE id = \(id)")?.get(0) ?? -1
    }

    @Test
    func `no commit is lost while the mode changes and another process reopens for each write`()
        throws
    {
        let peer = try Peer(["write-reopening", path, "1"])
        try #require(peer.line() == "wrote")
        let end = ContinuousClock.now + .seconds(isLongRun ? 60 : 4)
        var changeCount = 0
        // At least a few of each, because four seconds can be short while other tests run.
        while try ContinuousClock.now < end || changeCount < 10 || count(1) < 10 {
            let connection = try open(.wal)
            for mode in [.delete, .wal] as [Configuration.JournalMode] {
                // The leaf that the other process writes is in our cache when the mode changes.
                _ = try connection.rows("SELECT * FROM t")
                let open = try connection.fileState()
                try JournalModeChange(handle: open.handle, file: open.file).set(.testing(mode))
                try connection.execute("UPDATE t SET n = n + 1 WHERE id = 2")
                changeCount += 1
            }
            connection.close()
        }
        peer.goOn()
        let lines = peer.finish()
        #expect(lines.allSatisfy { $0 == "wrote" }, "\(lines.filter { $0 != "wrote" })")
        // One line was read before the loop.
        let tally = try Self.tally(
            [
                (of: "the other process", tried: lines.count + 1, kept: count(1)),
                (of: "this process", tried: changeCount, kept: count(2)),
            ])
        try tally.expectNothingLost("changes of the journal mode")
    }

    /// Each write added one to its process's number.
    private static func tally(_ writes: [(of: String, tried: Int, kept: Int)]) -> Tally {
        var tally = Tally()
        for (process, triedCount, keptCount) in writes {
            for number in 0..<triedCount {
                tally.add(number < keptCount ? [] : ["a write is missing"], process)
            }
            if keptCount > triedCount { tally.add(["more than was written"], process) }
        }
        return tally
    }

    @Test(arguments: journalModes)
    func `the existing mode is kept by .existing`(mode: Configuration.JournalMode) throws {
        try open(mode).close()
        let store = try Store(
            path: path, key: .numbered(1), mode: .mustExist, configuration: .testing(.existing))
        #expect(store.journalMode == mode)
        try store.write { tx in try tx.execute("UPDATE t SET n = 7 WHERE id = 1") }
        #expect(FileManager.default.fileExists(atPath: path + "-wal") == (mode == .wal))
        let count = try store.read { tx in
            try tx.firstRow("SELECT n FROM t WHERE id = 1")?.get(0, as: Int.self)
        }
        #expect(count == 7)
        try store.rekey(to: .numbered(2))
        let report = try store.verify()
        #expect(report.isGood)
        try store.close()
    }

    @Test(arguments: [false, true])
    func `the mode of a file in use is not changed, and the other connection loses nothing`(
        isWriting: Bool
    ) throws {
        let other = try open(.wal)
        try other.begin(isWriting ? .immediate : .deferred)
        _ = try other.rows("SELECT * FROM t")
        if isWriting { try other.execute("UPDATE t SET n = 5 WHERE id = 1") }
        expect(.busy) {
            try Store(
                path: path, key: .numbered(1), mode: .mustExist,
                configuration: .impatient(.delete))
        }
        try other.commit()
        let third = try open(.existing)
        #expect(try third.fileState().handle.journalMode() == .wal)
        third.close()
        other.close()
        #expect(try count(1) == (isWriting ? 5 : 0))
        let store = try Store(
            path: path, key: .numbered(1), mode: .mustExist, configuration: .testing(.delete))
        #expect(store.journalMode == .delete)
    }

    @Test func `the change waits for a reader, and lets others write during the wait`() async throws
    {
        let (reader, path) = (try Peer(["hold-read", "wal", path, "1"]), path)
        try #require(reader.line() == "ready")
        let (isOpening, isOpen) = (Shared(false), Shared(false))
        let opening = onThread {
            isOpening.value = true
            let store = try Store(
                path: path, key: .numbered(1), mode: .mustExist, configuration: .testing(.delete))
            isOpen.value = true
            #expect(store.journalMode == .delete)
        }
        try await yieldWhile { !isOpening.value }
        // This process takes its lock again and again, and releases it each time.
        let end = ContinuousClock.now + .milliseconds(500)
        var number = 0
        while ContinuousClock.now < end || number < 5 {
            number += 1
            let sql = "UPDATE t SET n = \(number) WHERE id = 1"
            #expect(try Peer.run(["execute", "wal", path, "1", sql]) == ["executed"])
        }
        #expect(!isOpen.value)
        reader.goOn()
        try await opening.value
        _ = reader.finish()
        #expect(try count(1) == number)
    }

    @Test func `a new file is in WAL with .existing`() throws {
        let store = try Store(
            path: folder.path("new.db"), key: .numbered(1), configuration: .testing(.existing))
        #expect(store.journalMode == .wal)
        try store.close()
    }

    @Test func `without .existing the file is converted`() throws {
        for mode in journalModes {
            let store = try Store(
                path: path, key: .numbered(1), mode: .mustExist, configuration: .testing(mode))
            #expect(store.journalMode == mode)
            try store.close()
        }
    }
}
