/// A value that SQLite computes from the rows of a group, or from all rows of a query.
///
/// ```swift
/// let delays = try tx.fetch(Flight.group(by: \.carrier), .count, .average(\.delay), .max(\.delay))
/// for (carrier, count, mean, longest) in delays { … }
/// ```
///
/// Aggregates of a property ignore NULL, and ``count`` counts every row. An aggregate of a property
/// that is not optional always has a value, because a group has at least one row. (A column that
/// another program made may hold NULL for such a property: that is ignored too.)
///
/// An aggregate runs nothing by itself. The verb that uses it throws its errors, such as for a key
/// path without a column. For functions of your own see ``Aggregate``.
public struct Aggregation<R: Record, V: Codable>: Sendable {
    let term: Result<AggregationTerm, StoreError>

    fileprivate init(_ make: (RecordPlan) throws(StoreError) -> AggregationTerm) {
        term = Result { () throws(StoreError) in try make(try RecordPlan.of(R.self)) }
    }
}

// MARK: Numbers of rows

extension Aggregation where V == Int {
    /// The number of rows.
    public static var count: Aggregation {
        Aggregation { _ in AggregationTerm("count(*)", as: .count) }
    }

    /// The number of rows in which a property is not `nil`.
    public static func count<P: Codable>(_ path: KeyPath<R, P>) -> Aggregation {
        Aggregation { plan throws(StoreError) in
            let position = try plan.position(of: path)
            var term = AggregationTerm("count", of: position, as: .count, plan)
            if plan.columns[position].isLazy {
                // Reads no value.
                term.sql = "count(nullif(typeof(\(plan.qualifiedColumns[position])), 'null'))"
            }
            return term
        }
    }

    /// The number of distinct values of a property, without `nil`. Texts are compared by their
    /// bytes.
    ///
    /// - Complexity: O(*values*) memory.
    /// - Note: The verb that uses it throws `.misuse` for a ``Lazy`` property.
    public static func count<P: Codable>(distinct path: KeyPath<R, P>) -> Aggregation {
        Aggregation { plan throws(StoreError) in
            let position = try plan.position(of: path)
            try plan.requireLoaded(position)
            var term = AggregationTerm("count", of: position, as: .count, plan)
            let column = plan.qualifiedColumns[position]
            term.sql = "count(DISTINCT \(column) COLLATE BINARY)"
            term.name = "count(DISTINCT \(plan.columns[position].name))"
            return term
        }
    }
}

// MARK: Ends

extension Aggregation {
    /// The least value of a property, by the order of the stored values; `nil` if all are `nil`.
    /// Texts are compared by their bytes.
    ///
    /// - Note: The verb that uses it throws `.misuse` for a column whose stored values sort in
    ///   another order than the Swift values, such as JSON or the text of a `Decimal`, and for a
    ///   ``Lazy`` property.
    public static func min(_ path: KeyPath<R, V>) -> Aggregation { end("min", path) }

    /// The greatest value of a property, by the order of the stored values; `nil` if all are `nil`.
    /// Texts are compared by their bytes.
    ///
    /// - Note: The verb that uses it throws `.misuse` as for ``min(_:)``.
    public static func max(_ path: KeyPath<R, V>) -> Aggregation { end("max", path) }

    private static func end(_ function: String, _ path: KeyPath<R, V>) -> Aggregation {
        Aggregation { plan throws(StoreError) in
            let position = try plan.position(of: path)
            try plan.requireLoaded(position)
            try plan.requireOrder(of: position)
            let column = plan.columns[position]
            var term = AggregationTerm(function, of: position, as: column, plan)
            term.sql = "\(function)(\(plan.qualifiedColumns[position]) COLLATE BINARY)"
            return term
        }
    }
}

// MARK: Sums

extension Aggregation where V: Numeric {
    /// The sum of a property.
    ///
    /// - Note: The verb that uses it throws `.mismatch` if the sum is not a number or does not fit
    ///   the type, `.sql` if it does not fit 64 bits, and `.misuse` for a column of texts, such as
    ///   a `Decimal`.
    public static func sum(_ path: KeyPath<R, V>) -> Aggregation { sum(of: path) }

    /// The sum of a property, without `nil`; 0 if all are `nil`.
    ///
    /// - Note: The verb that uses it throws as for a property that is not optional.
    public static func sum(_ path: KeyPath<R, V?>) -> Aggregation { sum(of: path) }

