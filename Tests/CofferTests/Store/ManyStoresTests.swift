import Dispatch
import Foundation
import Synchronization
import Testing

@testable import Coffer

/// Bodies of many stores use one store: all of them end, and other work has its threads.
@Suite(.againstHanging, .onOwnThreads) struct ManyStoresTests {
    /// As many threads as the process has, but separate, because concurrent tests need threads too.
    private static let threads = WorkThreads(
        maximumRunningCount: 256, maximumThreadCount: 1024, idleDuration: .seconds(5))

    private static var configuration: Configuration {
        var configuration = Configuration.testing()
        configuration.threads = threads
        return configuration
    }

    /// The store that all bodies write to, with a body in it that the test releases.
    private struct Held {
        let store: Store
        let hold = Hold()
        private let body: Task<Void, any Error>

        init() async throws {
            let store = try await Store(.memory, configuration: configuration)
            try await store.write { tx in try tx.execute("CREATE TABLE t(v)") }
            self.store = store
            body = onThread { [hold] in try store.write { _ in hold.stay() } }
            await hold.isEntered()
        }

        func insert() throws {
            try store.write { tx in _ = try tx.execute("INSERT INTO t VALUES (1)") }
        }

        func release() async throws {
            hold.release()
            try await body.value
        }

        var rowCount: Int {
            get throws { try store.read { tx in try tx.rows("SELECT * FROM t").count } }
        }
    }

    /// The synchronous form.
    private func make(_ count: Int, _ open: (Int) throws -> Store) rethrows -> [Store] {
        try (0..<count).map(open)
    }

    @Test func `reads of 65 stores that write to one store all end`() async throws {
        let folder = try TemporaryFolder()
        let held = try await Held()
        // The first in the queue needs a thread, which the bodies behind it must not keep from it.
        let first = Task {
            try await held.store.write { tx in _ = try tx.execute("INSERT INTO t VALUES (0)") }
        }
        try await yieldWhile { held.store.waitingWriteCount < 1 }
        let stores = try make(65) { number in
            try Store(
                path: folder.path("\(number).db"), key: .numbered(1),
                configuration: Self.configuration)
        }
        let bodies = stores.flatMap { store in
            (0..<4).map { _ in Task { try await store.read { _ in try held.insert() } } }
        }
        #expect(await comes { held.store.waitingWriteCount == 261 })
        try await held.release()
        try await first.value
        for body in bodies { try await body.value }
        #expect(try held.rowCount == 261)
    }

    @Test func `300 bodies that wait for a store leave Dispatch its threads`() async throws {
        let held = try await Held()
        let stores = try make(300) { _ in try Store(.memory, configuration: Self.configuration) }
        let bodies = stores.map { store in
            Task { try await store.write { _ in try held.insert() } }
        }
        #expect(await comes { held.store.waitingWriteCount == 300 })
        let hasRun = Shared(false)
        DispatchQueue(label: "another").async { hasRun.value = true }
        #expect(await comes { hasRun.value })
        try await held.release()
        for body in bodies { try await body.value }
        #expect(try held.rowCount == 300)
    }
}
