/// The changes of rows in one transaction, in order, as the update hook and Coffer's verbs report
/// them.
///
/// SQLite may undo changes that were reported, with a statement or a savepoint: their entries go
/// then, so that those which are left have happened.
struct RowLog {
    enum Entry {
        /// A row of a table, by the number of the table and its row id.
        case row(ChangeTriggers.Mark, table: Int, Int64)
        /// A row of a table, by its key.
        case key(ChangeTriggers.Mark, table: Int, [Value])
        /// From here on, triggers record the rows of a table.
        case triggers(table: Int)
    }

    private(set) var entries: [Entry] = []
    /// Whether more rows have changed than the log holds.
    private(set) var isFull = false
    /// How many of the first entries have no row id that is not the key.
    private var resolvedCount = 0

    var count: Int { entries.count }

    mutating func append(_ entry: Entry) {
        if case .triggers = entry { return entries.append(entry) }
        guard entries.count < RowRecorder.maximumRowCount else {
            isFull = true
            return
        }
        entries.append(entry)
    }

    /// Removes all entries but the first ones.
    mutating func undo(to count: Int) {
        guard count < entries.count else { return }
        entries.removeSubrange(count...)
        resolvedCount = min(resolvedCount, count)
        isFull = false
    }

    /// The tables of the entries from one on.
    func tables(from start: Int) -> Set<Int> {
        Set(
            entries.dropFirst(start).map { entry in
                switch entry {
                case .row(_, let table, _), .key(_, let table, _), .triggers(let table): table
                }
            })
    }

    /// Replaces row ids by keys.
    ///
    /// - Parameters:
    ///   - tables: The tables whose keys are not row ids.
    ///   - key: Reads the key of a row; returns `nil` if the row is gone.
    /// - Returns: The tables of which a row was not found.
    /// - Throws: What `key` throws.
    mutating func resolve(
        _ tables: Set<Int>, _ key: (Int, Int64) throws(StoreError) -> [Value]?
    ) throws(StoreError) -> Set<Int> {
        var lost: Set<Int> = []
        for index in entries.indices.dropFirst(resolvedCount) {
            guard case .row(let mark, let table, let row) = entries[index], tables.contains(table)
            else { continue }
            if let values = try key(table, row) {
                entries[index] = .key(mark, table: table, values)
            } else {
                lost.insert(table)
            }
        }
        resolvedCount = entries.count
        return lost
    }
}
