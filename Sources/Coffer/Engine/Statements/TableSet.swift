/// Tables of the main file that something reads or writes, by name, in lower case.
struct TableSet: Sendable, Equatable {
    /// Compared byte for byte, as SQLite compares all letters but those of ASCII.
    private(set) var names: Set<SQLText> = []
    /// Whether it stands for every table, because the actual tables are unknown.
    private(set) var isEverything = false

    init(_ names: Set<String> = []) {
        self.names = Set(names.map(SQLText.init))
    }

    static let everything: TableSet = {
        var set = TableSet()
        set.insertEverything()
        return set
    }()

    /// The schema table, to which every change of the schema writes.
    static let schemaTable = "sqlite_master"

    var isEmpty: Bool { names.isEmpty && !isEverything }

    mutating func insert(_ name: String) {
        if !isEverything { names.insert(SQLText(name)) }
    }

    mutating func insertEverything() {
        isEverything = true
        names = []
    }

    mutating func formUnion(_ other: TableSet) {
        if other.isEverything { insertEverything() }
        if !isEverything { names.formUnion(other.names) }
    }

    func intersects(_ other: TableSet) -> Bool {
        if isEmpty || other.isEmpty { return false }
        if isEverything || other.isEverything { return true }
        return !names.isDisjoint(with: other.names)
    }
}

/// Learns what a connection is about to touch, while somebody observes the store.
protocol TouchObserver: AnyObject {
    /// Called before a statement begins to run.
    func willRun(_ statement: Statement, on connection: Connection)
    /// Called before a blob is opened for writing, which no statement or trigger shows.
    func willWrite(_ cell: BlobCell, on connection: Connection)
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
