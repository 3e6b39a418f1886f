import CSQLCipher

extension Connection {
    /// Compiles one statement, to bind and step by hand.
    ///
    /// - Throws: `StoreError` `.sql` if the text does not compile or is not exactly one statement;
    ///   `.misuse` for SQL that Coffer refuses, such as a pragma that would carry a key, and before
    ///   the key is set; `.damaged` if the schema is damaged; `.closed`.
    /// - Note: The corresponding C functions are `sqlite3_prepare_v2` and `sqlite3_prepare_v3`.
    public func prepare(_ sql: String) throws -> Statement {
        try compile(sql, persistent: true)
    }

    /// Runs one statement to its end; rows, if any, are dropped.
    ///
    /// Outside a transaction the statement has its own: if this returns, the change is durable; if
    /// it throws, nothing happened.
    ///
    /// - Returns: The number of rows that an INSERT, UPDATE or DELETE changed; else 0.
    /// - Throws: `StoreError` `.sql` if the text does not compile or is not one statement,
    ///   `.constraint`, `.busy` if another connection holds a lock for longer than `busyPolicy`
    ///   waits, `.full`, `.io`; `.damaged` if a page that was read failed authentication;
    ///   `.cancelled` after an interrupt; `.misuse` if the number of arguments is wrong, or for SQL
    ///   that Coffer refuses.
    /// - Note: The corresponding C functions are `sqlite3_step` and `sqlite3_changes`.
    @discardableResult
    public func execute(_ sql: SQL) throws -> Int {
        try perform(sql)
    }

    /// As `execute(_:)`.
    ///
    /// - Parameter atEnd: Runs once after the statement's end, before its own transaction, if it
    ///   has one, is committed. Does not run after an error of the statement.
    @discardableResult
    func perform(_ sql: SQL, _ atEnd: () -> Void = {}) throws(StoreError) -> Int {
        var changeCount = 0
        try run(sql) { statement throws(StoreError) in
            let before = sqlite3_total_changes(statement.handle.db)
            try statement.runToEnd()
            let isChanged = sqlite3_total_changes(statement.handle.db) != before
            changeCount = isChanged ? Int(coffer_changes(statement.handle.db)) : 0
            atEnd()
        }
        return changeCount
    }

    /// All rows of one statement.
    ///
    /// - Complexity: O(*rows*) memory.
    /// - Throws: As `execute(_:)`; after `.damaged` no row is returned.
    /// - Note: The corresponding C functions are `sqlite3_step` and `sqlite3_column_*`.
    public func rows(_ sql: SQL) throws -> [Row] {
        try rows(sql, isReadOnly: false)
    }

    func rows(_ sql: SQL, isReadOnly: Bool) throws(StoreError) -> [Row] {
        var rows: [Row] = []
        try run(sql, isReadOnly: isReadOnly) { statement throws(StoreError) in
            while try statement.advance() { rows.append(try statement.row()) }
        }
        return rows
    }

    /// The first row of one statement, `nil` if there is none.
    ///
    /// - Throws: As `rows(_:)`.
    /// - Note: The corresponding C functions are `sqlite3_step` and `sqlite3_column_*`.
    public func firstRow(_ sql: SQL) throws -> Row? {
        try firstRow(sql, isReadOnly: false)
    }

    func firstRow(_ sql: SQL, isReadOnly: Bool) throws(StoreError) -> Row? {
        var row: Row?
        try run(sql, isReadOnly: isReadOnly) { statement throws(StoreError) in
            if try statement.advance() { row = try statement.row() }
        }
        return row
    }

    /// Takes a statement from the cache, binds its arguments, and runs `body` on it. Outside a
    /// transaction the statement has its own, which is committed after `body`.
    ///
    /// - Parameter isReadOnly: Whether a statement that changes anything is refused.
    /// - Throws: Errors of `body`; errors of compiling and binding; `.readOnly` for a refused
    ///   statement; `.damaged` if the MAC of a page that was read does not fit (in a store's body,
    ///   the end of the body checks that); errors of COMMIT. The statement's own transaction is
    ///   then rolled back.
    func run(
        _ sql: SQL, isReadOnly: Bool = false, _ body: (Statement) throws(StoreError) -> Void
    ) throws(StoreError) {
        let sql = try sql.checked(on: self)
        let statement = try cached(sql.text(on: self))
        defer { release(statement) }
        if isReadOnly { try statement.requireReadOnly() }
        try statement.bind(sql)
        try statementWillStep(statement)
        do throws(StoreError) {
            try body(statement)
            // A store probes a body once, before its commit.
            if try current().authorizer.scope == .connection, !statement.isControl {
                try probe()
            }
            if statement.changesSchema { forgetAttachments() }
        } catch {
            statement.rewind()
            statementFailed(statement)
            throw error
        }
        statement.rewind()
        try statementEnded(statement)
    }

    /// A statement for the SQL text that nobody uses, from the cache or newly compiled. It is
    /// marked as in use until `release(_:)`.
    ///
    /// - Throws: As `compile(_:persistent:)`.
    func cached(_ sql: String) throws(StoreError) -> Statement {
        let statement = try cache.take(sql) { persistent throws(StoreError) in
            try compile(sql, persistent: persistent)
        }
        statement.isTaken = true
        return statement
    }

    /// Resets a statement, clears its arguments, and lets the next caller of `cached(_:)` use it.
    func release(_ statement: Statement) {
        statement.rewind()
        statement.forgetArguments()
        statement.isTaken = false
    }
}

extension Statement {
    /// A copy of the current row.
    ///
    /// - Throws: `.mismatch` if a text or the name of a column is not UTF-8; `.closed` if the
    ///   statement was finalized.
    func row() throws(StoreError) -> Row {
        let raw = try pointer()
        let columns = columns
        guard columns.isExact else {
            throw StoreError(.mismatch, "the name of a column is not UTF-8", sql: sql)
        }
        var hasReal = false
        var values: [Value] = []
        values.reserveCapacity(columns.names.count)
        for index in 0..<Int32(columns.names.count) {
            do throws(StoreError) {
                let value = try Self.value(of: raw, at: index)
                if case .real = value { hasReal = true }
                values.append(value)
            } catch {
                throw StoreError(
                    error.code, error.message, sql: sql, column: columns.names[Int(index)])
            }
        }
        // A pragma has no dates, and may run where no query can.
        if hasReal, !isControl { return Row(columns: datedColumns(), values: values) }
        return Row(columns: columns, values: values)
    }
}
