/// A table whose changed rows can be told by key: what its triggers have to know.
struct KeyedTable: Equatable {
    /// The name as the schema has it.
    let name: String
    /// What identifies a row for those who are told: the columns of the primary key if none of
    /// them can be NULL, else a name of the row id; quoted.
    let key: [String]
    /// A name of the row id, quoted; `nil` in a table WITHOUT ROWID.
    let rowID: String?
    /// The columns of each key that no two rows share, with the collation they are compared by.
    /// The row id is not among them.
    let uniqueKeys: [[UniqueColumn]]
    /// Whether there is a unique index of a part of the rows, or on an expression: which row
    /// REPLACE would delete for it cannot be asked beforehand.
    let hasHiddenUniqueKeys: Bool

    struct UniqueColumn: Equatable {
        let column: String
        let collation: String
        /// Whether REPLACE puts a default in place of NULL, after the triggers that come before.
        let hasDefault: Bool
    }

    /// More columns a key cannot have; so many the logs of changes have.
    static let keyColumnCountMax = 16

    /// Whether rows are told by row id. An INTEGER PRIMARY KEY is the row id.
    var isKeyedByRowID: Bool { key == [rowID] }

    /// The table of this name in the main file; `nil` if there is none.
    ///
    /// - Throws: `.unsupported` for a view, a virtual table, or one whose rows have no key that
    ///   SQL can name.
    init?(_ name: String, _ connection: Connection) throws(StoreError) {
        let found = try connection.firstRow(
            """
            SELECT name, rootpage, type FROM main.sqlite_master
            WHERE type IN ('table', 'view') AND name = \(name) COLLATE NOCASE
            """, isReadOnly: true)
        guard let found else { return nil }
        self.name = try found.read("name")
        guard try found.read("rootpage", as: Int?.self) ?? 0 > 0 else {
            throw Self.unsupported("\(name) is a view or a virtual table")
        }
        let columns = try Self.columns(of: self.name, connection)
        let indexes = try Self.uniqueIndexes(of: self.name, columns, connection)
        uniqueKeys = indexes.compactMap(\.columns)
        hasHiddenUniqueKeys = uniqueKeys.count < indexes.count
        // An INTEGER PRIMARY KEY has no index.
        let index = indexes.first(where: \.isPrimaryKey)
        rowID = try index?.hasRowIDs == false ? nil : Self.rowIDName(of: self.name, columns)
        let primaryKey = columns.filter { $0.keyRank > 0 }.sorted { $0.keyRank < $1.keyRank }
        // WITHOUT ROWID they are NOT NULL, whether they say so or not.
        let hasNulls = rowID != nil && !primaryKey.allSatisfy(\.isNotNull)
        guard index == nil || hasNulls, let rowID else {
            guard primaryKey.count <= Self.keyColumnCountMax else {
                throw Self.unsupported(
                    "the primary key has more than \(Self.keyColumnCountMax) columns")
            }
            key = primaryKey.map(\.quoted)
            return
        }
        key = [rowID]
    }

    private static func unsupported(_ reason: String) -> StoreError {
        StoreError(
            .unsupported, "the rows that change cannot be told: \(reason)",
            hint: "Observe a value that is read from it instead.")
    }
}

// MARK: What the schema says

extension KeyedTable {
    private struct Column {
        let name: String
        let quoted: String
        /// From 1 in the primary key, 0 outside.
        let keyRank: Int
        let isNotNull: Bool
        let hasDefault: Bool
    }

    private struct UniqueIndex {
        let isPrimaryKey: Bool
        /// Behind the columns of an index comes the row id, if there is one.
        let hasRowIDs: Bool
        /// `nil` if it is on an expression or on a part of the rows.
        let columns: [UniqueColumn]?
    }

    private static func pragma(
        _ verb: String, _ name: String, _ connection: Connection
    ) throws(StoreError) -> [Row] {
        try connection.rows(
            SQL(text: "PRAGMA main.\(verb)(\(try name.quotedIdentifier()))"), isReadOnly: true)
    }

    private static func columns(
        of table: String, _ connection: Connection
    ) throws(StoreError) -> [Column] {
        var columns: [Column] = []
        for row in try pragma("table_info", table, connection) {
            let name = try row.read("name", as: String.self)
            columns.append(
                Column(
                    name: name, quoted: try name.quotedIdentifier(), keyRank: try row.read("pk"),
                    isNotNull: try row.read("notnull", as: Int.self) != 0,
                    hasDefault: row["dflt_value"] != .null))
        }
        return columns
    }

    private static func uniqueIndexes(
        of table: String, _ columns: [Column], _ connection: Connection
    ) throws(StoreError) -> [UniqueIndex] {
        let replaceable = Set(columns.filter { $0.isNotNull && $0.hasDefault }.map(\.quoted))
        var indexes: [UniqueIndex] = []
        for index in try pragma("index_list", table, connection)
        where try index.read("unique", as: Int.self) == 1 {
            let terms = try pragma("index_xinfo", try index.read("name"), connection)
            var unique: [UniqueColumn]? = []
            for term in terms where term["key"] == .integer(1) {
                guard let name = try term.read("name", as: String?.self) else {
                    unique = nil
                    break
                }
                let column = try name.quotedIdentifier()
                unique?.append(
                    UniqueColumn(
                        column: column,
                        collation: try term.read("coll", as: String.self).quotedIdentifier(),
                        hasDefault: replaceable.contains(column)))
            }
            if try index.read("partial", as: Int.self) == 1 { unique = nil }
            indexes.append(
                UniqueIndex(
                    isPrimaryKey: try index.read("origin", as: String.self) == "pk",
                    hasRowIDs: terms.contains { $0["cid"] == .integer(-1) }, columns: unique))
        }
        return indexes
    }

    private static func rowIDName(
        of table: String, _ columns: [Column]
    ) throws(StoreError) -> String {
        let names = Set(columns.map(\.name.asciiLowercased))
        guard let free = RowIDName.free(beside: names) else {
            throw unsupported("\(table) has columns that hide every name of the row id")
        }
        return free
    }
}
