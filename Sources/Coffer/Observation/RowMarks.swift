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

    struct Row: Hashable {
        private let name: SQLText
        let key: [Value]

        /// The table's name.
        var table: String { name.text }

        init(table: String, key: [Value]) {
            (name, self.key) = (SQLText(table), key)
        }
    }

    private var order: [Row] = []
    private var fates: [Row: Fate] = [:]

    mutating func add(_ mark: ChangeTriggers.Mark, _ row: Row) {
        let isTouch = mark != .threatened
        guard var fate = fates[row] else {
            order.append(row)
            fates[row] = Fate(wasThere: mark != .inserted, last: mark, isTouched: isTouch)
            return
        }
        fate.last = mark
        fate.isTouched = fate.isTouched || isTouch
        fates[row] = fate
    }

    /// What happened to each row from the first mark to the last, in the order of the rows' first
    /// marks. Rows that are as before, or that were only threatened, are not listed.
    ///
    /// - Parameter exists: Whether a row exists now; called for rows whose marks do not show it.
    /// - Throws: What `exists` throws.
    func changes(
        exists: (Row) throws(StoreError) -> Bool
    ) throws(StoreError) -> [ChangedRow] {
        var changes: [ChangedRow] = []
        for row in order {
            guard let fate = fates[row] else { continue }
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
                changes.append(ChangedRow(table: row.table, key: row.key, kind: kind))
            }
        }
        return changes
    }
}
