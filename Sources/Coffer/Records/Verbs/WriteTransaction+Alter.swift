extension WriteTransaction {
    /// Makes the table of a record type again, as the type wants it, in a ``Migration``.
    ///
    /// ```swift
    /// Migration("number is a text") { tx in
    ///     struct Book: Record {  // as it is from then on
    ///         var id: Int64?
    ///         var isbn: String
    ///         var title: String
    ///     }
    ///     try tx.alter(Book.self) { table in
    ///         table.set(\.isbn, sql: "CAST(number AS TEXT)")
    ///         table.drop("number", "subtitle")
    ///     }
    /// }
    /// ```
    ///
    /// For all that `create(_:)` cannot change: the type of a column, NOT NULL, the key, foreign
    /// keys, the names of columns. Rows keep their row ids, and AUTOINCREMENT its counter. Indexes
    /// and triggers are kept, with the new names of columns in indexes, and tables that refer to
    /// this one go on doing so. Dates that counted from 1970 count from 2001 afterwards, if the
    /// type has no encoding for them.
    ///
    /// - Parameters:
    ///   - type: The type, with the table's name.
    ///   - body: Says where changed columns get their values from.
    /// - Throws: `StoreError` `.misuse` outside of a migration, for tables of Coffer's own, and for
    ///   a column that gets its values twice; `.notFound` if there is no such table or column;
    ///   `.mismatch` for a view, for a new column without values, for a column that would get lost,
    ///   and for values that the type cannot read; `.unsupported`, with its name in the message, if
    ///   an index, trigger, view or foreign key names a column that is renamed or dropped, as far
    ///   as it cannot be renamed there; `.constraint` if a row does not fit, or would be lost;
    ///   `.full`, `.io`, `.damaged`, `.busy` while a statement has a current row. After an error
    ///   nothing is changed.
    /// - Complexity: O(*rows* log *rows*), and disk space for a second copy of the table.
    public func alter<R: Record>(
        _ type: R.Type, _ body: (inout TableAlteration<R>) throws -> Void = { _ in }
    ) throws {
        let connection = try connection()
        var alteration = TableAlteration<R>()
        try body(&alteration)
        try RecordAlteration.run(alteration, connection)
    }
}
