import CEngine
import Foundation
import Workloads

/// W5.
struct Entries {
    let run: Run
    private let entries: [Entry]

    init(_ run: Run) {
        self.run = run
        entries = Entry.make(run.rows)
    }

    func put() throws {
        for _ in 0..<run.repeats {
            run.removeFile()
            let database = try Database(run, isNew: true)
            do {
                let table = try EntryTable(database)
                try database.transaction {
                    try table.put(entries[0])
                    try database.execute("DELETE FROM entry")
                }
                try run.sample(written: Check(entries)) {
                    try database.transaction { for entry in entries { try table.put(entry) } }
                } check: {
                    Check(try entries.map { Entry(key: $0.key, value: try table.get($0.key)) })
                }
            }
            try database.close()
        }
    }

    func get() throws {
        run.removeFile()
        let filling = try Database(run, isNew: true)
        try filling.transaction {
            let table = try EntryTable(filling)
            for entry in entries { try table.put(entry) }
        }
        try filling.close()
        let database = try Database(run, isNew: false)
        do {
            let table = try EntryTable(database)
            try run.samples(written: Check(entries)) {
                try database.transaction {
                    var values: [Data] = []
                    values.reserveCapacity(run.rows)
                    for index in 0..<run.rows {
                        values.append(try table.get(entries[run.shuffled(index)].key))
                    }
                    return values
                }
            } check: { values in
                Check(
                    values.indices.map {
                        Entry(key: entries[run.shuffled($0)].key, value: values[$0])
                    })
            }
        }
        try database.close()
    }
}

struct EntryTable {
    private let database: Database
    private let insert: Prepared
    private let update: Prepared
    private let select: Prepared

    init(_ database: Database) throws {
        self.database = database
        insert = try Prepared(database, Tables.putNew)
        update = try Prepared(database, Tables.putAgain)
        select = try Prepared(database, Tables.get)
    }

    func put(_ entry: Entry) throws {
        if try run(insert, entry) { return }
        guard try run(update, entry) else { throw Failure(code: SQLITE_NOTFOUND) }
    }

    private func run(_ statement: Prepared, _ entry: Entry) throws -> Bool {
        try statement.bind(entry.key, 1)
        try statement.bind(entry.value, 2)
        try statement.run()
        return sqlite3_changes(database.raw) == 1
    }

    func get(_ key: Data) throws -> Data {
        try select.bind(key, 1)
        guard try select.step() else { throw Failure(code: SQLITE_NOTFOUND) }
        let value = try select.data(0)
        sqlite3_reset(select.raw)
        return value
    }
}
