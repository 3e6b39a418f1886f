import CEngine
import Foundation
import Workloads

/// W1 to W4 and W6.
struct Records {
    let run: Run

    init(_ run: Run) { self.run = run }

    func insert() throws {
        let items = Item.make(1...run.rows, version: 2)
        for _ in 0..<run.repeats {
            run.removeFile()
            let database = try Database(run, isNew: true)
            do {
                let insert = try Prepared(database, Tables.insert)
                try database.transaction {
                    try insert.write(items[0])
                    try database.execute("DELETE FROM item")
                }
                try run.sample(written: Check(items)) {
                    try database.transaction { for item in items { try insert.write(item) } }
                } check: {
                    Check(try Prepared(database, Tables.select).all())
                }
            }
            try database.close()
        }
    }

    func update() throws {
        let before = Item.make(1...run.rows)
        let items = Item.make(1...run.rows, version: 2)
        for _ in 0..<run.repeats {
            run.removeFile()
            let database = try Database(run, isNew: true)
            do {
                let insert = try Prepared(database, Tables.insert)
                let update = try Prepared(database, Tables.update)
                try database.transaction {
                    for item in before { try insert.write(item) }
                    try update.write(before[0])
                }
                try run.sample(written: Check(items)) {
                    try database.transaction {
                        for index in 0..<run.rows {
                            try update.write(items[run.shuffled(index)])
                            guard sqlite3_changes(database.raw) == 1 else {
                                throw Failure(code: SQLITE_NOTFOUND)
                            }
                        }
                    }
                } check: {
                    Check(try Prepared(database, Tables.select).all())
                }
            }
            try database.close()
        }
    }

    func insertDurably() throws {
        let items = Item.make(1...run.rows)
        for _ in 0..<run.repeats {
            run.removeFile()
            let database = try Database(run, isNew: true)
            do {
                let insert = try Prepared(database, Tables.insert)
                try run.sample(written: Check(items)) {
                    for item in items { try database.transaction { try insert.write(item) } }
                } check: {
                    Check(try Prepared(database, Tables.select).all())
                }
            }
            try database.close()
        }
    }

    func fetch() throws {
        try onFilled { database, written in
            let select = try Prepared(database, Tables.select)
            try run.samples(written: written) {
                try database.transaction { try select.all() }
            } check: {
                Check($0)
            }
        }
    }

    func find() throws {
        let keys = (0..<run.rows).map { run.shuffled($0) + 1 }
        let items = keys.lazy.map { Item.make($0...$0)[0] }
        try onFilled { database, _ in
            let find = try Prepared(database, Tables.find)
            try run.samples(written: Check(asked: keys, found: items)) {
                try database.transaction {
                    var items: [Item] = []
                    items.reserveCapacity(run.rows)
                    for index in 0..<run.rows {
                        try check(sqlite3_bind_int64(find.raw, 1, Int64(run.shuffled(index) + 1)))
                        guard try find.step() else { throw Failure(code: SQLITE_NOTFOUND) }
                        items.append(try find.item())
                        sqlite3_reset(find.raw)
                    }
                    return items
                }
            } check: {
                Check(asked: keys, found: $0)
            }
        }
    }

    private func onFilled(_ body: (Database, Check) throws -> Void) throws {
        let items = Item.make(1...run.rows)
        run.removeFile()
        let filling = try Database(run, isNew: true)
        try filling.transaction {
            let insert = try Prepared(filling, Tables.insert)
            for item in items { try insert.write(item) }
        }
        try filling.close()
        let database = try Database(run, isNew: false)
        try body(database, Check(items))
        try database.close()
    }
}

extension Prepared {
    /// Binds the columns of an item by position, and runs.
    func write(_ item: Item) throws {
        try check(sqlite3_bind_int64(raw, 1, item.id))
        try bind(item.name, 2)
        try bind(item.url, 3)
        try bind(item.kind, 4)
        try check(sqlite3_bind_double(raw, 5, item.x))
        try check(sqlite3_bind_double(raw, 6, item.y))
        try check(sqlite3_bind_double(raw, 7, item.created.timeIntervalSince1970))
        try check(sqlite3_bind_int64(raw, 8, item.flag ? 1 : 0))
        if let note = item.note { try bind(note, 9) } else { try check(sqlite3_bind_null(raw, 9)) }
        try bind(item.data, 10)
        try run()
    }

    @inline(__always)
    func bind(_ text: String, _ index: Int32) throws {
        var text = text
        try text.withUTF8 { bytes in
            try bytes.withMemoryRebound(to: CChar.self) {
                try check(
                    sqlite3_bind_text(raw, index, $0.baseAddress, Int32($0.count), transient))
            }
        }
    }

    @inline(__always)
    func bind(_ data: Data, _ index: Int32) throws {
        try data.withUnsafeBytes {
            try check(sqlite3_bind_blob(raw, index, $0.baseAddress, Int32($0.count), transient))
        }
    }

    func all() throws -> [Item] {
        var items: [Item] = []
        while try step() { items.append(try item()) }
        sqlite3_reset(raw)
        return items
    }

    func item() throws -> Item {
        Item(
            id: try integer(0), name: try text(1), url: try text(2), kind: try text(3),
            x: try real(4), y: try real(5), created: Date(timeIntervalSince1970: try real(6)),
            flag: try integer(7) != 0,
            note: sqlite3_column_type(raw, 8) == SQLITE_NULL ? nil : try text(8),
            data: try data(9))
    }

    @inline(__always)
    private func value(_ index: Int32, _ type: Int32) throws -> OpaquePointer? {
        let value = sqlite3_column_value(raw, index)
        guard sqlite3_value_type(value) == type else { throw Failure(code: SQLITE_MISMATCH) }
        return value
    }

    @inline(__always)
    private func integer(_ index: Int32) throws -> Int64 {
        sqlite3_value_int64(try value(index, SQLITE_INTEGER))
    }

    @inline(__always)
    private func real(_ index: Int32) throws -> Double {
        sqlite3_value_double(try value(index, SQLITE_FLOAT))
    }

    @inline(__always)
    private func text(_ index: Int32) throws -> String {
        let value = try value(index, SQLITE_TEXT)
        let start = sqlite3_value_text(value)
        let bytes = UnsafeBufferPointer(start: start, count: Int(sqlite3_value_bytes(value)))
        return String(decoding: bytes, as: UTF8.self)
    }

    @inline(__always)
    func data(_ index: Int32) throws -> Data {
        let value = try value(index, SQLITE_BLOB)
        guard let start = sqlite3_value_blob(value) else { return Data() }
        return Data(bytes: start, count: Int(sqlite3_value_bytes(value)))
    }
}
