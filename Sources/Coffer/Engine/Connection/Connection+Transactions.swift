import CSQLCipher

/// The locks that a transaction takes, and when it takes them.
/// See <https://www.sqlite.org/lang_transaction.html>.
public enum TransactionMode: Sendable {
    /// Takes locks as statements need them.
    case deferred
    /// Takes the write lock at once; other connections can still read.
    case immediate
    /// Takes the write lock at once; outside WAL, reads of other connections wait too.
    case exclusive

    var control: ControlStatements.Control {
        switch self {
        case .deferred: .begin
        case .immediate: .beginImmediate
        case .exclusive: .beginExclusive
        }
    }
}

extension Connection {
    /// Runs `body` in a transaction: returning commits, throwing rolls back.
    ///
    /// - Parameters:
    ///   - mode: The locks to take first; `.immediate` by default.
    ///   - body: The work, on this connection.
    /// - Returns: The result of `body`, after the commit. A statement that still has a current row
    ///   then continues in a transaction of its own.
    /// - Throws: Errors of `body`. If the commit fails: `StoreError` `.busy`, `.constraint` for a
    ///   deferred foreign key, `.full`, `.io`, or `.damaged`. `.misuse` inside another transaction.
    ///   Whatever is thrown, nothing that `body` changed is kept.
    @discardableResult
    public func transaction<T>(
        _ mode: TransactionMode = .immediate, _ body: () throws -> T
    ) throws -> T {
        let handle = try requireNoTransaction()
        try handle.run(mode.control)
        transactionState.enterBody(handle)
        schemaMayHaveChanged()
        defer {
            transactionState.leaveBody(handle)
            continueCursors(handle)
        }
        return try finish(handle, body)
    }

    /// Runs `body` in a savepoint: returning keeps its work, throwing rolls back only that work.
    ///
    /// - Throws: Errors of `body`; `StoreError` `.misuse` outside a transaction, `.rolledBack` if
    ///   SQLite ended the whole transaction.
    @discardableResult
    public func savepoint<T>(_ body: () throws -> T) throws -> T {
        let handle = try current()
        guard isInTransaction else {
            throw StoreError(
                .misuse, "a savepoint needs a transaction around it", hint: "Use transaction(_:_:)."
            )
        }
        let name = "coffer_\(transactionState.savepointDepth)"
        try handle.run("SAVEPOINT \(name)")
        transactionState.openSavepoint()
        defer { transactionState.closeSavepoint() }
        do {
            let result = try body()
            guard handle.isInTransaction else { throw Self.ended(handle) }
            try handle.run("RELEASE \(name)")
            return result
        } catch {
            // FULL, IOERR, NOMEM and ON CONFLICT ROLLBACK end the whole transaction.
            guard handle.isInTransaction else {
                throw handle.isClosed ? Self.closed : Self.rolledBack(cause: error)
            }
            forgetAttachments()
            do throws(StoreError) {
                try handle.run("ROLLBACK TO \(name); RELEASE \(name)")
                try handle.rereadFirstPages()
            } catch let failure {
                let damage = Self.damage(handle, under: failure)
                // The savepoint must not stay half done, so the whole transaction is rolled back.
                undo(handle)
                throw Self.rolledBack(cause: damage?.with(cause: error) ?? failure)
            }
            throw error
        }
    }

    /// Runs the body of an open transaction, then commits if everything it read is authentic, or
    /// rolls back.
    func finish<T>(_ handle: Handle, _ body: () throws -> T) throws -> T {
        let result: T
        do {
            result = try body()
            guard handle.isInTransaction else { throw Self.ended(handle) }
            try probe()
            try handle.run(.commit)
        } catch {
            let failure = damage(handle, under: error)
            // After a failed COMMIT the transaction is still open.
            undo(handle)
            throw failure
        }
        return result
    }

