import Foundation
import Testing

@testable import Coffer

/// What a compacted store holds, and what it no longer holds.
@Suite(.againstHanging, .onOwnThreads) struct CompactTests {
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    private func make(
        _ mode: Configuration.JournalMode = .wal, _ profile: CipherProfile? = nil
    ) throws -> Store {
        try Store(path: path, key: .numbered(1), configuration: .testing(mode, profile: profile))
    }

    /// Fills a table and deletes nine rows of ten.
    private func fill(_ store: Store, rowCount: Int = 600) throws {
        try store.write { tx in
            try tx.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, v)")
            for number in 0..<rowCount {
                let value = [UInt8](repeating: UInt8(number % 251), count: 900)
                try tx.execute("INSERT INTO t(v) VALUES (\(value))")
            }
        }
        try store.write { tx in try tx.execute("DELETE FROM t WHERE id % 10 <> 0") }
    }

    private func names() throws -> Set<String> {
        Set(try FileManager.default.contentsOfDirectory(atPath: folder.url.path))
    }

    // MARK: Content

    @Test(arguments: journalModes, supportedProfiles)
    func `a compacted store holds the same schema, rows and row ids, and goes on`(
        mode: Configuration.JournalMode, profile: CipherProfile
    ) throws {
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(mode, profile: profile))
        let handle = try connection.current()
        handle.authorizer.isCoffer = true
        try handle.run("PRAGMA foreign_keys = OFF; " + OddSchema.sql)
        connection.close()
        let before = try Dump.store(path, key: 1)
        let store = try make(mode)
        // Its rows contradict a foreign key on purpose.
        let problems = try store.verify().problems
        let report = try store.compact()
        #expect(report.isShortened && report.content.profile == profile)
        let verification = try store.verify()
        #expect(verification.problems == problems && verification.isStructureChecked)
        try store.close()
        #expect(try Dump.store(path, key: 1) == before)
        #expect(try names() == ["store.db"])
        try OddSchema.expectAlive(
            Connection(path: path, key: .numbered(1), configuration: .testing(mode)))
    }

    @Test(arguments: ["UTF-16le", "UTF-16be"], [0, 1, 2])
    func `the encoding and the kind of auto_vacuum stay`(encoding: String, kind: Int) throws {
        var configuration = Configuration.testing()
        configuration.prepare = { connection in
            guard connection.mode != .readOnly else { return }
            try connection.current().run(
                "PRAGMA encoding = \"\(encoding)\"; PRAGMA auto_vacuum = \(kind)")
        }
        let store = try Store(path: path, key: .numbered(1), configuration: configuration)
        try fill(store)
        let before = try Dump.store(path, key: 1)
        try store.compact()
        try store.close()
        #expect(try Dump.store(path, key: 1) == before)
    }

    @Test(arguments: journalModes)
    func `the file becomes shorter, and deleted bytes are in no page of file or WAL`(
        mode: Configuration.JournalMode
    ) throws {
        let store = try make(mode)
        let canary = [UInt8]("the canary of this test".utf8)
        try store.write { tx in
            try tx.execute("CREATE TABLE secret(v)")
            try tx.execute("INSERT INTO secret VALUES (\(canary))")
        }
        try fill(store)
        try store.write { tx in try tx.execute("DELETE FROM secret") }
        // The log still has the page as it was.
        #expect(mode == .delete || holds(store, canary))
        let report = try store.compact()
        #expect(report.isShortened && report.byteCount < report.oldByteCount / 5)
        #expect(report.byteCount == (try Damage.byteCount(path)))
        #expect(!holds(store, canary))
        #expect(report.content.rowCount == 60 && report.content.tableCount == 2)
        try store.close()
        #expect(try Connection(path: path, key: .numbered(1)).firstRow("SELECT 1") != nil)
    }

    /// Whether a page of the main file, or of any frame of the WAL, holds these bytes.
    private func holds(_ store: Store, _ bytes: [UInt8]) -> Bool {
        guard let cipher = store.core.pool.file?.cipher else { return false }
        let profile = cipher.profile
        func pages(_ file: String, header: Int, frame: Int) -> Bool {
            let data = [UInt8]((try? Data(contentsOf: URL(filePath: file))) ?? Data())
            let size = profile.pageByteCount
            for start in stride(from: header + frame, through: data.count - size, by: size + frame)
            {
                // Page numbers matter for page 1 only, whose start is not encrypted.
                let isFirst = frame == 0 && start == 0
                let page = data[start..<start + size].withUnsafeBytes {
                    profile.decrypt($0, number: isFirst ? 1 : 2, key: cipher.key)
                }
                if let page, Data(page).range(of: Data(bytes)) != nil { return true }
            }
            return false
        }
        return pages(path, header: 0, frame: 0) || pages(path + "-wal", header: 32, frame: 24)
    }

    @Test func `functions and collations that the store registers are there for its indexes`()
        throws
    {
        let store = try make()
        try store.prepareConnections { connection in
            try connection.register(collation: "backwards") { one, other in
                String(one.reversed()).compare(String(other.reversed()))
            }
        }
        try store.write { tx in
            try tx.execute("CREATE TABLE word(v TEXT COLLATE backwards)")
            try tx.execute("CREATE INDEX by_end ON word(v)")
            for word in ["one", "two", "three", "four"] {
                try tx.execute("INSERT INTO word VALUES (\(word))")
            }
        }
        try store.compact()
        let words = try store.read { tx in
            try tx.rows("SELECT v FROM word ORDER BY v").map { try $0.get(0, as: String.self) }
        }
        #expect(words == ["three", "one", "two", "four"])
        try store.close()
        let other = try make()
        let error = expect(.unsupported) { try other.compact() }
        #expect(error?.message.contains("backwards") == true, "\(String(describing: error))")
    }

    // MARK: Others

    @Test func `reads go on meanwhile, and a read from before keeps the old pages`() throws {
        let store = try make()
        try fill(store)
        let snapshot = try store.snapshot()
        // Called on this thread only.
        nonisolated(unsafe) var counts: Set<Int?> = []
        let report = try store.compact { _ in
            let count = try? store.read { tx in try tx.rows("SELECT * FROM t").count }
            counts.insert(count)
        }
        #expect(counts == [60])
        #expect(!report.isShortened)
        #expect(try snapshot.read { tx in try tx.rows("SELECT * FROM t").count } == 60)
        try snapshot.close()
        try store.checkpoint(.truncate)
        #expect(try Damage.byteCount(path) < report.oldByteCount / 5)
        #expect(try store.verify().isGood)
    }

    @Test(arguments: journalModes)
    func `writes wait, of this store and of other connections`(
        mode: Configuration.JournalMode
    ) throws {
        var configuration = Configuration.testing(mode)
        configuration.waitTimeout = .milliseconds(20)
        let store = try Store(path: path, key: .numbered(1), configuration: configuration)
        try fill(store)
        configuration.busyTimeout = .milliseconds(1)
        let other = try Connection(
            path: path, key: .numbered(1), mode: .mustExist, configuration: configuration)
        nonisolated(unsafe) var codes: Set<StoreError.Code?> = []
        try store.compact { progress in
            // The last page commits.
            let isOver = progress.step == .replacingPages && progress.count == progress.countTotal
            guard !isOver else { return }
            let attempts: [() throws -> Void] = [
                { try other.execute("INSERT INTO t(v) VALUES (1)") },
                { try store.write { tx in try tx.execute("DELETE FROM t") } },
            ]
            for work in attempts {
                do {
                    try work()
                    codes.insert(nil)
                } catch { codes.insert((error as? StoreError)?.code) }
            }
            #expect(store.waitingWriteCount == 0)
        }
        #expect(codes == [.busy, .wouldDeadlock])
        try other.execute("INSERT INTO t(v) VALUES (1)")
        #expect(try store.read { tx in try tx.rows("SELECT * FROM t").count } == 61)
    }

    /// Without a WAL there is a moment without a lock: what others commit in it must not be lost.
    @Test func `a commit of another connection right before the pages are replaced is kept`()
        throws
    {
        let store = try make(.delete)
        try fill(store)
        let other = try Connection(
            path: path, key: .numbered(1), mode: .mustExist, configuration: .testing(.delete))
        expect(.busy) {
            try store.core.compact(CopyMonitor(progress: nil)) {
                _ = try? other.execute("UPDATE t SET v = 'theirs' WHERE id = 10")
            }
        }
        let kept = try store.read { tx in
            try tx.scalar("SELECT v FROM t WHERE id = 10") as String?
        }
        #expect(kept == "theirs")
        try store.compact()
        #expect(try other.firstRow("SELECT v FROM t WHERE id = 10")?.get(0) == "theirs")
        #expect(try store.verify().isGood)
    }

    /// The store took the mode at opening for the mode of the file. In a WAL a commit leaves page 1
    /// of the main file as it is, so the compaction did not notice it and erased it.
    @Test(arguments: journalModes, journalModes)
    func `a commit during a compaction is kept if the file has changed its journal mode`(
        opened: Configuration.JournalMode, changed: Configuration.JournalMode
    ) throws {
        let store = try make(opened)
        try fill(store)
        // A connection that uses a WAL keeps the file in it.
        try store.suspend()
        if opened != .wal { try store.resume() }
        let other = try Connection(
            path: path, key: .numbered(1), mode: .mustExist, configuration: .testing(changed))
        if opened == .wal { try store.resume() }
        other.busyPolicy = .none
        var wanted = 60
        func commit() {
            if (try? other.execute("INSERT INTO t(v) VALUES ('theirs')")) != nil { wanted += 1 }
        }
        commit()
        #expect(wanted == 61)
        for _ in 0..<2 {
            let monitor = CopyMonitor(progress: { _ in commit() })
            do throws(StoreError) {
                _ = try store.core.compact(monitor, didUnlock: commit)
            } catch { #expect(error.code == .busy) }
        }
        #expect(try other.rows("SELECT * FROM t").count == wanted)
        #expect(try store.read { tx in try tx.rows("SELECT * FROM t").count } == wanted)
        #expect(try store.verify().isGood)
    }

    @Test func `a change to WAL right before the pages are replaced is noticed`() throws {
        let store = try make(.delete)
        try fill(store)
        var other: Connection?
        expect(.busy) {
            try store.core.compact(CopyMonitor(progress: nil)) {
                other = try? Connection(
                    path: path, key: .numbered(1), mode: .mustExist, configuration: .testing())
                _ = try? other?.execute("INSERT INTO t(v) VALUES ('theirs')")
            }
        }
        #expect(try other?.firstRow("SELECT count(*) FROM t")?.get(0) == 61)
        // The store opens the file again, in its own mode.
        other?.close()
        #expect(try store.read { tx in try tx.rows("SELECT * FROM t").count } == 61)
        try store.compact()
        #expect(try store.read { tx in try tx.rows("SELECT * FROM t").count } == 61)
    }

    @Test func `a commit of another process before a compaction is in the compacted store`() throws
    {
        let store = try make()
        try fill(store)
        let other = try Connection(
            path: path, key: .numbered(1), mode: .mustExist, configuration: .testing())
        for number in 0..<5 {
            try other.execute("INSERT INTO t(v) VALUES (\(number))")
            try store.compact()
            #expect(try other.rows("SELECT * FROM t").count == 61 + number)
        }
        #expect(try store.read { tx in try tx.rows("SELECT * FROM t").count } == 65)
    }

    @Test func `two at once run one after the other`() async throws {
        let store = try make()
        try fill(store)
        try await withThrowingTaskGroup(of: CompactReport.self) { group in
            for _ in 0..<3 { group.addTask { try await store.compact() } }
            for try await report in group {
                #expect(report.isShortened && report.content.rowCount == 60)
            }
        }
        #expect(try names().allSatisfy { !$0.contains(".new-") })
        let isGood = try await store.verify().isGood
        #expect(isGood)
    }

    @Test func `records, buckets and observation go on after it`() async throws {
        struct Note: Record, Equatable {
            var id: Int64?
            var text: String
        }
        let store = try make()
        let settings = Bucket<String, Int>("settings")
        try await store.write { tx in
            try tx.set(1, for: "one", in: settings)
            try tx.insert(Note(text: "first"))
        }
        let found = store.observe { tx in try tx.fetch(Note.all).count }.makeAsyncIterator()
        #expect(try await found.next() == 1)
        try await store.compact()
        try await store.write { tx in try tx.insert(Note(text: "second")) }
        var count = 1
        while count != 2 { count = try await found.next() ?? 2 }
        #expect(try await store.read { tx in try tx.get("one", in: settings) } == 1)
        #expect(try await store.read { tx in try tx.fetch(Note.all).map(\.id) } == [1, 2])
    }
}

