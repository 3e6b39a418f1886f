/// The transaction that Coffer manages on a connection. Only these methods change it.
struct TransactionState {
    /// Whether the body of a transaction runs, so that only Coffer may end the transaction.
    private(set) var isInBody = false
    /// The number of open `savepoint(_:)` bodies.
    private(set) var savepointDepth = 0
    /// The id of the implicit transaction; 0 while none is open. No other group of statements gets
    /// the same id, so a statement can tell whether it belongs to the open one.
    private(set) var implicitID = 0
    /// The number of statements and cursors that have a current row in the implicit transaction.
    private(set) var cursorCount = 0
    private var lastImplicitID = 0

    /// Whether a transaction is open that Coffer has begun around statements which the user runs
    /// outside one. Only inside a transaction does the probe see that a page failed authentication.
    var isImplicit: Bool { implicitID != 0 }

    // MARK: Bodies

    /// Lets only Coffer end the transaction, until `leaveBody`.
    mutating func enterBody(_ handle: Handle) {
        isInBody = true
        handle.authorizer.isInBody = true
    }

    /// Allows the user to end the transaction again, unless an outer body still runs.
    ///
    /// - Parameter isInBody: Whether an outer body still runs.
    mutating func leaveBody(_ handle: Handle, isInBody: Bool = false) {
        self.isInBody = isInBody
        handle.authorizer.isInBody = isInBody
    }

    mutating func openSavepoint() {
        savepointDepth += 1
    }

    mutating func closeSavepoint() {
        savepointDepth -= 1
    }

    // MARK: The implicit transaction

    /// Records that an implicit transaction has begun, with `cursorCount` statements and cursors.
    ///
    /// - Returns: The id of the new implicit transaction, never 0.
    @discardableResult
    mutating func beginImplicit(cursorCount: Int = 0) -> Int {
        lastImplicitID += 1
        continueImplicit(lastImplicitID, cursorCount: cursorCount)
        return lastImplicitID
    }

    /// Records that the implicit transaction `id` continues in a new transaction of SQLite, with
    /// the `cursorCount` statements and cursors that are left.
    mutating func continueImplicit(_ id: Int, cursorCount: Int) {
        implicitID = id
        self.cursorCount = cursorCount
    }

    mutating func endImplicit() {
        implicitID = 0
        cursorCount = 0
    }

    /// Counts one more statement or cursor, and returns the id of the implicit transaction; 0 if
    /// none is open.
    mutating func countCursor() -> Int {
        cursorCount += 1
        return implicitID
    }

    /// Counts one statement or cursor less in the implicit transaction `id`.
    ///
    /// - Returns: How many are left. `nil`, and nothing changes, if `id` is not the open one.
    mutating func removeCursor(from id: Int) -> Int? {
        guard isImplicit, implicitID == id else { return nil }
        cursorCount -= 1
        return cursorCount
    }

    /// Sets everything about the implicit transaction and savepoints to 0. Must run when the
    /// statements of the connection were finalized.
    mutating func reset() {
        endImplicit()
        savepointDepth = 0
    }
}
