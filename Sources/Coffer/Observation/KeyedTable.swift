/// A table whose changed rows can be identified by key: what its triggers must know.
struct KeyedTable: Equatable {
    /// The name as the schema has it.
    let name: String
    /// The columns that identify a row in events, quoted: those of the primary key if none of them
    /// can be NULL, otherwise a name of the row id.
    let key: [String]
    /// A name of the row id, quoted; `nil` in a table WITHOUT ROWID.
    let rowID: String?
    /// The columns of each unique key, with the collation that compares them. The row id is not
    /// among them.
    let uniqueKeys: [[UniqueColumn]]
    /// Whether there is a partial unique index, or one on an expression. The row that REPLACE would
    /// delete because of it cannot be found beforehand.
    let hasHiddenUniqueKeys: Bool

    struct UniqueColumn: Equatable {
        let column: String
        let collation: String
        /// Whether REPLACE puts a default in place of NULL, after BEFORE triggers have run.
        let hasDefault: Bool
    }

    /// The most columns a key may have; a change history has this many key columns.
    static let maximumKeyColumnCount = 16

    /// Whether rows are identified by row id. An INTEGER PRIMARY KEY is the row id.
    var isKeyedByRowID: Bool { key == [rowID] }

    /// Reads the schema of a table of the main file.
    ///
    /// - Parameter name: The table's name, in any case of ASCII letters.
    /// - Returns: `nil` if there is no table or view of this name.
    /// - Throws: `.unsupported` for a view, a virtual table, a table whose rows have no key that
    ///   SQL can name, or a primary key of more than 16 columns; errors of reading the schema.
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
        // In a WITHOUT ROWID table they are NOT NULL, whether declared so or not.
        let hasNulls = rowID != nil && !primaryKey.allSatisfy(\.isNotNull)
        guard index == nil || hasNulls, let rowID else {
            guard primaryKey.count <= Self.maximumKeyColumnCount else {
                throw Self.unsupported(
                    "the primary key has more than \(Self.maximumKeyColumnCount) columns")
            }
            key = primaryKey.map(\.quoted)
            return
        }
        key = [rowID]
    }

    private static func unsupported(_ reason: String) -> StoreError {
        StoreError(
            .unsupported, "changed rows cannot be identified: \(reason)",
            hint: "Observe a value that is read from the table instead.")
    }
}

// MARK: Reading the schema

extension KeyedTable {
    private struct Column {
        let name: String
        let quoted: String
        /// From 1 in the primary key, 0 for other columns.
        let keyRank: Int
        let isNotNull: Bool
        let hasDefault: Bool
    }

    private struct UniqueIndex {
        let isPrimaryKey: Bool
        /// Whether the row id follows the index's columns, as it does in a table with row ids.
        let hasRowIDs: Bool
        /// `nil` for a partial index, or one on an expression.
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
