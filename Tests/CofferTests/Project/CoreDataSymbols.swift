import Coffer
import CofferObservation
import Foundation

/// The symbols in the table of ComingFromCoreData, each in a call that only has to compile.
/// `TableSymbolTests` compares the comments with the table, and the words with the code.
private enum CoreDataSymbols {
    // No symbols of Coffer: `Codable`

    struct Author: Record {
        var id: Int64?
        var name: String
    }

    struct Book: Record {
        static var references: [Reference<Self>] {
            [
                // `Reference(\.author, to: Author.self)`
                Reference(\.author, to: Author.self),
                // `onDelete: .cascade`
                Reference(\.editor, to: Author.self, onDelete: .cascade),
                // `onDelete: .setNull`
                Reference(\.seller, to: Author.self, onDelete: .setNull),
            ]
        }
        var id: Int64?
        var author: Int64
        var editor: Int64
        var seller: Int64?
    }

    // `Record`
    struct User: Record, Equatable {
        // `static var key`
        static var key: [String] { ["id"] }
        // `Index(\.email, isUnique: true)`
        static var indexes: [Index<Self>] { [Index(\.email, isUnique: true)] }
        // `var id: Int64?`
        var id: Int64?
        var name: String
        var email: String
        var city: String
        var age: Int
        var version: Int
    }

    // `AttachmentBucket`
    static let photos = AttachmentBucket("photos", of: \User.id)

    @MainActor static func stores(_ token: ChangeToken) async throws {
        // `Store`, `StoreKey`
        let key: StoreKey = .random()
        let store: Store = try await Store(path: "app.db", key: key)
        // `store.read { tx in }`
        try await store.read { tx in _ = try tx.rows("SELECT 1") }
        // `store.write { tx in }`
        try await store.write { tx in try calls(&tx) }
        // `FetchedRows`
        _ = FetchedRows(store, User.all)
        // `differences(by: \.id)`
        _ = store.observe { tx in try tx.fetch(User.all) }.differences(by: \.id)
        // `store.changes(since: token)`
        _ = try await store.changes(since: token)
        // `store.migrate([Migration])`
        try await store.migrate([
            Migration("ages") { tx in
                // `tx.alter(User.self) { table in }`
                try tx.alter(User.self) { table in table.set(\.age, to: 18) }
            }
        ])
    }

    static func calls(_ tx: inout WriteTransaction) throws {
        let users: [User] = []
        let user = User(name: "", email: "", city: "", age: 1, version: 4)
        // `tx.create(User.self)`
        try tx.create(User.self)
        // `User.where(\.age > 7)`
        _ = try tx.fetch(User.where(\.age > 7))
        // `order(by: \.name)`, `limit(20)`
        _ = try tx.fetch(User.order(by: \.name).limit(20))
        // `User.group(by: \.city)`, `.average(\.age)`
        _ = try tx.fetch(User.group(by: \.city), .average(\.age))
        // `joining(\.author, to: Author.all)`
        _ = try tx.fetch(Book.all.joining(\.author, to: Author.all))
        // `including(all: Book.all, by: \.author)`
        _ = try tx.fetch(Author.all.including(all: Book.all, by: \.author))
        // `upsert(user, conflictingOn: \.email)`
        try tx.upsert(user, conflictingOn: \.email)
        // `update(user, expecting: \.version == 3)`
        try tx.update(user, expecting: \.version == 3)
        // `tx.insert(users)`
        try tx.insert(users)
        // `tx.update(User.all.set(\.age, to: 1))`
        try tx.update(User.all.set(\.age, to: 1))
        // `tx.delete(User.all)`
        try tx.delete(User.all)
        // `tx.keepHistory(of: User.table)`
        try tx.keepHistory(of: User.table)
    }
}
