/// Statements and cursors by hand, and scripts.
extension Reading where Self: ~Copyable {
    /// Compiles one statement, to bind and step by hand, many times.
    ///
    /// ```swift
    /// let find = try tx.prepare("SELECT title FROM note WHERE id = ?")
    /// for id in ids {
    ///     try find.bind([.integer(id)])
    ///     while try find.step() { titles.append(try find.value(at: 0, as: String.self)) }
    /// }
    /// ```
    ///
    /// The statement ends with the body of the transaction, or of the savepoint, that prepared it.
    /// Every later call throws `.closed`.
    ///
    /// - Throws: `StoreError` `.sql` if the text does not compile or holds more than one statement;
    ///   `.readOnly` for a change in a read; `.misuse` for SQL that a store refuses.
    /// - Note: The corresponding C function is `sqlite3_prepare_v3`.
    public func prepare(_ sql: String) throws -> Statement {
        let statement = try connection().prepare(sql)
        try admit(statement)
        return statement
    }

    /// Opens a cursor over the rows of one statement, positioned before its first row.
    ///
    /// ```swift
    /// let cursor = try tx.cursor("SELECT title FROM note ORDER BY created")
    /// while let row = try cursor.next(), titles.count < 10 { titles.append(try row.get(0)) }
    /// ```
    ///
    /// The cursor ends when it is released, or with the body of the transaction, or of the
    /// savepoint, that opened it. Every later step throws `.closed`.
    ///
    /// - Throws: As `prepare(_:)`, and `.misuse` if an argument is missing.
    /// - Complexity: O(1) memory.
    public func cursor(_ sql: SQL) throws -> Cursor {
        let cursor = try connection().cursor(sql)
        try admit(cursor.statement)
        return cursor
    }

    /// The first column of the first row, which must exist.
    ///
    /// - Throws: `StoreError` `.notFound` if there is no row, or NULL in it; otherwise as
    ///   `scalar(_:as:)`.
    public func requireScalar<T: ValueConvertible>(
        _ sql: SQL, as type: T.Type = T.self
    ) throws -> T {
        guard let value = try scalar(sql, as: type) else { throw StoreError.noScalar(sql) }
        return value
    }

    /// Refuses a change in a read, and ends the statement with the body.
    private func admit(_ statement: Statement) throws {
        do throws(StoreError) {
            if isReadOnly { try statement.requireReadOnly() }
        } catch {
            statement.finalize()
            throw error
        }
        access.scope.keep(statement, level: access.level)
    }
}

extension WriteTransaction {
    /// Runs all statements of a text, one after the other; rows, if any, are dropped. If one fails,
    /// none of them has run.
    ///
    /// ```swift
    /// try tx.executeScript("CREATE TABLE a (x); CREATE TABLE b (x); INSERT INTO a VALUES (1)")
    /// ```
    ///
    /// - Parameter text: Statements without arguments. Values of your users do not belong here:
    ///   only `execute(_:)` binds them.
    /// - Throws: As `execute(_:)`, for the first statement that fails; `sqlOffset` is its position
    ///   in the text. `.misuse` for SQL that would end the transaction, such as BEGIN or COMMIT.
    public mutating func executeScript(_ text: String) throws {
        try savepoint { inner in try inner.connection().executeScript(text) }
    }

    /// The row id of the last row that this transaction inserted into a table with row ids.
    ///
    /// - Returns: A row of an earlier transaction, or 0, if this one has inserted none.
    /// - Throws: `StoreError` `.misuse` if the body has ended or an inner savepoint is open.
    /// - Note: The corresponding C function is `sqlite3_last_insert_rowid`.
    public var lastInsertedRowID: Int64 {
        get throws { try connection().lastInsertedRowID }
    }

    /// The number of rows that the last INSERT, UPDATE or DELETE changed directly, not counting
    /// triggers and foreign keys.
    ///
    /// - Throws: As `lastInsertedRowID`.
    /// - Note: The corresponding C function is `sqlite3_changes`.
    public var lastChangeCount: Int {
        get throws { try connection().lastChangeCount }
    }
}
