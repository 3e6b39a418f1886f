/// Whether the smallest or the greatest comes first.
public enum QueryOrder: Sendable {
    /// The smallest first; NULL before all.
    case ascending
    /// The greatest first; NULL after all.
    case descending

    var sql: String {
        switch self {
        case .ascending: "ASC"
        case .descending: "DESC"
        }
    }
}

/// Which rows of a record type, in which order, and how many of them.
///
/// ```swift
/// let recent = Note.where(\.pinned == true).order(by: \.created, .descending).limit(20)
/// let notes = try store.read { tx in try tx.fetch(recent) }
/// ```
///
/// It is a value and asks nothing by itself. What is wrong with it, such as a key path that names
/// no column, is thrown by the verb that uses it.
public struct Query<R: Record>: Sendable {
    private(set) var condition: Condition<R>?
    var order: [OrderTerm] = []
    private(set) var countMax: Int?
    var offset = 0

    init() {}

    /// The rows that fulfil this condition too.
    public func `where`(_ condition: Condition<R>) -> Query {
        var query = self
        query.condition = self.condition.map { $0 && condition } ?? condition
        return query
    }

    /// The rows in the order of a column; after the orders given before.
    ///
    /// Without any, the order is the engine's.
    ///
    /// - Parameters:
    ///   - path: A property with a column.
    ///   - order: Which end comes first.
    /// - Note: `.misuse` for a column whose text does not order as its values do, of JSON or a
    ///   `Decimal`, is thrown by the verb that uses the query.
    public func order<V>(by path: KeyPath<R, V>, _ order: QueryOrder = .ascending) -> Query {
        var query = self
        query.order.append(OrderTerm(path, order))
        return query
    }

    /// The first rows only.
    ///
    /// - Parameters:
    ///   - countMax: How many rows at most; a negative number counts as 0.
    ///   - offset: How many rows to leave out before them; a negative number counts as 0.
    /// - Complexity: O(*offset* + *countMax*) rows are looked at. To go through many pages, ask
    ///   for the rows ``after(_:)`` the last one.
    public func limit(_ countMax: Int, offset: Int = 0) -> Query {
        var query = self
        query.countMax = max(0, countMax)
        query.offset = max(0, offset)
        return query
    }

    // MARK: SQL

    func selectSQL(_ plan: RecordPlan) -> SQL { SQL(text: plan.selectSQL).appending(clauses) }

    /// The same for the collector: one column, the call of its function. `nil` where the rows have
    /// an order, in which an aggregate function need not get them, or where LIMIT would count its
    /// single row. See <https://www.sqlite.org/lang_aggfunc.html>.
    func collectSQL(_ plan: RecordPlan) -> SQL? {
        guard order.isEmpty, countMax == nil else { return nil }
        return SQL(text: plan.collectSQL).appending(filter)
    }

    func countSQL(_ plan: RecordPlan) -> SQL {
        guard countMax != nil else {
            return SQL(text: "SELECT count(*) FROM \(plan.quotedTable)").appending(filter)
        }
        return "SELECT count(*) FROM (\(select("1", plan)))"
    }

    func deleteSQL(_ plan: RecordPlan) -> SQL {
        SQL(text: "DELETE FROM \(plan.quotedTable)").appending(restriction(plan))
    }

    /// ` WHERE …` for a statement that changes the rows.
    func restriction(_ plan: RecordPlan) -> SQL {
        guard countMax != nil else { return filter }
        return " WHERE (\(SQL(text: plan.rowNames))) IN (\(select(plan.rowNames, plan)))"
    }

    func existsSQL(_ plan: RecordPlan) -> SQL {
        "SELECT EXISTS (\(select("1", plan)))"
    }

    /// The values of a column, each once.
    func distinctSQL(_ plan: RecordPlan, _ position: Int) -> SQL {
        // By bytes, whatever the column's own collation is: that is when two of Swift's are equal.
        """
        SELECT DISTINCT value COLLATE BINARY FROM (\(rows(plan, position)))
        ORDER BY value COLLATE BINARY
        """
    }

    /// The values of a column, each with the number of its rows.
    func groupSQL(_ plan: RecordPlan, _ position: Int) -> SQL {
        """
        SELECT value, count(*) FROM (\(rows(plan, position))) GROUP BY value COLLATE BINARY
        """
    }

    /// - Parameter aggregates: The SQL of aggregates of an expression.
    func aggregateSQL(
        _ plan: RecordPlan, _ position: Int, _ aggregates: (_ value: String) -> String
    ) -> SQL {
        guard countMax != nil else {
            let found = aggregates(plan.qualifiedColumns[position])
            return SQL(text: "SELECT \(found) FROM \(plan.quotedTable)").appending(filter)
        }
        return "SELECT \(SQL(text: aggregates("value"))) FROM (\(rows(plan, position)))"
    }

    private func rows(_ plan: RecordPlan, _ position: Int) -> SQL {
        select("\(plan.qualifiedColumns[position]) AS value", plan)
    }

    /// - Parameter columns: The SQL of what is wanted of each row.
    func select(_ columns: String, _ plan: RecordPlan) -> SQL {
        SQL(text: "SELECT \(columns) FROM \(plan.quotedTable)").appending(clauses)
    }

    private var filter: SQL { condition.map { " WHERE \($0.sql)" } ?? "" }

    /// Conditions, order and limit.
    var clauses: SQL {
        var sql = filter
        for (index, term) in order.enumerated() {
            sql.append(index == 0 ? " ORDER BY " : ", ")
            sql.append(term.column)
            sql.append(SQL(text: " \(term.order.sql)"))
        }
        if let countMax { sql.append(" LIMIT \(countMax) OFFSET \(offset)") }
        return sql
    }
}

/// The SQL of a query, as a person reads it: `?` stands for each value.
extension Query: CustomStringConvertible {
    /// The SELECT of its rows, without any value; what is wrong with the query, if it
    /// cannot be run.
    public var description: String {
        do throws(StoreError) {
            return try selectSQL(try RecordPlan.of(R.self)).checked().text
        } catch {
            return error.description
        }
    }
}

extension SQL {
    func appending(_ other: SQL) -> SQL {
        var sql = self
        sql.append(other)
        return sql
    }
}

extension Record {
    /// All rows.
    public static var all: Query<Self> { Query() }

    /// The rows that fulfil a condition.
    ///
    /// ```swift
    /// Note.where(\.pinned == true && \.title != "x")
    /// ```
    public static func `where`(_ condition: Condition<Self>) -> Query<Self> {
        Query().where(condition)
    }

    /// All rows in the order of a column.
    ///
    /// - Parameters:
    ///   - path: A property with a column.
    ///   - order: Which end comes first.
    public static func order<V>(
        by path: KeyPath<Self, V>, _ order: QueryOrder = .ascending
    ) -> Query<Self> {
        Query().order(by: path, order)
    }

    /// The first rows, in the engine's order.
    ///
    /// - Parameters:
    ///   - countMax: How many rows at most; a negative number counts as 0.
    ///   - offset: How many rows to leave out before them; a negative number counts as 0.
    public static func limit(_ countMax: Int, offset: Int = 0) -> Query<Self> {
        Query().limit(countMax, offset: offset)
    }
}
