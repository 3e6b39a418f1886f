/// The triggers that record, in a table, which rows of another table change.
///
/// They write to a table and do not call a function, because SQLite then undoes the record
/// together with the change itself: when a statement fails half-way, when a savepoint is undone,
/// at ROLLBACK. They record what `UpdateHook` is not told.
///
/// A delete trigger does not fire for rows that REPLACE deletes either, unless `recursive_triggers`
/// is on, which would change what the user's triggers do. So before each insert and update,
/// triggers record the rows that have one of the new row's unique keys as `threatened`. At the end,
/// a query finds out whether they are gone.
struct ChangeTriggers {
    let table: KeyedTable
    /// Where the triggers are: on one connection, or in the file.
    let place: Place
    /// The table that they write to; quoted.
    let entryTable: String

    enum Place {
        case temp
        /// SQL in a file must not name a schema, because the file may be attached under another
        /// name.
        case file
    }

    /// What happened to a row. The numbers are stored in files.
    enum Mark: Int64 {
        case threatened = 0
        case inserted = 1
        case updated = 2
        case deleted = 3

        init(_ kind: ReportedChange.Kind) {
            switch kind {
            case .insertion: self = .inserted
            case .update: self = .updated
            case .deletion: self = .deleted
            }
        }
    }

    /// The prefix of all names of Coffer's triggers and their tables.
    static let prefix = "coffer:"

    /// The columns of the entry table that hold a key.
    static let keyColumns = (0..<KeyedTable.maximumKeyColumnCount).map { "k\($0)" }

    /// One trigger.
    struct Trigger {
        let name: String
        /// Everything after `CREATE TRIGGER`, as the schema keeps it.
        let text: String
    }

    /// The triggers of the table: three, and two more if a row can conflict with another one by row
    /// id or by a unique key.
    ///
    /// - Parameter condition: What must hold for a row to be recorded, as SQL; `nil` for every row.
    /// - Throws: `.sql` if the table's name cannot be quoted.
    func triggers(when condition: String?) throws(StoreError) -> [Trigger] {
        let isSame = same("old", "new")
        var found = [
            try trigger("insert", "AFTER INSERT", condition, [note(.inserted, "new")]),
            try trigger("delete", "AFTER DELETE", condition, [note(.deleted, "old")]),
            try trigger(
                "update", "AFTER UPDATE", condition,
                [
                    note(.updated, "new", where: isSame),
                    note(.deleted, "old", where: "NOT (\(isSame))"),
                    note(.inserted, "new", where: "NOT (\(isSame))"),
                ]),
        ]
        let threatened = threats()
        guard !threatened.isEmpty else { return found }
        found.append(
            try trigger(
                "before-insert", "BEFORE INSERT", condition, threatened.map { noteThreatened($0) }))
        // The updated row has these keys itself, which does not threaten it.
        found.append(
            try trigger(
                "before-update", "BEFORE UPDATE", condition,
                threatened.map { noteThreatened("\($0) AND NOT (\(same("r", "old")))") }))
        return found
    }

    private var target: String {
        get throws(StoreError) {
            let name = try table.name.quotedIdentifier()
            return place == .temp ? "main.\(name)" : name
        }
    }

    private func trigger(
        _ kind: String, _ event: String, _ condition: String?, _ statements: [String]
    ) throws(StoreError) -> Trigger {
        let name = "\(Self.prefix)\(table.name):\(kind)"
        let clause = condition.map { " WHEN \($0)" } ?? ""
        let text =
            "\(name.inDoubleQuotes) \(event) ON \(try target)\(clause) "
            + "BEGIN \(statements.joined(separator: "; ")); END"
        return Trigger(name: name, text: text)
    }

    private var columns: String {
        (["tbl", "kind"] + Self.keyColumns.prefix(table.key.count)).joined(separator: ", ")
    }

    private func values(_ mark: Mark, _ row: String) -> String {
        let key = table.key.map { "\(row).\($0)" }
        return (["\(table.name.inSingleQuotes)", "\(mark.rawValue)"] + key).joined(separator: ", ")
    }

    private func note(_ mark: Mark, _ row: String, where condition: String? = nil) -> String {
        "INSERT INTO \(entryTable) (\(columns)) SELECT \(values(mark, row))"
            + (condition.map { " WHERE \($0)" } ?? "")
    }

    /// SQL conditions: a stored row `r` conflicts with the new row by row id or by a unique key.
    /// Empty if no row can.
    private func threats() -> [String] {
        (table.rowID.map { ["r.\($0) = new.\($0)"] } ?? []) + table.uniqueKeys.flatMap(threats)
    }

    private func threats(_ columns: [KeyedTable.UniqueColumn]) -> [String] {
        // Compares with the index's own collation, as the index does.
        func isSame(_ columns: [KeyedTable.UniqueColumn]) -> [String] {
            columns.map { "r.\($0.column) = new.\($0.column) COLLATE \($0.collation)" }
        }
        let threats = [isSame(columns).joined(separator: " AND ")]
        // REPLACE has not yet put the default in place of NULL: any value may conflict.
        let replaceable = columns.filter(\.hasDefault)
        guard !replaceable.isEmpty else { return threats }
        let isNull = replaceable.map { "new.\($0.column) IS NULL" }.joined(separator: " OR ")
        let rest = isSame(columns.filter { !$0.hasDefault })
        return threats + [(["(\(isNull))"] + rest).joined(separator: " AND ")]
    }

    private func noteThreatened(_ condition: String) -> String {
        noteStored(.threatened, "\(table.name.inDoubleQuotes) AS r WHERE \(condition)")
    }

    /// SQL that records an update of one row, which no trigger has seen.
    ///
    /// - Parameters:
    ///   - row: The row's id.
    ///   - condition: What must hold for the row to be recorded, as SQL; `nil` for no condition.
    /// - Returns: `nil` for a table without row ids.
    func noteUpdate(ofRow row: Int64, when condition: String? = nil) -> SQL? {
        guard let rowID = table.rowID else { return nil }
        let source = "\(table.name.inDoubleQuotes) AS r WHERE r.\(rowID) = ?"
        return SQL(
            text: noteStored(.updated, source) + (condition.map { " AND \($0)" } ?? ""),
            arguments: [.integer(row)])
    }

    private func noteStored(_ mark: Mark, _ source: String) -> String {
        "INSERT INTO \(entryTable) (\(columns)) SELECT \(values(mark, "r")) "
            + "FROM \(place == .temp ? "main." : "")\(source)"
    }

    /// SQL that says whether two rows have the same key, byte by byte: `a` differs from `A`, and 1
    /// from 1.0.
    private func same(_ left: String, _ right: String) -> String {
        table.key.map { column in
            let isEqual = "\(left).\(column) COLLATE BINARY IS \(right).\(column)"
            guard !table.isKeyedByRowID else { return isEqual }
            return "\(isEqual) AND typeof(\(left).\(column)) = typeof(\(right).\(column))"
        }.joined(separator: " AND ")
    }
}
