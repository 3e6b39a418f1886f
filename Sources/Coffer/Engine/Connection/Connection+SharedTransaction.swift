import CSQLCipher

/// A transaction that several bodies share, one after the other; each succeeds or fails separately.
extension Connection {
    /// Begins a transaction for several bodies. The caller must end it with `commitShared()` or
    /// `undoShared()`, unless a call of `member` rolls back all of it.
    ///
    /// - Parameter pausesForeignKeys: Whether it is a migration, without checks of foreign keys.
    /// - Throws: `.busy` if another connection holds the lock; `.misuse` inside a transaction and
    ///   while a statement has a current row.
    func beginShared(
        _ mode: TransactionMode, pausesForeignKeys: Bool = false
    ) throws(StoreError) {
        let handle = try requireNoTransaction()
        if pausesForeignKeys { try handle.beginMigrationMode() }
        do throws(StoreError) {
            try handle.run(mode.control)
        } catch {
            try? handle.endMigrationMode()
            throw error
        }
        transactionState.enterBody(handle)
        schemaMayHaveChanged()
    }

    /// Runs one body in the transaction that `beginShared` began. Statements that the body leaves
    /// with a current row are reset.
    ///
    /// The body's work is kept if the body returns, the MACs of all pages that it read fit, and it
    /// leaves no deferred foreign key unsatisfied. Otherwise its work is rolled back.
    ///
    /// - Parameter isFirst: Whether nothing was done in the transaction before. The body then needs
    ///   no savepoint: rolling it back rolls back everything.
    /// - Throws: Errors of `body`; `.damaged`, with the body's error as its cause, if a MAC does
    ///   not fit; `.constraint` for a foreign key; `.rolledBack` if SQLite ended the transaction.
    ///   Afterwards the transaction is open if the other bodies' work is kept (see
    ///   `isInTransaction`). It is gone if `isFirst`, if SQLite ended it, if a page failed, or if
    ///   a rollback of this body's work alone failed.
    func member<T>(isFirst: Bool, _ body: () throws -> T) throws -> T {
        let handle = try current()
        handle.failures.sawDamage = false
        let undoPoint = handle.touchObserver?.undoPoint
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
            rollBackMember(handle, isFirst: isFirst, after: failure, to: undoPoint)
            throw failure
        }
    }

    /// Commits the work of all bodies.
    ///
    /// - Throws: `.busy` if another connection holds a lock, `.full`, `.io`, `.damaged` if a page
    ///   that was read failed. The work of all bodies is then rolled back.
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

    /// Runs a transaction with a single body, and returns the body's result after the commit.
    ///
    /// - Throws: As `beginShared`, `member` and `commitShared()`. Nothing is then committed.
    func storeTransaction<T>(_ mode: TransactionMode, _ body: () throws -> T) throws -> T {
        try beginShared(mode)
        let result = try member(isFirst: true, body)
        try commitShared()
        return result
    }

    /// Begins a read transaction and fixes its snapshot, with a read of the schema.
    ///
    /// - Throws: As `beginShared`; `.damaged` and other errors of reading the schema. No
    ///   transaction is then open.
    func beginSnapshot() throws(StoreError) {
        try beginShared(.deferred)
        try requireSchema()
    }

    /// Reads the schema in the transaction that has just begun, and ends the transaction if that
    /// fails.
    ///
    /// - Throws: `.wrongKey`, `.damaged`, `.busy` and other errors of reading the schema.
    func requireSchema() throws(StoreError) {
        let handle = try current()
        if let failure = handle.schemaReadFailure() {
            undoShared(handle)
            throw failure
        }
    }

    /// Rolls back the work of all bodies, and ends the transaction, if there is one.
    func undoShared() {
        if let handle { undoShared(handle) }
    }

    private func undoShared(_ handle: Handle) {
        undo(handle)
        transactionState.leaveBody(handle)
    }

    private func rollBackMember(
        _ handle: Handle, isFirst: Bool, after failure: any Error, to undoPoint: Int?
    ) {
        // After one failed page every further statement of the transaction is suspect.
        let isDamage = (failure as? StoreError)?.code == .damaged && handle.failures.sawDamage
        guard handle.isInTransaction, !isFirst, !isDamage else { return undoShared(handle) }
        forgetAttachments()
        do throws(StoreError) {
            try handle.run(.rollBackToSavepoint)
            if let undoPoint { handle.touchObserver?.didUndo(to: undoPoint) }
            try handle.run(.releaseSavepoint)
            try forgetDeferral(handle)
        } catch {
            undoShared(handle)
        }
    }

    /// Resets statements that `prepare` or a body has left with a current row: their next step
    /// throws `.cancelled`. They would block COMMIT, and continue in the next body.
    private func endStatements(_ handle: Handle) {
        if handle.runningCount > 0, !handle.isClosed { abandonRunningStatements() }
    }

    /// Checks the deferred foreign keys, and ends their deferral. RELEASE does not check them, and
    /// COMMIT would fail for all bodies.
    ///
    /// - Throws: `.constraint` if a deferred foreign key is violated now.
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
    /// Switching it off resets SQLite's count of open violations, so that count must be 0. Throws
    /// errors of the pragma.
    private func forgetDeferral(_ handle: Handle) throws(StoreError) {
        guard handle.authorizer.sawDeferredKeys else { return }
        try handle.run("PRAGMA defer_foreign_keys = OFF")
    }
}