    /// The error to report for a body's error, which may be a result of zeros that a failed page
    /// left.
    func damage(_ handle: Handle, under error: any Error) -> any Error {
        if let known = error as? StoreError, known.code == .damaged { return known }
        guard handle.isInTransaction, let found = handle.probeFailure(), found.code == .damaged
        else { return error }
        return StoreError(
            found.code, found.message, hint: found.hint, pages: found.pages, cause: error)
    }

    /// The damage that made a rollback to a savepoint fail; otherwise `nil`. Of everything that
    /// fails with code 1 there, only damage ends the transaction or shows in the probe.
    private static func damage(_ handle: Handle, under failure: StoreError) -> StoreError? {
        guard failure.resultCode.map({ $0 & 0xff }) == SQLITE_ERROR, !handle.isClosed else {
            return nil
        }
        guard handle.isInTransaction else { return handle.namingPages(Probe.damaged(sql: nil)) }
        return handle.probeFailure()
    }

    /// The reason why a transaction is no longer open at the end of its body.
    static func ended(_ handle: Handle) -> StoreError {
        handle.isClosed ? closed : rolledBack(cause: nil)
    }

    static func rolledBack(cause: (any Error)?) -> StoreError {
        // Damage ends a transaction too, and the caller must know about it.
        if let known = cause as? StoreError, [.rolledBack, .damaged].contains(known.code) {
            return known
        }
        return StoreError(
            .rolledBack, "SQLite rolled back the whole transaction",
            hint: "Run it again.", cause: cause)
    }

    // MARK: Statements outside a transaction

    /// Opens the transaction around a statement that runs outside one.
    func statementWillStep(_ statement: Statement) throws(StoreError) {
        let handle = try current()
        guard !statement.wasAbandoned else {
            statement.wasAbandoned = false
            throw StoreError(
                .cancelled,
                "the statement ended in the middle of its rows, with its transaction: an interrupt "
                    + "or a failure ended both", hint: "Run it again.",
                sql: statement.sql)
        }
        // SQLite has rolled back the body's transaction, so nothing may run as if outside one.
        if transactionState.isInBody, !handle.isInTransaction { throw Self.rolledBack(cause: nil) }
        // The owner has begun this transaction.
        if handle.isAdopted, !handle.controls.isBegun, handle.isInTransaction {
            try handle.followOwner()
        }
        if let verb = statement.transactionVerb { try allow(verb, handle) }
        if !handle.isInTransaction {
            if !statement.isControl {
                try handle.run(.begin)
                transactionState.beginImplicit()
            } else if statement.transactionVerb == nil {
                if handle.controls.isBegun || handle.schemaState.isSuspect {
                    try handle.requireAuthenticSchema()
                }
                // It may load the schema, and no probed transaction surrounds it.
                handle.schemaState.isSuspect = true
            }
        }
        if transactionState.isImplicit { statement.implicitID = transactionState.countCursor() }
    }

    /// Continues statements that still have a current row when their transaction has ended, in one
    /// that Coffer opens. Outside any transaction their end would not be probed.
    func continueCursors(_ handle: Handle) {
        guard handle.runningCount > 0, !handle.isClosed, !handle.isInTransaction else { return }
        let running = statements.values.compactMap(\.statement).filter(\.isRunning)
        guard !running.isEmpty else { return }
        guard (try? handle.run(.begin)) != nil else { return abandonRunningStatements() }
        let id = transactionState.beginImplicit(cursorCount: running.count)
        for statement in running { statement.implicitID = id }
    }

    /// Checks transaction SQL of the user, even if it was compiled before the body or cursor began.
    private func allow(_ verb: String, _ handle: Handle) throws(StoreError) {
        try requireUnmanaged(verb)
        // Everything read in the user's own transaction must be authentic before the commit.
        if verb == "COMMIT" || verb == "RELEASE", handle.isInTransaction { try probe() }
        if verb == "ROLLBACK" {
            handle.judgeSchemaBeforeRollback()
            handle.transactionWillRollBack()
        }
        if handle.schemaState.isSuspect, !handle.isInTransaction {
            try handle.requireAuthenticSchema()
        }
        forgetAttachments()
        // ROLLBACK TO may read pages again without counting them.
        handle.probing.cleanMissCount = nil
    }

