import Foundation

@testable import Coffer

/// A store in its own folder, for one test of records.
struct RecordFixture {
    let folder: TemporaryFolder
    let store: Store

    init() throws {
        folder = try TemporaryFolder()
        store = try Store(path: folder.path(), key: .numbered(7), configuration: .testing())
    }

    /// Inserts a record and fetches all of its type, in two transactions.
    func roundTrip<R: Record>(_ record: R) throws -> [R] {
        try store.write { tx in try tx.insert(record) }
        return try store.read { tx in try tx.fetch(R.all) }
    }

    func execute(_ sql: SQL) throws {
        try store.write { tx in _ = try tx.execute(sql) }
    }

    func values(_ sql: SQL) throws -> [Value] {
        try store.read { tx in try tx.rows(sql).flatMap(\.values) }
    }

    /// Each column's name, type, NOT NULL and position in the key, as SQLite reports them.
    func columns(of table: String) throws -> [String] {
        try store.read { tx throws in
            try tx.rows("PRAGMA table_info(\(identifier: table))").map { row in
                let name: String = try row.get("name")
                let type: String = try row.get("type")
                let isNotNull = try row.get("notnull", as: Int.self) == 1
                let key = try row.get("pk", as: Int.self)
                return
                    "\(name) \(type)\(isNotNull ? " NOT NULL" : "")\(key > 0 ? " KEY \(key)" : "")"
            }
        }
    }
}

struct Note: Record, Equatable {
    var id: Int
    var title: String
    var pinned: Bool
    var rank: Double
    var note: String?
    var created = Date(timeIntervalSince1970: 1_700_000_000.123456)

    static func numbered(_ id: Int) -> Note {
        Note(id: id, title: "n\(id)", pinned: id % 2 == 0, rank: Double(id) / 2, note: nil)
    }
}
