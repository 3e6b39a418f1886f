import CSQLCipher

/// Whether a script continues after a row.
public enum ScriptControl: Sendable {
    /// Continues with the next row.
    case `continue`
    /// Ends the script here. Statements that have run are not undone.
    case stop
}

extension Connection {
    /// Runs all statements of a text, one after the other; rows, if any, are dropped.
    ///
    /// Outside a transaction each statement runs in its own, as if it were run by itself. For all
    /// or nothing, run the script in `transaction(_:_:)` or put BEGIN and COMMIT into it.
    ///
    /// - Parameter text: Statements without arguments. Values of your users do not belong here:
    ///   only `execute(_:)` binds them.
    /// - Throws: As `execute(_:)`, for the first statement that fails; `sqlOffset` is its
    ///   position. The statements before it have run and are not undone.
    /// - Note: The corresponding C function is `sqlite3_exec`.
    public func executeScript(_ text: String) throws {
        try executeScript(text) { _ in .continue }
    }

    /// Runs all statements of a text and passes each row to `onRow`, with values in their storage
    /// classes.
    ///
    /// - Parameters:
    ///   - text: Statements without arguments.
    ///   - onRow: Receives each row, once the MACs of the pages behind it fit, and decides whether
    ///     the script continues.
    /// - Returns: `true` if the script ran to its end, `false` if `onRow` stopped it.
    /// - Throws: Any error of `onRow`; outside a transaction its statement is then rolled back.
    ///   Otherwise as `executeScript(_:)`.
    /// - Note: The corresponding C function is `sqlite3_exec`.
    @discardableResult
    public func executeScript(
        _ text: String, onRow: (Row) throws -> ScriptControl
    ) throws -> Bool {
        try forEachStatement(of: text) { statement in
            guard statement.parameterCount == 0 else {
                throw StoreError(
                    .misuse, "a script takes no arguments", hint: "Use execute(_:) to bind them.")
            }
            while try statement.step() {
                let control: ScriptControl
                do {
                    control = try onRow(try statement.row())
                } catch {
                    statement.rewind()
                    statementFailed(statement)
                    throw error
                }
                guard control == .continue else {
                    try statement.reset()
                    return false
                }
            }
            return true
        }
    }

    /// Compiles all statements of a text and runs none.
    ///
    /// Each statement is compiled against the current schema: one that needs a table which an
    /// earlier statement would create is `.sql`.
    ///
    /// - Throws: `StoreError` `.sql` for a text that does not compile or holds no statement, with
    ///   `sqlOffset` of the first statement that does not compile; `.misuse` for SQL that the
    ///   connection refuses, such as a pragma with a key.
    /// - Note: The corresponding C function is `sqlite3_prepare_v2`.
    public func validate(_ sql: String) throws {
        // Many pragmas take effect while they are compiled.
        // See https://www.sqlite.org/pragma.html.
        let authorizer = try current().authorizer
        authorizer.isValidating = true
        defer { authorizer.isValidating = false }
        var isEmpty = true
        try forEachStatement(of: sql) { statement in
            isEmpty = false
            return true
        }
        guard !isEmpty else { throw StoreError(.sql, "the text holds no statement", sql: sql) }
    }

    /// Compiles one statement after the other and passes it to `body`, until `body` returns false.
    ///
    /// - Returns: Whether `body` returned true for every statement, or there was none.
    /// - Throws: `.sql` for a text with NUL or one that does not compile; errors of `body`. A
    ///   `StoreError` has the `sqlOffset` in the whole text.
    @discardableResult
    private func forEachStatement(
        of text: String, _ body: (Statement) throws -> Bool
    ) throws -> Bool {
        guard !text.utf8.contains(0) else {
            throw StoreError(.sql, "the text holds a NUL")
        }
        return try text.withCString { start in
            var offset = 0
            while true {
                do {
                    let (statement, byteCount) = try prepareFirst(of: start + offset)
                    if let statement {
                        guard try body(statement) else { return false }
                    }
                    guard byteCount > 0 else { return true }
                    offset += byteCount
                } catch let error as StoreError {
                    throw error.inScript(text, at: offset)
                }
            }
        }
    }
}

extension StoreError {
    /// The same error, with its position in the script.
    fileprivate func inScript(_ text: String, at offset: Int) -> StoreError {
        let located = with(sqlOffset: offset + (sqlOffset ?? 0))
        // SQLite's message quotes the offending text, which may be a key.
        guard let resultCode, StoreError.redacted(text) != text else { return located }
        return StoreError(
            code, String(cString: sqlite3_errstr(resultCode)), hint: hint,
            sqlOffset: located.sqlOffset, resultCode: resultCode)
    }
}
