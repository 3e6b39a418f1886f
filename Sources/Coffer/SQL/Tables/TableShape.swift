import CSQLCipher

/// A table as SQLite's pragmas describe it, for comparing two tables. Names are in lower case of
/// ASCII.
struct TableShape: Equatable {
    private struct Column: Equatable {
        var name: String
        let rest: [Value]
    }

    private struct ForeignKey: Hashable {
        let parent: String
        var columns: [String]
        var parentColumns: [String]
        let actions: [Value]
    }

    private struct Index: Hashable {
        let isUnique: Value
        let origin: Value
        var columns: [String]
        let collations: [Value]
    }

    private var columns: [Column] = []
    private var foreignKeys: [ForeignKey] = []
    /// Those of PRIMARY KEY and UNIQUE.
    private var indexes: [Index] = []

    /// The columns of the primary key.
    private(set) var key: Set<String> = []

    /// All columns, generated ones included, in order.
    var names: [String] { columns.map(\.name) }

    /// - Throws: Errors of reading the schema.
    init(_ table: String, _ connection: Connection) throws(StoreError) {
        // SQLite 3.15 has no generated columns.
        let pragma = sqlite3_libversion_number() >= 3_026_000 ? "table_xinfo" : "table_info"
        for row in try Self.rows(pragma, table, connection) {
            let name = try Self.name("name", of: row)
            columns.append(Column(name: name, rest: Array(row.values.dropFirst(2))))
            if row["pk"] != .integer(0) { key.insert(name) }
        }
        var id: Value?
        for row in try Self.rows("foreign_key_list", table, connection) {
            let column = try Self.name("from", of: row)
            let parentColumn = try Self.name("to", of: row)
            if row["id"] == id, let last = foreignKeys.indices.last {
                foreignKeys[last].columns.append(column)
                foreignKeys[last].parentColumns.append(parentColumn)
                continue
            }
            id = row["id"]
            foreignKeys.append(
                ForeignKey(
                    parent: try Self.name("table", of: row), columns: [column],
                    parentColumns: [parentColumn],
                    actions: ["on_update", "on_delete", "match"].map { row[$0] ?? .null }))
        }
        for row in try Self.rows("index_list", table, connection) where row["origin"] != .text("c")
        {
            let terms = try Self.rows("index_xinfo", try row.read("name"), connection)
                .filter { $0["key"] == .integer(1) }
            var names: [String] = []
            for term in terms { names.append(try Self.name("name", of: term)) }
            indexes.append(
                Index(
                    isUnique: row["unique"] ?? .null, origin: row["origin"] ?? .null,
                    columns: names,
                    collations: terms.flatMap { [$0["coll"], $0["desc"]] }
                        .map { $0 ?? .null }))
        }
    }

    /// Empty for NULL.
    private static func name(_ column: String, of row: Row) throws(StoreError) -> String {
        try row.read(column, as: String?.self)?.asciiLowercased ?? ""
    }

    private static func rows(
        _ pragma: String, _ name: String, _ connection: Connection
    ) throws(StoreError) -> [Row] {
        try connection.rows(
            SQL(text: "PRAGMA main.\(pragma)(\(try name.quotedIdentifier()))"), isReadOnly: true)
    }

    /// The shape with other names for columns.
    ///
    /// - Parameter table: The table itself, to which it may refer.
    func renaming(_ names: [String: String], of table: String) -> TableShape {
        func new(_ name: String) -> String { names[name]?.asciiLowercased ?? name }
        var shape = self
        for index in columns.indices { shape.columns[index].name = new(columns[index].name) }
        for index in indexes.indices {
            shape.indexes[index].columns = indexes[index].columns.map(new)
        }
        for index in foreignKeys.indices {
            shape.foreignKeys[index].columns = foreignKeys[index].columns.map(new)
        }
        shape.key = Set(key.map(new))
        return shape.renaming(names, ofParent: table)
    }

    /// The shape with other names for the columns of a parent.
    func renaming(_ names: [String: String], ofParent parent: String) -> TableShape {
        var shape = self
        for (index, key) in foreignKeys.enumerated()
        where key.parent.isSameIdentifier(as: parent) {
            shape.foreignKeys[index].parentColumns = key.parentColumns.map {
                names[$0]?.asciiLowercased ?? $0
            }
        }
        return shape
    }

    /// The shape without columns, and without the foreign keys and constraints that only they had.
    func without(_ dropped: Set<String>) -> TableShape {
        func isKept(_ name: String) -> Bool { !dropped.contains(name) }
        var shape = self
        shape.columns = columns.filter { isKept($0.name) }
        shape.foreignKeys = foreignKeys.filter { $0.columns.contains(where: isKept) }
        shape.indexes = indexes.filter { $0.columns.contains(where: isKept) }
        return shape
    }

    /// Whether both are the same, whatever the order of constraints.
    func isSame(as other: TableShape) -> Bool {
        columns == other.columns && key == other.key
            && foreignKeys.count == other.foreignKeys.count
            && Set(foreignKeys) == Set(other.foreignKeys)
            && indexes.count == other.indexes.count && Set(indexes) == Set(other.indexes)
    }

    /// The tables that it refers to, with the columns there; none for the whole primary key.
    var parents: [(table: String, columns: [String])] {
        foreignKeys.map { ($0.parent, $0.parentColumns) }
    }
}
