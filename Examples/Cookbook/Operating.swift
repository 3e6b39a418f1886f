import Coffer
import Foundation

/// Stores in production.
enum Operating {
    static let recipes = [backup, restore, salvage, tenants, savepoint, space]

    struct Note: Record, Equatable {
        var id: Int
        var title: String
    }

    private static func fill(_ store: Store, _ numbers: ClosedRange<Int>) async throws {
        try await store.write { tx in
            try tx.create(Note.self)
            try tx.insert(numbers.map { Note(id: $0, title: "note \($0)") })
        }
    }

    static let backup = Recipe("backup", "copy a store while it is written, and prove both") {
        kitchen in
        let store = try await kitchen.store()
        try await fill(store, 1...1000)
        let writing = Task {
            for number in 2000..<2100 {
                try await store.write { tx in try tx.insert(Note(id: number, title: "new")) }
            }
        }
        let report = try await store.verify()
        guard report.isGood else { throw Kitchen.Spoiled(description: "\(report.problems)") }
        let copy = try await store.backup(to: kitchen.path("backup.db"))
        try await writing.value
        try kitchen.check("the copy has one moment's rows", (1000...1100).contains(copy.rowCount))
    }

    static let restore = Recipe("restore", "put a backup in the place of a store") { kitchen in
        let (path, backup) = (kitchen.path("store.db"), kitchen.path("backup.db"))
        let key = StoreKey.random()
        let store = try await Store(path: path, key: key)
        try await fill(store, 1...10)
        try await store.backup(to: backup)
        try await store.write { tx in _ = try tx.delete(Note.all) }
        try await store.close()
        let report = try await Store.restore(from: backup, key: key, to: path)
        let restored = try await Store(path: path, key: key)
        let count = try await restored.read { tx in try tx.count(Note.all) }
        try kitchen.check(
            "the rows are back, the old file is kept", count == 10 && report.oldPath != nil)
    }

    static let salvage = Recipe("salvage", "save what is left of a damaged store") { kitchen in
        let path = kitchen.path("store.db")
        let key = StoreKey.random()
        let store = try await Store(path: path, key: key)
        try await fill(store, 1...20_000)
        try await store.close()
        let file = try FileHandle(forUpdating: URL(filePath: path))
        try file.seek(toOffset: 40 * 4096)
        try file.write(contentsOf: Data(repeating: 0, count: 100))
        try file.close()
        let report = try await Store.salvage(
            damagedAt: path, key: key, to: kitchen.path("saved.db"))
        let saved = report.tables.first { $0.name == "note" }
        try kitchen.check(
            "the report says what is missing",
            saved.map { $0.rowCount > 19_000 && $0.rowCount < 20_000 && !$0.isWhole } == true)
    }

    static let tenants = Recipe("tenants", "one store for each user, opened when it is used") {
        kitchen in
        let key = [UInt8](repeating: 7, count: 32)  // from a key service
        var configuration = StorePool.Configuration(maximumOpenStoreCount: 2)
        configuration.setUp = { store in try store.write { tx in try tx.create(Note.self) } }
        let pool = try StorePool(configuration: configuration) { path in .raw(key) }
        for user in ["ada", "grace", "alan", "ada"] {
            try await pool.withStore(at: kitchen.path("\(user).db")) { store in
                try await store.write { tx in
                    _ = try tx.insert(Note(id: try tx.count(Note.all), title: user))
                }
            }
        }
        let count = try await pool.withStore(at: kitchen.path("ada.db")) { store in
            try await store.read { tx in try tx.count(Note.all) }
        }
        try await pool.close()
        try kitchen.check("ada has two notes", count == 2)
    }

    static let savepoint = Recipe("savepoint", "undo a part of a transaction") { kitchen in
        let store = try await kitchen.store()
        try await fill(store, 1...2)
        try await store.write { tx in
            for number in 1...4 {
                do {
                    try tx.savepoint { part in try part.insert(Note(id: number, title: "new")) }
                } catch let error as StoreError where error.code == .constraint {
                    continue  // the note is there already
                }
            }
        }
        let count = try await store.read { tx in try tx.count(Note.all) }
        try kitchen.check("two notes are new", count == 4)
    }

    static let space = Recipe("space", "give the space of deleted rows back") { kitchen in
        let store = try await kitchen.store()
        try await fill(store, 1...20_000)
        try await store.write { tx in _ = try tx.delete(Note.where(\.id > 10)) }
        let report = try await store.compact()
        try kitchen.check("the file is smaller", report.byteCount < report.oldByteCount)
    }
}
