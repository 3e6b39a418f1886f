import CSQLCipher

extension Connection {
    /// The storage class of one cell; distinguishes an empty blob, NULL and a missing row.
    ///
    /// - Parameters:
    ///   - column: The column.
    ///   - table: The table, which has row ids.
    ///   - row: The row's id.
    ///   - schema: The name of the database, `main` unless you say otherwise.
    /// - Returns: The storage class, `nil` if there is no such row.
    /// - Throws: `StoreError` `.sql` if there is no such table or column, `.unsupported` for a
    ///   view or a table WITHOUT ROWID, `.damaged`.
    /// - Complexity: O(log *rows*); the value itself is not read.
    public func storageClass(
        of column: String, in table: String, row: Int64, schema: String = "main"
    ) throws -> StorageClass? {
        try storageClass(BlobCell(schema: schema, table: table, column: column, row: row))
    }

    func storageClass(_ cell: BlobCell) throws(StoreError) -> StorageClass? {
        // Qualified, because SQLite would treat an unknown name in quotes as a text.
        let sql = SQL(
            text: "SELECT upper(typeof(cell.\(try cell.column.quotedIdentifier()))) "
                + "FROM \(try cell.tableName()) AS cell WHERE cell.\(try rowIDName(cell)) = ?",
            arguments: [.integer(cell.row)])
        guard case .text(let name)? = try firstRow(sql, isReadOnly: true)?[0] else { return nil }
        return StorageClass(rawValue: name)
    }

    /// A name of the row id that no column of the table hides.
    ///
    /// - Throws: `.unsupported` for a view, for a table without row ids, and if columns have all
    ///   three names; `.sql` if there is no such table.
    func rowIDName(_ cell: BlobCell) throws(StoreError) -> String {
        guard let name = try freeRowIDName(of: cell.table, schema: cell.schema) else {
            throw StoreError.noRowIDs(in: cell.table)
        }
        return name
    }

    /// A name of the row id that no column of the table hides; `nil` for a view, for a table
    /// without row ids, and if columns have all three names.
    ///
    /// - Parameter schema: The name of the database; `nil` for the table that SQL finds under the
    ///   name alone, which may be a temporary one.
    /// - Throws: `.sql` if there is no such table.
    func freeRowIDName(of table: String, schema: String?) throws(StoreError) -> String? {
        let names = try columnNames(of: table, schema).map { $0.lowercased() }
        guard let free = RowIDName.free(beside: names) else { return nil }
        // Fails for a view and for a table without row ids. "If the database name is NULL, then all
        // attached databases are searched for the table using the same algorithm used by the
        // database engine to resolve unqualified table references":
        // https://www.sqlite.org/c3ref/table_column_metadata.html
        let code = sqlite3_table_column_metadata(
            try current().db, schema, table, free, nil, nil, nil, nil, nil)
        return code == SQLITE_OK ? free : nil
    }

    private func columnNames(
        of table: String, _ schema: String?
    ) throws(StoreError) -> [String] {
        var name = try table.quotedIdentifier()
        if let schema { name = "\(try schema.quotedIdentifier()).\(name)" }
        let statement = try cached("SELECT * FROM \(name) LIMIT 0")
        defer { release(statement) }
        // Only a running statement notices that another connection has changed the schema.
        try statementWillStep(statement)
        do throws(StoreError) {
            try statement.runToEnd()
        } catch {
            statementFailed(statement)
            throw error
        }
        let names = statement.columnNames
        try statementEnded(statement)
        return names
    }
}

extension StoreError {
    static func noRowIDs(in table: String) -> StoreError {
        StoreError(
            .unsupported, "\(table) has no row ids",
            hint: "It is a view, is WITHOUT ROWID, or has columns named like row ids: read and "
                + "write its rows by their key."
        ).with(table: table)
    }
}
