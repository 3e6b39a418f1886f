extension Connection {
    /// Makes the operator `REGEXP` work: `title REGEXP '^[A-Z]'`.
    ///
    /// ```swift
    /// try store.prepareConnections { connection in try connection.registerRegexp() }
    /// let rows = try store.read { tx in
    ///     try tx.rows("SELECT title FROM note WHERE title REGEXP \(pattern)")
    /// }
    /// ```
    ///
    /// SQLite has the operator, but no function behind it. The syntax and the rules are those of
    /// the condition `.regexp(\.title, "^[A-Z]")` of a query, which needs no registration; see the
    /// article Queries. NULL on either side gives NULL.
    ///
    /// A pattern that is a literal or an argument is compiled once for each run of the statement,
    /// and one that is a column for each row. The statement fails with `.misuse` if a pattern is
    /// not in the syntax, with `.tooBig` if it exceeds a limit, and with `.mismatch` if it is not
    /// a text. An interrupt ends a match within a row, too.
    ///
    /// - Throws: As `register(function:)`.
    /// - Complexity: O(*bytes of the text* × *length of the pattern*) for each row.
    public func registerRegexp() throws {
        try set(Self.functionSetting("regexp", 2)) { handle throws(StoreError) in
            try handle.createRegexp("regexp")
        }
    }
}
