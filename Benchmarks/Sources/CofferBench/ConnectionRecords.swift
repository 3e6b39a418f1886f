import Coffer
import Foundation
import Workloads

/// W1 to W4 and W6 with `Connection` and its statements: SQL by hand, on Coffer's Engine room.
struct ConnectionRecords {
    let run: Run

    init(_ run: Run) { self.run = run }

    private func onNewFile(_ body: (Connection) throws -> Void) throws {
        for _ in 0..<run.repeats {
            run.removeFile()
            let connection = try run.openConnection()
            try connection.execute(SQL(text: Tables.item))
            try body(connection)
            connection.close()
        }
    }

    private func check(_ connection: Connection) throws -> Check {
        let select = try connection.prepare(Tables.select)
        return Check(try connection.transaction(.deferred) { try select.items() })
    }

    func insert() throws {
        let items = Item.make(1...run.rows, version: 2)
        try onNewFile { connection in
            let insert = try connection.prepare(Tables.insert)
            try connection.transaction {
                try insert.write(items[0])
                try connection.execute("DELETE FROM item")
            }
            try run.sample(written: Check(items)) {
                try connection.transaction { for item in items { try insert.write(item) } }
            } check: {
                try check(connection)
            }
        }
    }

    func update() throws {
        let before = Item.make(1...run.rows)
        let items = Item.make(1...run.rows, version: 2)
        try onNewFile { connection in
            let insert = try connection.prepare(Tables.insert)
            let update = try connection.prepare(Tables.update)
            try connection.transaction {
                for item in before { try insert.write(item) }
                try update.write(before[0])
            }
            try run.sample(written: Check(items)) {
                try connection.transaction {
                    let before = try connection.changeCount()
                    for index in 0..<run.rows { try update.write(items[run.shuffled(index)]) }
                    // A key has at most one row, so as many changes as keys mean one change for
                    // each key.
                    guard try connection.changeCount() - before == run.rows else { throw Missing() }
                }
            } check: {
                try check(connection)
            }
        }
    }

    func insertDurably() throws {
        let items = Item.make(1...run.rows)
        try onNewFile { connection in
            let insert = try connection.prepare(Tables.insert)
            try run.sample(written: Check(items)) {
                for item in items { try connection.transaction { try insert.write(item) } }
            } check: {
                try check(connection)
            }
        }
    }

    func fetch() throws {
        try onFilled { connection, written in
            let select = try connection.prepare(Tables.select)
            try run.samples(written: written) {
                try connection.transaction(.deferred) { try select.items() }
            } check: {
                Check($0)
            }
        }
    }

    func find() throws {
        let keys = (0..<run.rows).map { run.shuffled($0) + 1 }
        let items = keys.lazy.map { Item.make($0...$0)[0] }
        try onFilled { connection, _ in
            let find = try connection.prepare(Tables.find)
            try run.samples(written: Check(asked: keys, found: items)) {
                try connection.transaction(.deferred) {
                    var items: [Item] = []
                    items.reserveCapacity(run.rows)
                    for index in 0..<run.rows {
                        try find.bind(Int64(run.shuffled(index) + 1), at: 0)
                        guard try find.step() else { throw Missing() }
                        items.append(try find.item())
                    }
                    try find.reset()
                    return items
                }
            } check: {
                Check(asked: keys, found: $0)
            }
        }
    }

    private func onFilled(_ body: (Connection, Check) throws -> Void) throws {
        let items = Item.make(1...run.rows)
        run.removeFile()
        let filling = try run.openConnection()
        try filling.execute(SQL(text: Tables.item))
        try filling.transaction {
            let insert = try filling.prepare(Tables.insert)
            for item in items { try insert.write(item) }
        }
        filling.close()
        let connection = try run.openConnection()
        try body(connection, Check(items))
        connection.close()
    }
}

extension Connection {
    /// The number of rows that were changed since it opened.
    fileprivate func changeCount() throws -> Int {
        let row = try firstRow("SELECT total_changes()")
        guard case .integer(let count)? = row?.values.first else { throw Missing() }
        return Int(count)
    }
}

extension Statement {
    func write(_ item: Item) throws {
        try bind(item.id, at: 0)
        try bind(item.name, at: 1)
        try bind(item.url, at: 2)
        try bind(item.kind, at: 3)
        try bind(item.x, at: 4)
        try bind(item.y, at: 5)
        try bind(item.created.timeIntervalSince1970, at: 6)
        try bind(item.flag, at: 7)
        if let note = item.note { try bind(note, at: 8) } else { try bindNull(at: 8) }
        try bind(item.data, at: 9)
        try run()
    }

    func items() throws -> [Item] {
        var items: [Item] = []
        while try step() { items.append(try item()) }
        return items
    }

    func item() throws -> Item {
        Item(
            id: try value(at: 0, as: Int64.self), name: try value(at: 1, as: String.self),
            url: try value(at: 2, as: String.self), kind: try value(at: 3, as: String.self),
            x: try value(at: 4, as: Double.self), y: try value(at: 5, as: Double.self),
            created: try value(at: 6, as: Date.self), flag: try value(at: 7, as: Bool.self),
            note: try value(at: 8, as: String?.self), data: try value(at: 9, as: Data.self))
    }
}
