import Coffer
import CofferService
import Foundation
import Logging
import ServiceLifecycle
import ServiceLifecycleTestKit
import Testing

/// The life of a store that a service group runs.
@Suite(.timeLimit(.minutes(5))) struct StoreServiceTests {
    private let folder: Folder

    init() throws {
        folder = try Folder()
    }

    private func service(key: UInt8 = 1) -> StoreService {
        let path = folder.path
        return StoreService {
            let store = try await Store(path: path, key: Folder.key(key))
            try await store.write { tx in
                try tx.execute("CREATE TABLE IF NOT EXISTS done(name TEXT NOT NULL)")
            }
            return store
        }
    }

    private func names() throws -> [String] {
        let store = try Store(path: folder.path, key: Folder.key())
        defer { try? store.close() }
        return try store.read { tx in
            try tx.rows("SELECT name FROM done").map { try $0.get("name") }
        }
    }

    @Test func `a running write ends, queued ones are refused, and the files are closed`()
        async throws
    {
        let service = service()
        try await testGracefulShutdown { shutdown in
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await service.run() }
                let store = try await service.opened()
                let hold = Hold()
                let running = Task {
                    try await store.write { tx in
                        hold.stay()
                        try tx.execute("INSERT INTO done VALUES ('running')")
                    }
                }
                try await hold.waitForBody()
                let queued = (0..<5).map { number in
                    Task {
                        try await store.write { tx in
                            try tx.execute("INSERT INTO done VALUES (\(number))")
                        }
                    }
                }
                try await comes { store.statistics.waitingWriteCount == 5 }
                shutdown.triggerGracefulShutdown()
                for write in queued { #expect(await code(write) == .closed) }
                #expect(!service.isOpen)
                hold.release()
                try await running.value
                try await group.waitForAll()
            }
        }
        #expect(try openFiles(in: folder).isEmpty)
        #expect(try names() == ["running"])
    }

    @Test func `a group runs it, and stops it after those that use it`() async throws {
        struct User: Service {
            let service: StoreService
            func run() async throws {
                let store = try await service.opened()
                try await gracefulShutdown()
                try await store.write { tx in try tx.execute("INSERT INTO done VALUES ('last')") }
            }
        }
        let service = service()
        let group = ServiceGroup(
            services: [service, User(service: service)], logger: Logger(label: "test"))
        let run = Task { try await group.run() }
        _ = try await service.opened()
        await group.triggerGracefulShutdown()
        try await run.value
        #expect(try names() == ["last"])
    }

    @Test func `a store that is not open yet or no more is a typed error`() async throws {
        let service = service()
        let early = #expect(throws: StoreError.self) { try service.store }
        #expect(early?.code == .closed)
        #expect(early?.hint != nil)
        #expect(!service.isOpen)
        try await testGracefulShutdown { shutdown in
            async let run: Void = service.run()
            let store = try await service.opened()
            #expect(try service.store === store)
            #expect(service.isOpen)
            shutdown.triggerGracefulShutdown()
            try await run
        }
        let late = #expect(throws: StoreError.self) { try service.store }
        #expect(late?.code == .closed)
        let waiting = await #expect(throws: StoreError.self) { try await service.opened() }
        #expect(waiting?.code == .closed)
    }

    @Test func `the error of opening ends the service and reaches those who wait`() async throws {
        try await Store(path: folder.path, key: Folder.key()).close()
        let service = service(key: 2)
        let waiting = Task { try await service.opened() }
        let error = await #expect(throws: StoreError.self) { try await service.run() }
        #expect(error?.code == .wrongKey)
        #expect(await code(waiting) == .wrongKey)
        let later = #expect(throws: StoreError.self) { try service.store }
        #expect(later?.code == .wrongKey)
    }

    @Test func `a missing folder is told`() async throws {
        let path = folder.url.appending(path: "missing/notes.db").path
        let service = StoreService { try await Store(path: path, key: Folder.key()) }
        let error = await #expect(throws: StoreError.self) { try await service.run() }
        #expect(error?.code == .notFound)
    }

    @Test func `a task that is cancelled while it waits for the store ends`() async throws {
        let service = service()
        let waiting = Task { try await service.opened() }
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
    }

    @Test func `a cancelled service closes its store`() async throws {
        let service = service()
        let run = Task { try await service.run() }
        let store = try await service.opened()
        run.cancel()
        await #expect(throws: CancellationError.self) { try await run.value }
        let error = #expect(throws: StoreError.self) { try store.read { _ in } }
        #expect(error?.code == .closed)
        #expect(try openFiles(in: folder).isEmpty)
    }

    @Test func `a second run is a misuse and leaves the store open`() async throws {
        let service = service()
        let run = Task { try await service.run() }
        let store = try await service.opened()
        let error = await #expect(throws: StoreError.self) { try await service.run() }
        #expect(error?.code == .misuse)
        try await store.read { _ in }
        run.cancel()
        _ = await run.result
    }

    @Test func `a store that is open serves before the service runs`() async throws {
        let store = try await Store(path: folder.path, key: Folder.key())
        let service = StoreService(store)
        #expect(try service.store === store)
        let run = Task { try await service.run() }
        run.cancel()
        _ = await run.result
        let error = #expect(throws: StoreError.self) { try store.read { _ in } }
        #expect(error?.code == .closed)
    }

    @Test func `a pool is closed in the end`() async throws {
        let pool = try StorePool { _ in Folder.key() }
        let service = StorePoolService(pool)
        let path = folder.path
        try await testGracefulShutdown { shutdown in
            async let run: Void = service.run()
            try await pool.withStore(at: path) { store in try await store.write { _ in } }
            shutdown.triggerGracefulShutdown()
            try await run
        }
        let error = await #expect(throws: StoreError.self) {
            try await pool.withStore(at: path) { _ in }
        }
        #expect(error?.code == .closed)
        #expect(try openFiles(in: folder).isEmpty)
    }
}
