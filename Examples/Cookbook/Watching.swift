import Coffer
import CofferObservation
import Foundation

/// Hearing of changes.
enum Watching {
    static let recipes = [count, list]

    struct Note: Record, Equatable, Identifiable {
        var id: Int
        var title: String
    }

    static let count = Recipe("watch", "hear of a value whenever it changes") { kitchen in
        let store = try await kitchen.store()
        try await store.write { tx in try tx.create(Note.self) }
        var heard: [Int] = []
        for try await count in store.observe({ tx in try tx.count(Note.all) }) {
            heard.append(count)
            if count == 3 { break }
            try await store.write { tx in _ = try tx.insert(Note(id: count, title: "n")) }
        }
        try kitchen.check("each value once", heard == [0, 1, 2, 3])
    }

    static let list = Recipe("screen", "keep a list on the screen up to date") { kitchen in
        let store = try await kitchen.store()
        try await store.write { tx in try tx.create(Note.self) }
        try await show(store, kitchen)
    }

    @MainActor private static func show(_ store: Store, _ kitchen: Kitchen) async throws {
        let notes = FetchedRows(store, Note.order(by: \.title))
        notes.start()
        try await store.write { tx in try tx.insert(Note(id: 1, title: "Milk")) }
        for _ in 0..<5_000 where notes.rows.isEmpty { try await Task.sleep(for: .milliseconds(1)) }
        try kitchen.check("the list has the note", notes.rows.map(\.title) == ["Milk"])
    }
}
