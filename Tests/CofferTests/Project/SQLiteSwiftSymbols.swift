import Coffer
import Foundation

/// The symbols in the table of ComingFromSQLiteSwift, each in a call that only has to compile.
/// `TableSymbolTests` compares the comments with the table, and the words with the code.
private enum SQLiteSwiftSymbols {
    // `Record`
    struct User: Record {
        // `Index(\.email, isUnique: true)`
        static var indexes: [Index<Self>] { [Index(\.email, isUnique: true)] }
        // `CheckConstraint(\.age >= 18)`
        static var checks: [CheckConstraint<Self>] { [CheckConstraint(\.age >= 18)] }
        // `Collation`
        static var collations: [PartialKeyPath<Self>: Collation] { [\.email: .nocase] }
        var id: Int64?
        // `String`
        var name: String
        var email = ""
        var age = 18
    }

    struct Post: Record {
        static var references: [Reference<Self>] { [Reference(\.author, to: User.self)] }
        // `static var fullTextIndex`
        static var fullTextIndex: FullTextIndex<Self>? { FullTextIndex(\.text) }
        var id: Int64?
        var author: Int64
        var text: String
    }

    static func stores(_ path: String) throws {
        // `Store(path:key:)`, `key:`
        let store = try Store(path: path, key: .passphrase("text"))
        // `store.rekey(to:)`
        _ = try store.rekey(to: .passphrase("new"))
        // `Store(.memory)`
        _ = try Store(.memory)
        // `Configuration.busyTimeout`
        var configuration: Configuration = Configuration()
        configuration.busyTimeout = .seconds(5)
        // `store.prepareConnections`
        try store.prepareConnections { connection in
            // `register(function:)`
            try connection.register(function: "one") { _ in 1 }
            // `register(collation:)`
            try connection.register(collation: "backwards") { first, second in
                second < first ? .orderedAscending : .orderedDescending
            }
        }
        // `store.write { tx in }`
        try store.write { tx in try calls(&tx) }
        // `store.migrate([Migration])`
        try store.migrate([
            Migration("ages") { tx in
                // `tx.alter(User.self) { table in }`
                try tx.alter(User.self) { table in table.set(\.age, to: 18) }
            }
        ])
        // `store.backup(to:key:)`
        _ = try store.backup(to: "copy.db", key: .passphrase("other"))
        // `Store.encrypt(plaintextAt:to:key:)`
        _ = try Store.encrypt(plaintextAt: "old.db", to: "new.db", key: .passphrase("text"))
    }

    static func calls(_ tx: inout WriteTransaction) throws {
        // `tx.create(User.self)`
        try tx.create(User.self)
        // `tx.insert(User(name: "Ada"))`
        try tx.insert(User(name: "Ada"))
        let user = User(name: "Ada")
        // `tx.insert(user)`
        try tx.insert(user)
        // `tx.upsert(user, conflictingOn: \.email)`
        try tx.upsert(user, conflictingOn: \.email)
        // `tx.fetch(User.all)`
        _ = try tx.fetch(User.all)
        // `User.where(\.age >= 18).order(by: \.name, .descending).limit(5)`, `\.name`
        let query = User.where(\.age >= 18).order(by: \.name, .descending).limit(5)
        // `tx.fetch(query)`
        _ = try tx.fetch(query)
        // `tx.first(query)`
        _ = try tx.first(query)
        // `tx.forEach(query)`
        try tx.forEach(query) { _ in }
        // `tx.count(User.all)`
        _ = try tx.count(User.all)
        // `tx.max(\.age)`
        _ = try tx.max(\User.age)
        // `tx.update(User.all.set(\.age, to: \.age + 1))`
        try tx.update(User.all.set(\.age, to: \.age + 1))
        // `tx.delete(User.all)`
        try tx.delete(User.all)
        // `joining(\.author, to: User.all)`
        _ = try tx.fetch(Post.all.joining(\.author, to: User.all))
        // `leftJoining(\.author, to: User.all)`
        _ = try tx.fetch(Post.all.leftJoining(\.author, to: User.all))
        // `User.group(by: \.name).having(.count > 1)`
        _ = try tx.fetch(User.group(by: \.name).having(.count > 1), .count)
        // `.like(\.email, "%@example.com")`
        _ = User.where(.like(\.email, "%@example.com"))
        // `[1, 2].contains(\.id)`
        _ = User.where([1, 2].contains(\.id))
        // `.matching("two words")`
        _ = Post.where(.matching("two words"))
        // `tx.savepoint { }`
        try tx.savepoint { inner in try inner.execute("SELECT 1") }
        // `tx.execute("… \(7)")`
        try tx.execute("UPDATE user SET age = \(7)")
        // `tx.rows("…")`
        _ = try tx.rows("SELECT 1")
    }
}
