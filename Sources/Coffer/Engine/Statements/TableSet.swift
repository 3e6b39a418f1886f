/// Tables of the main file that something reads or writes, by name, in lower case.
struct TableSet: Sendable, Equatable {
    private(set) var names: Set<String> = []
    /// Whether it may be any table: what cannot be told counts for all of them.
    private(set) var isEverything = false

    init(_ names: Set<String> = []) {
        self.names = names
    }

    static let everything: TableSet = {
        var set = TableSet()
        set.insertEverything()
        return set
    }()

    /// The table of contents: a change of the schema is a change of it.
    static let schemaTable = "sqlite_master"

    var isEmpty: Bool { names.isEmpty && !isEverything }

    mutating func insert(_ name: String) {
        if !isEverything { names.insert(name) }
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

/// Is told what a connection is about to touch, as long as somebody observes.
protocol TouchObserver: AnyObject {
    /// A statement begins to run.
    func willRun(_ statement: Statement, on connection: Connection)
    /// A blob is opened for writing, which neither a statement nor a trigger sees.
    func willWrite(_ cell: BlobCell, on connection: Connection)
}

extension Handle {
    /// Lets the observer look at what is about to run.
    ///
    /// It asks by statements of its own. EXPLAIN of a statement that writes counts as one: if it is
    /// interrupted, SQLite undoes the whole transaction, and what then ran would be committed by
    /// itself.
    ///
    /// - Throws: `.rolledBack` if the transaction has ended meanwhile.
    func tellObserver(_ tell: (any TouchObserver) -> Void) throws(StoreError) {
        guard let observer = touchObserver else { return }
        let wasInTransaction = isInTransaction
        tell(observer)
        if wasInTransaction, !isInTransaction { throw Connection.rolledBack(cause: nil) }
    }
}
