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
                term.sql = SQL(
                    text: "count(nullif(typeof(\(plan.qualifiedColumns[position])), 'null'))")
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
            term.sql = SQL(text: "count(DISTINCT \(column) COLLATE BINARY)")
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
    /// - Note: The verb that uses it throws `.misuse` as for `min(_:)`.
    public static func max(_ path: KeyPath<R, V>) -> Aggregation { end("max", path) }

    private static func end(_ function: String, _ path: KeyPath<R, V>) -> Aggregation {
        Aggregation { plan throws(StoreError) in
            let position = try plan.position(of: path)
            try plan.requireLoaded(position)
            try plan.requireOrder(of: position)
            let column = plan.columns[position]
            var term = AggregationTerm(function, of: position, as: column, plan)
            term.sql = SQL(
                text: "\(function)(\(plan.qualifiedColumns[position]) COLLATE BINARY)")
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

// MARK: Calculations

extension Aggregation where V: NumericProperty, V.Number == V {
    /// The sum of a calculation, without `nil`; 0 if all are `nil`.
    ///
    /// ```swift
    /// try tx.fetch(Item.group(by: \.order), .sum(\.price * \.count))
    /// ```
    ///
    /// - Note: The verb that uses it throws `.mismatch` if the sum is not a number or does not fit
    ///   the type, and `.sql` if it does not fit 64 bits.
    public static func sum(_ calculation: Calculation<R, V>) -> Aggregation {
        Aggregation { _ throws(StoreError) in
            var term = try AggregationTerm("sum", of: calculation, as: .number(of: V.self))
            term.sql = "ifnull(\(term.sql), 0)"
            return term
        }
    }
}

extension Aggregation where V == Double? {
    /// The mean of a calculation, without `nil`; `nil` if all are `nil`.
    ///
    /// - Note: The verb that uses it throws `.mismatch` if the mean is not a number.
    public static func average<Number: NumericProperty>(
        _ calculation: Calculation<R, Number>
    ) -> Aggregation {
        Aggregation { _ throws(StoreError) in
            try AggregationTerm("avg", of: calculation, as: .number(of: V.self))
        }
    }
}

extension Aggregation {
    /// The least value of a calculation; `nil` if all are `nil`.
    ///
    /// - Note: The verb that uses it throws `.mismatch` if the value does not fit the type.
    public static func min<Number: NumericProperty>(
        _ calculation: Calculation<R, Number>
    ) -> Aggregation where V == Number? {
        Aggregation { _ throws(StoreError) in
            try AggregationTerm("min", of: calculation, as: .number(of: V.self))
        }
    }

    /// The greatest value of a calculation; `nil` if all are `nil`.
    ///
    /// - Note: The verb that uses it throws `.mismatch` if the value does not fit the type.
    public static func max<Number: NumericProperty>(
        _ calculation: Calculation<R, Number>
    ) -> Aggregation where V == Number? {
        Aggregation { _ throws(StoreError) in
            try AggregationTerm("max", of: calculation, as: .number(of: V.self))
        }
    }
}

// MARK: Inside

/// The SQL of an aggregate, and the form of its values.
struct AggregationTerm: Sendable {
    var sql: SQL
    /// For errors: the function and the name of its column.
    var name: String
    /// The form in which its values are stored, and in which values are compared with it.
    let column: RecordColumn
    /// The position of the column whose values it returns or counts; `nil` if it calculates.
    let position: Int?
    /// The positions of all columns that it is computed from.
    let positions: Set<Int>
    /// `nil` if it adds nothing.
    private(set) var failure: AggregationFailure?

    /// An aggregate of whole rows.
    fileprivate init(_ sql: String, as column: RecordColumn) {
        (self.sql, name, self.column) = (SQL(text: sql), sql, column)
        (position, positions) = (nil, [])
    }

    /// An aggregate of one column.
    fileprivate init(
        _ function: String, of position: Int, as column: RecordColumn, _ plan: RecordPlan
    ) {
        sql = SQL(text: "\(function)(\(plan.qualifiedColumns[position]))")
        name = "\(function)(\(plan.columns[position].name))"
        (self.column, self.position, positions) = (column, position, [position])
    }

    /// A sum or a mean.
    fileprivate init(
        adding function: String, _ position: Int, as column: RecordColumn, _ plan: RecordPlan
    ) throws(StoreError) {
        try plan.requireNumbers(in: position)
        self.init(function, of: position, as: column, plan)
        let addend = plan.qualifiedColumns[position]
        failure = AggregationFailure(of: self, SQL(text: addend), from: [addend])
    }

    /// An aggregate of a calculation.
    fileprivate init<R: Record, Number: NumericProperty>(
        _ function: String, of calculation: Calculation<R, Number>, as column: RecordColumn
    ) throws(StoreError) {
        let term = try calculation.term.get()
        let plan = try RecordPlan.of(R.self)
        sql = "\(SQL(text: function))(\(term.sql))"
        name = "\(function)(\(term.name))"
        (self.column, position, positions) = (column, nil, term.positions)
        failure = AggregationFailure(
            of: self, term.sql, from: term.positions.sorted().map { plan.qualifiedColumns[$0] })
    }

    /// The aggregate in a condition.
    func condition(_ plan: RecordPlan) -> ConditionColumn {
        ConditionColumn(plan, column, sql: sql, name: name)
    }
}

/// An aggregate of numbers that is not one, because SQLite computed with what is not a number.
struct AggregationFailure: Sendable, Equatable {
    /// SQL that is true for a group with this failure.
    let sql: SQL
    /// The aggregate: see `AggregationTerm`.
    let name: String

    /// SQL converts texts and blobs to numbers, and returns NULL for infinities that cancel out.
    /// The greatest value reveals both:
    /// > An INTEGER or REAL value is less than any TEXT or BLOB value.
    /// <https://www.sqlite.org/datatype3.html#sort_order>
    ///
    /// - Parameter columns: The SQL of the columns that the operand is computed from.
    fileprivate init(of term: AggregationTerm, _ operand: SQL, from columns: [String]) {
        let texts = columns.map { "typeof(max(\($0))) IN ('text', 'blob') OR " }.joined()
        sql = "(\(SQL(text: texts))(\(term.sql) IS NULL AND max(\(operand)) IS NOT NULL))"
        name = term.name
    }

    static func == (left: AggregationFailure, right: AggregationFailure) -> Bool {
        left.name == right.name && left.sql.text == right.sql.text
            && left.sql.arguments == right.sql.arguments
    }
}

extension [AggregationFailure] {
    /// SQL that is true for a group with one of these failures.
    var sql: SQL {
        var sql: SQL = ""
        for (index, failure) in enumerated() {
            if index > 0 { sql.append(" OR ") }
            sql.append(failure.sql)
        }
        return sql
    }

    /// These failures, and those of the others that are not among them.
    func union(_ others: [AggregationFailure]) -> [AggregationFailure] {
        others.reduce(into: self) { if !$0.contains($1) { $0.append($1) } }
    }
}

extension RecordColumn {
    fileprivate static let count = number(Int.self, .integer)
    fileprivate static let mean = number(Double.self, .real)

    /// A column of numbers, which may be NULL if the type is optional.
    fileprivate static func number<P: NumericProperty>(of type: P.Type) -> RecordColumn {
        var column = number(
            P.Number.self, P.Number.self is any BinaryInteger.Type ? .integer : .real)
        column.isNullable = P.Number.self != P.self
        return column
    }

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
