extension Reading where Self: ~Copyable {
    /// A table or view by its name, for rows as dictionaries. Reads nothing: a verb of the result
    /// throws if there is no such table.
    ///
    /// ```swift
    /// let rows = try tx.table("note").rows(where: ["author": 7])
    /// ```
    public func table(_ name: String) -> ReadTable { ReadTable(name: name, access: access) }
}

extension WriteTransaction {
    /// A table by its name, for rows as dictionaries and for changes of the schema. Reads nothing:
    /// a verb of the result throws if it needs a table that does not exist.
    ///
    /// ```swift
    /// try tx.table("note").insert(["title": "Milk", "author": 7])
    /// ```
    public func table(_ name: String) -> WriteTable { WriteTable(name: name, access: access) }
}

/// A table or view that a transaction reads, by its name. Use it inside the body only.
public struct ReadTable {
    let name: String
    let access: TransactionAccess

    /// The rows, all or those that a filter selects, with all columns.
    ///
    /// ```swift
    /// let rows = try tx.table("note").rows(
    ///     where: ["author": 7], orderedBy: [.descending("created")], limit: 20)
    /// ```
    ///
    /// - Parameters:
    ///   - filter: Which rows.
    ///   - order: The columns to order by; without any, the engine chooses the order.
    ///   - limit: How many rows at most; `nil` for all.
    /// - Throws: `StoreError` `.notFound` if there is no such table, `.sql` if there is no such
    ///   column, `.misuse` for a negative limit or a filter without columns, `.damaged`.
    /// - Complexity: O(*rows*) memory.
    public func rows(
        where filter: RowFilter = .all, orderedBy order: [RowOrder] = [], limit: Int? = nil
    ) throws -> [Row] {
        try access.connection().rows(
            in: name, where: filter, orderedBy: order, limit: limit, isReadOnly: access.isReadOnly)
    }
}

/// A table that a transaction reads and changes, by its name: rows as dictionaries, and the table's
/// own schema. Use it inside the body only.
public struct WriteTable {
    let name: String
    let access: TransactionAccess

    /// The rows, all or those that a filter selects, with all columns, as ``ReadTable`` gives them.
    ///
    /// - Throws: As `ReadTable.rows(where:orderedBy:limit:)`.
    /// - Complexity: O(*rows*) memory.
    public func rows(
        where filter: RowFilter = .all, orderedBy order: [RowOrder] = [], limit: Int? = nil
    ) throws -> [Row] {
        try ReadTable(name: name, access: access).rows(
            where: filter, orderedBy: order, limit: limit)
    }

    // MARK: Rows

    /// Adds a row.
    ///
    /// - Returns: How many rows were added, and the row id.
    /// - Throws: As `Connection.insert(into:_:)`.
    @discardableResult
    public func insert(_ values: [String: (any ValueConvertible)?]) throws -> RowChange {
        try access.connection().insert(into: name, values)
    }

    /// Updates the row that has these values in its unique columns, or adds a row if there is none.
    ///
    /// - Returns: A count of 1, with the row id if the row was added and without if it was updated.
    /// - Throws: As `Connection.upsert(into:_:onConflict:)`.
    @discardableResult
    public func upsert(
        _ values: [String: (any ValueConvertible)?], onConflict columns: [String]
    ) throws -> RowChange {
        try access.connection().upsert(into: name, values, onConflict: columns)
    }

    /// Sets columns of the rows that a filter selects; to change all rows, pass `.all`.
    ///
    /// - Returns: The number of affected rows; zero is not an error.
    /// - Throws: As `Connection.update(_:set:where:)`.
    @discardableResult
    public func update(
        set values: [String: (any ValueConvertible)?], where filter: RowFilter
    ) throws -> Int {
        try access.connection().update(name, set: values, where: filter)
    }

    /// Deletes the rows that a filter selects; to delete all rows, pass `.all`.
    ///
    /// - Returns: The number of affected rows; zero is not an error.
    /// - Throws: As `Connection.delete(from:where:)`.
    @discardableResult
    public func delete(where filter: RowFilter) throws -> Int {
        try access.connection().delete(from: name, where: filter)
    }

    // MARK: Schema

    /// Creates the table.
    ///
    /// - Throws: As `Connection.createTable(_:_:ifNotExists:)`.
    public func create(_ columns: [ColumnDefinition], ifNotExists: Bool = false) throws {
        try access.connection().createTable(name, columns, ifNotExists: ifNotExists)
    }

    /// Drops the table with its rows, indexes and triggers.
    ///
    /// - Throws: As `Connection.dropTable(_:ifExists:)`.
    public func drop(ifExists: Bool = false) throws {
        try access.connection().dropTable(name, ifExists: ifExists)
    }

    /// Creates an index on the table.
    ///
    /// - Returns: The index's name.
    /// - Throws: As `Connection.createIndex(on:columns:isUnique:ifNotExists:name:)`.
    @discardableResult
    public func createIndex(
        columns: [String], isUnique: Bool = false, ifNotExists: Bool = false,
        name indexName: String? = nil
    ) throws -> String {
        try access.connection().createIndex(
            on: name, columns: columns, isUnique: isUnique, ifNotExists: ifNotExists,
            name: indexName)
    }

    /// Drops an index by its name; the table stays.
    ///
    /// - Throws: As `Connection.dropIndex(_:ifExists:)`.
    public func dropIndex(_ indexName: String, ifExists: Bool = false) throws {
        try access.connection().dropIndex(indexName, ifExists: ifExists)
    }

    /// Adds a column, unless the table already has a column of this name, which stays as it is.
    ///
    /// - Returns: Whether the column was added; `false` if the table already had one of this name.
    /// - Throws: As `Connection.addColumnIfMissing(_:to:)`.
    @discardableResult
    public func addColumnIfMissing(_ column: ColumnDefinition) throws -> Bool {
        try access.connection().addColumnIfMissing(column, to: name)
    }

    /// Runs a command of a full-text table, as ``Connection/fullText(_:on:in:)`` does.
    ///
    /// - Throws: As `Connection.fullText(_:on:in:)`.
    public func fullText(_ command: FullTextCommand) throws {
        try access.connection().fullText(command, on: name)
    }
}
