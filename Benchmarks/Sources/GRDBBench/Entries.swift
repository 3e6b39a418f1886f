#if Rivals
import Foundation
import GRDB
import Workloads

/// W5.
struct Entries<S: Style> {
    let run: Run

    func put() throws {
        let entries = Entry.make(run.rows)
        for _ in 0..<run.repeats {
            let pool = try run.openDescribed(isNew: true)
            try pool.write { db in
                try S.put(entries[0], db)
                try db.execute(sql: "DELETE FROM entry")
            }
            try run.sample(written: Check(entries)) {
                try pool.write { db in for entry in entries { try S.put(entry, db) } }
            } check: {
                Check(try pool.read { db in try entries.map { try found($0.key, db) } })
            }
            try pool.close()
        }
    }

    func get() throws {
        let entries = Entry.make(run.rows)
        let filling = try run.openDescribed(isNew: true)
        try filling.write { db in for entry in entries { try S.put(entry, db) } }
        try filling.close()
        let pool = try run.openDescribed(isNew: false)
        try run.samples(written: Check(entries)) {
            try pool.read { db in
                var read: [Entry] = []
                read.reserveCapacity(run.rows)
                for index in 0..<run.rows {
                    read.append(try found(entries[run.shuffled(index)].key, db))
                }
                return read
            }
        } check: {
            Check($0)
        }
        try pool.close()
    }

    private func found(_ key: Data, _ db: Database) throws -> Entry {
        guard let value = try S.get(key, db) else { throw Missing() }
        return Entry(key: key, value: value)
    }
}
#endif
