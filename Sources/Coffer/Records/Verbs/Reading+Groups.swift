/// Reads groups of rows, and values computed from them.
extension Reading where Self: ~Copyable {
    /// A tuple for each group: the values that make it, and aggregates of its rows.
    ///
    /// ```swift
    /// let delays = try tx.fetch(
    ///     Flight.group(by: \.carrier).order(by: \.carrier), .count, .average(\.delay))
    /// for (carrier, count, mean) in delays { … }
    /// ```
    ///
    /// One statement computes all of them, in one pass over the rows.
    ///
    /// - Parameters:
    ///   - grouping: The rows and their groups.
    ///   - aggregates: The values to compute from the rows of each group.
    /// - Returns: One tuple for each group, in the order of the grouping; without an order, SQLite
    ///   chooses one. Without aggregates, the distinct combinations. A tuple of one value is that
    ///   value.
    /// - Throws: As `fetch(_:)`; `StoreError` `.mismatch` if a sum or a mean is not a number, also
    ///   if only a condition or an order uses it; the errors of the aggregates.
    /// - Complexity: O(*rows*) time and O(*groups*) memory, with an index of the properties that
    ///   make the groups. Otherwise SQLite sorts the rows in memory: O(*rows* × log *rows*) time,
    ///   O(*rows*) memory.
    public func fetch<R: Record, each Key: Codable, each V: Codable>(
        _ grouping: Grouping<R, repeat each Key>, _ aggregates: repeat Aggregation<R, each V>
    ) throws -> [(repeat each Key, repeat each V)] {
        let connection = try connection()
        let table = try RecordTable.of(R.self, connection)
        var types: [any Codable.Type] = []
        var terms: [AggregationTerm] = []
        repeat types.append((each Key).self)
        repeat types.append((each V).self)
        repeat terms.append(try (each aggregates).term.get())
        let groups = try GroupReader(
            table, try grouping.keyPositions(), terms, types,
            as: (repeat each Key, repeat each V).self)
        let failures = GroupFailures(
            grouping.failures(terms), decidingCount: grouping.decidingFailures.count,
            skipCount: grouping.skipCount)
        let sql = try grouping.selectSQL(terms, table.plan)
        return try table.read(sql, connection, ifMissing: []) { statement throws(StoreError) in
            try groups.all(statement, failures)
        }
    }

    /// Aggregates of all rows of a query, in one pass; `nil` if there are no rows.
    ///
    /// ```swift
    /// let july = Flight.where(\.month == 7)
    /// if let (mean, longest) = try tx.aggregate(july, .average(\.delay), .max(\.delay)) { … }
    /// ```
    ///
    /// - Parameters:
    ///   - query: The rows.
    ///   - aggregates: The values to compute from them.
    /// - Returns: A tuple in the order of the aggregates; for one aggregate its value. `nil` if
    ///   there are no rows, even for a count or a sum.
    /// - Throws: As `fetch(_:)`; `StoreError` `.mismatch` if a sum or a mean is not a number; the
    ///   errors of the aggregates.
    /// - Complexity: O(*rows*) time, O(1) memory; `count(distinct:)` keeps each value. The least
    ///   or the greatest value of an indexed column alone takes O(log *rows*) by `min(_:_:)` or
    ///   `max(_:_:)`.
    public func aggregate<R: Record, each V: Codable>(
        _ query: Query<R>, _ aggregates: repeat Aggregation<R, each V>
    ) throws -> (repeat each V)? {
        try fetch(query.group(), repeat each aggregates).first
    }
}

/// The failures of sums and means that a grouping's SELECT numbers.
private struct GroupFailures {
    private let failures: [AggregationFailure]
    private let decidingCount: Int
    private let skipCount: Int

    init(_ failures: [AggregationFailure], decidingCount: Int, skipCount: Int) {
        (self.failures, self.decidingCount) = (failures, decidingCount)
        self.skipCount = skipCount
    }

    /// Whether a group becomes a tuple.
    ///
    /// - Parameters:
    ///   - state: The last column of its row.
    ///   - skippedCount: How many groups were left out before.
    /// - Throws: `.mismatch` for a failure, but not for one that concerns a left out group alone.
    func isWanted(
        _ state: Int, _ skippedCount: inout Int, _ table: String
    ) throws(StoreError) -> Bool {
        guard state >= 0 else { return false }
        let isSkipped = skippedCount < skipCount
        if isSkipped { skippedCount += 1 }
        let isHarmless = state == 0 || (isSkipped && state > decidingCount)
        guard !isHarmless else { return !isSkipped }
        throw StoreError(
            .mismatch, "the values of a group do not add up to a number",
            hint: "The column has texts or blobs, or infinities of both signs.", table: table,
            column: failures[state - 1].name)
    }
}

/// Reads the rows of a grouping's SELECT as tuples.
private struct GroupReader<Values> {
    private let decoder: RowDecoder
    private let stateColumn: Int
    private let table: String

    /// - Parameters:
    ///   - keys: The positions of the columns whose values make a group.
    ///   - types: Those of the keys, then those of the aggregates.
    init(
        _ table: RecordTable, _ keys: [Int], _ terms: [AggregationTerm],
        _ types: [any Codable.Type], as type: Values.Type
    ) throws(StoreError) {
        let plan = table.plan
        let columns = keys.map { plan.columns[$0] } + terms.map(\.column)
        let stored = try StoredProperties(
            tuple: type, of: zip(types, columns).map { ($0, $1) }, at: Array(columns.indices),
            columnNames: columns.map(\.name), plan)
        decoder = RowDecoder(
            plan, names: keys.map { plan.columns[$0].name } + terms.map(\.name), of: columns,
            stored: stored,
            since2001: ColumnSet(
                (keys + terms.map { $0.position ?? -1 }).enumerated()
                    .filter { $1 >= 0 && table.since2001.contains(Int32($1)) }.map(\.offset)))
        stateColumn = columns.count
        self.table = plan.table
    }

    func all(
        _ statement: Statement, _ failures: GroupFailures
    ) throws(StoreError) -> [Values] {
        var skippedCount = 0
        return try decoder.allTuples(Values.self, statement) { () throws(StoreError) in
            let state = try statement.column(stateColumn, as: Int.self)
            return try failures.isWanted(state, &skippedCount, table)
        }
    }
}
