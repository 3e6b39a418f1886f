import Foundation
import SQLite
import Workloads

/// SQLite.swift in two ways: `sqliteswift-typed` and `sqliteswift-sql`.
@main struct Main {
    static func main() throws {
        let run = Run()
        switch run.system {
        case "sqliteswift-typed": try Main.run(run, TypedStyle.self)
        default: try Main.run(run, StatementStyle.self)
        }
    }

    private static func run<S: Style>(_ run: Run, _ style: S.Type) throws {
        switch run.workload {
        case "W1": try Records<S>(run: run).insert()
        case "W2", "W2d": try Records<S>(run: run).fetch()
        case "W3": try Records<S>(run: run).find()
        case "W4": try Records<S>(run: run).update()
        case "W5-put": try Entries<S>(run: run).put()
        case "W5-get": try Entries<S>(run: run).get()
        default: run.skip("not written for SQLite.swift")
        }
    }
}

extension Run {
    /// Opens a new file with the tables, or the existing file; prints how it is set up.
    func openDescribed(isNew: Bool) throws -> Connection {
        if isNew { removeFile() }
        let db = try Connection(path)
        // `key(_:)` reads at once, before SQLCipher 3 could learn the size of the pages.
        try db.execute("PRAGMA key = \"\(Run.keyText)\"")
        try db.execute("PRAGMA cipher_page_size = 4096")
        try db.execute("PRAGMA temp_store = MEMORY")
        try db.execute("PRAGMA cache_size = -\(cacheByteCount >> 10)")
        try db.execute("PRAGMA foreign_keys = ON")
        try db.execute("PRAGMA journal_mode = WAL")
        try db.execute("PRAGMA synchronous = \(isDurable ? "FULL" : "NORMAL")")
        if isNew {
            try db.execute(Tables.item)
            try db.execute(Tables.entry)
        }
        try describe(db)
        return db
    }

    private func describe(_ db: Connection) throws {
        describe("sqlite_version", try db.scalar("SELECT sqlite_version()") as? String ?? "")
        for name in Tables.settings {
            let value = try db.scalar("PRAGMA \(name)")
            describe(name, value as? String ?? (value as? Int64).map(String.init) ?? "")
        }
    }
}
