import Foundation
import Synchronization
import Testing
import Workload

@testable import Coffer

@Suite(.againstHanging, .onOwnThreads) struct BackupTests {
    private let folder: TemporaryFolder
    private let path: String
    private let copy: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
        copy = folder.path("copy.db")
    }

    private func make(
        _ mode: Configuration.JournalMode, _ profile: CipherProfile? = nil, rowCount: Int = 300,
        busyTimeout: Duration? = nil
    ) throws -> Store {
        var configuration = Configuration.testing(mode, profile: profile)
        if let busyTimeout { configuration.busyTimeout = busyTimeout }
        let store = try Store(path: path, key: .numbered(1), configuration: configuration)
        try store.write { tx in
            try tx.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, v)")
            try tx.execute("CREATE TABLE two(a, b)")
            for number in 0..<rowCount {
                let value = [UInt8](repeating: UInt8(number % 251), count: 900)
                try tx.execute("INSERT INTO t(v) VALUES (\(value))")
            }
        }
        return store
    }

    @Test(arguments: journalModes, supportedProfiles)
    func `a backup holds what the store holds, under the store's key and salt`(
        mode: Configuration.JournalMode, profile: CipherProfile
    ) throws {
        let store = try make(mode, profile)
        let report = try store.backup(to: copy)
        #expect(report.tableCount == 2 && report.rowCount == 300 && report.profile == profile)
        #expect(report.pageCount == (try Damage.byteCount(copy)) / profile.pageByteCount)
        try store.write { tx in try tx.execute("INSERT INTO t(v) VALUES ('later')") }
        try store.close()
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.url.path)
        #expect(Set(names) == ["store.db", "copy.db"])
        let starts = try [path, copy].map { try Data(contentsOf: URL(filePath: $0)).prefix(16) }
        #expect(starts[0] == starts[1], "the same salt")
        let again = try Store(path: copy, key: .numbered(1), configuration: .testing(mode))
        let verification = try again.verify()
        #expect(verification.isGood)
        #expect(again.profile == profile)
        #expect(try again.read { tx in try tx.rows("SELECT * FROM t").count } == 300)
        try again.write { tx in try tx.execute("INSERT INTO t(v) VALUES ('own way')") }
    }

    @Test(arguments: journalModes, supportedProfiles)
    func `a backup under another key opens with that key, has its own salt, and not the old key`(
        mode: Configuration.JournalMode, profile: CipherProfile
    ) throws {
        let store = try make(mode, profile)
        try store.backup(to: copy, key: .numbered(2))
        try store.close()
        expect(.wrongKey) { try Connection(path: copy, key: .numbered(1), mode: .mustExist) }
        let starts = try [path, copy].map { try Data(contentsOf: URL(filePath: $0)).prefix(16) }
        #expect(starts[0] != starts[1])
        let again = try Store(path: copy, key: .numbered(2), configuration: .testing(mode))
        let verification = try again.verify()
        #expect(verification.isGood && again.profile == profile)
        #expect(try again.read { tx in try tx.rows("SELECT * FROM t").count } == 300)
        #expect(try Dump.store(copy, key: 2) == Dump.store(path, key: 1))
    }

    @Test(arguments: [1024, 65536])
    func `a backup keeps the page size`(size: Int) throws {
        let profile = try CipherProfile.portable.with(pageByteCount: size)
        let report = try make(.wal, profile).backup(to: copy, key: .numbered(2))
        #expect(report.profile == profile)
        let again = try Connection(path: copy, key: .numbered(2), mode: .readOnly)
        // The rounds do not matter under a raw key: with 1024 bytes this is `.sqlcipher3` as well.
        #expect(again.profile?.pageByteCount == size)
    }

    @Test func `a table whose row ids cannot be named is backed up, but not decrypted`() throws {
        let store = try make(.wal)
        try store.write { tx in
            try tx.execute("CREATE TABLE hidden(rowid, _rowid_, oid)")
            try tx.execute("INSERT INTO hidden VALUES (1, 2, 3)")
        }
        let report = try store.backup(to: copy)
        #expect(report.rowCount == 301)
        expect(.unsupported) { try store.decrypt(to: folder.path("plain.db")) }
    }

    @Test func `odd schemas and auto_vacuum are backed up as they are`() throws {
        let plain = folder.path("plain.db")
        let raw = try RawConnection(plain)
        raw.run("PRAGMA encoding = 'UTF-16le'; PRAGMA auto_vacuum = FULL")
        try #require(raw.run(OddSchema.sql) == 0)
        try Store.encrypt(
            plaintextAt: plain, to: path, key: .numbered(1), configuration: .testing())
        let store = try Store(path: path, key: .numbered(1), configuration: .testing())
        try store.backup(to: copy)
        #expect(try Dump.store(copy, key: 1) == Dump.lines(raw.db))
        try OddSchema.expectAlive(Connection(path: copy, key: .numbered(1)))
    }

    private static func move(_ amount: Int, id: Int, _ run: (SQL) throws -> Void) throws {
        try run("UPDATE two SET b = b - \(amount) WHERE a = 'left'")
        try run("UPDATE t SET v = randomblob(900) WHERE id = \(id)")
        try run("UPDATE two SET b = b + \(amount) WHERE a = 'right'")
    }

    private final class Run: Sendable {
        let isDone = Atomic(false)
        let commitCount = Atomic(0)
    }

    /// Writers here and in another connection move amounts between rows; every snapshot must have
    /// the same sum.
    @Test(arguments: journalModes)
    func `a backup next to writers that never stop ends and is one snapshot`(
        mode: Configuration.JournalMode
    ) async throws {
        // Neither writer waits in a line for the other: one may be unlucky all the time.
        let store = try make(mode, rowCount: isLongRun ? 20_000 : 3000, busyTimeout: .seconds(250))
        try await store.write { tx in
            try tx.execute("INSERT INTO two(a, b) VALUES ('left', 500), ('right', 500)")
        }
        let run = Run()
        try await withThrowingTaskGroup(of: Void.self) { [path, copy] group in
            group.addTask {
                var random = SeededGenerator(for: "a backup beside a writer")
                while !run.isDone.load(ordering: .relaxed) {
                    let id = Int.random(in: 1...3000, using: &random)
                    try await store.write { tx in try Self.move(1, id: id) { try tx.execute($0) } }
                    run.commitCount.add(1, ordering: .relaxed)
                }
            }
            group.addTask {
                var configuration = Configuration.testing(mode)
                configuration.busyTimeout = .seconds(250)
                let other = try Connection(
                    path: path, key: .numbered(1), configuration: configuration)
                var random = SeededGenerator(for: "a backup beside another connection")
                while !run.isDone.load(ordering: .relaxed) {
                    let id = Int.random(in: 1...3000, using: &random)
                    try other.transaction(.immediate) {
                        try Self.move(-2, id: id) { try other.execute($0) }
                    }
                    await Task.yield()
                }
            }
            group.addTask {
                defer { run.isDone.store(true, ordering: .relaxed) }
                for number in 0..<3 {
                    let name = "\(copy)\(number)"
                    let report = try await store.backup(to: name)
                    #expect(report.rowCount >= 3002)
                    let backup = try Connection(path: name, key: .numbered(1), mode: .readOnly)
                    #expect(try backup.firstRow("SELECT sum(b) FROM two")?[0] == 1000)
                }
            }
            try await group.waitForAll()
        }
        #expect(run.commitCount.load(ordering: .relaxed) > 0)
    }

    @Test func `progress reaches the end, and a cancelled backup leaves nothing`() async throws {
        let store = try make(.wal, rowCount: 4000)
        let before = try FileManager.default.contentsOfDirectory(atPath: folder.url.path)
        let last = Mutex<(CopyProgress.Step, Int, Int)?>(nil)
        try await store.backup(to: copy) { progress in
            if progress.step == .copyingPages {
                last.withLock { $0 = (progress.step, progress.count, progress.countTotal) }
            }
        }
        let end = try #require(last.withLock { $0 })
        #expect(end.1 == end.2 && end.1 > 500)
        try FileManager.default.removeItem(atPath: copy)
        for step in [CopyProgress.Step.copyingPages, .verifyingPages, .verifyingRows] {
            let error = await cancelled(at: step) { [copy] progress in
                try await store.backup(to: copy, progress: progress)
            }
            #expect(error is CancellationError)
        }
        let after = try FileManager.default.contentsOfDirectory(atPath: folder.url.path)
        #expect(Set(after) == Set(before))
    }
}
