import Foundation
import Testing

@testable import Coffer

/// The WAL during a long read: it grows, nobody waits, and afterwards it shrinks.
@Suite(.againstHanging, .onOwnThreads) struct LongReadTests {
    private static let maximumByteCount = 1 << 20

    private let folder: TemporaryFolder
    private let path: String
    private let log = LogRecorder()

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    private func make(
        _ base: Configuration = .testing(), _ change: (inout Configuration) -> Void = { _ in }
    ) throws -> Store {
        var configuration = base
        configuration.maximumWALByteCount = Self.maximumByteCount
        configuration.checkpointPageCount = 100
        configuration.logger = log.logger
        change(&configuration)
        let store = try Store(path: path, key: .numbered(1), configuration: configuration)
        try store.write { tx in try tx.execute("CREATE TABLE IF NOT EXISTS t(v)") }
        log.forget()
        return store
    }

    /// Adds some 160 kB to the WAL.
    private func fill(_ store: Store) throws {
        try store.write { tx in
            try tx.execute("DELETE FROM t")
            for _ in 0..<8 { try tx.execute("INSERT INTO t VALUES (randomblob(20000))") }
        }
    }

    /// Fills until the condition holds; the suite's time limit ends a test that waits in vain.
    private func fill(_ store: Store, until isEnough: () -> Bool) throws {
        while !isEnough() { try fill(store) }
    }

    private func until(_ isSo: () -> Bool) async throws {
        while !isSo() { try await Task.sleep(for: .milliseconds(1)) }
    }

    private func walByteCount() -> Int {
        let file = try? FileManager.default.attributesOfItem(atPath: path + "-wal")
        return (file?[.size] as? Int) ?? 0
    }

    // MARK: A read of the store

    @Test func `no write waits for a long read, and the WAL is cut after its end`() async throws {
        let store = try make()
        let snapshot = try await store.snapshot()
        let beginning = ContinuousClock.now
        try await until { beginning.duration(to: .now) > WALBound.patience }
        let pauseCount = store.statistics.checkpoints.pauseCount
        try fill(store) { !log.texts.isEmpty }
        for _ in 0..<60 { try fill(store) }
        let checkpoints = store.statistics.checkpoints
        #expect(checkpoints.pauseCount == pauseCount)
        #expect(checkpoints.isOwed && !checkpoints.isKeptByOtherProcess)
        #expect(walByteCount() > 8 * Self.maximumByteCount)
        #expect(log.texts == ["warning readers keep the write-ahead log above its bound"])
        #expect(try await snapshot.read { tx in try tx.rows("SELECT * FROM t").count } == 0)
        try snapshot.close()
        // Nobody writes.
        try await until { !store.statistics.checkpoints.isOwed }
        #expect(walByteCount() <= Self.maximumByteCount)
        #expect(try await store.read { tx in try tx.rows("SELECT * FROM t").count } == 8)
        #expect(log.texts.count == 1)
    }

    @Test func `a body that has read nothing yet keeps nothing, and goes on`() async throws {
        let store = try make { $0.maximumSnapshotWALByteCount = 3 << 20 }
        let hold = Hold()
        let reading = Task {
            try await store.read { tx in
                hold.stay()
                return try tx.rows("SELECT * FROM t").count
            }
        }
        await hold.isEntered()
        let beginning = ContinuousClock.now
        try await until { beginning.duration(to: .now) > WALBound.patience }
        for _ in 0..<60 { try fill(store) }
        #expect(walByteCount() < 3 << 20)
        hold.release()
        #expect(try await reading.value == 8)
    }

