extension Reading where Self: ~Copyable {
    /// The value of a ``Lazy`` property, from the record's row as this transaction sees it.
    ///
    /// ```swift
    /// let body = try tx.load(\.body, of: note)
    /// ```
    ///
    /// Reads the file even if the record holds a value.
    ///
    /// - Throws: `StoreError` `.notFound` if the row or its table is gone, `.mismatch` if the
    ///   column is NULL or of another storage class or several rows have the key, `.damaged` if a
    ///   page of the value is. `.misuse` if the type has no key.
    /// - Complexity: O(*bytes*) time and memory. `withBlob` reads in pieces.
    public func load<R: Record, W>(_ path: KeyPath<R, Lazy<W>>, of record: R) throws -> W {
        let connection = try connection()
        let table = try RecordTable.of(R.self, connection)
        let found = try table.load(path, Lazy<W>.self, of: record, connection)
        guard let found else { throw try table.isNull(path) }
        return try found.value
    }

    /// The value of an optional ``Lazy`` property; `nil` if it is NULL in the file.
    ///
    /// - Throws: As the other `load(_:of:)`.
    public func load<R: Record, W>(_ path: KeyPath<R, Lazy<W>?>, of record: R) throws -> W? {
        let connection = try connection()
        let table = try RecordTable.of(R.self, connection)
        return try table.load(path, Lazy<W>.self, of: record, connection)?.value
    }

    /// Fills a ``Lazy`` property with the value of the record's row. Other properties stay as they
    /// are.
    ///
    /// ```swift
    /// try tx.load(\.body, into: &note)
    /// try tx.insert(note)      // into another store
    /// ```
    ///
    /// - Throws: As `load(_:of:)`. The record is then as before.
    public func load<R: Record, W>(
        _ path: WritableKeyPath<R, Lazy<W>>, into record: inout R
    ) throws {
        record[keyPath: path] = Lazy(try load(path, of: record))
    }

    /// Fills an optional ``Lazy`` property with the value of the record's row.
    ///
    /// - Throws: As `load(_:of:)`. The record is then as before.
    public func load<R: Record, W>(
        _ path: WritableKeyPath<R, Lazy<W>?>, into record: inout R
    ) throws {
        let found = try load(path, of: record)
        record[keyPath: path] = found.map { Lazy($0) }
    }
}
