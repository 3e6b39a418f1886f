/// Aggregates over the rows of a query.
extension Reading where Self: ~Copyable {
    /// Whether a query matches any row.
    ///
    /// - Throws: As `fetch(_:)`.
    public func exists<R: Record>(_ query: Query<R>) throws -> Bool {
        let connection = try connection()
        let table = try RecordTable.of(R.self, connection)
        return try table.integer(query.existsSQL(table.plan), connection) != 0
    }

    /// The least value of a column in the rows of a query, by the order of the stored values; `nil`
    /// if there are no rows.
    ///
    /// - Throws: As `fetch(_:)`; `StoreError` `.misuse` for a column whose stored values sort in
    ///   another order than the Swift values, such as JSON or the text of a `Decimal`.
    public func min<R: Record, V: Codable>(
        _ path: KeyPath<R, V>, _ query: Query<R> = R.all
    ) throws -> V? {
        try end("min", path, query)
    }

    /// The least value of a column in the rows of a query; `nil` if no row has a value other than
    /// NULL.
    public func min<R: Record, V: Codable>(
        _ path: KeyPath<R, V?>, _ query: Query<R> = R.all
    ) throws -> V? {
        try end("min", path, query)
    }

    /// The greatest value of a column in the rows of a query, by the order of the stored values;
    /// `nil` if there are no rows.
    ///
    /// - Throws: As `fetch(_:)`; `StoreError` `.misuse` for a column whose stored values sort in
    ///   another order than the Swift values, such as JSON or the text of a `Decimal`.
    public func max<R: Record, V: Codable>(
        _ path: KeyPath<R, V>, _ query: Query<R> = R.all
    ) throws -> V? {
        try end("max", path, query)
    }

    /// The greatest value of a column in the rows of a query; `nil` if no row has a value other
    /// than NULL.
    public func max<R: Record, V: Codable>(
        _ path: KeyPath<R, V?>, _ query: Query<R> = R.all
    ) throws -> V? {
        try end("max", path, query)
    }

    /// The sum of a column in the rows of a query; 0 for no rows.
    ///
    /// - Throws: As `fetch(_:)`; `StoreError` `.mismatch` if the sum is not a number or does not
    ///   fit the type, `.sql` if it does not fit 64 bits; `.misuse` for a column of texts, such as
    ///   a `Decimal`.
    public func sum<R: Record, V: Codable & Numeric>(
        _ path: KeyPath<R, V>, _ query: Query<R> = R.all
    ) throws -> V {
        try total("sum", path, query) ?? .zero
    }

    /// The sum of a column in the rows of a query, NULL not counted; 0 for no rows.
    public func sum<R: Record, V: Codable & Numeric>(
        _ path: KeyPath<R, V?>, _ query: Query<R> = R.all
    ) throws -> V {
        try total("sum", path, query) ?? .zero
    }

    /// The mean of a column in the rows of a query; `nil` for no rows.
    ///
    /// - Throws: As `fetch(_:)`; `StoreError` `.misuse` for a column of texts, such as a `Decimal`.
    public func average<R: Record, V: Codable & Numeric>(
        _ path: KeyPath<R, V>, _ query: Query<R> = R.all
    ) throws -> Double? {
        try total("avg", path, query)
    }

    /// The mean of a column in the rows of a query, NULL not counted; `nil` for no rows.
    public func average<R: Record, V: Codable & Numeric>(
        _ path: KeyPath<R, V?>, _ query: Query<R> = R.all
    ) throws -> Double? {
        try total("avg", path, query)
    }

    /// The values of a column in the rows of a query, each once, sorted by the stored values.
    ///
    /// - Throws: As `fetch(_:)`.
    /// - Complexity: O(*values*) memory.
    public func distinct<R: Record, V: Codable>(
        _ path: KeyPath<R, V>, _ query: Query<R> = R.all
    ) throws -> [V] {
        let (table, column, connection) = try column(path)
        return try table.rows(query.distinctSQL(table.plan, column), connection) {
            (row) throws(StoreError) in try table.decode(row.column(0, as: Value.self), column)
        }
    }

