extension Reading where Self: ~Copyable {
    /// The rows of a table, all or those that a filter selects, with all columns.
    ///
    /// ```swift
    /// let rows = try tx.rows(
    ///     in: "note", where: ["author": 7], orderedBy: [.descending("created")], limit: 20)
    /// ```
    ///
    /// - Parameters:
    ///   - table: The table or view.
    ///   - filter: Which rows.
    ///   - order: The columns to order by; without any, the engine chooses the order.
    ///   - limit: How many rows at most; `nil` for all.
    /// - Throws: `StoreError` `.notFound` if there is no such table, `.sql` if there is no such
    ///   column, `.misuse` for a negative limit or a filter without columns, `.damaged`.
    /// - Complexity: O(*rows*) memory.
    public func rows(
        in table: String, where filter: RowFilter = .all, orderedBy order: [RowOrder] = [],
        limit: Int? = nil
    ) throws -> [Row] {
        try connection().rows(
            in: table, where: filter, orderedBy: order, limit: limit, isReadOnly: isReadOnly)
    }
}

/// Rows as dictionaries, and tables from definitions: as on a `Connection`.
extension WriteTransaction {
    /// Adds a row.
    ///
    /// - Returns: How many rows were added, and the row id.
    /// - Throws: As `Connection.insert(into:_:)`.
    @discardableResult
    public func insert(
        into table: String, _ values: [String: (any ValueConvertible)?]
    ) throws -> RowChange {
        try connection().insert(into: table, values)
    }

    /// Updates the row that has these values in its unique columns, or adds a row if there is none.
    ///
    /// - Returns: 1 row and its row id if it was added, 1 without if it was updated.
    /// - Throws: As `Connection.upsert(into:_:onConflict:)`.
    @discardableResult
    public func upsert(
        into table: String, _ values: [String: (any ValueConvertible)?],
        onConflict columns: [String]
    ) throws -> RowChange {
        try connection().upsert(into: table, values, onConflict: columns)
    }

    /// Sets columns of the rows that a filter selects; to change all rows, pass `.all`.
    ///
    /// - Returns: The number of affected rows; zero is not an error.
    /// - Throws: As `Connection.update(_:set:where:)`.
    @discardableResult
    public func update(
        _ table: String, set values: [String: (any ValueConvertible)?], where filter: RowFilter
    ) throws -> Int {
        try connection().update(table, set: values, where: filter)
    }

    /// Deletes the rows that a filter selects; to delete all rows, pass `.all`.
    ///
    /// - Returns: The number of affected rows; zero is not an error.
    /// - Throws: As `Connection.delete(from:where:)`.
    @discardableResult
    public func delete(from table: String, where filter: RowFilter) throws -> Int {
        try connection().delete(from: table, where: filter)
    }

    /// Creates a table.
    ///
    /// - Throws: As `Connection.createTable(_:_:ifNotExists:)`.
    public func createTable(
        _ table: String, _ columns: [ColumnDefinition], ifNotExists: Bool = false
    ) throws {
        try connection().createTable(table, columns, ifNotExists: ifNotExists)
    }

    /// Drops a table with its rows, indexes and triggers.
    ///
    /// - Throws: As `Connection.dropTable(_:ifExists:)`.
    public func dropTable(_ table: String, ifExists: Bool = false) throws {
        try connection().dropTable(table, ifExists: ifExists)
    }

    /// Creates an index.
    ///
    /// - Returns: Its name.
    /// - Throws: As `Connection.createIndex(on:columns:isUnique:ifNotExists:name:)`.
    @discardableResult
    public func createIndex(
        on table: String, columns: [String], isUnique: Bool = false, ifNotExists: Bool = false,
        name: String? = nil
    ) throws -> String {
        try connection().createIndex(
            on: table, columns: columns, isUnique: isUnique, ifNotExists: ifNotExists, name: name)
    }

    /// Drops an index; its table stays.
    ///
    /// - Throws: As `Connection.dropIndex(_:ifExists:)`.
    public func dropIndex(_ name: String, ifExists: Bool = false) throws {
        try connection().dropIndex(name, ifExists: ifExists)
    }

    /// Adds a column to a table, unless the table already has a column of this name, which stays as
    /// it is.
    ///
    /// - Returns: Whether it was added.
    /// - Throws: As `Connection.addColumnIfMissing(_:to:)`.
    @discardableResult
    public func addColumnIfMissing(_ column: ColumnDefinition, to table: String) throws -> Bool {
        try connection().addColumnIfMissing(column, to: table)
    }
}
