import Foundation
import SQLite
import Workloads

/// W1 to W4.
struct Records<S: Style> {
    let run: Run

    /// Opens the store for `body`, and closes it after its statements are gone.
    private func withStore(isNew: Bool, _ body: (Connection, S) throws -> Void) throws {
        let db = try run.openDescribed(isNew: isNew)
        try body(db, try S(db))
        try db.close()
    }

    private func all(_ db: Connection, _ style: S) throws -> [Item] {
        var items: [Item] = []
        try db.transaction(.deferred) { items = try style.all() }
        return items
    }

    private func onFilled(_ body: (Connection, S, Check) throws -> Void) throws {
        let items = Item.make(1...run.rows)
        try withStore(isNew: true) { db, style in
            try db.transaction(.immediate) { for item in items { try style.insert(item) } }
        }
        try withStore(isNew: false) { db, style in try body(db, style, Check(items)) }
    }

    func insert() throws {
        let items = Item.make(1...run.rows, version: 2)
        for _ in 0..<run.repeats {
            try withStore(isNew: true) { db, style in
                try db.transaction(.immediate) {
                    try style.insert(items[0])
                    try db.execute("DELETE FROM item")
                }
                try run.sample(written: Check(items)) {
                    try db.transaction(.immediate) { for item in items { try style.insert(item) } }
                } check: {
                    Check(try all(db, style))
                }
            }
        }
    }

    func update() throws {
        let before = Item.make(1...run.rows)
        let items = Item.make(1...run.rows, version: 2)
        for _ in 0..<run.repeats {
            try withStore(isNew: true) { db, style in
                try db.transaction(.immediate) {
                    for item in before { try style.insert(item) }
                    try style.update(before[0])
                }
                try run.sample(written: Check(items)) {
                    try db.transaction(.immediate) {
                        for index in 0..<run.rows { try style.update(items[run.shuffled(index)]) }
                    }
                } check: {
                    Check(try all(db, style))
                }
            }
        }
    }

    func fetch() throws {
        try onFilled { db, style, written in
            try run.samples(written: written) {
                try all(db, style)
            } check: {
                Check($0)
            }
        }
    }

    func find() throws {
        let keys = (0..<run.rows).map { run.shuffled($0) + 1 }
        let items = keys.lazy.map { Item.make($0...$0)[0] }
        try onFilled { db, style, _ in
            try run.samples(written: Check(asked: keys, found: items)) {
                try find(keys, db, style)
            } check: {
                Check(asked: keys, found: $0)
            }
        }
    }

    private func find(_ keys: [Int], _ db: Connection, _ style: S) throws -> [Item] {
        var items: [Item] = []
        items.reserveCapacity(keys.count)
        try db.transaction(.deferred) {
            for key in keys {
                guard let item = try style.find(Int64(key)) else { throw Missing() }
                items.append(item)
            }
        }
        return items
    }
}
