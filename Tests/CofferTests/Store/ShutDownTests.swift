import Coffer
import Foundation
import Testing

/// The end of a store that has no time for its queue.
@Suite(.againstHanging, .onOwnThreads) struct ShutDownTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func open(waiting: Duration? = nil) throws -> Store {
        var configuration = Configuration.testing()
        if let waiting { configuration.waitTimeout = waiting }
        let store = try Store(
            path: folder.path(), key: .numbered(1), configuration: configuration)
        try store.write { tx in
            try tx.execute("CREATE TABLE IF NOT EXISTS done(name TEXT NOT NULL)")
        }
        return store
    }

    private func names() throws -> [String] {
        let store = try open()
        defer { try? store.close() }
        return try store.read { tx in
            try tx.rows("SELECT name FROM done").map { try $0.get("name") }
        }
    }

    @Test func `a running write ends, and those that wait are refused`() async throws {
        let store = try open()
        let hold = Hold()
        let running = Task {
            try await store.write { tx in
                hold.stay()
                try tx.execute("INSERT INTO done VALUES ('running')")
            }
        }
        await hold.isEntered()
        let waiting = (0..<5).map { number in
            Task {
                try await store.write { tx in
                    try tx.execute("INSERT INTO done VALUES (\(number))")
                }
            }
        }
        try await yieldWhile { store.statistics.waitingWriteCount < 5 }
        let end = Task { try await store.shutDown() }
        #expect(await comes { store.statistics.waitingWriteCount == 0 })
        hold.release()
        for write in waiting { #expect(await code(write) == .closed) }
        #expect(throws: StoreError.self) { try store.read { _ in } }
        try await running.value
        try await end.value
        #expect(try names() == ["running"])
    }

    @Test func `a running read ends, and those that wait are refused`() async throws {
        let store = try open()
        let hold = Hold()
        let count = 4
        let running = (0..<count).map { _ in Task { try await store.read { _ in hold.stay() } } }
        for _ in running { await hold.isEntered() }
        let waiting = Task { try await store.read { _ in } }
        try await yieldWhile { store.statistics.waitingReadCount < 1 }
        let end = Task { try await store.shutDown() }
        #expect(await comes { store.statistics.waitingReadCount == 0 })
        for _ in running { hold.release() }
        #expect(await code(waiting) == .closed)
        for read in running { try await read.value }
        try await end.value
    }

    @Test func `a write that does not end in time is undone and told so`() async throws {
        let store = try open(waiting: .milliseconds(20))
        let hold = Hold()
        let running = Task {
            try await store.write { tx in
                try tx.execute("INSERT INTO done VALUES ('undone')")
                hold.pass()
                while true { try tx.execute("UPDATE done SET name = 'again'") }
            }
        }
        await hold.isEntered()
        try await store.shutDown()
        #expect(await code(running) == .closed)
        #expect(try names().isEmpty)
    }

    @Test func `a body that does not use the store keeps it open`() async throws {
        let store = try open(waiting: .milliseconds(20))
        let hold = Hold()
        let running = Task { try await store.write { _ in hold.stay() } }
        await hold.isEntered()
        let error = await #expect(throws: StoreError.self) { try await store.shutDown() }
        #expect(error?.code == .busy)
        hold.release()
        _ = await running.result
        try await store.write { tx in try tx.execute("INSERT INTO done VALUES ('later')") }
        try await store.shutDown()
        #expect(try names() == ["later"])
    }

    @Test func `it may be repeated, follows close and suspend, and empties the log`() async throws {
        let store = try open()
        try await store.shutDown()
        try await store.shutDown()
        try await store.close()
        #expect(!FileManager.default.fileExists(atPath: folder.path() + "-wal"))
        let suspended = try open()
        try await suspended.suspend()
        try await suspended.shutDown()
        let error = #expect(throws: StoreError.self) { try suspended.read { _ in } }
        #expect(error?.code == .closed)
        #expect(try names().isEmpty)
    }

    @Test func `it blocks a thread without await, and inside a body it is a misuse`() throws {
        let store = try open()
        let error = #expect(throws: StoreError.self) {
            try store.write { _ in try store.shutDown() }
        }
        #expect(error?.code == .misuse)
        try store.shutDown()
        #expect(throws: StoreError.self) { try store.read { _ in } }
    }
}