    /// Commits when the last statement in the implicit transaction has ended, or at once if the
    /// ended one wrote. A write that has returned is durable even while another statement has a
    /// current row.
    func statementEnded(_ statement: Statement) throws(StoreError) {
        let id = statement.implicitID
        statement.implicitID = 0
        guard id != 0 else {
            // COMMIT and ROLLBACK as SQL text.
            if statement.transactionVerb != nil, let handle {
                handle.controls.isBegun = handle.isInTransaction
                if statement.transactionVerb == "ROLLBACK" { try rolledBackAsText(handle) }
                continueCursors(handle)
            }
            return
        }
        try cursorEnded(in: id, isReadOnly: statement.isReadOnly)
    }

    /// Reads restored pages again after ROLLBACK or ROLLBACK TO as SQL text.
    private func rolledBackAsText(_ handle: Handle) throws(StoreError) {
        guard handle.isInTransaction else { return endRowsOfRestoredPages(handle) }
        handle.mayMisreadPages = false
        try rereadFirstPages(handle)
    }

    /// As `Handle.rereadFirstPages()`; rolls the transaction back if that fails.
    func rereadFirstPages(_ handle: Handle) throws(StoreError) {
        do throws(StoreError) {
            try handle.rereadFirstPages()
        } catch {
            undo(handle)
            throw Self.rolledBack(cause: error)
        }
    }

    /// Drops pages that a rollback has restored. Ends the statements that have a current row,
    /// because they keep page 1 in the cache.
    func endRowsOfRestoredPages(_ handle: Handle) {
        guard handle.mayMisreadPages else { return }
        if handle.runningCount > 0 { abandonRunningStatements() }
        handle.dropRestoredPages()
    }

    /// Ends a statement or cursor that counted in an implicit transaction.
    func cursorEnded(in id: Int, isReadOnly: Bool) throws(StoreError) {
        guard let cursorCount = transactionState.removeCursor(from: id),
            cursorCount == 0 || !isReadOnly
        else { return }
        let handle = try current()
        do throws(StoreError) {
            try probe()
            try handle.run(.commit)
        } catch {
            abandonImplicit(handle)
            throw error
        }
        transactionState.endImplicit()
        guard cursorCount > 0 else { return }
        // The write is durable and its verb returns, whatever happens to the cursors.
        guard (try? handle.run(.begin)) != nil else { return abandonRunningStatements() }
        transactionState.continueImplicit(id, cursorCount: cursorCount)
    }

    /// Rolls back when the last statement in the implicit transaction has failed, or one that
    /// wrote: its changes before the failure (`OR FAIL`) are undone. Cursors with a current row
    /// continue.
    func statementFailed(_ statement: Statement) {
        let id = statement.implicitID
        statement.implicitID = 0
        if let handle, handle.controls.isBegun, !handle.isInTransaction {
            handle.transactionMayHaveRolledBack()
            endRowsOfRestoredPages(handle)
        }
        cursorFailed(in: id, isReadOnly: statement.isReadOnly)
    }

    /// Handles the failure of a statement or cursor that counted in an implicit transaction.
    func cursorFailed(in id: Int, isReadOnly: Bool) {
        guard let handle, let cursorCount = transactionState.removeCursor(from: id) else { return }
        let isOver = cursorCount == 0 || !handle.isInTransaction
        guard isOver || !isReadOnly else { return }
        guard abandonImplicit(handle), cursorCount > 0, (try? handle.run(.begin)) != nil else {
            return
        }
        transactionState.continueImplicit(id, cursorCount: cursorCount)
    }

    /// - Returns: Whether statements with a current row continue.
    @discardableResult
    private func abandonImplicit(_ handle: Handle) -> Bool {
        transactionState.endImplicit()
        return undo(handle)
    }
}
