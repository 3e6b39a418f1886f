extension Reading where Self: ~Copyable {
    /// Opens one blob for reading while `body` runs.
    ///
    /// ```swift
    /// let digest = try store.read { tx in
    ///     try tx.withBlob("photo", in: "person", row: 7) { blob in
    ///         var hash = SHA256()
    ///         try blob.forEachChunk { hash.update(bufferPointer: $0) }
    ///         return hash.finalize()
    ///     }
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - column: The column.
    ///   - table: The table, which has row ids.
    ///   - row: The row's id.
    ///   - body: The work. An empty blob is opened too; it has 0 bytes.
    /// - Returns: What `body` returns.
    /// - Throws: What `body` throws; `StoreError` `.notFound` if there is no such row, `.mismatch`
    ///   if the value is not a blob (NULL among them), `.sql` if there is no such table or column,
    ///   `.unsupported` for a view, a virtual table or a table WITHOUT ROWID, `.damaged`.
    public func withBlob<T>(
        _ column: String, in table: String, row: Int64,
        _ body: (inout BlobReader) throws -> T
    ) throws -> T {
        try connection().withBlob(column, in: table, row: row, body)
    }

    /// How the value of one cell is stored: distinguishes an empty blob, NULL and a missing row.
    ///
    /// - Parameters:
    ///   - column: The column.
    ///   - table: The table, which has row ids.
    ///   - row: The row's id.
    /// - Returns: The storage class, `nil` if there is no such row.
    /// - Throws: `StoreError` `.sql` if there is no such table or column, `.unsupported` for a
    ///   view or a table WITHOUT ROWID.
    /// - Complexity: O(log *rows*); the value itself is not read.
    public func storageClass(
        of column: String, in table: String, row: Int64
    ) throws -> StorageClass? {
        try connection().storageClass(of: column, in: table, row: row)
    }

    /// The same for a blob that is found in this transaction.
    func withBlob<T>(
        _ place: BlobPlace, _ body: (inout BlobReader) throws -> T
    ) throws -> T {
        let connection = try connection()
        let cell = try place(connection)
        return try connection.withBlob(
            cell.column, in: cell.table, row: cell.row, schema: cell.schema, body)
    }
}

extension WriteTransaction {
    /// Opens one blob for writing while `body` runs.
    ///
    /// Its size cannot change: create it by `zeroblob(byteCount)` in SQL. Prefer the table's last
    /// column, because the engine keeps the whole blob in memory if another value follows. Triggers
    /// do not fire for what is written. A column of an index or a foreign key is `.unsupported`.
    ///
    /// - Parameters:
    ///   - column: The column.
    ///   - table: The table, which has row ids.
    ///   - row: The row's id.
    ///   - body: The work.
    /// - Returns: What `body` returns.
    /// - Throws: As `withBlob(_:in:row:_:)`; `StoreError` `.unsupported` for a column of an index
    ///   or a foreign key, `.full`, `.io`.
    public func withWritableBlob<T>(
        _ column: String, in table: String, row: Int64,
        _ body: (inout BlobWriter) throws -> T
    ) throws -> T {
        try withWritableBlob(
            BlobCell(schema: "main", table: table, column: column, row: row), body)
    }

    func withWritableBlob<T>(
        _ cell: BlobCell, _ body: (inout BlobWriter) throws -> T
    ) throws -> T {
        let connection = try connection()
        // A history follows tables of the file, not temporary ones.
        if cell.schema == "main" { try ChangeHistory(connection).note(cell) }
        return try connection.withWritableBlob(
            cell.column, in: cell.table, row: cell.row, schema: cell.schema, body)
    }
}
