import Coffer
import CofferObservation
import Foundation
import Observation

/// The symbols in the table of ComingFromGRDB, each in a call that only has to compile.
/// `TableSymbolTests` compares the comments with the table, and the words with the code.
private enum GRDBSymbols {
    // No symbols of Coffer: `false`

    // `Record`
    struct Player: Record, Equatable {
        var id: Int
        var name: String
        var score: Int
    }

    struct Author: Record {
        var id: Int
        var name: String
    }

    struct Article: Record {
        static var references: [Reference<Self>] { [Reference(\.author, to: Author.self)] }
        var id: Int
        var author: Int
        var title: String
    }

    struct Mail: Record {
        // `static var fullTextIndex`
        static var fullTextIndex: FullTextIndex<Self>? { FullTextIndex(\.body) }
        var id: Int
        var body: String
    }

    struct Item: Record {
        var id: Int
        var done: Int
        var total: Int
        var price: Int
        var count: Int
    }

    static func stores(_ text: String) async throws {
        // `Configuration.prepare`
        var configuration = Configuration()
        configuration.prepare = { connection in
            // `register(function:)`
            try connection.register(function: "one") { _ in 1 }
            // `register(collation:)`
            try connection.register(collation: "backwards") { first, second in
                second < first ? .orderedAscending : .orderedDescending
            }
            // `register(tokenizer:named:)`
            try connection.register(tokenizer: WordTokenizer(), named: "words")
            // `fullText(_:on:)`
            try connection.fullText(.optimize, on: "note")
        }
        // `Store`, `key:`
        let store: Store = try await Store(
            path: "notes.db", key: .passphrase(text), configuration: configuration)
        // `Store(.memory)`
        _ = try await Store(.memory)
        // `store.prepareConnections`, `registerRegexp()`
        try await store.prepareConnections { connection in try connection.registerRegexp() }
        // `store.rekey(to:)`
        _ = try await store.rekey(to: .passphrase(text))
        // `store.compact()`
        _ = try await store.compact()
        // `store.checkpoint()`
        _ = try await store.checkpoint()
        // `Interruption`
        let interruption = Interruption()
        interruption.interrupt()
        // `backup(to:key:)`, `store.backup(to:key:)`
        _ = try await store.backup(to: "copy.db", key: .passphrase(text))
        // `Store.encrypt`
        _ = try await Store.encrypt(
            plaintextAt: "plain.db", to: "new.db", key: .passphrase(text))
        // `store.snapshot()`
        _ = try await store.snapshot()
        // `store.migrate([Migration(…)])`, `create(_:)`
        try await store.migrate([Migration("players") { tx in try tx.create(Player.self) }])
        _ = Migration("other names") { tx in
            // `tx.alter(Player.self) { table in … }`
            try tx.alter(Player.self) { table in table.drop("c") }
            // `tx.table("player").renameColumn("a", to: "b")`
            try tx.table("player").renameColumn("a", to: "b")
            // `dropColumns("c")`
            try tx.table("player").dropColumns("c")
            // `tx.table("player").rename(to: "person")`
            try tx.table("player").rename(to: "person")
        }
    }

    struct Score: Record {
        // `static var view: SQL? { "SELECT …" }`
        static var view: SQL? { "SELECT name, count(*) AS count FROM player GROUP BY name" }
        var name: String
        var count: Int
    }

    struct Team: Record {
        // `static var triggers: [Trigger<Self>]`
        static var triggers: [Trigger<Self>] { [] }
        var id: Int
    }

    static func observation(_ store: Store, _ token: ChangeToken) async throws {
        // `store.observe { tx in … }`
        for try await _ in store.observe({ tx in try tx.count(Player.all) }) {}
        let players = store.observe { tx in try tx.fetch(Player.all) }
        // `Equatable`
        func compare(_ values: some Equatable) {}
        // `removeDuplicates(by:)`
        _ = players.removeDuplicates(by: { $0.count == $1.count })
        // `includingDuplicates()`, `throttle(for:)`
        _ = players.includingDuplicates().throttle(for: .seconds(1))
        // `differences(by:)`, `RowDifference`
        let _: RowDifference<Player>? = try await players.differences(by: \.id).first { _ in true }
        // `store.changes(in:)`
        for try await _ in store.changes(in: Player.self) {}
        // `store.changes(since:)`
        _ = try await store.changes(since: token)
    }

