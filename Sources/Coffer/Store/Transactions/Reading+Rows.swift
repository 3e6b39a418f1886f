extension Reading where Self: ~Copyable {
    /// Passes the rows of one SELECT to `body` one by one, in O(1) memory.
    ///
    /// The pages of each row have passed authentication before `body` gets the row. To stop early,
    /// throw an error.
    ///
    /// - Throws: What `body` throws; otherwise as `rows(_:)`.
    public func forEachRow(_ sql: SQL, _ body: (Row) throws -> Void) throws {
        try connection().forEachRow(sql, isReadOnly: isReadOnly, body)
    }

    /// All rows of one SELECT, each converted to a `Decodable` value as `Row.decode(_:dates:)`
    /// does.
    ///
    /// - Throws: As `rows(_:)` and `Row.decode(_:dates:)`.
    /// - Complexity: O(*rows*) memory.
    public func rows<T: Decodable>(
        _ sql: SQL, as type: T.Type, dates: DateEncoding? = nil
    ) throws -> [T] {
        try rows(sql).map { try $0.decode(type, dates: dates) }
    }

    /// The first column of the first row; `nil` if there is no row, or if the value is NULL.
    ///
    /// - Throws: `StoreError` `.mismatch` if the value does not fit the type; otherwise as
    ///   `rows(_:)`.
    public func scalar<T: ValueConvertible>(_ sql: SQL, as type: T.Type = T.self) throws -> T? {
        try firstRow(sql).flatMap { try $0.scalar(type) }
    }
}
