import Coffer
import Foundation
import Testing

/// The lines that servers write most often, as they would write them. Each must compile as it is,
/// without a type or a discarded value that the reader has to add.
@Suite(.againstHanging, .onOwnThreads) struct ServerCode {
    struct Note: Record, Equatable {
        var id: Int64?
        var title: String
        var pinned = false
    }

    actor Service {
        private let store: Store
        private var count = 0

        init(_ store: Store) { self.store = store }

        func add(_ note: Note) async throws {
            try await store.write { tx in try tx.insert(note) }
            count += 1
        }

        func add(title: String) async throws -> Int64 {
            try await store.write { tx in try tx.insert(Note(title: title)) }
        }

        func all() async throws -> [Note] {
            try await store.read { tx in try tx.fetch(Note.order(by: \.id)) }
        }

        func rename(_ id: Int64, to title: String) async throws -> Note? {
            try await store.write { tx in
                guard var note = try tx.find(Note.self, id) else { return nil }
                note.title = title
                try tx.update(note)
                return note
            }
        }

        func remove(_ id: Int64) async throws {
            try await store.write { tx in try tx.delete(Note.self, key: id) }
        }
    }

    @Test func `in a group of tasks`() async throws {
        let store = try await Store(.memory)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<4 {
                group.addTask {
                    try await store.write { tx in try tx.insert(Note(title: "\(number)")) }
                }
            }
            try await group.waitForAll()
        }
        await withTaskGroup { group in
            group.addTask { try? await store.write { tx in try tx.insert(Note(title: "a")) } }
        }
        try await withThrowingDiscardingTaskGroup { group in
            group.addTask { try await store.write { tx in try tx.insert(Note(title: "b")) } }
            group.addTask { try await store.write { tx in try tx.execute("DELETE FROM note") } }
        }
        let ids = try await withThrowingTaskGroup(of: Int64.self) { group in
            for number in 0..<3 {
                group.addTask {
                    try await store.write { tx in try tx.insert(Note(title: "\(number)")) }
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(Set(ids).count == 3)
        try await store.close()
    }

    @Test func `in an actor`() async throws {
        let service = Service(try await Store(.memory))
        try await service.add(Note(title: "a"))
        let id = try await service.add(title: "b")
        #expect(try await service.rename(id, to: "c")?.title == "c")
        try await service.remove(id)
        #expect(try await service.all().map(\.title) == ["a"])
    }

    @Test func `in tasks`() async throws {
        let store = try await Store(.memory)
        Task { try await store.write { tx in try tx.insert(Note(title: "a")) } }
        let task = Task { try await store.write { tx in try tx.insert(Note(title: "b")) } }
        _ = try await task.value
        async let written: Void = store.write { tx in try tx.insert(Note(title: "c")) }
        async let id = store.write { tx in try tx.insert(Note(title: "d")) }
        try await written
        #expect(try await id > 0)
        Task.detached { try await store.write { tx in try tx.insert(Note(title: "e")) } }
        try await store.write { try $0.insert(Note(title: "f")) }
        try await store.write { tx in
            try tx.insert(Note(title: "g"))
            try tx.insert(Note(title: "h"))
        }
    }

    @Test func `in functions that do not wait`() throws {
        let store = try Store(.memory)
        try store.write { tx in try tx.insert(Note(title: "a")) }
        let id = try store.write { tx in try tx.insert(Note(title: "b")) }
        let titles = try store.read { tx in try tx.fetch(Note.all).map(\.title) }
        #expect(titles == ["a", "b"])
        #expect(try store.write { tx in try tx.delete(Note.self, key: id) })
        func save(_ note: Note) throws { try store.write { tx in try tx.insert(note) } }
        func added(_ note: Note) throws -> Int64 { try store.write { tx in try tx.insert(note) } }
        try save(Note(title: "c"))
        #expect(try added(Note(title: "d")) > 0)
        try store.write { tx in for note in [Note(title: "f")] { try tx.insert(note) } }
    }
}
