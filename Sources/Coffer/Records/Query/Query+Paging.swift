extension Query {
    /// The rows after a record, in the order of the query and then of the key: the next page, at
    /// the cost of the first.
    ///
    /// ```swift
    /// let query = Note.order(by: \.created, .descending).inOrderOfKey().limit(20)
    /// let first = try tx.fetch(query)
    /// let second = try tx.fetch(query.after(first[19]))
    /// ```
    ///
    /// The first page needs ``inOrderOfKey()`` where two rows may compare equal, because their
    /// order is otherwise SQLite's choice. Without an index of the columns of the order, every page
    /// sorts. Where the order begins with an optional property, descending, each page reads the
    /// index from its beginning.
    ///
    /// - Parameter record: The last record of the page before; its row may have been deleted. Its
    ///   values are compared as they are stored: see <doc:Queries>.
    /// - Note: The verb that uses the query throws its errors: `.misuse` for a type or a record
    ///   without a key, for a column without an order, and for a join in another order.
    public func after(_ record: R) -> Query {
        var query = inOrderOfKey()
        query.offset = 0
        query.isPage = true
        do throws(StoreError) {
            let place = PageEnd(
                plan: try RecordPlan.of(R.self),
                values: try RecordValues.of(record, at: query.order.compactMap(\.position)))
            return query.where(Condition(try place.behind(query.order[...])))
        } catch {
            return query.where(Condition(SQL(failure: error)))
        }
    }

    /// The same query with the key after the orders given so far, so that no two rows compare
    /// equal.
    ///
    /// - Note: The verb that uses the query throws `.misuse` for a type without a key.
    public func inOrderOfKey() -> Query {
        var query = self
        do throws(StoreError) {
            let plan = try RecordPlan.of(R.self)
            try plan.requireKey(for: "paging")
            let known = order.compactMap(\.position)
            let direction = order.last?.order ?? .ascending
            for position in plan.keyPositions where !known.contains(position) {
                query.order.append(OrderTerm(plan, at: position, direction))
            }
        } catch {
            query.order.append(OrderTerm(failure: error))
        }
        return query
    }
}

/// The end of a page, as values of columns.
private struct PageEnd {
    let plan: RecordPlan
    let values: [Value]

    /// True for rows that come later by the first term, or are equal by it and later by the rest.
    func behind(_ terms: ArraySlice<OrderTerm>) throws(StoreError) -> SQL {
        guard let term = terms.first else { return "0" }
        guard let position = term.position else {
            guard term.column.failure == nil else { return term.column }
            throw StoreError(
                .misuse, "pages follow columns, and a calculation or JSON orders the query",
                hint: "Order by a property that holds the result.", table: plan.table)
        }
        try plan.requireOrder(of: position)
        let (column, value) = (term.column, values[position])
        let isDate = plan.columns[position].kind == .date && plan.columns[position].encoding == nil
        let place = ConditionColumn(plan, at: position)
            .sql("?", [ConditionValue(value: value, isDate: isDate && value != .null)])
        // A row id property is only `nil` in a record that is not stored yet.
        let isNullable = plan.columns[position].isNullable && position != plan.rowIDPosition
        guard value != .null || isNullable else {
            throw StoreError(
                .misuse, "the record has no key, so a page cannot begin after it",
                hint: "Pass a record that was fetched.", table: plan.table,
                column: plan.columns[position].name)
        }
        // IS also compares with NULL.
        let isTied: SQL = "(\(column) IS \(place) AND \(try behind(terms.dropFirst())))"
        switch (term.order, value) {
        // NULL sorts before all other values.
        case (.ascending, .null): return "(\(column) IS NOT NULL OR \(isTied))"
        case (.descending, .null): return isTied
        case (.descending, _) where isNullable:
            return "(\(column) < \(place) OR \(column) IS NULL OR \(isTied))"
        default:
            let sign = SQL(text: term.order == .ascending ? ">" : "<")
            guard terms.count > 1 else { return "\(column) \(sign) \(place)" }
            let isBehind: SQL = "(\(column) \(sign) \(place) OR \(isTied))"
            // The first comparison is redundant, but an index can answer it.
            return "(\(column) \(sign)= \(place) AND \(isBehind))"
        }
    }
}
