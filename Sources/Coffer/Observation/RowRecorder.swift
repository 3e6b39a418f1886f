/// Records which rows of followed tables change, on the writer of a store.
///
/// Its table and triggers are temporary: no other connection sees them, and they vanish with the
/// connection. The table is emptied at the end of each transaction.
struct RowRecorder {
    private let connection: Connection

    init(_ connection: Connection) {
        self.connection = connection
    }

    /// The most rows of one transaction to record, because it may change millions.
    static let maximumRowCount = 10_000

    private static let tableName = "\(ChangeTriggers.prefix)changes"
    private static let quotedTable = tableName.inDoubleQuotes

    /// The followed tables: those whose changed rows can be identified, and the others.
    struct Followed {
        var tables: [KeyedTable] = []
        var refused: Set<SQLText> = []
    }

    /// The tables for which the connection has triggers.
    private final class Installed {
        let wanted: Set<SQLText>
        let followed: Followed

        init(wanted: Set<SQLText>, followed: Followed) {
            self.wanted = wanted
            self.followed = followed
        }
    }

    /// Creates triggers for the tables of these names, and removes all others, in the open
    /// transaction. Does nothing if neither `wanted` nor the schema has changed since the last
    /// call.
    ///
    /// Called at the start of each transaction. After a rollback of the transaction that created
    /// the triggers, the next call creates them again.
    ///
    /// - Parameter wanted: Names in lower case of ASCII. Names without a table are left out.
    /// - Returns: The tables with triggers, and the names of those whose changed rows cannot be
    ///   identified.
    /// - Throws: Errors of reading or changing the schema.
    func install(_ wanted: Set<SQLText>) throws(StoreError) -> Followed {
        let id = ObjectIdentifier(Installed.self)
        if let known = try connection.attachment(id) as? Installed, known.wanted == wanted {
            return known.followed
        }
        var followed = Followed()
        for name in wanted.map(\.text).sorted() {
            do throws(StoreError) {
                if let table = try KeyedTable(name, connection) {
                    followed.tables.append(table)
                }
            } catch  where error.code == .unsupported {
                // The loop's own check throws this error, but the table may have been created after
                // that check.
                followed.refused.insert(SQLText(name))
            }
        }
        try replaceTriggers(for: followed.tables)
        connection.attach(Installed(wanted: wanted, followed: followed), as: id)
        return followed
    }

    private func replaceTriggers(for tables: [KeyedTable]) throws(StoreError) {
        var present: [SQLText: String] = [:]
        for row in try connection.rows("SELECT name, sql FROM sqlite_temp_master", isReadOnly: true)
        {
            let name = try row.read("name", as: String.self)
            guard name.hasPrefix(ChangeTriggers.prefix) else { continue }
            present[SQLText(name)] = try row.read("sql", as: String?.self) ?? ""
        }
        var script: [String] = []
        if present.removeValue(forKey: SQLText(Self.tableName)) == nil, !tables.isEmpty {
            let columns = ChangeTriggers.keyColumns.joined(separator: ", ")
            script.append(
                "CREATE TEMP TABLE \(Self.quotedTable) "
                    + "(n INTEGER PRIMARY KEY, tbl, kind, \(columns))")
        }
        for table in tables {
            let triggers = ChangeTriggers(table: table, place: .temp, entryTable: Self.quotedTable)
            for trigger in try triggers.triggers(when: Self.condition) {
                let found = present.removeValue(forKey: SQLText(trigger.name))
                if let found, SQLText(found) == SQLText("CREATE TRIGGER \(trigger.text)") {
                    continue
                }
                script.append("DROP TRIGGER IF EXISTS temp.\(trigger.name.inDoubleQuotes)")
                script.append("CREATE TEMP TRIGGER \(trigger.text)")
            }
        }
        for name in present.keys {
            script.append("DROP TRIGGER IF EXISTS temp.\(name.text.inDoubleQuotes)")
        }
        guard !script.isEmpty else { return }
        try connection.current().run(script.joined(separator: ";\n"))
    }

    /// The last row is found in O(log rows).
    private static let condition =
        "coalesce((SELECT max(n) FROM \(quotedTable)), 0) < \(maximumRowCount)"

    /// Records an update of a row that no trigger sees. Does nothing in a table without row ids, or
    /// once the most rows of a transaction are recorded.
    ///
    /// - Throws: Errors of the insert.
    func note(row: Int64, of table: KeyedTable) throws(StoreError) {
        let triggers = ChangeTriggers(table: table, place: .temp, entryTable: Self.quotedTable)
        guard let sql = triggers.noteUpdate(ofRow: row, when: Self.condition) else { return }
        try connection.perform(sql)
    }

    /// Takes the rows recorded in the open transaction, and empties the table that records them.
    ///
    /// - Parameter tables: The tables with triggers; empty for an empty result.
    /// - Returns: What happened to each row, once; `nil` if 10 000 or more entries were recorded.
    /// - Throws: Errors of reading the records and the table.
    func take(_ tables: [KeyedTable]) throws(StoreError) -> [ChangedRow]? {
        guard !tables.isEmpty else { return [] }
        let columns = ChangeTriggers.keyColumns.prefix(tables.map(\.key.count).max() ?? 1)
        let rows = try connection.rows(
            SQL(
                text: "SELECT tbl, kind, \(columns.joined(separator: ", ")) "
                    + "FROM temp.\(Self.quotedTable) ORDER BY n"), isReadOnly: true)
        guard !rows.isEmpty else { return [] }
        try connection.perform(SQL(text: "DELETE FROM temp.\(Self.quotedTable)"))
        guard rows.count < Self.maximumRowCount else { return nil }
        let known = Dictionary(tables.map { (SQLText($0.name), $0) }) { first, _ in first }
        var marks = RowMarks()
        for row in rows {
            let name = try row.read("tbl", as: String.self)
            guard let table = known[SQLText(name)],
                let mark = ChangeTriggers.Mark(rawValue: try row.read("kind"))
            else { continue }
            let key = Array(row.values.dropFirst(2).prefix(table.key.count))
            marks.add(mark, RowMarks.Row(table: name, key: key))
        }
        return try marks.changes { row throws(StoreError) in
            guard let table = known[SQLText(row.table)] else { return false }
            return try table.hasRow(row.key, connection)
        }
    }
}

extension KeyedTable {
    /// Whether the table has a row with this key now, compared byte by byte and by type.
    ///
    /// - Parameter values: The key's values; `false` if their number is not that of the table's key
    ///   columns.
    /// - Throws: Errors of the query.
    func hasRow(_ values: [Value], _ connection: Connection) throws(StoreError) -> Bool {
        // The table may have had another key when the row was recorded.
        guard values.count == key.count else { return false }
        // The first comparison finds the row by its index, whatever its collation.
        let conditions = key.indices.map {
            "\(key[$0]) = ?\($0 + 1) AND \(key[$0]) COLLATE BINARY = ?\($0 + 1) "
                + "AND typeof(\(key[$0])) = typeof(?\($0 + 1))"
        }
        let sql = SQL(
            text: "SELECT 1 FROM main.\(try name.quotedIdentifier()) "
                + "WHERE \(conditions.joined(separator: " AND "))", arguments: values)
        return try connection.firstRow(sql, isReadOnly: true) != nil
    }
}
