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

/// A selection of a record type's rows, with their order and number.
///
/// ```swift
/// let recent = Note.where(\.pinned == true).order(by: \.created, .descending).limit(20)
/// let notes = try store.read { tx in try tx.fetch(recent) }
/// ```
///
/// A query is a value and runs nothing by itself. The verb that uses it throws its errors, such as
/// for a key path without a column.
public struct Query<R: Record>: Sendable {
    var condition: Condition<R>?
    var order: [OrderTerm] = []
    private(set) var maximumCount: Int?
    var offset = 0
    /// Whether the rows are those after a record, in the order of this query.
    var isPage = false

    init() {}

    /// The rows that also fulfil this condition.
    public func `where`(_ condition: Condition<R>) -> Query {
        var query = self
        query.condition = self.condition.map { $0 && condition } ?? condition
        return query
    }

    /// The rows for which this property is also true.
    public func `where`(_ path: KeyPath<R, Bool>) -> Query { self.where(path == true) }

    /// The rows in the order of a column; orders given earlier take precedence.
    ///
    /// Without any order, SQLite chooses one.
    ///
    /// - Parameters:
    ///   - path: A property with a column.
    ///   - order: Whether the smallest or the greatest value comes first.
    /// - Note: The verb that uses the query throws `.misuse` for a column whose stored text does
    ///   not sort as its values do, such as JSON or a `Decimal`.
    public func order<V>(by path: KeyPath<R, V>, _ order: QueryOrder = .ascending) -> Query {
        var query = self
        query.order.append(OrderTerm(path, order))
        return query
    }

    /// The first rows only.
    ///
    /// - Parameters:
    ///   - maximumCount: The maximum number of rows, 0 or more.
    ///   - offset: The number of rows to skip before them, 0 or more.
    /// - Note: The verb that uses the query throws `.misuse` for a negative number.
    /// - Complexity: O(*offset* + *maximumCount*) rows of the result are read. To go through many
    ///   pages, fetch the rows ``after(_:)`` the last one instead.
    public func limit(_ maximumCount: Int, offset: Int = 0) -> Query {
        // SQLite would treat a negative number as no limit.
        guard maximumCount >= 0, offset >= 0 else {
            let negative = StoreError(.misuse, "the limit or the offset is negative")
            return self.where(Condition(SQL(failure: negative)))
        }
        var query = self
        query.maximumCount = maximumCount
        query.offset = offset
        return query
    }

    // MARK: SQL

    func selectSQL(_ plan: RecordPlan) -> SQL { SQL(text: plan.selectSQL).appending(clauses) }

    /// The same for `RowCollector`: one column, the call of its function. `nil` if the query has an
    /// order, because SQLite need not pass rows to an aggregate function in that order. `nil` if it
    /// has a limit, because LIMIT would count the aggregate's single row. See
    /// <https://www.sqlite.org/lang_aggfunc.html>.
    ///
    /// - Parameter columns: The SQL of the function's arguments; `nil` for all columns.
    func collectSQL(_ plan: RecordPlan, _ columns: String? = nil) -> SQL? {
        guard order.isEmpty, maximumCount == nil else { return nil }
        return SQL(text: plan.collectSQL(columns)).appending(filter)
    }

    func countSQL(_ plan: RecordPlan) -> SQL {
        guard maximumCount != nil else {
            return SQL(text: "SELECT count(*) FROM \(plan.quotedTable)").appending(filter)
        }
        return "SELECT count(*) FROM (\(select("1", plan)))"
    }

    func deleteSQL(_ table: RecordTable, _ connection: Connection) throws(StoreError) -> SQL {
        SQL(text: "DELETE FROM \(table.plan.quotedTable)")
            .appending(try restriction(table, connection))
    }

    /// ` WHERE …` for a statement that changes the rows.
    ///
    /// - Throws: As `rowNames(_:)` of the table, if the query has a limit.
    func restriction(_ table: RecordTable, _ connection: Connection) throws(StoreError) -> SQL {
        guard maximumCount != nil else { return filter }
        let names = try table.rowNames(connection)
        return " WHERE (\(SQL(text: names))) IN (\(select(names, table.plan)))"
    }

    func existsSQL(_ plan: RecordPlan) -> SQL {
        "SELECT EXISTS (\(select("1", plan)))"
    }

    /// The values of a column, each once.
    func distinctSQL(_ plan: RecordPlan, _ position: Int) -> SQL {
        // COLLATE BINARY compares bytes, whatever the column's own collation. Texts with different
        // bytes stay separate.
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

    /// - Parameter aggregates: Makes the SQL of the aggregates of an expression.
    func aggregateSQL(
        _ plan: RecordPlan, _ position: Int, _ aggregates: (_ value: String) -> String
    ) -> SQL {
        guard maximumCount != nil else {
            let found = aggregates(plan.qualifiedColumns[position])
            return SQL(text: "SELECT \(found) FROM \(plan.quotedTable)").appending(filter)
        }
        return "SELECT \(SQL(text: aggregates("value"))) FROM (\(rows(plan, position)))"
    }

    private func rows(_ plan: RecordPlan, _ position: Int) -> SQL {
        select("\(plan.qualifiedColumns[position]) AS value", plan)
    }

    /// - Parameter columns: The SQL of the result columns.
    func select(_ columns: String, _ plan: RecordPlan) -> SQL {
        SQL(text: "SELECT \(columns) FROM \(plan.quotedTable)").appending(clauses)
    }

    /// ` WHERE …`, or nothing.
    var filter: SQL { condition.map { " WHERE \($0.sql)" } ?? "" }

    /// Conditions, order and limit.
    var clauses: SQL {
        var sql = filter
        sql.append(order.clause)
        if let maximumCount { sql.append(" LIMIT \(maximumCount) OFFSET \(offset)") }
        return sql
    }
}

/// The SQL of a query in readable form, with `?` for each value.
extension Query: CustomStringConvertible {
    /// The SELECT of its rows, without any values; or the error, if the query cannot be run.
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

    /// The rows for which a property is true.
    ///
    /// ```swift
    /// try tx.fetch(Note.where(\.pinned))
    /// ```
    public static func `where`(_ path: KeyPath<Self, Bool>) -> Query<Self> { Query().where(path) }

    /// All rows in the order of a column.
    ///
    /// - Parameters:
    ///   - path: A property with a column.
    ///   - order: Whether the smallest or the greatest value comes first.
    public static func order<V>(
        by path: KeyPath<Self, V>, _ order: QueryOrder = .ascending
    ) -> Query<Self> {
        Query().order(by: path, order)
    }

    /// The first rows, in SQLite's order.
    ///
    /// - Parameters:
    ///   - maximumCount: The maximum number of rows. With a negative number, fetching throws
    ///     `.misuse`.
    ///   - offset: The number of rows to skip before them. A negative number is `.misuse` too.
    public static func limit(_ maximumCount: Int, offset: Int = 0) -> Query<Self> {
        Query().limit(maximumCount, offset: offset)
    }
}
