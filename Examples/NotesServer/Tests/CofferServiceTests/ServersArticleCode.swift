import Coffer
import CofferService
import Foundation
import Logging
import ServiceLifecycle
import Testing

/// The code of the article on servers, as it shows it, compiled and run. `ArticleTests` of Coffer
/// compares both.
@Suite(.timeLimit(.minutes(5))) struct ServersArticleCode {
    struct Note: Record {
        var id: Int64?
        var title: String
        var pinned = false
    }

    private struct Server: Service {
        func run() async throws { try await gracefulShutdown() }
    }

    // MARK: A store as a service

    @Test func `a store as a service`() async throws {
        let folder = try Folder()
        let (path, server, logger) = (folder.path, Server(), Logger(label: "test"))
        @Sendable func secretKey() throws -> StoreKey { Folder.key() }
        let migrations = [Migration("notes") { tx in try tx.create(Note.self) }]

        let notes = StoreService {
            var configuration = Configuration()
            configuration.tracer = DistributedTracer()
            let store = try await Store(path: path, key: secretKey(), configuration: configuration)
            try await store.migrate(migrations)
            return store
        }
        let group = ServiceGroup(
            services: [notes, server], gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
        let end = Task {
            _ = try await notes.opened()
            #expect(try await titles(notes).isEmpty)
            #expect(try await pin(1, notes) == nil)
            await group.triggerGracefulShutdown()
        }
        try await group.run()
        try await end.value
        #expect(!notes.isOpen)
    }

    // MARK: Handlers

    func titles(_ notes: StoreService) async throws -> [String] {
        try await notes.store.read { tx in try tx.fetch(Note.order(by: \.id)).map(\.title) }
    }

    // MARK: Helpers

    func find(_ id: Int64, _ tx: borrowing some Reading & ~Copyable) throws -> Note? {
        try tx.find(Note.self, id)
    }

    func pin(_ id: Int64, _ notes: StoreService) async throws -> Note? {
        try await notes.store.write { tx in
            guard var note = try find(id, tx) else { return nil }
            note.pinned = true
            try tx.update(note)
            return note
        }
    }
}