    @MainActor static func screen(_ store: Store) {
        // `store.observe { tx in … } onError: { … } onChange: { … }`, `ObservationToken`
        let _: ObservationToken = store.observe { tx in
            try tx.count(Player.all)
        } onError: { _ in
        } onChange: { _ in
        }
        // `FetchedRows`, `CofferObservation`
        let players = CofferObservation.FetchedRows(store, Player.all)
        // `FetchedValue`
        _ = FetchedValue(store) { tx in try tx.count(Player.all) }
        // `@Observable`
        let _: any Observable = players
    }

    static func reading(_ store: Store, _ key: Int) async throws {
        // `read { tx in }`, `tx`
        try await store.read { tx in
            // `Player.where(\.score > 3).order(by: \.score)`, `tx.fetch(…)`
            _ = try tx.fetch(Player.where(\.score > 3).order(by: \.score))
            // `tx.find(Player.self, key)`
            _ = try tx.find(Player.self, key)
            // `tx.fetch(Player.all, \.id, \.name)`
            _ = try tx.fetch(Player.all, \.id, \.name)
            // `tx.fetch(Player.group(by: \.name).having(.count > 1), .max(\.score))`
            _ = try tx.fetch(Player.group(by: \.name).having(.count > 1), .max(\.score))
            // `Article.all.joining(\.author, to: Author.all)`
            _ = try tx.fetch(Article.all.joining(\.author, to: Author.all))
            // `Article.all.leftJoining(\.author, to: Author.all)`
            _ = try tx.fetch(Article.all.leftJoining(\.author, to: Author.all))
            // `Author.all.including(all: Article.all, by: \.author)`
            _ = try tx.fetch(Author.all.including(all: Article.all, by: \.author))
            // `Mail.where(.matching("two words"))`
            _ = try tx.count(Mail.where(.matching("two words")))
            // `Item.where(\.done < \.total)`, `.sum(\.price * \.count)`, `.double(\.count)`
            _ = try tx.count(Item.where(\.done < \.total))
            _ = try tx.aggregate(Item.all, .sum(\.price * \.count))
            _ = try tx.count(Item.where(.double(\.count) > 1.5))
            // `.regexp(\.title, "^[A-Z]")`
            _ = try tx.count(Article.where(.regexp(\.title, "^[A-Z]")))
            // `\.title`
            _ = try tx.fetch(Article.order(by: \.title))
            // `tx.prepare("…")`
            _ = try tx.prepare("SELECT 1")
            // `tx.cursor("…")`
            _ = try tx.cursor("SELECT 1")
            // `tx.tableExists`, `columns(of:)`, `foreignKeys(of:)`
            _ = (try tx.tableExists("t"), try tx.columns(of: "t"), try tx.foreignKeys(of: "t"))
            // `Row`, `row.get("name")`
            let row: Row? = try tx.firstRow("SELECT 1")
            _ = try row?.get("name", as: String.self)
        }
    }

    static func writing(_ store: Store, _ player: Player, _ value: Int) async throws {
        // `write { tx in }`
        try await store.write { tx in
            // `tx.savepoint { }`
            try tx.savepoint { inner in _ = try inner.execute("SELECT 1") }
            // `tx.insert(player)`
            try tx.insert(player)
            // `tx.upsert(player)`
            try tx.upsert(player)
            // `upsert(player, conflictingOn: \.name)`
            _ = try tx.upsert(player, conflictingOn: \.name)
            // `tx.update(player, only: \.score)`
            try tx.update(player, only: \.score)
            // `tx.update(Player.where(…).set(\.score, to: \.score + 1))`
            _ = try tx.update(Player.where(\.score > 3).set(\.score, to: \.score + 1))
            // `updateIfPresent`
            _ = try tx.updateIfPresent(player)
            // `SQL/init(text:arguments:)`, `Value`, `String`
            let text: String = "SELECT ?"
            _ = try tx.rows(SQL(text: text, arguments: [Value.integer(1)]))
            // `tx.scalar("…")`, `tx.requireScalar("…")`
            let count: Int? = try tx.scalar("SELECT 1")
            let other: Int = try tx.requireScalar("SELECT 1")
            _ = (count, other)
            // `tx.execute("… \(value)")`
            _ = try tx.execute("UPDATE player SET score = \(value)")
            // `tx.executeScript("…")`
            try tx.executeScript("SELECT 1; SELECT 2")
            // `tx.lastInsertedRowID`, `tx.lastChangeCount`
            _ = (try tx.lastInsertedRowID, try tx.lastChangeCount)
            // `tx.afterCommit { }`
            try tx.afterCommit {}
        }
    }

    static func failures(_ error: any Error) -> Bool {
        // `StoreError`, `.notFound`
        (error as? StoreError)?.code == .notFound
    }
}
