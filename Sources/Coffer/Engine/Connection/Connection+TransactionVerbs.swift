/// Transactions and savepoints that begin in one function and end in another. If one function can
/// hold the work, use `transaction(_:_:)` and `savepoint(_:)`, which cannot be left open.
extension Connection {
    /// Begins a transaction, which `commit()` or `rollback()` ends.
    ///
    /// - Parameter mode: The locks to take first; `.immediate` by default.
    /// - Throws: `StoreError` `.busy` if another connection holds the lock; `.misuse` inside a
    ///   transaction or while a statement has a current row.
    /// - Note: The corresponding SQL is `BEGIN`.
    public func begin(_ mode: TransactionMode = .immediate) throws {
        let handle = try requireNoTransaction()
        try handle.run(mode.control)
        schemaMayHaveChanged()
    }

    /// Commits the transaction that `begin(_:)` began: when this returns, the changes are durable.
    ///
    /// After `.busy` and `.constraint` (a deferred foreign key) the transaction is still open, so
    /// that you can fix the cause and commit again, or roll back. After every other error it was
    /// rolled back.
    ///
    /// - Throws: `StoreError` `.damaged` if a page that was read in it failed authentication;
    ///   `.busy`, `.constraint`, `.full`, `.io`; `.misuse` outside a transaction, and in the body
    ///   of `transaction(_:_:)` or `savepoint(_:)`.
    /// - Note: The corresponding SQL is `COMMIT`.
    public func commit() throws {
        let handle = try requireOwnTransaction("commit()")
        do throws(StoreError) {
            try probe()
            try handle.run(.commit)
        } catch  where error.code == .busy || error.code == .constraint {
            throw error
        } catch {
            undo(handle)
            continueCursors(handle)
            throw error
        }
        continueCursors(handle)
    }

    /// Rolls back everything since `begin(_:)`.
    ///
    /// If SQLite refuses every attempt to roll back, the connection is closed, which discards the
    /// changes too.
    ///
    /// - Throws: `StoreError` `.misuse` outside a transaction, which SQLite may have rolled back by
    ///   itself (see `isInTransaction`); `.misuse` in the body of `transaction(_:_:)` or
    ///   `savepoint(_:)`, which must throw to roll back; `.closed`.
    /// - Note: The corresponding SQL is `ROLLBACK`.
    public func rollback() throws {
        let handle = try requireOwnTransaction("rollback()")
        undo(handle)
        continueCursors(handle)
    }

    /// Opens a savepoint inside a transaction.
    ///
    /// - Parameter name: Any text; the newest savepoint of a name hides the older ones.
    /// - Throws: `StoreError` `.misuse` outside a transaction and in the body of `savepoint(_:)`,
    ///   `.sql` for an empty name or one with NUL.
    /// - Note: The corresponding SQL is `SAVEPOINT`.
    public func beginSavepoint(_ name: String) throws {
        let name = try name.quotedIdentifier()
        try requireOwnSavepoints("beginSavepoint(_:)").run("SAVEPOINT \(name)")
    }

    /// Keeps the changes since the savepoint, and ends it and the savepoints inside it.
    ///
    /// - Throws: `StoreError` `.damaged` if a page that was read in the transaction failed
    ///   authentication: the savepoint stays open, so call `rollback()`; `.notFound` if there is no
    ///   savepoint of that name; `.misuse` outside a transaction and in the body of
    ///   `savepoint(_:)`.
    /// - Note: The corresponding SQL is `RELEASE`.
    public func releaseSavepoint(_ name: String) throws {
        let handle = try requireOwnSavepoints("releaseSavepoint(_:)")
        try probe()
        try run("RELEASE", name, handle)
    }

    /// Rolls back the changes since the savepoint, which stays open.
    ///
    /// - Throws: `StoreError` `.notFound` if there is no savepoint of that name; `.damaged` if a
    ///   page that was read in the transaction failed authentication: call `rollback()` if
    ///   `isInTransaction`; `.rolledBack` if Coffer had to roll back the whole transaction;
    ///   `.misuse` outside a transaction and in the body of `savepoint(_:)`.
    /// - Note: The corresponding SQL is `ROLLBACK TO`.
    public func rollback(toSavepoint name: String) throws {
        let handle = try requireOwnSavepoints("rollback(toSavepoint:)")
        forgetAttachments()
        try run("ROLLBACK TO", name, handle)
        try rereadFirstPages(handle)
    }

