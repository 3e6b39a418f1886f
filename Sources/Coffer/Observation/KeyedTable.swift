/// A table whose changed rows can be identified by key: what recording them must know.
struct KeyedTable: Equatable {
    /// The name as the schema has it.
    let name: String
    /// The name in lower case of ASCII.
    let lowercasedName: SQLText
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
    /// Columns whose new value gives a row another key, in lower case of ASCII. The row id is
    /// always `rowid`.
    let identifyingColumns: Set<SQLText>
    /// Whether the update hook can be relied on: no virtual table keeps its data in the table, and
    /// no conflict clause of the table replaces rows or keeps half of a statement.
    let isPlain: Bool
    /// Whether the primary key's own index compares its columns byte by byte.
    let comparesBytes: Bool

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
            SELECT name, rootpage, type, sql FROM main.sqlite_master
            WHERE type IN ('table', 'view') AND name = \(name) COLLATE NOCASE
            """, isReadOnly: true)
        guard let found else { return nil }
        let name = try found.read("name", as: String.self)
        self.name = name
        lowercasedName = SQLText(name.asciiLowercased)
        guard try found.read("rootpage", as: Int?.self) ?? 0 > 0 else {
            throw Self.unsupported("\(name) is a view or a virtual table")
        }
        // The text of a conflict clause: see https://www.sqlite.org/lang_conflict.html.
        let sql = try found.read("sql", as: String?.self) ?? ""
        let isPart = try Self.isPartOfVirtualTable(name, connection)
        isPlain = !isPart && !sql.asciiLowercased.contains("conflict")
        let columns = try Self.columns(of: self.name, connection)
        let indexes = try Self.uniqueIndexes(of: self.name, columns, connection)
        uniqueKeys = indexes.compactMap(\.columns)
        hasHiddenUniqueKeys = uniqueKeys.count < indexes.count
        // An INTEGER PRIMARY KEY has no index.
        let index = indexes.first(where: \.isPrimaryKey)
        rowID = try index?.hasRowIDs == false ? nil : Self.rowIDName(of: self.name, columns)
        let primaryKey = columns.filter { $0.keyRank > 0 }.sorted { $0.keyRank < $1.keyRank }
        identifyingColumns = Set(primaryKey.map { SQLText($0.name.asciiLowercased) })
            .union([SQLText("rowid")])
        comparesBytes =
            index?.columns?.allSatisfy { $0.collation.asciiLowercased == "\"binary\"" } ?? true
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

// MARK: Reports without triggers

extension KeyedTable {
    /// Whether the update hook, and the verbs that report their rows, tell of every row of the
    /// table that a statement changes.
    func isTold(of statement: Statement, _ footprint: StatementFootprint) -> Bool {
        let changes = footprint.rowChanges(of: lowercasedName) ?? RowChanges()
        guard isPlain, !footprint.writesUnknownTable, !footprint.mentionsReplace,
            !changes.isSilent
        else { return false }
        guard !footprint.mentionsFail || statement.changesOneRow else { return false }
        let isAlone = !footprint.hasNestedPrograms
        let isReported = statement.reportedChange != nil
        // The hook tells of tables with row ids only.
        guard rowID != nil else { return isReported && isAlone && comparesBytes }
        guard changes.updatedColumns.isDisjoint(with: identifyingColumns) else { return false }
        // A deleted row has no key that could be read.
        return !changes.deletes || isKeyedByRowID || isReported && isAlone
    }

    /// Reads the key of a row. Returns `nil` if no row has this row id.
    ///
    /// - Throws: Errors of the query.
    func key(ofRow row: Int64, _ connection: Connection) throws(StoreError) -> [Value]? {
        guard let rowID else { return nil }
        let sql = SQL(
            text: "SELECT \(key.joined(separator: ", ")) FROM main.\(try name.quotedIdentifier()) "
                + "WHERE \(rowID) = ?", arguments: [.integer(row)])
        return try connection.firstRow(sql, isReadOnly: true)?.values
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

    /// Whether a virtual table keeps its data in the table, which then has its name in front.
    private static func isPartOfVirtualTable(
        _ table: String, _ connection: Connection
    ) throws(StoreError) -> Bool {
        let rows = try connection.rows(
            "SELECT name FROM main.sqlite_master WHERE type = 'table' AND rootpage = 0",
            isReadOnly: true)
        for row in rows {
            let name = try row.read("name", as: String.self)
            if table.asciiLowercased.hasPrefix("\(name.asciiLowercased)_") { return true }
        }
        return false
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