    /// The number of rows of a query for each value of a column.
    ///
    /// ```swift
    /// let counts = try tx.counts(by: \.author, Note.where(\.pinned == true))
    /// ```
    ///
    /// - Throws: As `fetch(_:)`.
    /// - Complexity: O(*values*) memory.
    public func counts<R: Record, V: Codable & Hashable>(
        by path: KeyPath<R, V>, _ query: Query<R> = R.all
    ) throws -> [V: Int] {
        let (table, column, connection) = try column(path)
        let found = try table.rows(query.groupSQL(table.plan, column), connection) {
            (row) throws(StoreError) -> (V, Int) in
            let value = try table.decode(row.column(0, as: Value.self), column, as: V.self)
            return (value, try row.column(1, as: Int.self))
        }
        // Two stored values may decode as equal Swift values, as the texts of one `UUID` in upper
        // and lower case do.
        return Dictionary(found, uniquingKeysWith: +)
    }

    // MARK: Inside

    private func column<R: Record>(
        _ path: PartialKeyPath<R>
    ) throws(StoreError) -> (RecordTable, Int, Connection) {
        let connection = try connection()
        let table = try RecordTable.of(R.self, connection)
        return (table, try table.plan.position(of: path), connection)
    }

    /// The least or the greatest value; `nil` for NULL.
    private func end<R: Record, V: Decodable>(
        _ function: String, _ path: PartialKeyPath<R>, _ query: Query<R>
    ) throws -> V? {
        let (table, column, connection) = try column(path)
        try table.plan.requireOrder(of: column)
        let sql = query.aggregateSQL(table.plan, column) { "\(function)(\($0))" }
        let found = try table.rows(sql, connection) { (row) throws(StoreError) in
            try row.column(0, as: Value.self)
        }
        guard let value = found.first, value != .null else { return nil }
        return try table.decode(value, column)
    }

    /// A sum or an average; `nil` for NULL.
    private func total<R: Record, V: Decodable>(
        _ function: String, _ path: PartialKeyPath<R>, _ query: Query<R>
    ) throws -> V? {
        let (table, column, connection) = try column(path)
        try table.plan.requireNumbers(in: column)
        // SQL converts texts and blobs to numbers, and returns NULL for infinities that cancel out.
        // The greatest value reveals both: "An INTEGER or REAL value is less than any TEXT or BLOB
        // value": https://www.sqlite.org/datatype3.html#sort_order
        let sql = query.aggregateSQL(table.plan, column) { "\(function)(\($0)), max(\($0))" }
        let found = try table.rows(sql, connection) { (row) throws(StoreError) in
            let value = try row.column(0, as: Value.self)
            let isKnown =
                switch try row.column(1, as: Value.self) {
                case .null: true
                case .text, .blob: false
                case .integer, .real: value != .null
                }
            return (value, isKnown)
        }
        // A type without a table has no result, not even NULL.
        guard let (value, isKnown) = found.first else { return nil }
        guard isKnown else {
            throw StoreError(
                .mismatch, "the values of the column do not add up to a number",
                hint: "The column has texts or blobs, or infinities of both signs.",
                table: table.plan.table, column: table.plan.columns[column].name)
        }
        return value == .null ? nil : try table.decode(value, column)
    }
}

extension RecordTable {
    /// Decodes a stored value of a column.
    fileprivate func decode<V: Decodable>(
        _ stored: Value, _ position: Int, as type: V.Type = V.self
    ) throws(StoreError) -> V {
        let column = plan.columns[position]
        do {
            let isFrom2001 = column.encoding != nil || since2001.contains(Int32(position))
            let usual = try column.encoding?.usual(stored) ?? stored
            return try ScalarDecoder(usual, countingFrom2001: isFrom2001).decode(type)
        } catch {
            let known =
                StoreError(beneath: error)
                ?? StoreError(
                    .mismatch, "the stored value could not be decoded as \(type)", cause: error)
            throw known.with(table: plan.table, column: column.name)
        }
    }
}
