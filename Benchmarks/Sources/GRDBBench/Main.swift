#if Rivals
import Foundation
import GRDB
import Workloads

/// GRDB in three ways: `grdb-codable`, `grdb-hand` and `grdb-cached`.
@main struct Main {
    static func main() throws {
        let run = Run()
        switch run.system {
        case "grdb-codable": try Main.run(run, CodableStyle.self)
        case "grdb-hand": try Main.run(run, HandStyle.self)
        default: try Main.run(run, CachedStyle.self)
        }
    }

    private static func run<S: Style>(_ run: Run, _ style: S.Type) throws {
        let records = Records<S>(run: run)
        switch run.workload {
        case "W1": try records.insert()
        case "W2", "W2d": try records.fetch()
        case "W3": try records.find()
        case "W4": try records.update()
        case "W5-put": try Entries<S>(run: run).put()
        case "W5-get": try Entries<S>(run: run).get()
        case "W6-single": try records.insertDurably()
        case "W6-async64": Run.wait { try await Records<S>(run: run).insertAtOnce() }
        case "W6-latency": Run.wait { try await Records<S>(run: run).insertAndFindAtOnce() }
        case "open-raw": try records.open(.raw, readers: 0)
        case "open-passphrase": try records.open(.passphrase, readers: 0)
        case "open-pool-raw": try records.open(.raw, readers: 4)
        case "open-pool-passphrase": try records.open(.passphrase, readers: 4)
        case "growth-insert": try records.insertPortions()
        case "growth-get": try records.findSome()
        case "growth-scan": try records.scan()
        case "growth-open": try records.openAndFind()
        case "flights-import": try Flights(run: run).insert()
        case "flights-fetch": try Flights(run: run).fetch()
        case "flights-questions": try Flights(run: run).ask()
        default: run.skip("not written for GRDB")
        }
    }
}

enum Key {
    case raw
    case passphrase

    var text: String { self == .raw ? Run.keyText : Run.passphrase }
}

extension Run {
    func openPool(_ key: Key = .raw) throws -> DatabasePool {
        var configuration = Configuration()
        configuration.maximumReaderCount = 4
        configuration.prepareDatabase { db in
            try db.execute(sql: "PRAGMA key = \"\(key.text)\"")
            try db.execute(sql: "PRAGMA temp_store = MEMORY")
            try db.execute(sql: "PRAGMA cache_size = -\(cacheByteCount >> 10)")
            try db.execute(sql: "PRAGMA synchronous = \(isDurable ? "FULL" : "NORMAL")")
        }
        return try DatabasePool(path: path, configuration: configuration)
    }

    /// Opens a new file with the tables, or the existing file; prints how it is set up.
    func openDescribed(isNew: Bool) throws -> DatabasePool {
        if isNew { removeFile() }
        let pool = try openPool()
        try pool.write { db in
            guard isNew else { return }
            try db.execute(sql: Tables.item)
            try db.execute(sql: Tables.entry)
            try db.execute(sql: Tables.flight)
        }
        // GRDB sets the mode of the writer itself after the preparation.
        try pool.writeWithoutTransaction { db in
            try db.execute(sql: "PRAGMA synchronous = \(isDurable ? "FULL" : "NORMAL")")
        }
        try describe(pool)
        return pool
    }

    /// Prints how the writer and a reader are set up; the driver fails if they differ.
    func describe(_ pool: DatabasePool) throws {
        try pool.writeWithoutTransaction { db in try describe(db) }
        try pool.read { db in try describe(db) }
    }

    private func describe(_ db: Database) throws {
        describe("sqlite_version", try String.fetchOne(db, sql: "SELECT sqlite_version()") ?? "")
        for name in Tables.settings {
            describe(name, try String.fetchOne(db, sql: "PRAGMA \(name)") ?? "")
        }
    }
}
#else
/// Without the trait there is no GRDB to measure.
@main struct Main {
    static func main() { print("{\"skipped\": \"built without the trait Rivals\"}") }
}
#endif
