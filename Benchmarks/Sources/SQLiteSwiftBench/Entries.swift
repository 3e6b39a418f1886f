import Foundation
import SQLite
import Workloads

/// W5.
struct Entries<S: Style> {
    let run: Run

    /// Opens the store for `body`, and closes it after its statements are gone.
    private func withStore(isNew: Bool, _ body: (Connection, S) throws -> Void) throws {
        let db = try run.openDescribed(isNew: isNew)
        try body(db, try S(db))
        try db.close()
    }

    func put() throws {
        let entries = Entry.make(run.rows)
        for _ in 0..<run.repeats {
            try withStore(isNew: true) { db, style in
                try db.transaction(.immediate) {
                    // A new key, and an existing one.
                    try style.put(entries[0])
                    try style.put(entries[0])
                    try db.execute("DELETE FROM entry")
                }
                try run.sample(written: Check(entries)) {
                    try put(entries, db, style)
                } check: {
                    Check(try entries.map { Entry(key: $0.key, value: try found($0.key, style)) })
                }
            }
        }
    }

    func get() throws {
        let entries = Entry.make(run.rows)
        try withStore(isNew: true) { db, style in try put(entries, db, style) }
        try withStore(isNew: false) { db, style in
            try run.samples(written: Check(entries)) {
                var values: [Data] = []
                values.reserveCapacity(run.rows)
                try db.transaction(.deferred) {
                    for index in 0..<run.rows {
                        values.append(try found(entries[run.shuffled(index)].key, style))
                    }
                }
                return values
            } check: { values in
                Check(
                    values.indices.map {
                        Entry(key: entries[run.shuffled($0)].key, value: values[$0])
                    })
            }
        }
    }

    private func put(_ entries: [Entry], _ db: Connection, _ style: S) throws {
        try db.transaction(.immediate) { for entry in entries { try style.put(entry) } }
    }

    private func found(_ key: Data, _ style: S) throws -> Data {
        guard let value = try style.get(key) else { throw Missing() }
        return value
    }
}
