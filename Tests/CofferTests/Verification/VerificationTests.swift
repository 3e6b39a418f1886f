import Foundation
import Synchronization
import Testing
import Workload

@testable import Coffer

@Suite(.againstHanging, .onOwnThreads) struct VerificationTests {
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    private func make(
        _ mode: Configuration.JournalMode = .wal, profile: CipherProfile? = nil, rowCount: Int = 300
    ) throws -> Store {
        let store = try Store(
            path: path, key: .numbered(1), configuration: .testing(mode, profile: profile))
        try store.write { tx in
            try tx.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, v)")
            for _ in 0..<rowCount {
                try tx.execute("INSERT INTO t(v) VALUES (\([UInt8](repeating: 7, count: 900)))")
            }
        }
        return store
    }

    @Test(arguments: journalModes, supportedProfiles)
    func `a good store is good, its WAL too`(
        mode: Configuration.JournalMode, profile: CipherProfile
    ) throws {
        let store = try make(mode, profile: profile)
        let report = try store.verify()
        #expect(report.isGood, "\(report)")
        #expect((report.frameCount > 0) == (mode == .wal))
        try store.close()
        let again = try Store(path: path, key: .numbered(1), configuration: .testing(mode))
        let closed = try again.verify()
        #expect(closed.isGood && closed.frameCount == 0)
        #expect(closed.pageCount == (try Damage.byteCount(path)) / profile.pageByteCount)
    }

    @Test(arguments: supportedProfiles)
    func `every damaged page is named, free pages too`(profile: CipherProfile) throws {
        let store = try make(.delete, profile: profile)
        try store.write { tx in try tx.execute("DELETE FROM t WHERE id > 100") }
        try store.close()
        let pageCount = try Damage.byteCount(path) / profile.pageByteCount
        for page in stride(from: 2, through: pageCount, by: 7) {
            let copy = try folder.copy(path, as: "page\(page).db")
            try Damage.flip(copy, at: (page - 1) * profile.pageByteCount + 99)
            let damaged = try Store(
                path: copy, key: .numbered(1), configuration: .testing(.delete))
            let report = try damaged.verify()
            #expect(report.damagedPages.map(\.number) == [page])
            #expect(!report.isGood)
        }
    }

    @Test func `a zeroed page and bytes behind the last page are reported`() throws {
        try make(.delete).close()
        let size = try Engine.capabilities.defaultProfile.pageByteCount
        let count = try Damage.byteCount(path) / size
        try Damage.zero(path, at: (count - 1) * size, count: size + 10)
        let store = try Store(path: path, key: .numbered(1), configuration: .testing(.delete))
        let report = try store.verify()
        #expect(report.damagedPages.map(\.number) == [count])
        #expect(report.surplusByteCount == 10)
    }

    @Test func `a damaged frame of the WAL is reported`() throws {
        let store = try make()
        #expect(try store.verify().isGood)
        // From another process. Closing a descriptor of the WAL here would be harmless, but the
        // rule is simpler to keep than its exceptions.
        try Damage.overwriteFromOutside(path + "-wal", at: 9000)
        let report = try store.verify()
        #expect(report.damagedFramePages.count == 1)
        #expect(!report.isGood)
    }

    @Test func `a row that refers to nothing is a problem without a value`() throws {
        let store = try make()
        try store.write { tx in
            try tx.execute("CREATE TABLE p(id INTEGER PRIMARY KEY)")
            try tx.execute("CREATE TABLE c(p REFERENCES p)")
            try tx.connection().current().run("PRAGMA defer_foreign_keys = OFF")
        }
        let handle = try store.core.pool.writer.current()
        try handle.run("PRAGMA foreign_keys = OFF; INSERT INTO c VALUES (42)")
        let report = try store.verify()
        #expect(report.problems == ["row 1 of c refers to a row of p that does not exist"])
    }

    @Test func `progress reaches the end and a cancelled task stops`() async throws {
        let store = try make(rowCount: 4000)
        let last = Mutex<VerificationProgress?>(nil)
        let hold = Hold()
        let isHeld = Shared(false)
        _ = try await store.verify { progress in last.withLock { $0 = progress } }
        let seen = try #require(last.withLock { $0 })
        #expect(seen.pageCount == seen.pageCountTotal && seen.pageCount > 0)
        let task = Task { () -> VerificationReport in
            try await store.verify { _ in
                guard !isHeld.value else { return }
                isHeld.value = true
                hold.stay()
            }
        }
        await hold.isEntered()
        task.cancel()
        hold.release()
        await #expect {
            _ = try await task.value
        } throws: { $0 is CancellationError }
    }

    @Test(arguments: journalModes)
    func `a verify next to a writer and checkpoints never gives a false alarm`(
        mode: Configuration.JournalMode
    ) async throws {
        let store = try make(mode)
        let end = ContinuousClock.now + .seconds(isLongRun ? 30 : 4)
        let verifyCount = try await withThrowingTaskGroup(of: Int.self) { group in
            group.addTask {
                var random = SeededGenerator(for: "a verify beside a writer")
                while ContinuousClock.now < end {
                    let id = Int.random(in: 1...300, using: &random)
                    let byte = UInt8.random(in: 0...255, using: &random)
                    let value = [UInt8](repeating: byte, count: 900)
                    try await store.write { tx in
                        try tx.execute("UPDATE t SET v = \(value) WHERE id = \(id)")
                        try tx.execute("INSERT INTO t(v) VALUES (\(value))")
                    }
                    try await store.write { tx in
                        try tx.execute("DELETE FROM t WHERE id > 600")
                    }
                }
                return 0
            }
            group.addTask {
                // A second connection that checkpoints whenever it can.
                let other = try Connection(
                    path: path, key: .numbered(1), configuration: .testing(mode))
                while ContinuousClock.now < end {
                    _ = try? other.rows("PRAGMA wal_checkpoint")
                    try await Task.sleep(for: .milliseconds(3))
                }
                return 0
            }
            group.addTask {
                var count = 0
                repeat {
                    let report = try await store.verify()
                    #expect(report.isGood, "\(report)")
                    count += 1
                } while ContinuousClock.now < end
                return count
            }
            return try await group.reduce(0, +)
        }
        #expect(verifyCount > 0)
    }

    @Test func `a verify next to an open transaction costs it no lock`() throws {
        let store = try make(.delete)
        let peer = try Peer(["hold-read", "delete", path, "1"])
        try #require(peer.line() == "ready")
        #expect(try store.verify().isGood)
        peer.goOn()
        #expect(peer.finish() == ["released"])
        // One of our connections holds the write lock; the store reads every page next to it.
        let holder = try Connection(
            path: path, key: .numbered(1), configuration: .testing(.delete))
        try holder.transaction {
            try holder.execute("INSERT INTO t(v) VALUES ('ours')")
            #expect(try store.verify().isGood)
            #expect(try Peer.run(["insert", "delete", path, "1", "theirs"]) == ["busy"])
        }
        #expect(try holder.firstRow("SELECT count(*) FROM t")?[0] == 301)
    }

    @Test func `a verify without WAL leaves nothing behind`() throws {
        let store = try make(.delete)
        #expect(try store.verify().isGood)
        try store.close()
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: folder.url.path) == ["store.db"])
    }

    @Test(arguments: journalModes)
    func `a verify behind a write waits as long as the configuration says`(
        mode: Configuration.JournalMode
    ) async throws {
        try await make(mode).close()
        let store = try await Store(
            path: path, key: .numbered(1), configuration: .impatient(mode))
        let hold = Hold()
        let write = Task { try await store.write { _ in hold.stay() } }
        await hold.isEntered()
        // The write goes on until both have ended.
        try await onThread { expect(.busy) { try store.verify() } }.value
        await #expect {
            _ = try await store.verify()
        } throws: { ($0 as? StoreError)?.code == .busy }
        hold.release()
        try await write.value
        #expect(try await store.verify().isGood)
    }

    @Test func `verify inside a body is misuse`() throws {
        let store = try make()
        try store.write { _ in _ = expect(.misuse) { try store.verify() } }
    }

    @Test func `a salt that is not the key's is damage of page 1`() throws {
        let folder = try TemporaryFolder()
        let key = [UInt8](repeating: 3, count: 32) + [UInt8](repeating: 4, count: 16)
        try Store(path: folder.path(), key: .raw(key), configuration: .testing()).close()
        try Damage.flip(folder.path(), at: 3)
        // A key that brings its salt opens the file all the same; a passphrase never would.
        let store = try Store(path: folder.path(), key: .raw(key), configuration: .testing())
        let report = try store.verify()
        #expect(report.damagedPages.map(\.number) == [1])
        try store.close()
    }
}
