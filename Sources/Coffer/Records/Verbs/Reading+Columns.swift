/// Reads some columns of records, by key paths.
extension Reading where Self: ~Copyable {
    /// The values of some properties, of the records that a query asks for.
    ///
    /// ```swift
    /// let titles = try tx.fetch(Note.order(by: \.created), \.title)      // [String]
    /// for (id, title) in try tx.fetch(Note.all, \.id, \.title) { … }     // [(UUID, String)]
    /// ```
    ///
    /// Reads only the columns of these properties, and decodes each as a whole record does: a date
    /// in the column's own form, a ``Lazy`` property without its value. An `init(from:)` of the
    /// record does not run. So NULL in the column of a property that is not optional is
    /// `.mismatch`, even if that `init(from:)` takes another value for it.
    ///
    /// - Parameters:
    ///   - query: Which rows, in which order. Its conditions and orders may use other columns.
    ///   - first: A property with a column.
    ///   - others: More of them, in any order.
    /// - Returns: For each row a tuple in the order of the key paths; for one key path its value.
    /// - Throws: As `fetch(_:)`.
    /// - Complexity: O(*rows*) memory. SQLite reads a row up to the last of the columns, so a large
    ///   value costs nothing if its column comes after them.
    public func fetch<R: Record, First: Codable, each Other: Codable>(
        _ query: Query<R>, _ first: KeyPath<R, First>, _ others: repeat KeyPath<R, each Other>
    ) throws -> [(First, repeat each Other)] {
        var columns = [ChosenColumn(path: first, type: First.self)]
        repeat columns.append(ChosenColumn(path: each others, type: (each Other).self))
        let connection = try connection()
        return try RecordTable.of(R.self, connection).fetch(
            columns, as: (First, repeat each Other).self, query, connection)
    }

    /// The values of some properties, of the first record that a query asks for; `nil` if there is
    /// none.
    ///
    /// ```swift
    /// let latest = try tx.first(Note.order(by: \.created, .descending), \.id, \.title)
    /// ```
    ///
    /// - Parameters:
    ///   - query: Which row, by its order.
    ///   - first: A property with a column.
    ///   - others: More of them, in any order.
    /// - Returns: A tuple in the order of the key paths; for one key path its value.
    /// - Throws: As `fetch(_:)`.
    /// - Complexity: As `fetch(_:_:_:)`, for one row.
    public func first<R: Record, First: Codable, each Other: Codable>(
        _ query: Query<R>, _ first: KeyPath<R, First>, _ others: repeat KeyPath<R, each Other>
    ) throws -> (First, repeat each Other)? {
        var columns = [ChosenColumn(path: first, type: First.self)]
        repeat columns.append(ChosenColumn(path: each others, type: (each Other).self))
        let connection = try connection()
        return try RecordTable.of(R.self, connection).first(
            columns, as: (First, repeat each Other).self, query, connection)
    }
}

/// A key path to a property, and the property's type.
private struct ChosenColumn<R: Record> {
    let path: PartialKeyPath<R>
    let type: any Codable.Type
}

extension RecordTable {
    fileprivate func fetch<R: Record, Values>(
        _ columns: [ChosenColumn<R>], as type: Values.Type, _ query: Query<R>,
        _ connection: Connection
    ) throws(StoreError) -> [Values] {
        let (decoder, sql) = try reader(of: columns, as: type, query, connection)
        return try read(sql, connection, ifMissing: []) { statement throws(StoreError) in
            try decoder.allTuples(type, statement)
        }
    }

    fileprivate func first<R: Record, Values>(
        _ columns: [ChosenColumn<R>], as type: Values.Type, _ query: Query<R>,
        _ connection: Connection
    ) throws(StoreError) -> Values? {
        let (decoder, sql) = try reader(of: columns, as: type, query, connection)
        return try read(sql, connection, ifMissing: nil) { statement throws(StoreError) in
            try decoder.firstTuple(type, statement)
        }
    }

    /// A decoder of tuples with the values of these columns, and a SELECT of the columns.
    private func reader<R: Record, Values>(
        of columns: [ChosenColumn<R>], as type: Values.Type, _ query: Query<R>,
        _ connection: Connection
    ) throws(StoreError) -> (RowDecoder, SQL) {
        var positions: [Int] = []
        for column in columns { positions.append(try plan.position(of: column.path)) }
        let stored = try StoredProperties(
            tuple: type, of: zip(columns, positions).map { ($0.type, plan.columns[$1]) },
            at: positions, columnNames: plan.columns.map(\.name), plan)
        // Errors name the row by this key, which is the row id and costs nothing to read.
        if let rowID = plan.rowIDPosition { positions.append(rowID) }
        let decoder = try makeDecoder(of: positions, leavesLazy: true, stored: stored, connection)
        let selected = plan.selectedColumns
        let names = positions.map { selected[$0] }.joined(separator: ", ")
        return (decoder, query.select(names, plan))
    }
}
