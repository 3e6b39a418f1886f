#if Rivals
import Foundation
import GRDB
import Workloads

/// A way of using GRDB.
protocol Style: SendableMetatype {
    static func insert(_ item: Item, _ db: Database) throws
    static func update(_ item: Item, _ db: Database) throws
    static func find(_ id: Int64, _ db: Database) throws -> Item?
    static func all(_ db: Database) throws -> [Item]
    static func put(_ entry: Entry, _ db: Database) throws
    static func get(_ key: Data, _ db: Database) throws -> Data?
}

/// The usual way: a Codable record.
enum CodableStyle: Style {
    static func insert(_ item: Item, _ db: Database) throws { try item.insert(db) }
    static func update(_ item: Item, _ db: Database) throws { try item.update(db) }
    static func find(_ id: Int64, _ db: Database) throws -> Item? {
        try Item.fetchOne(db, key: id)
    }
    static func all(_ db: Database) throws -> [Item] { try Item.fetchAll(db) }
    static func put(_ entry: Entry, _ db: Database) throws {
        try CodableEntry(key: entry.key, value: entry.value).insert(db, onConflict: .replace)
    }
    static func get(_ key: Data, _ db: Database) throws -> Data? {
        try CodableEntry.fetchOne(db, key: key)?.value
    }
}

extension Item: FetchableRecord, PersistableRecord {
    public static var databaseTableName: String { "item" }

    // As all systems keep dates: seconds since 1970.
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
enum HandStyle: Style {
    static func insert(_ item: Item, _ db: Database) throws { try HandItem(item).insert(db) }
    static func update(_ item: Item, _ db: Database) throws { try HandItem(item).update(db) }
    static func find(_ id: Int64, _ db: Database) throws -> Item? {
        try HandItem.fetchOne(db, key: id)?.item
    }
    static func all(_ db: Database) throws -> [Item] {
        let cursor = try HandItem.fetchCursor(db)
        var items: [Item] = []
        while let next = try cursor.next() { items.append(next.item) }
        return items
    }
    static func put(_ entry: Entry, _ db: Database) throws {
        try HandEntry(key: entry.key, value: entry.value).insert(db, onConflict: .replace)
    }
    static func get(_ key: Data, _ db: Database) throws -> Data? {
        try HandEntry.fetchOne(db, key: key)?.value
    }
}

struct HandItem: FetchableRecord, PersistableRecord {
    static let databaseTableName = "item"
    let item: Item

    init(_ item: Item) { self.item = item }

    init(row: Row) {
        item = Item(
            id: row[0], name: row[1], url: row[2], kind: row[3], x: row[4], y: row[5],
            created: Date(timeIntervalSince1970: row[6]), flag: row[7], note: row[8], data: row[9])
    }

    func encode(to container: inout PersistenceContainer) {
        container["id"] = item.id
        container["name"] = item.name
        container["url"] = item.url
        container["kind"] = item.kind
        container["x"] = item.x
        container["y"] = item.y
        container["created"] = item.created.timeIntervalSince1970
        container["flag"] = item.flag
        container["note"] = item.note
        container["data"] = item.data
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

/// SQL in statements that the connection keeps: GRDB's fastest way.
enum CachedStyle: Style {
    private static func arguments(_ item: Item) -> StatementArguments {
        [
            item.id, item.name, item.url, item.kind, item.x, item.y,
            item.created.timeIntervalSince1970, item.flag, item.note, item.data,
        ]
    }

    static func insert(_ item: Item, _ db: Database) throws {
        try db.cachedStatement(sql: Tables.insert).execute(arguments: arguments(item))
    }
    static func update(_ item: Item, _ db: Database) throws {
        try db.cachedStatement(sql: Tables.update).execute(arguments: arguments(item))
    }
    static func find(_ id: Int64, _ db: Database) throws -> Item? {
        try HandItem.fetchOne(db.cachedStatement(sql: Tables.find), arguments: [id])?.item
    }
    static func all(_ db: Database) throws -> [Item] {
        let cursor = try HandItem.fetchCursor(db.cachedStatement(sql: Tables.select))
        var items: [Item] = []
        while let next = try cursor.next() { items.append(next.item) }
        return items
    }
    static func put(_ entry: Entry, _ db: Database) throws {
        // Keys are new here; a program that overwrites runs an UPDATE when nothing was inserted.
        try db.cachedStatement(sql: Tables.putNew).execute(arguments: [entry.key, entry.value])
    }
    static func get(_ key: Data, _ db: Database) throws -> Data? {
        try Data.fetchOne(db.cachedStatement(sql: Tables.get), arguments: [key])
    }
}
#endif
