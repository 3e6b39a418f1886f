/// Records which rows of followed tables change, on the writer of a store, by triggers.
///
/// Triggers cost a write several times its own time, so a table gets them only when a statement
/// changes rows of which nothing else tells: see `KeyedTable.isTold(of:_:)`. It then keeps them
/// while somebody follows it.
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
        /// The numbers of the tables that have triggers.
        var triggered: Set<Int> = []
    }

    /// The tables that are followed on the connection, as the schema has them.
    private final class Installed {
        let wanted: Set<SQLText>
        let needed: Set<SQLText>
        let followed: Followed

        init(wanted: Set<SQLText>, needed: Set<SQLText>, followed: Followed) {
            self.wanted = wanted
            self.needed = needed
            self.followed = followed
        }
    }

    /// The names of the tables that need triggers, as long as somebody follows them.
    private final class Needed {
        var names: Set<SQLText> = []
    }

    /// Creates triggers for those of these tables that need them, and removes all others, in the
    /// open transaction. Does nothing if neither the tables nor the schema have changed since the
    /// last call.
    ///
    /// Called at the start of each transaction. After a rollback of the transaction that created
    /// the triggers, the next call creates them again.
    ///
    /// - Parameter wanted: Names in lower case of ASCII. Names without a table are left out.
    /// - Returns: The tables, which of them have triggers, and the names of those whose changed
    ///   rows cannot be identified.
    /// - Throws: Errors of reading or changing the schema.
    func install(_ wanted: Set<SQLText>) throws(StoreError) -> Followed {
        let id = ObjectIdentifier(Installed.self)
        let needed = connection.handle?.attachment { Needed() }
        needed?.names.formIntersection(wanted)
        let names = needed?.names ?? []
        if let known = try connection.attachment(id) as? Installed, known.wanted == wanted,
            known.needed == names
        {
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
        followed.triggered = Set(
            followed.tables.indices.filter {
                names.contains(followed.tables[$0].lowercasedName)
            })
        try replaceTriggers(for: followed.triggered.map { followed.tables[$0] })
        connection.attach(
            Installed(wanted: wanted, needed: names, followed: followed), as: id)
        return followed
    }

    /// Creates the triggers of one more table, in the open transaction, and notes that it needs
    /// them from now on.
    ///
    /// - Throws: Errors of changing the schema.
    func addTriggers(_ table: Int, to followed: inout Followed) throws(StoreError) {
        let wanted = followed.triggered.union([table])
        try replaceTriggers(for: wanted.map { followed.tables[$0] })
        followed.triggered = wanted
        let needed = connection.handle?.attachment { Needed() }
        needed?.names.insert(followed.tables[table].lowercasedName)
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
    /// - Parameters:
    ///   - followed: The tables.
    ///   - log: What was reported before the tables had triggers, by row id only where that is the
    ///     key.
    /// - Returns: What happened to each row, once; `nil` if 10 000 or more entries were recorded.
    /// - Throws: Errors of reading the records and the table.
    func take(_ followed: Followed, _ log: RowLog) throws(StoreError) -> [ChangedRow]? {
        let tables = followed.tables
        var marks = RowMarks()
        for entry in log.entries {
            switch entry {
            case .row(let mark, let table, let row):
                marks.add(mark, RowMarks.Row(table: table, key: .integer(row)))
            case .key(let mark, let table, let key):
                marks.add(mark, RowMarks.Row(table: table, key: RowMarks.Key(key)))
            case .triggers: break
            }
        }
        let count = try takeRecorded(followed, into: &marks)
        guard !log.isFull, log.count + count < Self.maximumRowCount else { return nil }
        return try marks.changes(named: tables.map(\.name)) { row throws(StoreError) in
            try tables[row.table].hasRow(row.key.values, connection)
        }
    }

    /// Adds what the triggers have recorded, and empties their table; returns how much it was.
    private func takeRecorded(
        _ followed: Followed, into marks: inout RowMarks
    ) throws(StoreError) -> Int {
        guard !followed.triggered.isEmpty else { return 0 }
        let tables = followed.tables
        let columns = ChangeTriggers.keyColumns.prefix(tables.map(\.key.count).max() ?? 1)
        let rows = try connection.rows(
            SQL(
                text: "SELECT tbl, kind, \(columns.joined(separator: ", ")) "
                    + "FROM temp.\(Self.quotedTable) ORDER BY n"), isReadOnly: true)
        guard !rows.isEmpty else { return 0 }
        try connection.perform(SQL(text: "DELETE FROM temp.\(Self.quotedTable)"))
        guard rows.count < Self.maximumRowCount else { return rows.count }
        let numbers = Dictionary(
            tables.indices.map { (SQLText(tables[$0].name), $0) }
        ) { first, _ in first }
        for row in rows {
            let name = try row.read("tbl", as: String.self)
            guard let table = numbers[SQLText(name)],
                let mark = ChangeTriggers.Mark(rawValue: try row.read("kind"))
            else { continue }
            let key = Array(row.values.dropFirst(2).prefix(tables[table].key.count))
            marks.add(mark, RowMarks.Row(table: table, key: RowMarks.Key(key)))
        }
        return rows.count
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