    private static func sum(of path: PartialKeyPath<R>) -> Aggregation {
        Aggregation { plan throws(StoreError) in
            let position = try plan.position(of: path)
            var column = plan.columns[position]
            column.isNullable = false
            var term = try AggregationTerm(adding: "sum", position, as: column, plan)
            if plan.columns[position].isNullable { term.sql = "ifnull(\(term.sql), 0)" }
            return term
        }
    }
}

extension Aggregation where V == Double {
    /// The mean of a property.
    ///
    /// - Note: The verb that uses it throws `.mismatch` if the mean is not a number, and `.misuse`
    ///   for a column of texts, such as a `Decimal`.
    public static func average<P: Codable & Numeric>(_ path: KeyPath<R, P>) -> Aggregation {
        Aggregation { plan throws(StoreError) in
            try AggregationTerm(adding: "avg", try plan.position(of: path), as: .mean, plan)
        }
    }
}

extension Aggregation where V == Double? {
    /// The mean of a property, without `nil`; `nil` if all are `nil`.
    ///
    /// - Note: The verb that uses it throws as for a property that is not optional.
    public static func average<P: Codable & Numeric>(_ path: KeyPath<R, P?>) -> Aggregation {
        Aggregation { plan throws(StoreError) in
            var column = RecordColumn.mean
            column.isNullable = true
            return try AggregationTerm(adding: "avg", try plan.position(of: path), as: column, plan)
        }
    }
}

// MARK: Inside

/// The SQL of an aggregate, and the form of its values.
struct AggregationTerm: Sendable {
    var sql: String
    /// For errors: the function and the name of its column.
    var name: String
    /// The form in which its values are stored, and in which values are compared with it.
    let column: RecordColumn
    /// The position of the column that it is computed from; `nil` for none.
    let position: Int?
    /// `nil` if it adds nothing.
    private(set) var failure: AggregationFailure?

    /// An aggregate of whole rows.
    fileprivate init(_ sql: String, as column: RecordColumn) {
        (self.sql, name, self.column, position) = (sql, sql, column, nil)
    }

    /// An aggregate of one column.
    fileprivate init(
        _ function: String, of position: Int, as column: RecordColumn, _ plan: RecordPlan
    ) {
        sql = "\(function)(\(plan.qualifiedColumns[position]))"
        name = "\(function)(\(plan.columns[position].name))"
        (self.column, self.position) = (column, position)
    }

    /// A sum or a mean.
    fileprivate init(
        adding function: String, _ position: Int, as column: RecordColumn, _ plan: RecordPlan
    ) throws(StoreError) {
        try plan.requireNumbers(in: position)
        self.init(function, of: position, as: column, plan)
        failure = AggregationFailure(of: self, adding: plan.qualifiedColumns[position])
    }

    /// The aggregate in a condition.
    func condition(_ plan: RecordPlan) -> ConditionColumn {
        ConditionColumn(plan, column, sql: sql, name: name)
    }
}

/// A sum or a mean that is not one, because SQLite added what is not a number.
struct AggregationFailure: Sendable, Hashable {
    /// SQL that is true for a group with this failure.
    let sql: String
    /// The aggregate: see `AggregationTerm`.
    let name: String

    /// SQL converts texts and blobs to numbers, and returns NULL for infinities that cancel out.
    /// The greatest value reveals both:
    /// > An INTEGER or REAL value is less than any TEXT or BLOB value.
    /// <https://www.sqlite.org/datatype3.html#sort_order>
    fileprivate init(of term: AggregationTerm, adding addend: String) {
        sql =
            "(typeof(max(\(addend))) IN ('text', 'blob') "
            + "OR (\(term.sql) IS NULL AND max(\(addend)) IS NOT NULL))"
        name = term.name
    }

    /// SQL that is true for a group with one of these failures.
    static func sql(of failures: [AggregationFailure]) -> String {
        failures.map(\.sql).joined(separator: " OR ")
    }
}

extension RecordColumn {
    fileprivate static let count = number(Int.self, .integer)
    fileprivate static let mean = number(Double.self, .real)

    private static func number(_ type: Any.Type, _ storage: Storage) -> RecordColumn {
        RecordColumn(
            name: "", type: type, storage: storage, coding: .primitive, isNullable: false,
            kind: ValueKind(type))
    }
}

extension RecordPlan {
    /// - Throws: `.misuse` for a column of texts or blobs, which SQL would convert to numbers.
    func requireNumbers(in position: Int) throws(StoreError) {
        let column = columns[position]
        guard column.storage != .integer, column.storage != .real else { return }
        throw StoreError(
            .misuse, "the column does not hold numbers, and SQL would round its values",
            hint: "Fetch the values and add them in Swift.", table: table, column: column.name)
    }
}
