import CSQLCipher

/// A transaction that several bodies share, one after the other; each succeeds or fails separately.
extension Connection {
    /// Begins the transaction. The caller must end it with `commitShared()` or `undoShared()`,
    /// unless a call of `member` rolls back all of it.
    ///
    /// - Throws: `.busy` if another process holds the lock.
    func beginShared(
        _ mode: TransactionMode, pausesForeignKeys: Bool = false
    ) throws(StoreError) {
        let handle = try requireNoTransaction()
        if pausesForeignKeys { try handle.beginMigrationMode() }
        try handle.run(mode.control)
        transactionState.enterBody(handle)
        schemaMayHaveChanged()
    }

    /// Runs one body in the transaction. Its work is kept if it returns, everything that it read is
    /// authentic, and it left no foreign key unsatisfied; otherwise it is rolled back.
    ///
    /// - Parameter isFirst: Whether nothing was done in the transaction before. The body then needs
    ///   no savepoint: rolling it back rolls back everything.
    /// - Throws: Errors of `body`. Afterwards the transaction is open if the other bodies' work is
    ///   kept (see `isInTransaction`). It is gone if this body was the first, if SQLite ended it,
    ///   or if a page failed authentication.
    func member<T>(isFirst: Bool, _ body: () throws -> T) throws -> T {
        let handle = try current()
        handle.failures.sawDamage = false
        do throws(StoreError) {
            if !isFirst { try handle.run(.openSavepoint) }
        } catch {
            undoShared(handle)
            throw error
        }
        do {
            let result = try body()
            guard handle.isInTransaction else { throw Self.ended(handle) }
            endStatements(handle)
            try probe()
            try requireForeignKeys(handle)
            if !isFirst { try handle.run(.releaseSavepoint) }
            return result
        } catch {
            let failure = damage(handle, under: error)
            endStatements(handle)
            rollBackMember(handle, isFirst: isFirst, after: failure)
            throw failure
        }
    }

    /// Makes the work of all bodies durable, or nothing of it.
    ///
    /// - Throws: `.busy`, `.full`, `.io`, `.damaged`; then everything is rolled back.
    func commitShared() throws(StoreError) {
        let handle = try current()
        do throws(StoreError) {
            // Rolling back to a savepoint may have read pages again.
            try probe()
            try handle.run(.commit)
            transactionState.leaveBody(handle)
        } catch {
            undoShared(handle)
            throw error
        }
    }

    /// Begins a transaction, runs `body` and commits; rolls back if `body` throws. Unlike
    /// `transaction(_:_:)`, it is for the connections of a store: it ends the statements that are
    /// at a row, and the MACs of all pages are checked once, before the commit.
    func storeTransaction<T>(_ mode: TransactionMode, _ body: () throws -> T) throws -> T {
        try beginShared(mode)
        let result = try member(isFirst: true, body)
        try commitShared()
        return result
    }

    /// Begins a read transaction and reads at once, because only the first read fixes its snapshot.
    func beginSnapshot() throws(StoreError) {
        try beginShared(.deferred)
        let handle = try current()
        if let failure = handle.schemaReadFailure() {
            undoShared(handle)
            throw failure
        }
    }

    /// Rolls back the work of all bodies.
    func undoShared() {
        if let handle { undoShared(handle) }
    }

    private func undoShared(_ handle: Handle) {
        undo(handle)
        transactionState.leaveBody(handle)
    }

    private func rollBackMember(_ handle: Handle, isFirst: Bool, after failure: any Error) {
        // After one failed page every further statement of the transaction is suspect.
        let isDamage = (failure as? StoreError)?.code == .damaged && handle.failures.sawDamage
        guard handle.isInTransaction, !isFirst, !isDamage else { return undoShared(handle) }
        forgetAttachments()
        do throws(StoreError) {
            try handle.run(.rollBackToSavepoint)
            try handle.run(.releaseSavepoint)
            try forgetDeferral(handle)
        } catch {
            undoShared(handle)
        }
    }

    /// Resets statements that `prepare` or a body has left with a current row. They would block
    /// COMMIT, and continue in the next body.
    private func endStatements(_ handle: Handle) {
        if handle.runningCount > 0, !handle.isClosed { abandonRunningStatements() }
    }

    /// RELEASE does not check deferred foreign keys; COMMIT would fail for all bodies.
    private func requireForeignKeys(_ handle: Handle) throws(StoreError) {
        var count: Int32 = 0
        var highest: Int32 = 0
        sqlite3_db_status(handle.db, SQLITE_DBSTATUS_DEFERRED_FKS, &count, &highest, 0)
        guard count == 0 else {
            throw StoreError(
                .constraint, "FOREIGN KEY constraint failed",
                hint: "A deferred foreign key refers to a row that does not exist at the commit.",
                resultCode: SQLITE_CONSTRAINT | 3 << 8)
        }
        try forgetDeferral(handle)
    }

    /// Ends a deferral of foreign keys, which would also apply to the bodies after this one.
    /// Switching it off resets SQLite's count of open violations, so that count must be 0.
    private func forgetDeferral(_ handle: Handle) throws(StoreError) {
        guard handle.authorizer.sawDeferredKeys else { return }
        try handle.run("PRAGMA defer_foreign_keys = OFF")
    }
}
