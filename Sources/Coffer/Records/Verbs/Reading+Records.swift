extension Reading where Self: ~Copyable {
    /// The records that a query asks for.
    ///
    /// ```swift
    /// try tx.fetch(Note.where(\.pinned == true).order(by: \.created, .descending).limit(20))
    /// ```
    ///
    /// A type without a table has no rows.
    ///
    /// - Throws: `StoreError` `.mismatch` naming table and column if a stored value does not fit
    ///   the type; `.misuse` for a key path without a column; `.tooBig` for more values than the
    ///   engine binds; `.damaged`.
    /// - Complexity: O(*rows*) memory.
    public func fetch<R: Record>(_ query: Query<R>) throws -> [R] {
        let connection = try connection()
        return try RecordTable.of(R.self, connection).fetch(query, connection)
    }

    /// The records that a SELECT of your own returns, columns by name.
    ///
    /// ```swift
    /// try tx.fetch(Note.self, sql: "SELECT * FROM note WHERE length(title) > \(count)")
    /// ```
    ///
    /// An optional property is `nil` if the result lacks its column. If several columns have the
    /// same name, the first one counts.
    ///
    /// - Parameters:
    ///   - type: The record type.
    ///   - sql: One statement; `\( )` binds and never splices.
    /// - Throws: As `fetch(_:)`; `StoreError` `.sql` if the text does not compile, `.mismatch`
    ///   naming a column that the result lacks and the type needs.
    /// - Complexity: O(*rows*) memory.
    public func fetch<R: Record>(_ type: R.Type, sql: SQL) throws -> [R] {
        let connection = try connection()
        return try RecordTable.of(type, connection).fetch(
            type, named: sql, isReadOnly: isReadOnly, connection)
    }

    /// The first record that a query asks for, `nil` if there is none.
    ///
    /// - Throws: As `fetch(_:)`.
    public func first<R: Record>(_ query: Query<R>) throws -> R? {
        let connection = try connection()
        let table = try RecordTable.of(R.self, connection)
        return try table.first(R.self, query.selectSQL(table.plan), connection)
    }

    /// The record with a key, `nil` if there is none.
    ///
    /// - Parameters:
    ///   - type: A record type whose key is one column.
    ///   - key: The key's value.
    /// - Throws: As `fetch(_:)`; `StoreError` `.misuse` if the key is not one column, `.mismatch`
    ///   if the value is of another storage class than the column.
    /// - Complexity: O(log *rows*).
    public func find<R: Record>(
        _ type: R.Type, _ key: some ValueConvertible
    ) throws -> R? {
        let connection = try connection()
        let table = try RecordTable.of(type, connection)
        return try table.find(type, try table.key(key), connection)
    }

    /// How many records a query asks for.
    ///
    /// - Throws: As `fetch(_:)`.
    /// - Complexity: O(*rows*) time, unless an index answers the condition.
    public func count<R: Record>(_ query: Query<R>) throws -> Int {
        let connection = try connection()
        let table = try RecordTable.of(R.self, connection)
        return try table.integer(query.countSQL(table.plan), connection)
    }
}
