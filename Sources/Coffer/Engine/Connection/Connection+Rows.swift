extension Connection {
    /// Passes the rows of one statement to `body` one by one, in O(1) memory.
    ///
    /// `body` gets a row only if the MACs of all pages read so far fit. To stop early, throw, or
    /// use `cursor(_:)`.
    ///
    /// - Parameters:
    ///   - sql: One statement.
    ///   - body: Receives each row. It may use the connection.
    /// - Throws: Errors of `body`; outside a transaction the statement is then rolled back.
    ///   Otherwise as `rows(_:)`.
    /// - Note: The corresponding C function is `sqlite3_step`.
    public func forEachRow(_ sql: SQL, _ body: (Row) throws -> Void) throws {
        try forEachRow(sql, isReadOnly: false, body)
    }

    func forEachRow(_ sql: SQL, isReadOnly: Bool, _ body: (Row) throws -> Void) throws {
        var thrown: (any Error)?
        do {
            try run(sql, isReadOnly: isReadOnly) { statement throws(StoreError) in
                while try statement.advance() {
                    try probe()
                    let row = try statement.row()
                    do {
                        try body(row)
                    } catch {
                        thrown = error
                        throw StoreError(.cancelled, "the closure threw an error", cause: error)
                    }
                }
            }
        } catch {
            throw thrown ?? error
        }
    }

    /// All rows of one statement, each made into a `Decodable` value as `Row.decode(_:dates:)`
    /// does.
    ///
    /// - Throws: As `rows(_:)` and `Row.decode(_:dates:)`.
    /// - Complexity: O(*rows*) memory.
    public func rows<T: Decodable>(
        _ sql: SQL, as type: T.Type, dates: DateEncoding? = nil
    ) throws -> [T] {
        try rows(sql).map { try $0.decode(type, dates: dates) }
    }

    /// The first column of the first row; `nil` if there is no row, or NULL in it.
    ///
    /// ```swift
    /// let count = try connection.scalar("SELECT count(*) FROM note", as: Int.self)
    /// ```
    ///
    /// - Throws: `StoreError` `.mismatch` if the value does not fit the type; otherwise as
    ///   `rows(_:)`.
    /// - Note: The corresponding C functions are `sqlite3_step` and `sqlite3_column_*`.
    public func scalar<T: ValueConvertible>(_ sql: SQL, as type: T.Type = T.self) throws -> T? {
        try firstRow(sql).flatMap { try $0.scalar(type) }
    }

    /// The first column of the first row, which must exist.
    ///
    /// - Throws: `StoreError` `.notFound` if there is no row, or NULL in it; otherwise as
    ///   `scalar(_:as:)`.
    public func requireScalar<T: ValueConvertible>(
        _ sql: SQL, as type: T.Type = T.self
    ) throws -> T {
        guard let value = try scalar(sql, as: type) else {
            throw StoreError.noScalar(sql)
        }
        return value
    }
}

extension Row {
    /// The value in the first column; `nil` for NULL or a row without columns.
    ///
    /// - Throws: `.mismatch`, with the column's name, if the value does not fit the type.
    func scalar<T: ValueConvertible>(_ type: T.Type) throws(StoreError) -> T? {
        guard let value = self[0], value != .null else { return nil }
        do throws(StoreError) {
            return try columns.made(value, at: 0, as: type)
        } catch {
            throw StoreError(
                error.code, error.message, hint: error.hint, column: columnNames[0])
        }
    }
}

extension StoreError {
    /// The error for a query whose first value must exist.
    static func noScalar(_ sql: SQL) -> StoreError {
        StoreError(.notFound, "the query has no row, or NULL in it", sql: sql.text)
    }
}
