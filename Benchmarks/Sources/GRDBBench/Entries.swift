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
                let style = try S(db)
                // A new key, and an existing one.
                try style.put(entries[0])
                try style.put(entries[0])
                try db.execute(sql: "DELETE FROM entry")
            }
            try run.sample(written: Check(entries)) {
                try put(entries, pool)
            } check: {
                try pool.read { db in
                    let style = try S(db)
                    return Check(
                        try entries.map { Entry(key: $0.key, value: try found($0.key, style)) })
                }
            }
            try pool.close()
        }
    }

    func get() throws {
        let entries = Entry.make(run.rows)
        let filling = try run.openDescribed(isNew: true)
        try put(entries, filling)
        try filling.close()
        let pool = try run.openDescribed(isNew: false)
        try run.samples(written: Check(entries)) {
            try pool.read { db in
                let style = try S(db)
                var values: [Data] = []
                values.reserveCapacity(run.rows)
                for index in 0..<run.rows {
                    values.append(try found(entries[run.shuffled(index)].key, style))
                }
                return values
            }
        } check: { values in
            Check(
                values.indices.map {
                    Entry(key: entries[run.shuffled($0)].key, value: values[$0])
                })
        }
        try pool.close()
    }

    private func put(_ entries: [Entry], _ pool: DatabasePool) throws {
        try pool.write { db in
            let style = try S(db)
            for entry in entries { try style.put(entry) }
        }
    }

    private func found(_ key: Data, _ style: S) throws -> Data {
        guard let value = try style.get(key) else { throw Missing() }
        return value
    }
}
#endif
