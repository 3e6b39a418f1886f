/// The table of a record type in a file: made, compared and extended.
struct RecordSchema {
    private let plan: RecordPlan
    private let connection: Connection

    init(_ plan: RecordPlan, _ connection: Connection) {
        self.plan = plan
        self.connection = connection
    }

    /// What the file has under the name of a table.
    enum Kind: Equatable {
        case nothing
        case table
        case view
    }

    /// SQLite compares names without regard to case.
    func kind() throws(StoreError) -> Kind {
        let row = try connection.firstRow(
            """
            SELECT type FROM sqlite_master
            WHERE type IN ('table', 'view') AND name = \(plan.table) COLLATE NOCASE
            """, isReadOnly: false)
        switch row?[0] {
        case nil: return .nothing
        case .text("view"): return .view
        default: return .table
        }
    }

    /// Makes the table, or adds what it lacks and may be NULL; any other difference is an error.
    func create() throws(StoreError) {
        switch try kind() {
        case .nothing: try connection.perform(SQL(text: createSQL))
        case .view: throw mismatch("a view", expected: "a table", column: nil)
        case .table: try extend(try columns())
        }
    }

    /// Refuses a table into which a value of the type would go changed, or not at all.
    func requireWritable() throws(StoreError) {
        let found = try columns()
        for column in plan.columns {
            guard let existing = found[column.name.asciiLowercased] else {
                throw missing(column)
            }
            guard existing.affinity.keeps(column.storage) else {
                throw mismatch(existing.type, expected: column.storage.sqlType, column: column.name)
            }
        }
    }

    /// The error for a table that lacks a column of the type, if it does.
    func missingColumn() throws(StoreError) -> StoreError? {
        let found = try columns()
        return plan.columns.first { found[$0.name.asciiLowercased] == nil }.map { missing($0) }
    }

    /// Whether an UPDATE by key changes one row at most and starts nothing else, so that `OR FAIL`
    /// leaves nothing half done that `OR ABORT` would have undone.
    ///
    /// An `ON CONFLICT` clause of the table's own, which `OR FAIL` would override, says no as well.
    func updatesOneRowAlone() throws(StoreError) -> Bool {
        let found = try columns()
        let keyNames = Set(plan.keyPositions.map { plan.columns[$0].name.asciiLowercased })
        guard Set(found.filter { $0.value.keyRank > 0 }.keys) == keyNames else { return false }
        let other = try connection.firstRow(
            """
            SELECT 1 FROM (
                SELECT type, tbl_name, sql FROM sqlite_master UNION ALL
                SELECT type, tbl_name, sql FROM sqlite_temp_master)
            WHERE tbl_name = \(plan.table) COLLATE NOCASE
                AND (type = 'trigger' OR sql LIKE '%conflict%')
            """, isReadOnly: false)
        return other == nil
    }

    // MARK: Making

    private var createSQL: String {
        var parts = plan.columns.indices.map { definition(of: $0) }
        if plan.keyPositions.count > 1 {
            let names = plan.keyPositions.map { plan.quotedColumns[$0] }
            parts.append("PRIMARY KEY (\(names.joined(separator: ", ")))")
        }
        return "CREATE TABLE \(plan.quotedTable) (\(parts.joined(separator: ", ")))"
    }

    private func definition(of position: Int) -> String {
        let column = plan.columns[position]
        var text = "\(plan.quotedColumns[position]) \(column.storage.sqlType)"
        // In SQLite a key may be NULL unless it is told not to; a single INTEGER is the row id,
        // which is never NULL: the engine chooses one.
        if plan.keyPositions == [position] { text += " PRIMARY KEY" }
        if isNotNull(position) { text += " NOT NULL" }
        return text
    }

    private func isNotNull(_ position: Int) -> Bool {
        if !plan.columns[position].isNullable { return true }
        return plan.keyPositions.contains(position) && !isRowID(position)
    }

    private func isRowID(_ position: Int) -> Bool {
        plan.keyPositions == [position] && plan.columns[position].storage == .integer
    }

    // MARK: Comparing

