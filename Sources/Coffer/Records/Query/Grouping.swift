/// Groups of a query's rows. The rows of a group have the same values of some properties.
///
/// ```swift
/// let busiest = Flight.where(\.month == 7).group(by: \.carrier)
///     .having(.count > 100).order(by: .average(\.delay), .descending).limit(3)
/// let delays = try tx.fetch(busiest, .count, .average(\.delay))
/// ```
///
/// `nil` makes a group of its own. Texts are compared by their bytes. Different stored values make
/// different groups, even if they decode as equal Swift values: `é` in two forms, or one `UUID` in
/// upper and lower case. So make a dictionary of them with `Dictionary(_:uniquingKeysWith:)`.
///
/// A grouping is a value and runs nothing by itself. The verb that uses it throws its errors.
public struct Grouping<R: Record, each Key: Codable>: Sendable {
    private let query: Query<R>
    /// The positions of the properties' columns.
    private let keys: Result<[Int], StoreError>
    private var condition: GroupCondition<R>?
    private var order: [OrderTerm] = []
    /// The columns that the order needs.
    private var orderPositions: Set<Int> = []
    private var orderFailures: [AggregationFailure] = []
    private var maximumCount: Int?
    private var offset = 0

    fileprivate init(_ query: Query<R>, by paths: [PartialKeyPath<R>]) {
        self.query = query
        keys = Result { () throws(StoreError) in
            let plan = try RecordPlan.of(R.self)
            var positions: [Int] = []
            for path in paths {
                let position = try plan.position(of: path)
                try plan.requireLoaded(position)
                positions.append(position)
            }
            return positions
        }
    }

    /// The groups that also fulfil this condition. Limits apply after it.
    ///
    /// ```swift
    /// Order.group(by: \.customer).having(.max(\.isPaid) == false)  // no paid order
    /// ```
    public func having(_ condition: GroupCondition<R>) -> Grouping {
        var grouping = self
        grouping.condition = self.condition.map { $0 && condition } ?? condition
        return grouping
    }

    /// The groups in the order of one of the properties that make them; orders given earlier take
    /// precedence. Texts sort by their bytes.
    ///
    /// - Note: The verb that uses the grouping throws `.misuse` for any other property, and for a
    ///   column whose stored text does not sort as its values do.
    public func order<V>(
        by path: KeyPath<R, V>, _ order: QueryOrder = .ascending
    ) -> Grouping {
        var grouping = self
        var term = OrderTerm(path, order)
        if term.column.failure == nil, case .success(let keys) = keys {
            // The same as in GROUP BY, so that SQLite need not sort again.
            term =
                term.position.map(keys.contains) == true
                ? OrderTerm(sql: "\(term.column) COLLATE BINARY", order)
                : OrderTerm(
                    failure: StoreError(
                        .misuse, "the groups have no value of \(String(reflecting: path))",
                        hint: "Order by a property that makes the groups, or by an aggregate."))
        }
        grouping.order.append(term)
        return grouping
    }

    /// The groups in the order of an aggregate; orders given earlier take precedence.
    public func order<V>(
        by aggregate: Aggregation<R, V>, _ order: QueryOrder = .ascending
    ) -> Grouping {
        var grouping = self
        do throws(StoreError) {
            let term = try aggregate.term.get()
            grouping.order.append(OrderTerm(sql: term.sql, order))
            grouping.orderPositions.formUnion(term.positions)
            if let failure = term.failure {
                grouping.orderFailures = grouping.orderFailures.union([failure])
            }
        } catch {
            grouping.order.append(OrderTerm(failure: error))
        }
        return grouping
    }

    /// The first groups only.
    ///
    /// - Parameters:
    ///   - maximumCount: The maximum number of groups, 0 or more.
    ///   - offset: The number of groups to skip before them, 0 or more.
    /// - Note: The verb that uses the grouping throws `.misuse` for a negative number.
    public func limit(_ maximumCount: Int, offset: Int = 0) -> Grouping {
        // SQLite would treat a negative number as no limit.
        guard maximumCount >= 0, offset >= 0 else {
            let negative = StoreError(.misuse, "the limit or the offset is negative")
            return having(GroupCondition(SQL(failure: negative)))
        }
        var grouping = self
        (grouping.maximumCount, grouping.offset) = (maximumCount, offset)
        return grouping
    }

    // MARK: SQL

    /// The positions of the columns whose values make a group.
    func keyPositions() throws(StoreError) -> [Int] { try keys.get() }

    /// The SELECT of the groups. Its columns are the keys, the aggregates and a state.
    ///
    /// The state of a group without a failure is 0. For a failed one it is the place of the failure
    /// in `failures(_:)`, counted from 1. A row with -1 is not a group: no row fulfils the query,
    /// or the condition is false.
    func selectSQL(_ terms: [AggregationTerm], _ plan: RecordPlan) throws(StoreError) -> SQL {
        let keys = try keys.get().map { plan.qualifiedColumns[$0] }
        var sql: SQL = "SELECT "
        for column in keys.map({ SQL(text: $0) }) + terms.map(\.sql) { sql.append("\(column), ") }
        sql.append(state(of: failures(terms), isOfAll: keys.isEmpty))
        sql.append(" FROM ")
        sql.append(query.source(of: try positions(terms), plan))
        if !keys.isEmpty {
            // COLLATE BINARY compares bytes, whatever the column's own collation.
            let compared = keys.map { "\($0) COLLATE BINARY" }.joined(separator: ", ")
            sql.append(SQL(text: " GROUP BY \(compared)"))
            if let condition { sql.append(" HAVING \(having(condition))") }
        }
        var order = order
        if maximumCount != nil, !decidingFailures.isEmpty {
            // No limit cuts off a failure that decides which groups come.
            let failed: SQL = "(\(decidingFailures.sql))"
            order.insert(OrderTerm(sql: failed, .descending), at: 0)
        }
        sql.append(order.clause)
        if let maximumCount {
            let read = skipCount.addingReportingOverflow(maximumCount)
            sql.append(
                " LIMIT \(read.overflow ? .max : read.partialValue) OFFSET \(offset - skipCount)")
        }
        return sql
    }