/// Files that are created to give pages back.
@Suite(.againstHanging, .onOwnThreads) struct IncrementalVacuumTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func make(_ incrementalVacuum: Bool) throws -> Store {
        var configuration = Configuration.testing()
        configuration.incrementalVacuum = incrementalVacuum
        let store = try Store(path: folder.path(), key: .numbered(1), configuration: configuration)
        try store.write { tx in
            try tx.execute("CREATE TABLE t(v)")
            for _ in 0..<100 { try tx.execute("INSERT INTO t VALUES (zeroblob(4000))") }
        }
        try store.write { tx in try tx.execute("DELETE FROM t") }
        try store.checkpoint(.truncate)
        return store
    }

    @Test func `a file created for it gives free pages back, as many as asked for`() throws {
        let store = try make(true)
        let size = store.profile.pageByteCount
        let pageCount = try Damage.byteCount(folder.path()) / size
        #expect(try store.incrementalVacuum(pageCount: 0) == 0)
        #expect(try store.incrementalVacuum(pageCount: 10) == 10)
        try store.checkpoint(.truncate)
        #expect(try Damage.byteCount(folder.path()) == (pageCount - 10) * size)
        #expect(try store.incrementalVacuum(pageCount: .max) > 50)
        #expect(try store.incrementalVacuum(pageCount: .max) == 0)
        #expect(try store.verify().isGood)
        #expect(try store.compact().content.pageCount == 3)
    }

    @Test func `any other file is .unsupported, and keeps its pages`() throws {
        let store = try make(false)
        expect(.unsupported) { try store.incrementalVacuum(pageCount: 1) }
        #expect(try store.compact().isShortened)
        expect(.unsupported) { try store.incrementalVacuum(pageCount: 1) }
    }
}
