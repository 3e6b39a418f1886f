import CSQLCipher

/// A transaction that several bodies share, one after the other, each with its own success.
extension Connection {
    /// Begins it. Who does must end it by `commitShared()`, or by a part that undoes it all.
    ///
    /// - Throws: `.busy` if another process holds the lock.
    func beginShared(
        _ mode: TransactionMode, pausesForeignKeys: Bool = false
    ) throws(StoreError) {
        let handle = try requireNoTransaction()
        if pausesForeignKeys { try handle.pauseForeignKeys() }
        try handle.run(mode.control)
        isInBody = true
        isSchemaChecked = false
    }

    /// Runs one body in it. Its work is kept if it returns, what it read is authentic, and it left
    /// no foreign key unsatisfied; otherwise it is undone.
    ///
    /// - Parameter isFirst: Whether nothing was done in the transaction before. The body then needs
    ///   no savepoint: undoing it undoes all.
    /// - Throws: What `body` throws. Afterwards the transaction is open if the others' work stands
    ///   (see `isInTransaction`); it is gone if this was the first, if SQLite ended it, or if a
    ///   page failed authentication.
    func part<T>(isFirst: Bool, _ body: () throws -> T) throws -> T {
        let handle = try current()
        handle.sawDamage = false
        do throws(StoreError) {
            if !isFirst { try handle.run(.beginPart) }
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
            if !isFirst { try handle.run(.keepPart) }
            return result
        } catch {
            let failure = damage(handle, under: error)
            endStatements(handle)
            undoPart(handle, isFirst: isFirst, after: failure)
            throw failure
        }
    }

    /// Makes all that its parts did durable, or nothing of it.
    ///
    /// - Throws: `.busy`, `.full`, `.io`, `.damaged`; then everything is undone.
    func commitShared() throws(StoreError) {
        let handle = try current()
        do throws(StoreError) {
            // Undoing a part may have read pages again.
            try probe()
            try handle.run(.commit)
            isInBody = false
        } catch {
            undoShared(handle)
            throw error
        }
    }

    /// A transaction of one body.
    func storeTransaction<T>(_ mode: TransactionMode, _ body: () throws -> T) throws -> T {
        try beginShared(mode)
        let result = try part(isFirst: true, body)
        try commitShared()
        return result
    }

    /// Begins a transaction that reads, and reads: only then its snapshot is fixed.
    func beginSnapshot() throws(StoreError) {
        try beginShared(.deferred)
        let handle = try current()
        if let failure = handle.schemaReadFailure() {
            undoShared(handle)
            throw failure
        }
    }

    /// Undoes all that its parts did.
    func undoShared() {
        if let handle { undoShared(handle) }
    }

    private func undoShared(_ handle: Handle) {
        undo(handle)
        isInBody = false
    }

    private func undoPart(_ handle: Handle, isFirst: Bool, after failure: any Error) {
        // After one failed page every further statement of the transaction is suspect.
        let isDamage = (failure as? StoreError)?.code == .damaged && handle.sawDamage
        guard handle.isInTransaction, !isFirst, !isDamage else { return undoShared(handle) }
        forgetAttachments()
        do throws(StoreError) {
            try handle.run(.undoPart)
            try handle.run(.keepPart)
            try forgetDeferral(handle)
        } catch {
            undoShared(handle)
        }
    }

    /// A statement that `prepare` or a body has kept at a row would hold up COMMIT, and go on in
    /// the next body.
    private func endStatements(_ handle: Handle) {
        if handle.runningCount > 0, !handle.isClosed { abandonRunningStatements() }
    }

    /// RELEASE does not look at deferred foreign keys; COMMIT would fail for all parts.
    private func requireForeignKeys(_ handle: Handle) throws(StoreError) {
        var count: Int32 = 0
        var highest: Int32 = 0
        sqlite3_db_status(handle.db, SQLITE_DBSTATUS_DEFERRED_FKS, &count, &highest, 0)
        guard count == 0 else {
            throw StoreError(
                .constraint, "FOREIGN KEY constraint failed",
                hint: "A deferred foreign key refers to a row that is not there at the end.",
                resultCode: SQLITE_CONSTRAINT | 3 << 8)
        }
        try forgetDeferral(handle)
    }

    /// A deferral would hold for the parts behind this one. Switching it off forgets the count of
    /// what is open, so that has to be none.
    private func forgetDeferral(_ handle: Handle) throws(StoreError) {
        guard handle.authorizer.sawDeferredKeys else { return }
        try handle.run("PRAGMA defer_foreign_keys = OFF")
    }
}