    // MARK: Inside

    /// The handle, if no transaction is open on it and no statement has a current row. Switches
    /// foreign keys on again if a migration could not do so.
    ///
    /// - Throws: `.misuse` if a transaction is open or a statement has a current row; otherwise as
    ///   `current()`.
    func requireNoTransaction() throws(StoreError) -> Handle {
        let handle = try current()
        guard !transactionState.isImplicit else {
            throw StoreError(
                .misuse, "a statement is still at a row", hint: "Step it to its end, or reset it.")
        }
        guard !handle.isInTransaction else {
            throw StoreError(
                .misuse, "a transaction is open already", hint: "Use savepoint(_:) inside it.")
        }
        // The end of a migration may not have been able to do so.
        try handle.endMigrationMode()
        return handle
    }

    /// Rolls back the handle's transaction, if one is open, even while an interrupt is in force.
    ///
    /// An interrupt lasts as long as a statement has a current row, and makes ROLLBACK itself fail.
    /// Such statements are then ended. If ROLLBACK fails even so, the connection is closed.
    ///
    /// - Returns: `false` if statements with a current row were ended, so that their next step
    ///   throws `.cancelled`, or if the connection was closed.
    @discardableResult
    func undo(_ handle: Handle) -> Bool {
        forgetAttachments()
        if handle.controls.isBegun, !handle.isInTransaction {
            handle.transactionMayHaveRolledBack()
        }
        if handle.isInTransaction, (try? handle.run(.rollback)) == nil, handle.isInTransaction {
            abandonRunningStatements()
            try? handle.run(.rollback)
            if handle.isInTransaction { close() }
            return false
        }
        guard handle.mayMisreadPages, handle.runningCount > 0 else { return true }
        endRowsOfRestoredPages(handle)
        return false
    }

    private func requireOwnTransaction(_ verb: String) throws(StoreError) -> Handle {
        let handle = try current()
        try requireUnmanaged(verb)
        guard handle.isInTransaction, !transactionState.isImplicit else {
            throw StoreError(
                .misuse, "\(verb) without a transaction",
                hint: "Call begin(_:) first; SQLite may have rolled the transaction back itself.")
        }
        return handle
    }

    /// The handle, if the caller may open and end savepoints by name.
    ///
    /// - Parameter verb: The method's name, for the message of the error.
    /// - Throws: `.misuse` outside a transaction and in the body of `savepoint(_:)`; otherwise as
    ///   `current()`.
    private func requireOwnSavepoints(_ verb: String) throws(StoreError) -> Handle {
        let handle = try current()
        guard isInTransaction else {
            throw StoreError(
                .misuse, "a savepoint needs a transaction around it", hint: "Use transaction(_:_:)."
            )
        }
        guard transactionState.savepointDepth == 0 else {
            throw StoreError(
                .misuse, "\(verb) could end the savepoint whose body runs",
                hint: "Use savepoint(_:) inside it.")
        }
        return handle
    }

    /// Refuses to end a transaction that Coffer has to end.
    ///
    /// - Parameter verb: The method or SQL verb, for the message of the error.
    /// - Throws: `.misuse` in the body of `transaction(_:_:)` or `savepoint(_:)`, and while a
    ///   statement that runs outside a transaction has a current row.
    func requireUnmanaged(_ verb: String) throws(StoreError) {
        guard !transactionState.isInBody, transactionState.savepointDepth == 0 else {
            throw StoreError(
                .misuse, "\(verb) would end a transaction that is Coffer's to end",
                hint: "Return from the body to commit, throw to roll back.")
        }
        guard !transactionState.isImplicit else {
            throw StoreError(
                .misuse, "\(verb) would end a transaction that is Coffer's to end",
                hint: "Step the open statement to its end, or reset it.")
        }
    }

    private func run(_ verb: String, _ name: String, _ handle: Handle) throws(StoreError) {
        let quoted = try name.quotedIdentifier()
        do throws(StoreError) {
            try handle.run("\(verb) \(quoted)")
        } catch  where error.code == .sql {
            // After a page has failed, ROLLBACK TO fails too.
            if let failure = handle.probeFailure() { throw failure }
            throw StoreError(.notFound, "there is no savepoint \(quoted)", cause: error)
        }
    }
}