    @Test func `a read ends when the WAL reaches its second bound, however young it is`() throws {
        let store = try make { $0.maximumSnapshotWALByteCount = 3 << 20 }
        let snapshot = try store.snapshot()
        try fill(store) { store.statistics.readerInUseCount == 0 }
        let error = expect(.snapshotExpired) { try snapshot.read { _ in } }
        #expect(error?.message.contains("\(3 << 20) bytes") == true)
        #expect(
            log.texts == [
                "warning readers keep the write-ahead log above its bound",
                "warning snapshots were ended for the write-ahead log",
            ])
        for _ in 0..<40 { try fill(store) }
        #expect(walByteCount() < 8 << 20)
    }

    @Test func `a body that does not end when asked is asked once and not waited for`()
        async throws
    {
        let store = try make { $0.maximumSnapshotWALByteCount = 3 << 20 }
        let hold = Hold()
        let reading = Task {
            try await store.read { tx in
                _ = try tx.rows("SELECT * FROM t")
                hold.stay()
                _ = try tx.rows("SELECT * FROM t")
            }
        }
        await hold.isEntered()
        try fill(store) { log.texts.count == 2 }
        for _ in 0..<5 { try fill(store) }
        let pauseCount = store.statistics.checkpoints.pauseCount
        for _ in 0..<40 { try fill(store) }
        #expect(store.statistics.checkpoints.pauseCount == pauseCount)
        #expect(log.texts.count == 2)
        hold.release()
        #expect(await code(reading) == .snapshotExpired)
        try await until { !store.statistics.checkpoints.isOwed }
        #expect(walByteCount() <= Self.maximumByteCount)
    }

    @Test func `the WAL of a connection is cut when it restarts`() throws {
        var configuration = Configuration.testing()
        configuration.maximumWALByteCount = Self.maximumByteCount
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: configuration)
        try connection.execute("CREATE TABLE t(v)")
        let reader = try Connection(path: path, key: .numbered(1), configuration: configuration)
        try reader.begin(.deferred)
        #expect(try reader.rows("SELECT * FROM t").count == 0)
        for _ in 0..<20 { try connection.execute("INSERT INTO t VALUES (randomblob(100000))") }
        try reader.commit()
        try connection.checkpoint(.restart)
        #expect(walByteCount() > 2 * Self.maximumByteCount, "SQLite keeps its size")
        try connection.execute("INSERT INTO t VALUES (1)")
        #expect(walByteCount() <= Self.maximumByteCount)
    }

    // MARK: A read of another process

    @Test func `another process that keeps the WAL is reported, and delays nobody`() async throws {
        let store = try make()
        let peer = try Peer(["hold-read", "wal", path, "1"])
        try #require(peer.line() == "ready")
        try fill(store) { store.statistics.checkpoints.isKeptByOtherProcess }
        for _ in 0..<60 { try fill(store) }
        let checkpoints = store.statistics.checkpoints
        #expect(checkpoints.pauseCount == 1)
        #expect(checkpoints.pauseDuration >= WALBound.patience)
        #expect(checkpoints.pauseDuration < .seconds(10), "waited as long as for a lock")
        #expect(checkpoints.isOwed && checkpoints.isKeptByOtherProcess)
        #expect(walByteCount() > 8 * Self.maximumByteCount)
        let told = "warning another process keeps the write-ahead log above its bound"
        #expect(log.texts == [told])
        peer.goOn()
        #expect(peer.finish() == ["released"])
        try await until { !store.statistics.checkpoints.isOwed }
        #expect(!store.statistics.checkpoints.isKeptByOtherProcess)
        #expect(walByteCount() <= Self.maximumByteCount)
        #expect(log.texts == [told])
        try fill(store)
    }

    // MARK: After a change of the key

    /// Whether a key opens the main file without its WAL. A child process makes the copy, because
    /// this one has the file open.
    private func opensAlone(_ key: UInt8) throws -> Bool {
        let copy = folder.path("alone.db")
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = ["cp", path, copy]
        try process.run()
        process.waitUntilExit()
        defer { removeStore(copy) }
        do {
            let connection = try Connection(
                path: copy, key: .numbered(key), mode: .mustExist, configuration: .testing())
            let count = try connection.rows("SELECT * FROM t").count
            connection.close()
            return count == 8
        } catch let error as StoreError where error.code == .wrongKey {
            return false
        }
    }

    @Test func `a rekey during another process's read reaches the main file after the read`()
        async throws
    {
        // Closing moves everything into the main file.
        try fill(make())
        let store = try make(.impatient()) { $0.waitTimeout = .seconds(60) }
        let peer = try Peer(["hold-read", "wal", path, "1"])
        try #require(peer.line() == "ready")
        try await store.rekey(to: .numbered(2))
        #expect(store.statistics.checkpoints.isOwed)
        #expect(try opensAlone(1), "the main file alone is under the old key")
        // Neither a write that changes nothing nor one that does pays the owed checkpoint.
        try await store.write { _ in }
        try await store.write { tx in _ = try tx.execute("CREATE TABLE u(v)") }
        #expect(store.statistics.checkpoints.isOwed)
        peer.goOn()
        #expect(peer.finish() == ["released"])
        try await until { !store.statistics.checkpoints.isOwed }
        #expect(try opensAlone(2))
        #expect(try !opensAlone(1))
        #expect(store.statistics.checkpoints.pauseCount == 0)
    }

    @Test func `a rekey without a concurrent reader owes nothing`() throws {
        let store = try make()
        try fill(store)
        try store.rekey(to: .numbered(2))
        #expect(!store.statistics.checkpoints.isOwed)
        #expect(try opensAlone(2))
    }

    @Test func `a pause keeps an owed checkpoint for later`() async throws {
        // Closing moves everything into the main file.
        try fill(make())
        let store = try make(.impatient()) { $0.waitTimeout = .seconds(60) }
        let peer = try Peer(["hold-read", "wal", path, "1"])
        try #require(peer.line() == "ready")
        try await store.rekey(to: .numbered(2))
        try await store.suspend()
        #expect(store.statistics.checkpoints.isOwed)
        try await store.resume()
        peer.goOn()
        #expect(peer.finish() == ["released"])
        try await until { !store.statistics.checkpoints.isOwed }
        #expect(try opensAlone(2))
    }
}
