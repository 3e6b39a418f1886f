/// Combines the recorded entries: what happened to each row from beginning to end.
///
/// A row that was inserted and deleted again yields no change. A row that was deleted and inserted
/// under its old key was updated.
struct RowMarks {
    private struct Fate {
        /// Whether the row existed before: only a first mark of `inserted` says that it did not.
        let wasThere: Bool
        var last: ChangeTriggers.Mark
        /// Whether more happened to it than that it conflicted with another row.
        var isTouched: Bool
    }

    /// A row of a table, by the number that the caller has given the table.
    struct Row: Hashable {
        let table: Int
        let key: Key

        /// Whether both are rows of one table with integer keys, of which this one is less.
        func isBefore(_ other: Row) -> Bool {
            guard table == other.table, case .integer(let key) = key,
                case .integer(let otherKey) = other.key
            else { return false }
            return key < otherKey
        }
    }

    /// Identifies a row. Most keys are one integer, which compares faster than a list of values.
    enum Key: Hashable {
        case integer(Int64)
        case values([Value])

        init(_ values: [Value]) {
            if case .integer(let integer)? = values.first, values.count == 1 {
                self = .integer(integer)
            } else {
                self = .values(values)
            }
        }

        var values: [Value] {
            switch self {
            case .integer(let integer): [.integer(integer)]
            case .values(let values): values
            }
        }
    }

    private var rows: [(row: Row, fate: Fate)] = []
    /// The positions of rows; none while each row has a greater integer key than the one before.
    private var positions: [Row: Int] = [:]
    private var isAscending = true

    mutating func add(_ mark: ChangeTriggers.Mark, _ row: Row) {
        let isTouch = mark != .threatened
        guard let position = position(of: row) else {
            rows.append(
                (row, Fate(wasThere: mark != .inserted, last: mark, isTouched: isTouch)))
            return
        }
        rows[position].fate.last = mark
        if isTouch { rows[position].fate.isTouched = true }
    }

    /// The position of a row; `nil` for a new one, which comes last.
    private mutating func position(of row: Row) -> Int? {
        if isAscending {
            guard let last = rows.last?.row else { return nil }
            if last == row { return rows.count - 1 }
            if last.isBefore(row) { return nil }
            isAscending = false
            positions.reserveCapacity(2 * rows.count)
            for index in rows.indices { positions[rows[index].row] = index }
        }
        let position = positions[row, default: rows.count]
        guard position == rows.count else { return position }
        positions[row] = position
        return nil
    }

    /// What happened to each row from the first mark to the last, in the order of the rows' first
    /// marks. Rows that are as before, or that were only threatened, are not listed.
    ///
    /// - Parameters:
    ///   - names: The names of the tables, by their numbers.
    ///   - exists: Whether a row exists now; called for rows whose marks do not show it.
    /// - Throws: What `exists` throws.
    func changes(
        named names: [String], exists: (Row) throws(StoreError) -> Bool
    ) throws(StoreError) -> [ChangedRow] {
        var changes: [ChangedRow] = []
        changes.reserveCapacity(rows.count)
        for (row, fate) in rows {
            let isThere =
                switch fate.last {
                case .threatened: try exists(row)
                case .inserted, .updated: true
                case .deleted: false
                }
            let kind: ChangedRow.Kind? =
                switch (fate.wasThere, isThere) {
                case (true, true): fate.isTouched ? .update : nil
                case (true, false): .delete
                case (false, true): .insert
                case (false, false): nil
                }
            if let kind {
                changes.append(
                    ChangedRow(table: names[row.table], key: row.key.values, kind: kind))
            }
        }
        return changes
    }
}
