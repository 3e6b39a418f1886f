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

    // MARK: Schema, in a migration

    /// Gives a column another name, in a ``Migration``.
    ///
    /// ```swift
    /// Migration("number is the ISBN") { tx in
    ///     try tx.table("book").renameColumn("number", to: "isbn")
    /// }
    /// ```
    ///
    /// The table is made again with the same rows and row ids. Its indexes and constraints, and the
    /// foreign keys of other tables, get the new name. Views and triggers do not: one that names
    /// the column is an error.
    ///
    /// - Throws: `StoreError` `.misuse` outside of a migration, for tables of Coffer's own, and if
    ///   another column has the new name; `.notFound` if there is no such table or column;
    ///   `.mismatch` for a view; `.unsupported`, with its name in the message, if a view or trigger
    ///   names the column, and for a virtual table; `.busy` while a statement has a current row;
    ///   `.damaged`, `.full`, `.io`. After an error nothing is changed.
    /// - Complexity: O(*rows* log *rows*), also of other tables whose foreign keys name the column.
    public func renameColumn(_ column: String, to newName: String) throws {
        try access.connection().altering(name) { remake throws(StoreError) in
            try remake.renameColumn(column, to: newName)
        }
    }

    /// Drops columns with their values, in a ``Migration``.
    ///
    /// A UNIQUE or FOREIGN KEY of these columns alone is dropped with them.
    ///
    /// - Throws: `StoreError` `.unsupported`, with its name in the message, if an index, a view, a
    ///   trigger or another table's foreign key names one of them, or if the primary key or another
    ///   constraint of the table does; otherwise as `renameColumn(_:to:)`.
    /// - Complexity: O(*rows* log *rows*).
    public func dropColumns(_ columns: String...) throws {
        try access.connection().altering(name) { remake throws(StoreError) in
            try remake.dropColumns(columns)
        }
    }

    /// Gives the table another name, in a ``Migration``. The foreign keys of other tables follow.
    ///
    /// Indexes keep their names. Views and triggers that name the table do not follow: they are an
    /// error.
    ///
    /// - Throws: `StoreError` `.alreadyExists` if the file has an object of the new name;
    ///   `.unsupported`, with its name in the message, if a view or trigger names the table, or if
    ///   the table has a history of changes; otherwise as `renameColumn(_:to:)`.
    /// - Complexity: O(1).
    public func rename(to newName: String) throws {
        try access.connection().altering(name) { remake throws(StoreError) in
            try remake.renameTable(to: newName)
        }
    }

    /// Runs a command of a full-text table, as ``Connection/fullText(_:on:in:)`` does.
    ///
    /// - Throws: As `Connection.fullText(_:on:in:)`.
    public func fullText(_ command: FullTextCommand) throws {
        try access.connection().fullText(command, on: name)
    }
}
