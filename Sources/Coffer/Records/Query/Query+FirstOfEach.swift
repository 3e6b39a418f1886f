import CSQLCipher

extension Query {
    /// The first rows for each value of some properties, by the order of this query.
    ///
    /// ```swift
    /// // The three newest articles of each author:
    /// let newest = Article.order(by: \.created, .descending).limit(3, per: \.author)
    /// let authors = Author.all.including(all: newest, by: \.author)
    /// ```
    ///
    /// The conditions given before choose the rows that are counted; those given after it choose
    /// among the first ones. `nil` is a value of its own, and texts are told apart by their bytes.
    /// Without an order, or among rows that compare equal, SQLite chooses.
    ///
    /// - Parameters:
    ///   - maximumCount: The maximum number of rows for each value, 0 or more.
    ///   - path: The property that tells the groups apart.
    ///   - others: More of them.
    /// - Note: The verb that uses the query throws `.unsupported` on SQLCipher 3, which is SQLite
    ///   3.15 and has no window functions; `.misuse` for a negative number, for a type without a
    ///   key, and for a query that has a limit. See <https://www.sqlite.org/windowfunctions.html>.
    /// - Complexity: SQLite reads and sorts all rows that the conditions choose.
    public func limit(
        _ maximumCount: Int, per path: PartialKeyPath<R>, _ others: PartialKeyPath<R>...
    ) -> Query {
        var query = self
        do throws(StoreError) {
            query.condition = Condition(try isFirst(maximumCount, per: [path] + others))
        } catch {
            query.condition = Condition(SQL(failure: error))
        }
        return query
    }

    /// True for the rows that are among the first ones.
    private func isFirst(
        _ count: Int, per paths: [PartialKeyPath<R>]
    ) throws(StoreError) -> SQL {
        let plan = try RecordPlan.of(R.self)
        guard coffer_has_window_functions() else {
            throw StoreError(
                .unsupported, "the first rows of each value need SQLCipher 4",
                hint: "Fetch all rows in this order, and keep the first of each value.",
                table: plan.table)
        }
        try plan.requireKey(for: "limit(_:per:)")
        guard count >= 0, maximumCount == nil else {
            throw StoreError(
                .misuse, "the limit is negative, or the query has a limit already",
                hint: "Limit the rows of each value first, then all.", table: plan.table)
        }
        var groups: [String] = []
        for path in paths {
            let column = plan.qualifiedColumns[try plan.position(of: path)]
            // The column's own collation may find two texts equal.
            groups.append("\(column) COLLATE BINARY")
        }
        let keys = plan.keyPositions.map { plan.qualifiedColumns[$0] }
        let names = keys.indices.map { "\"\($0)\"" }.joined(separator: ", ")
        let named = zip(keys, keys.indices).map { "\($0) AS \"\($1)\"" }
        let partition = "PARTITION BY \(groups.joined(separator: ", "))"
        return """
            (\(SQL(text: keys.joined(separator: ", ")))) IN (\
            SELECT \(SQL(text: names)) FROM (\
            SELECT \(SQL(text: named.joined(separator: ", "))), row_number() OVER (\
            \(SQL(text: partition))\(order.clause)) AS number \
            FROM \(SQL(text: plan.quotedTable))\(filter)) WHERE number <= \(count))
            """
    }
}
