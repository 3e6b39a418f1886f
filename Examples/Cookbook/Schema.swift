import Coffer
import Foundation

/// Tables as they change, and what the file checks by itself.
enum Schema {
    static let recipes = [migrate, rename, rehearse, rules, trigger]

    struct Book: Record {
        var id: Int64?
        var title: String
        var pages = 0
    }

    static let migrate = Recipe("migrate", "change the tables of files that users have") {
        kitchen in
        let store = try await kitchen.store()
        let migrations = [
            Migration("create books") { tx in
                struct Book: Record {  // as it was then
                    var id: Int64?
                    var title: String
                }
                try tx.create(Book.self)
                try tx.insert(Book(title: " Dune "))
            },
            Migration("trim titles") { tx in
                try tx.execute("UPDATE book SET title = trim(title)")
            },
            Migration("count pages") { tx in
                try tx.alter(Book.self) { table in table.set(\.pages, to: 0) }
            },
        ]
        let count = try await store.migrate(migrations)
        let again = try await store.migrate(migrations)
        let titles = try await store.read { tx in try tx.fetch(Book.all, \.title) }
        try kitchen.check("each ran once", count == 3 && again == 0 && titles == ["Dune"])
    }

    static let rename = Recipe("rename", "rename and drop columns, on both engines") { kitchen in
        let store = try await kitchen.store()
        try await store.write { tx in
            try tx.execute("CREATE TABLE film(id INTEGER PRIMARY KEY, name TEXT, junk)")
            try tx.execute("INSERT INTO film VALUES (7, 'Metropolis', 1)")
        }
        try await store.migrate([
            Migration("better names") { tx in
                try tx.table("film").renameColumn("name", to: "title")
                try tx.table("film").dropColumns("junk")
            }
        ])
        let row = try await store.read { tx in try tx.firstRow("SELECT * FROM film") }
        try kitchen.check("the row kept its id", row?.columnNames == ["id", "title"])
    }

    static let rehearse = Recipe("rehearse", "try a migration before users get it") { kitchen in
        let migrations = [Migration("create books") { tx in try tx.create(Book.self) }]
        // In a unit test: a new file gets the tables that the types want.
        try Migration.rehearse(migrations, for: Book.self)
        // And on a copy of a user's file: what would happen, and nothing stays of it.
        let store = try await kitchen.store()
        let count = try await store.migrate(migrations, isDryRun: true)
        let pending = try await store.pendingMigrations(migrations)
        try kitchen.check("one would run", count == 1 && pending == ["create books"])
    }

    struct Member: Record {
        static var indexes: [Index<Self>] { [Index(\.email, isUnique: true)] }
        static var collations: [PartialKeyPath<Self>: Collation] { [\.email: .nocase] }
        static var checks: [CheckConstraint<Self>] { [CheckConstraint(\.age >= 18)] }
        var id: Int64?
        var email: String
        var age: Int
    }

    static let rules = Recipe("rules", "let the file refuse doubles and impossible values") {
        kitchen in
        let store = try await kitchen.store()
        try await store.write { tx in
            try tx.create(Member.self)
            try tx.insert(Member(email: "ada@example.com", age: 36))
        }
        for member in [Member(email: "Ada@Example.com", age: 20), Member(email: "b@c", age: 7)] {
            try await kitchen.check(.constraint) {
                _ = try await store.write { tx in try tx.insert(member) }
            }
        }
    }

    struct Stock: Record {
        static var triggers: [Trigger<Self>] {
            [
                Trigger(
                    "stock_sold", .after, .update(of: \.sold), when: "new.sold IS NOT NULL",
                    sql: "INSERT INTO sale(stock, price) VALUES (new.id, new.price)")
            ]
        }
        var id: Int
        var price: Double
        var sold: Date?
    }

    struct Sale: Record {
        var id: Int64?
        var stock: Int
        var price: Double
    }

    struct Total: Record {
        static var view: SQL? { "SELECT 1 AS id, count(*) AS sales, sum(price) AS price FROM sale" }
        var id: Int
        var sales: Int
        var price: Double?
    }

    static let trigger = Recipe("trigger", "keep a journal by a trigger, and read a view") {
        kitchen in
        let store = try await kitchen.store()
        let total = try await store.write { tx in
            try tx.create(Sale.self)
            try tx.create(Stock.self)
            try tx.create(Total.self)
            try tx.insert(Stock(id: 1, price: 9.5, sold: nil))
            try tx.update(Stock.where(\.id == 1).set(\.sold, to: .now))
            return try tx.fetch(Total.all).first
        }
        try kitchen.check("one was sold", total?.sales == 1 && total?.price == 9.5)
    }
}
