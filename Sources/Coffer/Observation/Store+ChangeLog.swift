extension WriteTransaction {
    /// Logs every change of a table's rows in the file from now on, for `changes(since:)`.
    ///
    /// The log is a table, `coffer:log`, which triggers in the file write to: an entry stands or
    /// falls with the change itself, and changes of other processes and programs are logged as
    /// well. It has a number, the table, the key and the kind of the change, never other values.
    ///
    /// Call it again after a unique index was added to the table, or the table was renamed. An
    /// ALTER or DROP of the table itself is not logged, nor is a blob that another program, or a
    /// ``Connection``, writes in place.
    ///
    /// - Parameters:
    ///   - table: The table; logging it twice changes nothing.
    ///   - entryCountMax: How many entries the log keeps, of all tables together (and up to 255
    ///     more); the last call counts. A change is one entry, and one more for each row that has
    ///     one of the new row's unique keys.
    /// - Throws: `StoreError` `.notFound` if there is no such table; `.unsupported` for a view, a
    ///   virtual table, a table with a unique index on an expression or on a part of its rows, a
    ///   primary key of more than 16 columns, or columns that hide every name of the row id;
    ///   `.misuse` for a count below 1; `.full`, `.io`.
    public func logChanges(of table: String, entryCountMax: Int = 100_000) throws {
        try ChangeLog(connection()).begin(table, countMax: entryCountMax)
    }

    /// Logs no more changes of a table. What is in the log stays, and so do tokens.
    ///
    /// - Throws: As `execute(_:)`; a table that is not there or not logged is no error.
    public func stopLoggingChanges(of table: String) throws {
        try ChangeLog(connection()).end(table)
    }
}

extension Reading where Self: ~Copyable {
    /// The token that stands behind the last logged change: take it together with all rows, in one
    /// transaction, and go on from there with `changes(since:)`.
    ///
    /// - Throws: `StoreError` `.notFound` if no table was ever logged.
    public func changeToken() throws -> ChangeToken {
        try ChangeLog(connection()).token()
    }

    /// What has changed since a token was given out, in the tables that are logged.
    ///
    /// The kind of a change is what became of the row from begin to end of the batch. A batch may
    /// end within a commit.
    ///
    /// - Parameters:
    ///   - token: The `next` of the batch before, or a `changeToken()`.
    ///   - entryCountMax: How many entries of the log the batch has at most.
    /// - Throws: `StoreError` `.tokenExpired` if entries behind the token are gone, or the token is
    ///   of another log or of a later state of this file: then read all rows and begin with a new
    ///   token; `.notFound` if no table was ever logged; `.misuse` for a count below 1.
    /// - Complexity: O(*entryCountMax*).
    public func changes(
        since token: ChangeToken, entryCountMax: Int = 1_000
    ) throws -> ChangeBatch {
        try ChangeLog(connection()).batch(since: token, countMax: entryCountMax)
    }
}

extension Store {
    /// What has changed since a token was given out, in the tables that are logged.
    ///
    /// ```swift
    /// var token = try await store.read { tx in try tx.changeToken() }   // once, with all rows
    /// let batch = try await store.changes(since: token)
    /// for change in batch.changes where change.table == Note.table {
    ///     let id = try change.key(as: UUID.self)
    ///     if change.kind == .delete { try await server.delete(id) } else { changed.insert(id) }
    /// }
    /// token = batch.next                                                // keep it
    /// ```
    ///
    /// - Parameters:
    ///   - token: The `next` of the batch before, or a `changeToken()`.
    ///   - entryCountMax: How many entries of the log the batch has at most.
    /// - Throws: As `changes(since:entryCountMax:)` of a transaction, and as `read(_:)`.
    public func changes(
        since token: ChangeToken, entryCountMax: Int = 1_000
    ) throws -> ChangeBatch {
        try read { tx in try tx.changes(since: token, entryCountMax: entryCountMax) }
    }

    /// What has changed since a token was given out, without blocking a thread of the cooperative
    /// pool.
    ///
    /// - Parameters:
    ///   - token: The `next` of the batch before, or a `changeToken()`.
    ///   - entryCountMax: How many entries of the log the batch has at most.
    /// - Throws: As the synchronous form.
    public func changes(
        since token: ChangeToken, entryCountMax: Int = 1_000
    ) async throws -> ChangeBatch {
        try await read { tx in try tx.changes(since: token, entryCountMax: entryCountMax) }
    }
}
