import CSQLCipher

/// Rows as dictionaries, for SQL that is not worth writing. Every value is bound and every name
/// quoted, so neither can become SQL.
extension Connection {
    /// Adds a row.
    ///
    /// ```swift
    /// let change = try connection.insert(into: "note", ["title": title, "photo": nil])
    /// let id = change.insertedRowID
    /// ```
    ///
    /// - Parameters:
    ///   - table: The table.
    ///   - values: The values by column name; `nil` is NULL. A column that is not named gets its
    ///     default.
    /// - Returns: How many rows were added, and the row id.
    /// - Throws: `StoreError` `.constraint`, `.notFound` if there is no such table, `.sql` if there
    ///   is no such column, `.misuse` without values or if a column is named twice, `.tooBig` for
    ///   more than 999 values, `.mismatch`, `.damaged`, `.busy`, `.full`, `.io`.
    /// - Complexity: O(log *rows*).
    @discardableResult
    public func insert(
        into table: String, _ values: [String: (any ValueConvertible)?]
    ) throws -> RowChange {
        try onTable(table) { () throws(StoreError) in
            let values = try ColumnValues(row: values)
            return try add(values.insertion(into: table), to: table)
        }
    }

    /// Sets columns of the rows that match a filter.
    ///
    /// ```swift
    /// try connection.update("note", set: ["title": title], where: ["id": id])
    /// ```
    ///
    /// - Parameters:
    ///   - table: The table.
    ///   - values: The values by column name; `nil` is NULL.
    ///   - filter: The rows to update; pass `.all` for every row.
    /// - Returns: The number of affected rows; zero is not an error.
    /// - Throws: As `insert(into:_:)`; `StoreError` `.misuse` for a filter without columns.
    @discardableResult
    public func update(
        _ table: String, set values: [String: (any ValueConvertible)?], where filter: RowFilter
    ) throws -> Int {
        try onTable(table) { () throws(StoreError) in
            let values = try ColumnValues(row: values)
            return try perform(try .update(table, values, filter.clause))
        }
    }

    /// Removes the rows that match a filter.
    ///
    /// ```swift
    /// try connection.delete(from: "note", where: ["author": 7])
    /// ```
    ///
    /// - Parameters:
    ///   - table: The table.
    ///   - filter: The rows to remove; pass `.all` for every row.
    /// - Returns: The number of affected rows; zero is not an error.
    /// - Throws: As `insert(into:_:)`; `StoreError` `.misuse` for a filter without columns.
    @discardableResult
    public func delete(from table: String, where filter: RowFilter) throws -> Int {
        try onTable(table) { () throws(StoreError) in
            let name = try table.quotedIdentifier()
            var sql = SQL(text: "DELETE FROM \(name)")
            sql.append(try filter.clause(table: table))
            return try perform(try sql.requireFewArguments())
        }
    }

    /// The rows of a table, or those that match a filter, with all columns.
    ///
    /// ```swift
    /// let rows = try connection.rows(
    ///     in: "note", where: ["author": 7], orderedBy: [.descending("created")], limit: 20)
    /// ```
    ///
    /// - Parameters:
    ///   - table: The table or view.
    ///   - filter: The rows to return.
    ///   - order: The columns to order by; without any, the order is the engine's.
    ///   - limit: The maximum number of rows; `nil` for all.
    /// - Throws: `StoreError` `.notFound` if there is no such table, `.sql` if there is no such
    ///   column, `.misuse` for a negative limit or a filter without columns; otherwise as
    ///   `rows(_:)`.
    /// - Complexity: O(*rows*) memory.
    public func rows(
        in table: String, where filter: RowFilter = .all, orderedBy order: [RowOrder] = [],
        limit: Int? = nil
    ) throws -> [Row] {
        try rows(in: table, where: filter, orderedBy: order, limit: limit, isReadOnly: false)
    }

    // MARK: Inside

    func rows(
        in table: String, where filter: RowFilter, orderedBy order: [RowOrder], limit: Int?,
        isReadOnly: Bool
    ) throws(StoreError) -> [Row] {
        try onTable(table) { () throws(StoreError) in
            let name = try table.quotedIdentifier()
            var sql = SQL(text: "SELECT * FROM \(name)")
            sql.append(try filter.clause(table: table))
            for (index, column) in order.enumerated() {
                sql.append(index == 0 ? " ORDER BY " : ", ")
                sql.append(SQL(text: try column.term(table: name)))
            }
            if let limit {
                // SQLite would treat a negative number as no limit.
                guard limit >= 0 else { throw StoreError(.misuse, "the limit is negative") }
                sql.append(" LIMIT \(limit)")
            }
            return try rows(try sql.requireFewArguments(), isReadOnly: isReadOnly)
        }
    }

    /// Runs an INSERT of one row.
    func add(_ sql: SQL, to table: String) throws(StoreError) -> RowChange {
        var rowID: Int64 = 0
        // Read before COMMIT, in which full-text search of SQLCipher 3 inserts a row of its own.
        let count = try perform(try sql.requireFewArguments()) { rowID = lastInsertedRowID }
        let hasRowID = count > 0 && hasRowIDs(table)
        return RowChange(rowCount: count, insertedRowID: hasRowID ? rowID : nil)
    }

    /// Whether a table has row ids. Such a table has all three names, as columns or for the row id.
    /// Any other has them only if it has columns of all three names.
    private func hasRowIDs(_ table: String) -> Bool {
        guard let db = handle?.db else { return false }
        return RowIDName.all.allSatisfy { name in
            sqlite3_table_column_metadata(db, nil, table, name, nil, nil, nil, nil, nil)
                == SQLITE_OK
        }
    }

    /// Adds the table's name to an error, and reports `.notFound` if there is no such table.
    func onTable<T>(
        _ table: String, _ work: () throws(StoreError) -> T
    ) throws(StoreError) -> T {
        do throws(StoreError) {
            return try work()
        } catch {
            if error.code == .sql, (try? tableExists(table) || viewExists(table)) == false {
                throw StoreError(
                    .notFound, "there is no such table", sql: error.sql, table: table,
                    resultCode: error.resultCode)
            }
            throw error.with(table: table)
        }
    }

    /// Runs several statements as a whole: in a savepoint of the open transaction, or in a new
    /// transaction.
    ///
    /// - Throws: What `body` throws, after its work is rolled back; `.misuse` while a statement
    ///   outside a transaction has a current row.
    func asWhole<T>(_ body: () throws -> T) throws -> T {
        _ = try current()
        return try isInTransaction ? savepoint(body) : transaction(.immediate, body)
    }
}

extension SQL {
    /// - Parameter clause: Makes the WHERE clause for the quoted name of the table.
    static func update(
        _ table: String, _ values: ColumnValues,
        _ clause: (_ table: String) throws(StoreError) -> SQL
    ) throws(StoreError) -> SQL {
        let name = try table.quotedIdentifier()
        var sql = values.sql("UPDATE \(name) SET \(values.assignments)", table)
        sql.append(try clause(table))
        return try sql.requireFewArguments()
    }
}
