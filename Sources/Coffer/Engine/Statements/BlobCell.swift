/// The location of a blob: one column of one row.
struct BlobCell: Sendable {
    let schema: String
    let table: String
    let column: String
    let row: Int64

    /// The name of the table with its schema, quoted for SQL. Throws `.sql` if a name is empty or
    /// has a NUL.
    func tableName() throws(StoreError) -> String {
        try schema.quotedIdentifier() + "." + table.quotedIdentifier()
    }

    func error(_ code: StoreError.Code, _ message: String, hint: String? = nil) -> StoreError {
        StoreError(code, message, hint: hint).with(table: table, column: column)
    }
}
