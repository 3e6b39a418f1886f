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
    /// - Throws: Errors of `body`, after the rollback; `StoreError` `.damaged`, with the body's
    ///   error as its cause, if a page that was read failed authentication; `.rolledBack` if SQLite
    ///   ended the transaction before `body` returned; `.busy`, `.constraint` for a deferred
    ///   foreign key, `.full`, `.io` if the commit failed; `.misuse` inside another transaction and
    ///   while a statement has a current row. After every error nothing is committed.
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
    /// - Throws: Errors of `body`; `StoreError` `.misuse` outside a transaction. `.rolledBack` with
    ///   the cause if the whole transaction has ended: SQLite ended it, or could not roll back only
    ///   the savepoint. If the cause is `.damaged`, that error itself.
    @discardableResult
    public func savepoint<T>(_ body: () throws -> T) throws -> T {
        let handle = try current()
        guard isInTransaction else {
            throw StoreError(
                .misuse, "a savepoint needs a transaction around it", hint: "Use transaction(_:_:)."
            )
        }
        let name = "coffer_\(transactionState.savepointDepth)"
        let undoPoint = handle.touchObserver?.undoPoint
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
                if let undoPoint { handle.touchObserver?.didUndo(to: undoPoint) }
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

    /// Runs `body` in a savepoint, with typed errors.
    func undoing<T>(_ body: () throws(StoreError) -> T) throws(StoreError) -> T {
        do {
            return try savepoint(body)
        } catch let error as StoreError {
            throw error
        } catch {
            throw StoreError(.sql, "a part of the transaction failed", cause: error)
        }
    }

    /// Runs the body of an open transaction, then commits if the MACs of all pages that it read
    /// fit.
    ///
    /// - Returns: The result of `body`, after the commit.
    /// - Throws: Errors of `body`; `.damaged`, with the body's error as its cause, if a MAC does
    ///   not fit; `.rolledBack` if SQLite ended the transaction; `.closed` if `body` closed the
    ///   connection; errors of COMMIT. The transaction is then rolled back.
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

    /// The error to throw for an error of a body: `.damaged` with `error` as its cause if the open
    /// transaction has read a page whose MAC does not fit; otherwise `error`.
    ///
    /// Such a page reads as zeros, which may be the reason for `error`. An `error` that is
    /// `.damaged` itself is returned as it is.
    func damage(_ handle: Handle, under error: any Error) -> any Error {
        if let known = error as? StoreError, known.code == .damaged { return known }
        guard handle.isInTransaction, let found = handle.probeFailure(), found.code == .damaged
        else { return error }
        return StoreError(
            found.code, found.message, hint: found.hint, pages: found.pages, cause: error)
    }

    /// The `.damaged` error behind the failure of ROLLBACK TO; `nil` if something else made it
    /// fail. Of everything that fails with code 1 there, only damage ends the transaction or makes
    /// `probeFailure()` return an error.
    private static func damage(_ handle: Handle, under failure: StoreError) -> StoreError? {
        guard failure.resultCode.map({ $0 & 0xff }) == SQLITE_ERROR, !handle.isClosed else {
            return nil
        }
        guard handle.isInTransaction else { return handle.namingPages(Probe.damaged(sql: nil)) }
        return handle.probeFailure()
    }

    /// The error for a transaction that is no longer open at the end of its body: `.closed` if the
    /// handle is closed, otherwise `.rolledBack`.
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

    /// Checks that a statement may begin its run, and opens the implicit transaction around a
    /// statement that runs outside a transaction.
    ///
    /// Transaction SQL, and statements that control files or settings, get no such transaction.
    ///
    /// - Throws: `.cancelled` once if `abandonRunningStatements()` has ended the last run;
    ///   `.rolledBack` in a body whose transaction SQLite has ended; `.misuse` for transaction SQL
    ///   where `requireUnmanaged(_:)` refuses it; `.damaged` for COMMIT or RELEASE after a page has
    ///   failed; errors of BEGIN.
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
        if statement.changesSchema { try requireKeptDates(statement) }
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

    /// Opens an implicit transaction for the statements that still have a current row after their
    /// transaction has ended. Outside any transaction nothing would check the pages they read.
    ///
    /// Does nothing inside a transaction or without such statements. If BEGIN fails, the statements
    /// end, and their next step throws `.cancelled`.
    func continueCursors(_ handle: Handle) {
        guard handle.runningCount > 0, !handle.isClosed, !handle.isInTransaction else { return }
        let running = statements.live.filter(\.isRunning)
        guard !running.isEmpty else { return }
        guard (try? handle.run(.begin)) != nil else { return abandonRunningStatements() }
        let id = transactionState.beginImplicit(cursorCount: running.count)
        for statement in running { statement.implicitID = id }
    }

    /// Checks that transaction SQL of the user may run, even if it was compiled before the body or
    /// cursor began.
    ///
    /// - Throws: As `requireUnmanaged(_:)`; for COMMIT and RELEASE also as `probe()`.
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
    /// current row. After COMMIT or ROLLBACK as SQL text, continues the remaining statements.
    ///
    /// - Throws: As `cursorEnded(in:isReadOnly:)`; `.rolledBack` if page 1 could not be read again
    ///   after ROLLBACK TO.
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

    /// Reads restored pages again after ROLLBACK or ROLLBACK TO as SQL text. After ROLLBACK TO it
    /// throws as `rereadFirstPages(_:)`.
    private func rolledBackAsText(_ handle: Handle) throws(StoreError) {
        guard handle.isInTransaction else { return endRowsOfRestoredPages(handle) }
        handle.mayMisreadPages = false
        try rereadFirstPages(handle)
    }

    /// As `Handle.rereadFirstPages()`, but rolls the whole transaction back if that fails.
    ///
    /// - Throws: `.damaged` if damage made it fail; otherwise `.rolledBack` with the cause.
    func rereadFirstPages(_ handle: Handle) throws(StoreError) {
        do throws(StoreError) {
            try handle.rereadFirstPages()
        } catch {
            undo(handle)
            throw Self.rolledBack(cause: error)
        }
    }

    /// Empties the page cache if `mayMisreadPages` is set; otherwise does nothing. First ends the
    /// statements that have a current row, because they keep page 1 in the cache: their next step
    /// throws `.cancelled`.
    func endRowsOfRestoredPages(_ handle: Handle) {
        guard handle.mayMisreadPages else { return }
        if handle.runningCount > 0 { abandonRunningStatements() }
        handle.dropRestoredPages()
    }

    /// Removes a statement or cursor that has ended from the implicit transaction `id`. Commits if
    /// it wrote or was the last one; the others continue in a new transaction of the same id.
    ///
    /// Does nothing if `id` is not the open implicit transaction.
    ///
    /// - Parameter isReadOnly: Whether the statement or cursor only read.
    /// - Throws: `.damaged` if a page that was read failed; errors of COMMIT. The transaction is
    ///   then rolled back.
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

    /// Removes a failed statement from its implicit transaction. Rolls back if it was the last one
    /// or wrote: its changes before the failure (`OR FAIL`) are undone. Cursors with a current row
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

    /// Removes a statement or cursor that has failed from the implicit transaction `id`. Rolls back
    /// if it wrote, was the last one, or SQLite has ended the transaction. The others then continue
    /// in a new transaction of the same id, unless the rollback had to end them.
    ///
    /// Does nothing if `id` is not the open implicit transaction.
    func cursorFailed(in id: Int, isReadOnly: Bool) {
        guard let handle, let cursorCount = transactionState.removeCursor(from: id) else { return }
        let isOver = cursorCount == 0 || !handle.isInTransaction
        guard isOver || !isReadOnly else { return }
        guard abandonImplicit(handle), cursorCount > 0, (try? handle.run(.begin)) != nil else {
            return
        }
        transactionState.continueImplicit(id, cursorCount: cursorCount)
    }

    /// Ends the implicit transaction and rolls it back.
    ///
    /// - Returns: As `undo(_:)`.
    @discardableResult
    private func abandonImplicit(_ handle: Handle) -> Bool {
        transactionState.endImplicit()
        return undo(handle)
    }
}
