/// Changes parts of records, or many records.
extension WriteTransaction {
    /// Sets chosen columns of the row with the record's key; the others stay as they are.
    ///
    /// ```swift
    /// try tx.update(note, only: \.title, \.pinned)
    /// ```
    ///
    /// - Parameters:
    ///   - record: The record.
    ///   - paths: The properties to set, without those of the key.
    /// - Throws: As `update(_:)`; `StoreError` `.misuse` for a property of the key, a property
    ///   without a column, or no properties.
    /// - Complexity: O(log *rows*).
    public func update<R: Record>(_ record: R, only paths: PartialKeyPath<R>...) throws {
        let connection = try connection()
        let table = try RecordTable.of(R.self, connection)
        guard try table.update(record, only: paths, connection) else { throw table.plan.noRow }
    }

    /// Sets chosen columns of the row with the record's key, if there is such a row.
    ///
    /// - Parameters:
    ///   - record: The record.
    ///   - paths: The properties to set, without those of the key.
    /// - Returns: `false` if there is no such row, or no table.
    /// - Throws: As `updateIfPresent(_:)`; `StoreError` `.misuse` for a property of the key, a
    ///   property without a column, or no properties.
    /// - Complexity: O(log *rows*).
    public func updateIfPresent<R: Record>(
        _ record: R, only paths: PartialKeyPath<R>...
    ) throws -> Bool {
        let connection = try connection()
        let table = try RecordTable.of(R.self, connection)
        return try table.orMissing(connection) { () throws(StoreError) in
            try table.update(record, only: paths, connection)
        }
    }

    /// Sets all columns of the row with the record's key, if the condition is true for the row as
    /// it is now.
    ///
    /// Use it for a record that was read in an earlier transaction: it keeps a change that somebody
    /// made in between.
    ///
    /// ```swift
    /// guard var note = try await store.read({ tx in try tx.find(Note.self, id) }) else { return }
    /// let version = note.version
    /// note.version += 1
    /// try await store.write { [note] tx in try tx.update(note, expecting: \.version == version) }
    /// ```
    ///
    /// - Parameters:
    ///   - record: The record.
    ///   - condition: What must be true of the row before the change.
    /// - Throws: As `update(_:)`; `StoreError` `.conflict` if the condition is not true: then
    ///   nothing is changed. `.misuse` for a condition with named arguments.
    /// - Complexity: O(log *rows*).
    public func update<R: Record>(_ record: R, expecting condition: Condition<R>) throws {
        let connection = try connection()
        let table = try RecordTable.of(R.self, connection)
        guard try !table.update(record, expecting: condition, connection) else { return }
        guard try table.hasRow(of: record, connection) else { throw table.plan.noRow }
        throw StoreError(
            .conflict, "the row of \(table.plan.typeName) is not as expected",
            hint: "Read it again, and decide again.", table: table.plan.table)
    }

    /// Sets all columns of the rows with the records' keys.
    ///
    /// Stops at the first record that fails. Earlier rows stay changed in the transaction: to undo
    /// that, rethrow the error or wrap the call in `savepoint`.
    ///
    /// - Throws: As `update(_:)` of one record.
    public func update<S: Sequence>(_ records: S) throws where S.Element: Record {
        for record in records { try update(record) }
    }

    /// Sets all columns of those rows with the records' keys that exist.
    ///
    /// Stops at the first record that fails. Earlier rows stay changed in the transaction: to undo
    /// that, rethrow the error or wrap the call in `savepoint`.
    ///
    /// - Returns: The number of rows that existed.
    /// - Throws: As `updateIfPresent(_:)` of one record.
    public func updateIfPresent<S: Sequence>(_ records: S) throws -> Int
    where S.Element: Record {
        var count = 0
        for record in records where try updateIfPresent(record) { count += 1 }
        return count
    }

    /// Sets columns of the rows that a query asks for, in one statement.
    ///
    /// ```swift
    /// try tx.update(Note.where(\.pinned == true).set(\.pinned, to: false))
    /// ```
    ///
    /// - Returns: The number of matching rows.
    /// - Throws: As `fetch(_:)`; `StoreError` `.constraint`; `.mismatch` for a calculated value
    ///   that does not fit its property; `.sql` if SQL of your own fails. Then no row is changed.
    @discardableResult
    public func update<R: Record>(_ update: RecordUpdate<R>) throws -> Int {
        let connection = try connection()
        let table = try RecordTable.of(R.self, connection)
        try table.requireWritable(connection)
        return try table.execute(
            { () throws(StoreError) in try update.sql(table, connection) }, connection)
    }

    /// Updates the row that has the record's values in unique columns, or adds the record if there
    /// is none.
    ///
    /// ```swift
    /// let row = try tx.upsert(download, conflictingOn: \.url)
    /// ```
    ///
    /// The row remains the same row and keeps its key, whatever key the record has. `nil` conflicts
    /// with nothing.
    ///
    /// - Parameters:
    ///   - record: The record.
    ///   - paths: All properties of the key, or of one index that the type declares as unique.
    /// - Returns: The row id of the row that was added or updated. 0 for a table without row ids,
    ///   if a trigger ignored the record, or if a trigger removed its row.
    /// - Throws: As `insert(_:)`; `StoreError` `.misuse` if the type does not declare them as
    ///   unique, `.mismatch` if the table has no such index yet, `.constraint` if a further unique
    ///   index refuses the row, or if a trigger ignores the update of the row that is there.
    /// - Complexity: O(log *rows*).
    @discardableResult
    public func upsert<R: Record>(
        _ record: R, conflictingOn paths: PartialKeyPath<R>...
    ) throws -> Int64 {
        let connection = try connection()
        return try RecordTable.of(R.self, connection)
            .upsert(record, conflictingOn: paths, connection)
    }

    /// Updates the rows with the records' keys, and adds the records that have no row.
    ///
    /// Stops at the first record that fails. Earlier records stay in the transaction: to undo them,
    /// rethrow the error or wrap the call in `savepoint`.
    ///
    /// - Throws: As `upsert(_:)` of one record.
    public func upsert<S: Sequence>(_ records: S) throws where S.Element: Record {
        for record in records { try upsert(record) }
    }

    /// Removes the rows with the records' keys.
    ///
    /// Stops at the first failure; rows removed earlier stay removed in the transaction.
    ///
    /// - Returns: The number of rows that existed.
    /// - Throws: As `delete(_:)` of one record.
    @discardableResult
    public func delete<S: Sequence>(_ records: S) throws -> Int where S.Element: Record {
        var count = 0
        for record in records where try delete(record) { count += 1 }
        return count
    }

    /// Removes the rows with these keys, of which there may be any number.
    ///
    /// ```swift
    /// let count = try tx.delete(Note.self, keys: outdated)
    /// ```
    ///
    /// From 100 keys on, one run of a statement removes up to 250 rows, in the order in which the
    /// file has them. A table with triggers, foreign keys, attachments or a change history loses
    /// them one by one, in the order of the keys.
    ///
    /// Stops at the first failure; rows removed earlier stay removed in the transaction.
    ///
    /// - Parameters:
    ///   - type: A record type whose key is one column.
    ///   - keys: Values of the key. NULL has no row.
    /// - Returns: The number of rows that existed. A key that is given twice counts once.
    /// - Throws: As `delete(_:key:)` of one key.
    /// - Complexity: O(*keys* × log *rows*), and O(1) memory.
    @discardableResult
    public func delete<R: Record, S: Sequence>(
        _ type: R.Type, keys: S
    ) throws -> Int where S.Element: ValueConvertible {
        try deleteEach(type, keys: keys)
    }
}