    /// The failures that decide which groups come, or in which order.
    var decidingFailures: [AggregationFailure] {
        orderFailures.union(condition?.failures ?? [])
    }

    /// All failures; first those that decide.
    func failures(_ terms: [AggregationTerm]) -> [AggregationFailure] {
        decidingFailures.union(terms.compactMap(\.failure))
    }

    /// How many of the first groups are read and left out. SQLite skips the others itself, but not
    /// those among which a failure may be that decides.
    var skipCount: Int { decidingFailures.isEmpty ? 0 : offset }

    /// A failed addition decides nothing: such a group comes, and is found.
    private func having(_ condition: GroupCondition<R>) -> SQL {
        guard !condition.failures.isEmpty else { return condition.sql }
        return "\(condition.sql) OR \(condition.failures.sql)"
    }

    /// - Parameter isOfAll: Whether all rows are one group. SQLite returns it for no rows too, and
    ///   HAVING would need GROUP BY, and that a sorting.
    private func state(of failures: [AggregationFailure], isOfAll: Bool) -> SQL {
        let cases = failures.enumerated().map { number, failure -> SQL in
            " WHEN \(failure.sql) THEN \(SQL(text: "\(number + 1)"))"
        }
        guard isOfAll else {
            return cases.isEmpty ? "0" : "CASE\(cases.joined) ELSE 0 END"
        }
        let decidingCount = decidingFailures.count
        var sql: SQL = "CASE WHEN count(*) = 0 THEN -1\(Array(cases.prefix(decidingCount)).joined)"
        if let condition { sql.append(" WHEN NOT ifnull(\(condition.sql), 0) THEN -1") }
        sql.append("\(Array(cases.dropFirst(decidingCount)).joined) ELSE 0 END")
        return sql
    }

    /// The positions of all columns that the SELECT needs.
    private func positions(_ terms: [AggregationTerm]) throws(StoreError) -> Set<Int> {
        terms.reduce(Set(try keys.get())) { $0.union($1.positions) }
            .union(condition?.positions ?? []).union(orderPositions)
    }
}

extension Query {
    /// The rows in groups by the values of properties.
    ///
    /// ```swift
    /// let miles = try tx.fetch(Flight.where(\.month == 7).group(by: \.carrier), .sum(\.distance))
    /// ```
    ///
    /// A limit of the query chooses the rows that are grouped, by the query's order. Without a
    /// limit that order has no effect: order the grouping.
    ///
    /// - Parameter paths: Properties with columns: a group for each combination of their values.
    ///   Without any, all rows are one group.
    /// - Note: The verb that uses the grouping throws `.misuse` for a ``Lazy`` property.
    public func group<each Key: Codable>(
        by paths: repeat KeyPath<R, each Key>
    ) -> Grouping<R, repeat each Key> {
        var list: [PartialKeyPath<R>] = []
        repeat list.append(each paths)
        return Grouping(self, by: list)
    }

    /// The table, or the rows of a limited query under its name.
    fileprivate func source(of positions: Set<Int>, _ plan: RecordPlan) -> SQL {
        guard maximumCount != nil else {
            return SQL(text: plan.quotedTable).appending(filter)
        }
        // SQLite has names of its own for the columns `true` and `false` of a subquery.
        let names = positions.sorted().map {
            "\(plan.qualifiedColumns[$0]) AS \(plan.quotedColumns[$0])"
        }
        let columns = names.isEmpty ? "1" : names.joined(separator: ", ")
        return "(\(select(columns, plan))) AS \(SQL(text: plan.quotedTable))"
    }
}

extension Record {
    /// All rows in groups by the values of properties.
    ///
    /// ```swift
    /// let counts = try tx.fetch(Flight.group(by: \.origin, \.carrier), .count)
    /// for (origin, carrier, count) in counts { … }
    /// ```
    ///
    /// - Parameter paths: Properties with columns: a group for each combination of their values.
    ///   Without any, all rows are one group.
    public static func group<each Key: Codable>(
        by paths: repeat KeyPath<Self, each Key>
    ) -> Grouping<Self, repeat each Key> {
        all.group(by: repeat each paths)
    }
}

extension [SQL] {
    /// One after the other.
    fileprivate var joined: SQL { reduce(into: "") { $0.append($1) } }
}

extension RecordPlan {
    /// - Throws: `.misuse` for the column of a `Lazy` property, whose values stay in the file.
    func requireLoaded(_ position: Int) throws(StoreError) {
        let column = columns[position]
        guard column.isLazy else { return }
        throw StoreError(
            .misuse, "values of a Lazy property stay in the file, and cannot be compared",
            hint: "Use another property, or declare this one without Lazy.", table: table,
            column: column.name)
    }
}

/// The SQL of a grouping in readable form, with `?` for each value.
extension Grouping: CustomStringConvertible {
    /// The SELECT of its groups, without aggregates and values; or the error, if it cannot be run.
    public var description: String {
        do throws(StoreError) {
            return try selectSQL([], try RecordPlan.of(R.self)).checked().text
        } catch {
            return error.description
        }
    }
}