    private func extend(_ found: [String: ExistingColumn]) throws(StoreError) {
        var missing: [Int] = []
        for (position, column) in plan.columns.enumerated() {
            if let existing = found[column.name.asciiLowercased] {
                try compare(position, existing)
            } else if column.isNullable, !plan.keyPositions.contains(position) {
                missing.append(position)
            } else {
                throw self.missing(column)
            }
        }
        let names = Set(plan.columns.map(\.name.asciiLowercased))
        for existing in found.values.sorted(by: { $0.name < $1.name })
        where !names.contains(existing.name.asciiLowercased) {
            throw mismatch(existing.description, expected: "no such column", column: existing.name)
        }
        for position in missing {
            let definition = definition(of: position)
            try connection.perform(
                SQL(text: "ALTER TABLE \(plan.quotedTable) ADD COLUMN \(definition)"))
        }
    }

    private func compare(_ position: Int, _ existing: ExistingColumn) throws(StoreError) {
        let column = plan.columns[position]
        let keyRank = (plan.keyPositions.firstIndex(of: position) ?? -1) + 1
        let expected = ExistingColumn(
            name: column.name, type: column.storage.sqlType, isNotNull: isNotNull(position),
            keyRank: keyRank)
        // The row id is never NULL, whether the table says so or not.
        let fits =
            existing.affinity == expected.affinity && existing.keyRank == keyRank
            && (existing.isNotNull == expected.isNotNull || isRowID(position))
        guard fits else {
            throw mismatch(
                existing.description, expected: expected.description, column: column.name)
        }
    }

    private func columns() throws(StoreError) -> [String: ExistingColumn] {
        var columns: [String: ExistingColumn] = [:]
        for row in try connection.rows(
            "PRAGMA table_info(\(identifier: plan.table))", isReadOnly: false)
        {
            let column = ExistingColumn(
                name: try row.read("name"), type: try row.read("type"),
                isNotNull: try row.read("notnull", as: Int.self) != 0, keyRank: try row.read("pk"))
            columns[column.name.asciiLowercased] = column
        }
        return columns
    }

    // MARK: Failures

    private func mismatch(_ found: String, expected: String, column: String?) -> StoreError {
        StoreError(
            .mismatch,
            "the table and \(plan.typeName) differ: expected \(expected), found \(found)",
            hint: "Change the type, or the table with SQL of your own.", table: plan.table,
            column: column)
    }

    private func missing(_ column: RecordColumn) -> StoreError {
        let type = column.storage.sqlType
        let remedy =
            column.isNullable
            ? "tx.create(\(plan.typeName).self) adds it."
            : "Make the property optional and create(_:) adds it, or add it with SQL and a default."
        return StoreError(
            .mismatch,
            "the table and \(plan.typeName) differ: expected \(type)"
                + "\(column.isNullable ? "" : " NOT NULL"), found no such column",
            hint: remedy, table: plan.table, column: column.name)
    }
}

/// A column as PRAGMA table_info tells it.
private struct ExistingColumn {
    let name: String
    let type: String
    let isNotNull: Bool
    /// Position in the primary key, from 1; 0 outside.
    let keyRank: Int

    var affinity: Affinity { Affinity(type) }

    var description: String {
        var text = type.isEmpty ? "no type" : type
        if isNotNull { text += " NOT NULL" }
        if keyRank > 0 { text += " as part \(keyRank) of the key" }
        return text
    }
}

/// What a column does to values; see section 3.1 of <https://www.sqlite.org/datatype3.html>.
private enum Affinity {
    case integer
    case text
    case blob
    case real
    case numeric

    init(_ type: String) {
        // By bytes: `String.contains` takes 16 000 instructions for each type.
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

    /// Whether values of a storage class come back as they went in.
    func keeps(_ storage: Storage) -> Bool {
        switch (self, storage) {
        case (.blob, _), (_, .blob): true
        case (.integer, .integer), (.numeric, .integer): true
        // An integral real becomes an integer, and is taken for a real again where that is exact.
        case (.real, .real), (.numeric, .real), (.integer, .real): true
        case (.text, .text): true
        default: false
        }
    }
}
