import CSQLCipher

/// A table in a file, as SQLite's pragmas describe it.
struct ExistingTable {
    /// In the order of the table.
    let columns: [ExistingColumn]
    let indexes: [ExistingIndex]
    let foreignKeys: [ExistingForeignKey]
    let isWithoutRowID: Bool
    /// The text that made the table; empty if there is none.
    let sql: String

    init(_ name: String, _ connection: Connection) throws(StoreError) {
        columns = try Self.columns(of: name, connection)
        let texts = try Self.texts(of: name, connection)
        sql = texts[SQLText(name.asciiLowercased)] ?? ""
        let list = try connection.rows(
            "PRAGMA index_list(\(identifier: name))", isReadOnly: false)
        var indexes: [ExistingIndex] = []
        var isWithoutRowID = false
        for row in list {
            let index: String = try row.read("name")
            let terms = try connection.rows(
                "PRAGMA index_xinfo(\(identifier: index))", isReadOnly: false)
            let isOfKey = try row.read("origin", as: String.self) == "pk"
            // If the table has row ids, an index's row id (cid -1) is listed after its columns.
            if isOfKey, !terms.contains(where: { $0["cid"] == .integer(-1) }) {
                isWithoutRowID = true
            }
            guard !isOfKey else { continue }
            var columns: [String?] = []
            for term in terms where term["key"] == .integer(1) {
                columns.append(try term.read("name"))
            }
            indexes.append(
                ExistingIndex(
                    name: index, isUnique: try row.read("unique"),
                    isPartial: try row.read("partial"), columns: columns,
                    sql: texts[SQLText(index.asciiLowercased)] ?? ""))
        }
        self.indexes = indexes
        self.isWithoutRowID = isWithoutRowID
        foreignKeys = try Self.foreignKeys(of: name, connection)
    }

    /// The texts of a table and its indexes, by name in lower case of ASCII.
    private static func texts(
        of name: String, _ connection: Connection
    ) throws(StoreError) -> [SQLText: String] {
        var texts: [SQLText: String] = [:]
        for row in try connection.rows(
            """
            SELECT name, sql FROM main.sqlite_master
            WHERE tbl_name = \(name) COLLATE NOCASE AND type IN ('table', 'index')
            """, isReadOnly: false)
        {
            let key = SQLText(try row.read("name", as: String.self).asciiLowercased)
            texts[key] = try row.read("sql", as: String?.self)
        }
        return texts
    }

    static func columns(
        of name: String, _ connection: Connection
    ) throws(StoreError) -> [ExistingColumn] {
        var columns: [ExistingColumn] = []
        // SQLite 3.15 has neither computed columns nor the pragma that lists them.
        let listsAll = sqlite3_libversion_number() >= 3_026_000
        let rows = try connection.rows(
            listsAll
                ? "PRAGMA table_xinfo(\(identifier: name))"
                : "PRAGMA table_info(\(identifier: name))", isReadOnly: false)
        for row in rows {
            let hidden = listsAll ? try row.read("hidden", as: Int.self) : 0
            // A column that only a virtual table's SQL may name.
            if hidden == 1 { continue }
            columns.append(
                ExistingColumn(
                    name: try row.read("name"), type: try row.read("type"),
                    isNotNull: try row.read("notnull", as: Int.self) != 0,
                    keyRank: try row.read("pk"), isGenerated: hidden > 1))
        }
        return columns
    }

    private static func foreignKeys(
        of name: String, _ connection: Connection
    ) throws(StoreError) -> [ExistingForeignKey] {
        var keys: [Int: ExistingForeignKey] = [:]
        // The pragma returns one row per column of a key.
        for row in try connection.rows(
            "PRAGMA foreign_key_list(\(identifier: name))", isReadOnly: false)
        {
            let id: Int = try row.read("id")
            let first = ExistingForeignKey(
                parent: try row.read("table"), onDelete: try row.read("on_delete"),
                onUpdate: try row.read("on_update"))
            var key = keys[id] ?? first
            key.columns.append(try row.read("from"))
            if let column = try row.read("to", as: String?.self) {
                key.parentColumns.append(column)
            }
            keys[id] = key
        }
        return keys.sorted { $0.key < $1.key }.map(\.value)
    }
}

/// A column as `PRAGMA table_info` describes it.
struct ExistingColumn {
    let name: String
    let type: String
    let isNotNull: Bool
    /// Position in the primary key, from 1; 0 for a column outside the key.
    let keyRank: Int
    /// Whether the file computes its values.
    var isGenerated = false

