/// The rows of a query in groups, each of the rows that have the same values of some properties.
///
/// ```swift
/// let busiest = Flight.where(\.month == 7).group(by: \.carrier)
///     .having(.count > 100).order(by: .average(\.delay), .descending).limit(3)
/// let delays = try tx.fetch(busiest, .count, .average(\.delay))
/// ```
///
/// `nil` is a value of its own. Texts are the same if their bytes are. Two stored values that decode
/// as equal Swift values, such as one `UUID` in upper and in lower case, are two groups.
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
    private var orderFailures: Set<String> = []
    private var limit: SQL = ""

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

    /// The groups that also fulfil this condition.
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
        if let position = term.position, case .success(let keys) = keys {
            // The same as in GROUP BY, so that SQLite need not sort again.
            term = OrderTerm(sql: "\(term.column.text) COLLATE BINARY", order)
            if !keys.contains(position) {
                term = OrderTerm(
                    failure: StoreError(
                        .misuse, "the groups have no value of \(String(reflecting: path))",
                        hint: "Order by a property that makes the groups, or by an aggregate."))
            }
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
            if let position = term.position { grouping.orderPositions.insert(position) }
            if let failure = term.failure { grouping.orderFailures.insert(failure) }
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
        var grouping = self
        // SQLite would treat a negative number as no limit.
        grouping.limit =
            maximumCount < 0 || offset < 0
            ? SQL(failure: StoreError(.misuse, "the limit or the offset is negative"))
            : " LIMIT \(maximumCount) OFFSET \(offset)"
        return grouping
    }

    // MARK: SQL

    /// The positions of the columns whose values make a group.
    func keyPositions() throws(StoreError) -> [Int] { try keys.get() }

    /// The SELECT of the groups: the keys, the aggregates, and a `GroupingState`.
    func selectSQL(_ terms: [AggregationTerm], _ plan: RecordPlan) throws(StoreError) -> SQL {
        let keys = try keys.get().map { plan.qualifiedColumns[$0] }
        let failures = Set(terms.compactMap(\.failure))
            .union(condition?.failures ?? []).union(orderFailures)
        let failure = failures.isEmpty ? "0" : "(\(failures.sorted().joined(separator: " OR ")))"
        let selected = (keys + terms.map(\.sql)).map { "\($0), " }.joined()
        var sql = SQL(text: "SELECT \(selected)")
        sql.append(keys.isEmpty ? stateOfAll(failure) : SQL(text: failure))
        sql.append(" FROM ")
        sql.append(query.source(of: try positions(terms), plan))
        if !keys.isEmpty {
            // COLLATE BINARY compares bytes, whatever the column's own collation.
            let compared = keys.map { "\($0) COLLATE BINARY" }.joined(separator: ", ")
            sql.append(SQL(text: " GROUP BY \(compared)"))
            if let condition {
                // A failed addition decides nothing.
                sql.append(" HAVING \(condition.sql) OR \(SQL(text: failure))")
            }
        }
        var orders = order.map { $0.column.appending(SQL(text: " \($0.order.sql)")) }
        // No limit may cut off a failure that the order depends on.
        if !orderFailures.isEmpty { orders.insert(SQL(text: "\(failure) DESC"), at: 0) }
        for (index, order) in orders.enumerated() {
            sql.append(index == 0 ? " ORDER BY " : ", ")
            sql.append(order)
        }
        sql.append(limit)
        return sql
    }

    /// The `GroupingState` of all rows as one group, which SQLite returns for no rows too. HAVING
    /// would need GROUP BY, and that a sorting.
    private func stateOfAll(_ failure: String) -> SQL {
        let (absent, condition) = (GroupingState.absent.rawValue, condition?.sql ?? "1")
        return """
            CASE WHEN count(*) = 0 THEN \(absent) WHEN \(SQL(text: failure)) THEN 1 \
            WHEN \(condition) THEN 0 ELSE \(absent) END
            """
    }

    /// The positions of all columns that the SELECT needs.
    private func positions(_ terms: [AggregationTerm]) throws(StoreError) -> Set<Int> {
        Set(try keys.get() + terms.compactMap(\.position))
            .union(condition?.positions ?? []).union(orderPositions)
    }
}

/// The last column of a grouping's SELECT.
enum GroupingState: Int {
    /// There are no rows, or the condition is not true.
    case absent = -1
    case valid = 0
    /// SQLite added what is not a number.
    case failed = 1
}

extension Query {
    /// The rows in groups by the values of properties.
    ///
    /// ```swift
    /// let miles = try tx.fetch(Flight.where(\.month == 7).group(by: \.carrier), .sum(\.distance))
    /// ```
    ///
    /// An order of the query matters only if it has a limit too: the groups are of those rows.
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
        let names = positions.sorted().map { plan.qualifiedColumns[$0] }
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

extension RecordPlan {
    /// - Throws: `.misuse` for the column of a `Lazy` property, whose values stay in the file.
    fileprivate func requireLoaded(_ position: Int) throws(StoreError) {
        let column = columns[position]
        guard column.isLazy else { return }
        throw StoreError(
            .misuse, "groups cannot be made by a Lazy property, whose values stay in the file",
            hint: "Group by another property, or declare this one without Lazy.", table: table,
            column: column.name)
    }
}
