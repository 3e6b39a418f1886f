#if Rivals
import Foundation
import GRDB
import Workloads

/// A way of using GRDB, made for one transaction.
protocol Style: SendableMetatype {
    associatedtype Record: ItemRecord
    init(_ db: Database) throws
    func insert(_ record: Record) throws
    func update(_ record: Record) throws
    func find(_ id: Int64) throws -> Record?
    func all() throws -> [Record]
    func put(_ entry: Entry) throws
    func get(_ key: Data) throws -> Data?
}

/// The struct that a style writes and fetches. Items become records before the clock starts, and
/// records items after it stops.
protocol ItemRecord: Sendable {
    init(_ item: Item)
    var item: Item { get }
}

extension Item: ItemRecord {
    init(_ item: Item) { self = item }
    var item: Item { self }
}

/// The usual way: a Codable record.
struct CodableStyle: Style {
    private let db: Database

    init(_ db: Database) { self.db = db }

    func insert(_ item: Item) throws { try item.insert(db) }
    func update(_ item: Item) throws { try item.update(db) }
    func find(_ id: Int64) throws -> Item? { try Item.fetchOne(db, key: id) }
    func all() throws -> [Item] { try Item.fetchAll(db) }
    func put(_ entry: Entry) throws {
        try CodableEntry(key: entry.key, value: entry.value).insert(db, onConflict: .replace)
    }
    func get(_ key: Data) throws -> Data? { try CodableEntry.fetchOne(db, key: key)?.value }
}

extension Item: FetchableRecord, PersistableRecord {
    public static var databaseTableName: String { "item" }

    // As all systems store dates: seconds since 1970.
    public static func databaseDateEncodingStrategy(
        for column: String
    ) -> DatabaseDateEncodingStrategy {
        .timeIntervalSince1970
    }
    public static func databaseDateDecodingStrategy(
        for column: String
    ) -> DatabaseDateDecodingStrategy {
        .timeIntervalSince1970
    }
}

struct CodableEntry: Codable, FetchableRecord, PersistableRecord {
    static let databaseTableName = "entry"
    var key: Data
    var value: Data
}

/// Hand-written coding, by position, as GRDB's performance guide recommends.
struct HandStyle: Style {
    private let db: Database

    init(_ db: Database) { self.db = db }

    func insert(_ record: HandItem) throws { try record.insert(db) }
    func update(_ record: HandItem) throws { try record.update(db) }
    func find(_ id: Int64) throws -> HandItem? { try HandItem.fetchOne(db, key: id) }
    func all() throws -> [HandItem] { try HandItem.fetchAll(db) }
    func put(_ entry: Entry) throws {
        try HandEntry(key: entry.key, value: entry.value).insert(db, onConflict: .replace)
    }
    func get(_ key: Data) throws -> Data? { try HandEntry.fetchOne(db, key: key)?.value }
}

struct HandItem: FetchableRecord, PersistableRecord, ItemRecord {
    static let databaseTableName = "item"
    let id: Int64
    let name: String
    let url: String
    let kind: String
    let x: Double
    let y: Double
    let created: Date
    let flag: Bool
    let note: String?
    let data: Data

    init(_ item: Item) {
        id = item.id
        name = item.name
        url = item.url
        kind = item.kind
        x = item.x
        y = item.y
        created = item.created
        flag = item.flag
        note = item.note
        data = item.data
    }

    var item: Item {
        Item(
            id: id, name: name, url: url, kind: kind, x: x, y: y, created: created, flag: flag,
            note: note, data: data)
    }

    init(row: Row) {
        id = row[0]
        name = row[1]
        url = row[2]
        kind = row[3]
        x = row[4]
        y = row[5]
        created = Date(timeIntervalSince1970: row[6])
        flag = row[7]
        note = row[8]
        data = row[9]
    }

    func encode(to container: inout PersistenceContainer) {
        container["id"] = id
        container["name"] = name
        container["url"] = url
        container["kind"] = kind
        container["x"] = x
        container["y"] = y
        container["created"] = created.timeIntervalSince1970
        container["flag"] = flag
        container["note"] = note
        container["data"] = data
    }
}

struct HandEntry: FetchableRecord, PersistableRecord {
    static let databaseTableName = "entry"
    let key: Data
    let value: Data

    init(key: Data, value: Data) {
        self.key = key
        self.value = value
    }

    init(row: Row) {
        key = row[0]
        value = row[1]
    }

    func encode(to container: inout PersistenceContainer) {
        container["key"] = key
        container["value"] = value
    }
}

extension Item {
    /// The columns by position.
    fileprivate init(positions row: Row) {
        self.init(
            id: row[0], name: row[1], url: row[2], kind: row[3], x: row[4], y: row[5],
            created: Date(timeIntervalSince1970: row[6]), flag: row[7], note: row[8], data: row[9])
    }
}

/// GRDB's fastest way, as its own performance tests use it (InsertRecordOptimizedTests and
/// FetchRecordOptimizedTests): statements are obtained before the loop, arguments are not checked,
/// and rows are decoded by position into the struct.
struct CachedStyle: Style {
    private let db: Database
    private let inserting, updating, finding, selecting: Statement
    private let puttingNew, puttingAgain, getting: Statement

    init(_ db: Database) throws {
        self.db = db
        inserting = try db.cachedStatement(sql: Tables.insert)
        updating = try db.cachedStatement(sql: Tables.update)
        finding = try db.cachedStatement(sql: Tables.find)
        selecting = try db.cachedStatement(sql: Tables.select)
        puttingNew = try db.cachedStatement(sql: Tables.putNew)
        puttingAgain = try db.cachedStatement(sql: Tables.putAgain)
        getting = try db.cachedStatement(sql: Tables.get)
    }

    private func run(_ statement: Statement, _ item: Item) throws {
        statement.setUncheckedArguments([
            item.id, item.name, item.url, item.kind, item.x, item.y,
            item.created.timeIntervalSince1970, item.flag, item.note, item.data,
        ])
        try statement.execute()
    }

    func insert(_ item: Item) throws { try run(inserting, item) }
    func update(_ item: Item) throws {
        try run(updating, item)
        guard db.changesCount == 1 else { throw Missing() }
    }
    func find(_ id: Int64) throws -> Item? {
        finding.setUncheckedArguments([id])
        let rows = try Row.fetchCursor(finding)
        // A row belongs to the cursor, and ends with it.
        return try withExtendedLifetime(rows) { try rows.next().map { Item(positions: $0) } }
    }
    func all() throws -> [Item] {
        let rows = try Row.fetchCursor(selecting)
        var items: [Item] = []
        while let row = try rows.next() { items.append(Item(positions: row)) }
        return items
    }
    func put(_ entry: Entry) throws {
        try run(puttingNew, entry)
        guard db.changesCount == 0 else { return }
        try run(puttingAgain, entry)
        guard db.changesCount == 1 else { throw Missing() }
    }
    private func run(_ statement: Statement, _ entry: Entry) throws {
        statement.setUncheckedArguments([entry.key, entry.value])
        try statement.execute()
    }
    func get(_ key: Data) throws -> Data? {
        getting.setUncheckedArguments([key])
        return try Data.fetchOne(getting)
    }
}
#endif
