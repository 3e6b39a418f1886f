extension WriteTransaction {
    /// Makes the table of a record type, or adds the columns and indexes that the type has gained,
    /// also its full-text index.
    ///
    /// `insert` makes a missing table too. Call this for an existing table, after the type got an
    /// index, or a property that is optional or has a default (``Record/defaults``). It also makes
    /// missing tables that the type refers to (``Record/references``).
    ///
    /// - Throws: `StoreError` `.mismatch` for any other difference between the table and the type;
    ///   the error names what was expected and what was found, see
    ///   ``Reading/schemaDifferences(of:)``. `.constraint` if two rows have the same values for a
    ///   new unique index. `.misuse` for a type that cannot be reflected; the error names the
    ///   missing declaration. After an error nothing is changed.
    /// - Complexity: O(1), and O(*rows* log *rows*) for each new index. A new full-text index reads
    ///   all texts.
    public func create<R: Record>(_ type: R.Type) throws {
        let connection = try connection()
        let plan = try RecordPlan.of(type)
        // A view of the file may be one that no record can be read from, until it is replaced.
        guard try plan.declaration().view == nil else {
            return try RecordSchema(plan, connection).create()
        }
        try RecordTable.of(type, connection).create(connection)
    }

    /// Adds a record; makes its table first if there is none.
    ///
    /// ```swift
    /// struct Entry: Record { var id: Int64?; var text: String }
    /// let id = try tx.insert(Entry(text: "a"))   // the engine has chosen it
    /// ```
    ///
    /// - Returns: The row id. It is the key, if that is one integer, also if SQLite chose it
    ///   because the property was `nil`. 0 for a table without row ids, or if a trigger ignored the
    ///   record.
    /// - Throws: `StoreError` `.constraint` if there is a row with this key; `.mismatch` if a value
    ///   cannot be stored exactly, or if the table differs from the type; `.full`, `.io`. After an
    ///   error nothing is added. The transaction continues, unless SQLite rolled it back (full
    ///   disk, I/O error).
    /// - Complexity: O(log *rows*).
    @discardableResult
    public func insert<R: Record>(_ record: R) throws -> Int64 {
        let connection = try connection()
        return try RecordTable.of(R.self, connection).insert(record, connection)
    }

    /// Adds records one by one; makes their table first if there is none.
    ///
    /// Stops at the first record that fails. Earlier records stay in the transaction: to undo them,
    /// rethrow the error or wrap the call in `savepoint`.
    ///
    /// - Throws: As `insert(_:)` of one record.
    public func insert<S: Sequence>(_ records: S) throws where S.Element: Record {
        let isDone: Void? = try records.withContiguousStorageIfAvailable { records in
            try insertEach(of: records)
        }
        if isDone == nil { for record in records { try insert(record) } }
    }

    /// Updates the row with the record's key, or adds the record if there is none.
    ///
    /// The row remains the same row. It is never deleted and inserted again as by REPLACE, so
    /// foreign keys and triggers see an update.
    ///
    /// - Throws: As `insert(_:)`; `StoreError` `.misuse` for a type without a key.
    /// - Complexity: O(log *rows*).
    public func upsert<R: Record>(_ record: R) throws {
        let connection = try connection()
        try RecordTable.of(R.self, connection).upsert(record, connection)
    }

    /// Sets all columns of the row with the record's key.
    ///
    /// - Throws: As `upsert(_:)`; `StoreError` `.notFound` if there is no such row, as when another
    ///   task has removed it. ``updateIfPresent(_:)-(R)`` tells without an error.
    /// - Complexity: O(log *rows*).
    public func update<R: Record>(_ record: R) throws {
        let connection = try connection()
        let table = try RecordTable.of(R.self, connection)
        guard try table.update(record, connection) else { throw table.plan.noRow }
    }

    /// Sets all columns of the row with the record's key, if there is such a row.
    ///
    /// - Returns: `false` if there is no such row, or no table.
    /// - Throws: As `upsert(_:)`.
    /// - Complexity: O(log *rows*).
    public func updateIfPresent<R: Record>(_ record: R) throws -> Bool {
        let connection = try connection()
        let table = try RecordTable.of(R.self, connection)
        return try table.orMissing(connection) { () throws(StoreError) in
            try table.update(record, connection)
        }
    }

    /// Removes the row with the record's key.
    ///
    /// - Returns: `false` if there is no such row, or no table.
    /// - Throws: `StoreError` `.constraint` if another row refers to it; `.misuse` for a type
    ///   without a key.
    /// - Complexity: O(log *rows*).
    @discardableResult
    public func delete<R: Record>(_ record: R) throws -> Bool {
        let connection = try connection()
        return try RecordTable.of(R.self, connection).delete(record, connection)
    }

    /// Removes the row with a key.
    ///
    /// - Parameters:
    ///   - type: A record type whose key is one column.
    ///   - key: The key's value.
    /// - Returns: `false` if there is no such row.
    /// - Throws: As `delete(_:)` of a record; `StoreError` `.misuse` if the key is not one column,
    ///   `.mismatch` if the value is of another storage class than the column.
    /// - Complexity: O(log *rows*).
    @discardableResult
    public func delete<R: Record>(
        _ type: R.Type, key: some ValueConvertible
    ) throws -> Bool {
        let connection = try connection()
        let table = try RecordTable.of(type, connection)
        return try table.delete(key: try table.key(key), connection)
    }

    /// Removes the rows that a query asks for.
    ///
    /// - Returns: The number of matching rows.
    /// - Throws: As `fetch(_:)`; `StoreError` `.constraint` if another row refers to one of them.
    @discardableResult
    public func delete<R: Record>(_ query: Query<R>) throws -> Int {
        let connection = try connection()
        let table = try RecordTable.of(R.self, connection)
        return try table.execute(
            { () throws(StoreError) in try query.deleteSQL(table, connection) }, connection)
    }
}
