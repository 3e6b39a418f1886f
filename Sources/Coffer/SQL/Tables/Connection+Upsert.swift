extension Connection {
    /// Updates the row that has these values in its unique columns, or adds a row if there is none.
    ///
    /// ```swift
    /// try connection.upsert(
    ///     into: "word", ["text": word, "count": count], onConflict: ["text"])
    /// ```
    ///
    /// The row is updated in place, never deleted and inserted again as with `INSERT OR REPLACE`.
    /// So columns that are not named keep their values, and foreign keys and triggers see an
    /// update. On both engines it is an UPDATE, and an INSERT if that found no row, in one
    /// transaction: SQLCipher 3.4.1 has no `ON CONFLICT DO UPDATE`. So an update never fires INSERT
    /// triggers. If only the unique columns have values, an existing row stays as it is.
    ///
    /// - Parameters:
    ///   - table: The table.
    ///   - values: The values by column name; `nil` is NULL, which in a unique column conflicts
    ///     with nothing.
    ///   - columns: All columns of the primary key, or of one UNIQUE constraint or index, each with
    ///     a value.
    /// - Returns: 1 row and its row id if it was added, 1 without if it was updated, 0 if it stayed
    ///   as it is.
    /// - Throws: `StoreError` `.constraint` if a *further* constraint refuses the row; `.misuse` if
    ///   the columns are not unique together, or while a statement outside a transaction has a
    ///   current row; otherwise as `insert(into:_:)`. Nothing has changed then.
    /// - Complexity: O(log *rows*).
    @discardableResult
    public func upsert(
        into table: String, _ values: [String: (any ValueConvertible)?],
        onConflict columns: [String]
    ) throws -> RowChange {
        let all: ColumnValues
        let parts: (key: ColumnValues, rest: ColumnValues)
        do throws(StoreError) {
            all = try ColumnValues(row: values)
            parts = try all.split(by: columns)
        } catch {
            throw error.with(table: table)
        }
        return try asWhole {
            try requireUnique(columns, of: table)
            return try onTable(table) { () throws(StoreError) in
                if parts.rest.columns.isEmpty { return try addIfMissing(parts.key, to: table) }
                let count = try perform(
                    try .update(table, parts.rest) { table throws(StoreError) in
                        try parts.key.condition(table: table)
                    })
                guard count <= 1 else {
                    // The index may distinguish texts that the column treats as equal.
                    throw StoreError(.misuse, "the conflicting columns match several rows")
                }
                if count == 1 { return RowChange(rowCount: 1, insertedRowID: nil) }
                return try add(all.insertion(into: table), to: table)
            }
        }
    }

    /// Inserts the row unless it exists. An UPDATE without anything to set is not valid SQL.
    private func addIfMissing(
        _ key: ColumnValues, to table: String
    ) throws(StoreError) -> RowChange {
        let name = try table.quotedIdentifier()
        var sql = key.sql(
            "INSERT INTO \(name) (\(key.names)) SELECT \(key.placeholders) "
                + "WHERE NOT EXISTS (SELECT 1 FROM \(name)", table)
        sql.append(try key.condition(table: table))
        sql.append(")")
        return try add(sql, to: table)
    }

    /// Refuses columns that are not unique together: an UPDATE would change every matching row,
    /// where an INSERT would conflict with none.
    private func requireUnique(_ names: [String], of table: String) throws {
        // The owner of an adopted handle may have begun the transaction.
        if try current().isAdopted { schemaMayHaveChanged() }
        let id = ObjectIdentifier(UniqueColumns.self)
        let known = try attachment(id) as? UniqueColumns ?? UniqueColumns()
        let text = SQLText(([table] + names).joined(separator: "\0"))
        guard !known.texts.contains(text) else { return }
        func isAll(_ columns: [String?]) -> Bool {
            columns.count == names.count
                && names.allSatisfy { name in
                    columns.contains { $0?.isSameIdentifier(as: name) == true }
                }
        }
        let key = try columns(of: table).filter { $0.primaryKeyPosition > 0 }
        let indexes = try indexes(of: table).filter { $0.isUnique && !$0.isPartial }
        guard isAll(key.map(\.name)) || indexes.contains(where: { isAll($0.columns) }) else {
            throw StoreError(
                .misuse, "\(names.joined(separator: ", ")) is not unique in the table",
                hint: "Name all columns of its primary key or of one unique index.", table: table)
        }
        known.texts.insert(text)
        attach(known, as: id)
    }
}

/// The columns that were found to be unique; each text is a table and its columns. They are kept as
/// long as the schema does not change.
private final class UniqueColumns {
    var texts: Set<SQLText> = []
}

extension ColumnValues {
    /// Always compares with `=`, as a unique index does: NULL equals nothing.
    fileprivate func condition(table: String) throws(StoreError) -> SQL {
        let quotedTable = try table.quotedIdentifier()
        let terms = columns.map { "\(quotedTable).\($0.quotedName) = ?" }
        return sql(" WHERE \(terms.joined(separator: " AND "))", table)
    }
}
