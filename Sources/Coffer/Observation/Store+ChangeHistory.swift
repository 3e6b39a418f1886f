extension WriteTransaction {
    /// Keeps a history of the changes of a table's rows in the file from now on, for
    /// `changes(since:)`.
    ///
    /// The history is a table, `coffer:log`, which triggers in the file write to. An entry commits
    /// or rolls back with the change itself, and changes by other processes and programs are in it
    /// as well. An entry has a number, the table, the key and the kind of the change, never other
    /// values.
    ///
    /// Call it again after adding a unique index to the table, or renaming the table. An ALTER or
    /// DROP of the table itself is not in it, nor is a blob that another program, or a
    /// ``Connection``, writes in place.
    ///
    /// - Parameters:
    ///   - table: The name of the table. A second call renews the table's triggers and sets
    ///     `maximumEntryCount`.
    ///   - maximumEntryCount: How many entries the history keeps, of all tables together (and up to
    ///     255 more); the last call counts. A change is one entry, plus one for each row that has
    ///     one of the new row's unique keys.
    /// - Throws: `StoreError` `.notFound` if there is no such table; `.unsupported` for a view, a
    ///   virtual table, a table with a unique index that is partial or on an expression, a primary
    ///   key of more than 16 columns, or columns that hide every name of the row id; `.misuse` for
    ///   a count below 1, or for the history's own table; `.full` if the disk is full; otherwise as
    ///   `execute(_:)`.
    public func keepHistory(of table: String, maximumEntryCount: Int = 100_000) throws {
        try ChangeHistory(connection()).begin(table, maximumCount: maximumEntryCount)
    }

    /// Ends the history of a table. Its entries stay, and tokens remain valid.
    ///
    /// - Throws: `StoreError` `.unsupported` for a view or a virtual table; otherwise as
    ///   `execute(_:)`. A table that does not exist or has no history is not an error.
    public func stopKeepingHistory(of table: String) throws {
        try ChangeHistory(connection()).end(table)
    }
}

extension Reading where Self: ~Copyable {
    /// The token after the last change of the history. Take it together with all rows, in one
    /// transaction, and continue from there with `changes(since:)`.
    ///
    /// - Throws: `StoreError` `.notFound` if no table ever had a history; otherwise as `rows(_:)`.
    public func changeToken() throws -> ChangeToken {
        try ChangeHistory(connection()).token()
    }

    /// The changes since a token was given out, in the tables that have a history.
    ///
    /// The kind of a change is what happened to the row from start to end of the batch. A batch may
    /// end within a commit. Without newer entries it has no changes, and its `next` is the given
    /// token.
    ///
    /// - Parameters:
    ///   - token: The `next` of the batch before, or a `changeToken()`.
    ///   - maximumEntryCount: How many entries of the history the batch has at most.
    /// - Throws: `StoreError` `.tokenExpired` if entries after the token are gone, or if the token
    ///   belongs to another history or to a later state of this file: then read all rows and begin
    ///   with a new token; `.notFound` if no table ever had a history; `.misuse` for a count below
    ///   1; otherwise as `rows(_:)`.
    /// - Complexity: O(*maximumEntryCount*).
    public func changes(
        since token: ChangeToken, maximumEntryCount: Int = 1_000
    ) throws -> ChangeBatch {
        try ChangeHistory(connection()).batch(since: token, maximumCount: maximumEntryCount)
    }
}

extension Store {
    /// The changes since a token was given out, in the tables that have a history.
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
    ///   - maximumEntryCount: How many entries of the history the batch has at most.
    /// - Throws: As `changes(since:maximumEntryCount:)` of a transaction, and as `read(_:)`.
    public func changes(
        since token: ChangeToken, maximumEntryCount: Int = 1_000
    ) throws -> ChangeBatch {
        try read { tx in try tx.changes(since: token, maximumEntryCount: maximumEntryCount) }
    }

    /// The changes of the commits after a token, without blocking a thread of the cooperative pool.
    ///
    /// - Parameters:
    ///   - token: The ``ChangeBatch/next`` of an earlier batch, or a result of `changeToken()`.
    ///   - maximumEntryCount: The largest number of history entries in the batch.
    /// - Throws: As the synchronous form.
    public func changes(
        since token: ChangeToken, maximumEntryCount: Int = 1_000
    ) async throws -> ChangeBatch {
        try await read { tx in try tx.changes(since: token, maximumEntryCount: maximumEntryCount) }
    }
}
