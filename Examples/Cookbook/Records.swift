import Coffer
import Foundation

/// Rows as values of Swift.
enum Records {
    static let recipes = [insert, upsert, version, transfer, bulk, types]

    struct Note: Record, Equatable {
        var id: Int64?
        var title: String
        var version = 1
    }

    static let insert = Recipe("insert", "insert a record and get its row id") { kitchen in
        let store = try await kitchen.store()
        let id = try await store.write { tx in
            try tx.create(Note.self)
            return try tx.insert(Note(title: "Milk"))
        }
        let note = try await store.read { tx in try tx.find(Note.self, id) }
        try kitchen.check("it is found by its row id", note?.title == "Milk")
    }

    struct Price: Record {
        static var indexes: [Index<Self>] { [Index(\.item, isUnique: true)] }
        var id: Int64?
        var item: String
        var cents: Int
    }

    static let upsert = Recipe("upsert", "insert a row, or update the one that is there") {
        kitchen in
        let store = try await kitchen.store()
        try await store.write { tx in
            try tx.create(Price.self)
            try tx.upsert(Price(item: "milk", cents: 95), conflictingOn: \.item)
            try tx.upsert(Price(item: "milk", cents: 99), conflictingOn: \.item)
        }
        let prices = try await store.read { tx in try tx.fetch(Price.all) }
        try kitchen.check("there is one price", prices.map(\.cents) == [99])
    }

    static let version = Recipe("version", "save a form unless somebody else did meanwhile") {
        kitchen in
        let store = try await kitchen.store()
        let id = try await store.write { tx in
            try tx.create(Note.self)
            return try tx.insert(Note(title: "Milk"))
        }
        let mine = Note(id: id, title: "Milk and bread", version: 2)
        try await store.write { tx in try tx.update(mine, expecting: \.version == 1) }
        try await kitchen.check(.conflict) {
            let theirs = Note(id: id, title: "Butter", version: 2)
            try await store.write { tx in try tx.update(theirs, expecting: \.version == 1) }
        }
    }

    struct Account: Record {
        var id: Int
        var balance: Int
    }

    struct Uncovered: Error {}

    static let transfer = Recipe("transfer", "move an amount, or change nothing") { kitchen in
        let store = try await kitchen.store()
        try await store.write { tx in
            try tx.create(Account.self)
            try tx.insert([Account(id: 1, balance: 50), Account(id: 2, balance: 0)])
        }
        @Sendable func move(_ amount: Int) async throws {
            try await store.write { tx in
                let covered = Account.where(\.id == 1 && \.balance >= amount)
                guard try tx.update(covered.set(\.balance, to: \.balance - amount)) == 1 else {
                    throw Uncovered()
                }
                try tx.update(Account.where(\.id == 2).set(\.balance, to: \.balance + amount))
            }
        }
        try await move(30)
        do { try await move(30) } catch is Uncovered {}
        let sum = try await store.read { tx in try tx.sum(\.balance, Account.all) }
        let rest = try await store.read { tx in try tx.find(Account.self, 1)?.balance }
        try kitchen.check("one transfer happened", rest == 20 && sum == 50)
    }

    struct Reading: Record {
        static var access: RecordAccess { .storedProperties }
        var id: Int
        var sensor: Int
        var value: Double
    }

    static let bulk = Recipe("bulk", "insert 100 000 rows fast") { kitchen in
        let store = try await kitchen.store()
        try await store.write { tx in
            try tx.create(Reading.self)
            // One transaction, one statement: the values are made as they are inserted.
            try tx.insert((0..<100_000).lazy.map { Reading(id: $0, sensor: $0 % 9, value: 0.5) })
        }
        let count = try await store.read { tx in try tx.count(Reading.all) }
        try kitchen.check("all are there", count == 100_000)
    }

    enum Status: String, Codable { case open, done }

    struct Task: Record, Equatable {
        struct Place: Codable, Equatable {
            var street: String
            var floor: Int?
        }
        var id: UUID
        var due: Date
        var status: Status
        var place: Place
        var link: URL?
        var tags: [String]
    }

    static let types = Recipe("types", "store dates, UUIDs, enums, URLs and nested structs") {
        kitchen in
        let store = try await kitchen.store()
        let task = Task(
            id: UUID(), due: .now, status: .open, place: .init(street: "Main St", floor: 2),
            link: URL(string: "https://example.com"), tags: ["home"])
        try await store.write { tx in
            try tx.create(Task.self)
            try tx.insert(task)
        }
        let found = try await store.read { tx in
            try tx.fetch(Task.where(\.status == .open && \.place.street == "Main St"))
        }
        try kitchen.check("it comes back bit for bit", found == [task])
    }
}