    var affinity: Affinity { Affinity(type) }

    var description: String {
        var text = type.isEmpty ? "no type" : type
        if isNotNull { text += " NOT NULL" }
        if keyRank > 0 { text += " as part \(keyRank) of the key" }
        if isGenerated { text += ", computed by the file" }
        return text
    }
}

/// An index that is not the primary key's.
struct ExistingIndex {
    let name: String
    let isUnique: Bool
    let isPartial: Bool
    /// `nil` for an expression.
    let columns: [String?]
    /// The text that made it; empty for one of a constraint.
    var sql = ""

    /// Whether it is one of columns, for all rows.
    var isPlain: Bool { !isPartial && !columns.contains(nil) }

    func covers(_ names: [String]) -> Bool {
        isPlain && columns.count == names.count
            && zip(columns, names).allSatisfy { $0?.isSameIdentifier(as: $1) == true }
    }

    var description: String {
        let terms = columns.map { $0 ?? "an expression" }.joined(separator: ", ")
        return "\(isUnique ? "a unique index" : "an index") on (\(terms))"
            + (isPartial ? " of a part of the rows" : "")
    }
}

/// A foreign key, with the terms of `PRAGMA foreign_key_list`.
struct ExistingForeignKey {
    var columns: [String] = []
    let parent: String
    /// Empty if the key refers to the parent's primary key.
    var parentColumns: [String] = []
    let onDelete: String
    let onUpdate: String

    init(
        columns: [String] = [], parent: String, parentColumns: [String] = [], onDelete: String,
        onUpdate: String
    ) {
        (self.columns, self.parent, self.parentColumns) = (columns, parent, parentColumns)
        (self.onDelete, self.onUpdate) = (onDelete, onUpdate)
    }

    var description: String {
        let key = parentColumns.isEmpty ? "" : "(\(parentColumns.joined(separator: ", ")))"
        return "(\(columns.joined(separator: ", "))) REFERENCES \(parent)\(key) "
            + "ON DELETE \(onDelete) ON UPDATE \(onUpdate)"
    }

    func hasSameColumns(as other: ExistingForeignKey) -> Bool {
        Set(columns.map(\.asciiLowercased)) == Set(other.columns.map(\.asciiLowercased))
    }

    /// - Parameter parentKey: The primary key of the parent.
    func means(_ other: ExistingForeignKey, parentKey: [String]) -> Bool {
        func pairs(_ key: ExistingForeignKey) -> Set<[String]> {
            let parents = key.parentColumns.isEmpty ? parentKey : key.parentColumns
            return Set(
                zip(key.columns, parents).map { [$0.asciiLowercased, $1.asciiLowercased] })
        }
        return parent.isSameIdentifier(as: other.parent) && pairs(self) == pairs(other)
            && onDelete.asciiLowercased == other.onDelete.asciiLowercased
            && onUpdate.asciiLowercased == other.onUpdate.asciiLowercased
    }
}

/// A column's effect on stored values; see section 3.1 of <https://www.sqlite.org/datatype3.html>.
enum Affinity {
    case integer
    case text
    case blob
    case real
    case numeric

    init(_ type: String) {
        // Compares bytes, because `String.contains` takes 16 000 instructions for each type.
        let type = Array(type.asciiLowercased.utf8)
        func names(_ parts: String...) -> Bool {
            parts.contains { part in
                type.indices.contains { type[$0...].starts(with: part.utf8) }
            }
        }
        self =
            if names("int") {
                .integer
            } else if names("char", "clob", "text") {
                .text
            } else if type.isEmpty || names("blob") {
                .blob
            } else if names("real", "floa", "doub") {
                .real
            } else {
                .numeric
            }
    }

    /// Whether a property's values are read back as they were stored. NUMERIC also leaves texts as
    /// they are that it cannot take for numbers.
    func keeps(_ column: RecordColumn) -> Bool {
        keeps(column.storage) || self == .numeric && column.encoding?.isNeverNumber == true
    }

    /// Whether values of a storage class are read back as they were stored.
    private func keeps(_ storage: Storage) -> Bool {
        switch (self, storage) {
        case (.blob, _), (_, .blob): true
        case (.integer, .integer), (.numeric, .integer): true
        // SQLite may store an integral real as an integer. Reading converts it back where that is
        // exact.
        case (.real, .real), (.numeric, .real), (.integer, .real): true
        case (.text, .text): true
        default: false
        }
    }
}
