/// Learns what a connection is about to touch, while somebody observes the store.
protocol TouchObserver: AnyObject {
    /// Called before a statement begins to run.
    func willRun(_ statement: Statement, on connection: Connection)
    /// Called before a blob is opened for writing, which no statement or trigger shows.
    func willWrite(_ cell: BlobCell, on connection: Connection)
    /// Called after a statement that may write has failed.
    func didFail(_ statement: Statement, violatesConstraint: Bool)
    /// The columns by which verbs shall report the rows of a table that they change, quoted; `nil`
    /// if nobody wants to know.
    func wantedKey(of table: String) -> [String]?
    /// Called after a verb has changed one row of a table, whose columns of the key have these
    /// values.
    func didChange(_ change: ReportedChange)
    /// The state to which `didUndo(to:)` may go back: taken when a savepoint begins.
    var undoPoint: Int { get }
    /// Called after the changes since the savepoint have been undone.
    func didUndo(to point: Int)
}

/// A change of one row that a verb of Coffer reports.
struct ReportedChange {
    enum Kind {
        case insertion, update, deletion
    }

    let kind: Kind
    /// The table's name, in any case of ASCII letters.
    let table: String
    let key: [Value]
}

/// Nothing to do for the observer of a read, which changes no row.
extension TouchObserver {
    func didFail(_ statement: Statement, violatesConstraint: Bool) {}
    func wantedKey(of table: String) -> [String]? { nil }
    func didChange(_ change: ReportedChange) {}
    var undoPoint: Int { 0 }
    func didUndo(to point: Int) {}
}

extension Handle {
    /// Calls `tell` with the handle's observer; does nothing without one.
    ///
    /// The observer runs statements to do so. SQLite counts EXPLAIN of a write as a write: if it is
    /// interrupted, SQLite rolls back the whole transaction. The observed statement would then run
    /// outside it, and commit by itself.
    ///
    /// - Throws: `.rolledBack` if the open transaction ended while `tell` ran.
    func tellObserver(_ tell: (any TouchObserver) -> Void) throws(StoreError) {
        guard let observer = touchObserver else { return }
        let wasInTransaction = isInTransaction
        tell(observer)
        if wasInTransaction, !isInTransaction { throw Connection.rolledBack(cause: nil) }
    }
}
