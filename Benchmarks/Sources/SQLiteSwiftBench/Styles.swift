import Foundation
import SQLite
import Workloads

/// A way of using SQLite.swift, made once for a connection.
protocol Style {
    init(_ db: Connection) throws
    func insert(_ item: Item) throws
    func update(_ item: Item) throws
    func find(_ id: Int64) throws -> Item?
    func all() throws -> [Item]
    func put(_ entry: Entry) throws
    func get(_ key: Data) throws -> Data?
}

/// The usual way: queries of typed expressions, each prepared when it runs.
///
/// Its dates are texts; the column of all systems is seconds since 1970, so it is a real here.
struct TypedStyle: Style {
    private let db: Connection
    private let items = Table("item")
    private let id = SQLite.Expression<Int64>("id")
    private let name = SQLite.Expression<String>("name")
    private let url = SQLite.Expression<String>("url")
    private let kind = SQLite.Expression<String>("kind")
    private let x = SQLite.Expression<Double>("x")
    private let y = SQLite.Expression<Double>("y")
    private let created = SQLite.Expression<Double>("created")
    private let flag = SQLite.Expression<Bool>("flag")
    private let note = SQLite.Expression<String?>("note")
    private let data = SQLite.Expression<Data>("data")
    private let entries = Table("entry")
    private let key = SQLite.Expression<Data>("key")
    private let value = SQLite.Expression<Data>("value")

    init(_ db: Connection) { self.db = db }

    private func setters(_ item: Item) -> [Setter] {
        [
            name <- item.name, url <- item.url, kind <- item.kind, x <- item.x, y <- item.y,
            created <- item.created.timeIntervalSince1970, flag <- item.flag, note <- item.note,
            data <- item.data,
        ]
    }

    private func item(_ row: Row) throws -> Item {
        Item(
            id: try row.get(id), name: try row.get(name), url: try row.get(url),
            kind: try row.get(kind), x: try row.get(x), y: try row.get(y),
            created: Date(timeIntervalSince1970: try row.get(created)), flag: try row.get(flag),
            note: try row.get(note), data: try row.get(data))
    }

    func insert(_ item: Item) throws { try db.run(items.insert([id <- item.id] + setters(item))) }
    func update(_ item: Item) throws {
        let changed = try db.run(items.filter(id == item.id).update(setters(item)))
        guard changed == 1 else { throw Missing() }
    }
    func find(_ id: Int64) throws -> Item? {
        try db.pluck(items.filter(self.id == id)).map(item)
    }
    func all() throws -> [Item] {
        let rows = try db.prepareRowIterator(items)
        var all: [Item] = []
        while let row = try rows.failableNext() { all.append(try item(row)) }
        return all
    }
    func put(_ entry: Entry) throws {
        try db.run(entries.insert(or: .replace, key <- entry.key, value <- entry.value))
    }
    func get(_ key: Data) throws -> Data? {
        try db.pluck(entries.select(value).filter(self.key == key))?.get(value)
    }
}

/// The fastest way: SQL in statements that are prepared before the loop, columns by position.
struct StatementStyle: Style {
    private let db: Connection
    private let inserting, updating, finding, selecting: Statement
    private let puttingNew, puttingAgain, getting: Statement

    init(_ db: Connection) throws {
        self.db = db
        inserting = try db.prepare(Tables.insert)
        updating = try db.prepare(Tables.update)
        finding = try db.prepare(Tables.find)
        selecting = try db.prepare(Tables.select)
        puttingNew = try db.prepare(Tables.putNew)
        puttingAgain = try db.prepare(Tables.putAgain)
        getting = try db.prepare(Tables.get)
    }

    private func run(_ statement: Statement, _ item: Item) throws {
        try statement.run([
            item.id, item.name, item.url, item.kind, item.x, item.y,
            item.created.timeIntervalSince1970, item.flag, item.note, item.data.datatypeValue,
        ])
    }

    private func item(_ row: Cursor) -> Item {
        // Only this subscript checks for NULL.
        let note: Binding? = row[8]
        return Item(
            id: row[0], name: row[1], url: row[2], kind: row[3], x: row[4], y: row[5],
            created: Date(timeIntervalSince1970: row[6]), flag: row[7], note: note as? String,
            data: Data.fromDatatypeValue(row[9]))
    }

    func insert(_ item: Item) throws { try run(inserting, item) }
    func update(_ item: Item) throws {
        try run(updating, item)
        guard db.changes == 1 else { throw Missing() }
    }
    func find(_ id: Int64) throws -> Item? {
        defer { finding.reset() }
        return try finding.bind(id).step() ? item(finding.row) : nil
    }
    func all() throws -> [Item] {
        defer { selecting.reset() }
        var all: [Item] = []
        while try selecting.step() { all.append(item(selecting.row)) }
        return all
    }
    func put(_ entry: Entry) throws {
        let key = entry.key.datatypeValue
        let value = entry.value.datatypeValue
        try puttingNew.run(key, value)
        guard db.changes == 0 else { return }
        try puttingAgain.run(key, value)
        guard db.changes == 1 else { throw Missing() }
    }
    func get(_ key: Data) throws -> Data? {
        defer { getting.reset() }
        let found = try getting.bind(key.datatypeValue).step()
        return found ? Data.fromDatatypeValue(getting.row[0]) : nil
    }
}
