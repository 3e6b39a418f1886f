/// A type of property that SQLite can calculate with: an integer, a `Double`, a `Float`, or an
/// optional of one of them.
public protocol NumericProperty: Codable, Sendable {
    /// The type without `Optional`.
    associatedtype Number: NumericProperty & Numeric & Comparable & ValueConvertible
    where Number.Number == Number
}

/// A number that SQLite calculates from the properties of a row.
///
/// ```swift
/// let large = Item.where(\.price * \.count > 1000).order(by: \.price * \.count, .descending)
/// let late = Task.where(\.done + 2 < \.total)
/// try tx.fetch(Item.group(by: \.order), .sum(\.price * \.count))
/// ```
///
/// The operators are `+`, `-`, `*` and `/`, between properties, values and calculations of one
/// type; ``double(_:)`` converts. A calculation with `nil` is `nil`, and so is a division by zero.
///
/// SQLite calculates with 64 bits. An integer result that does not fit becomes a floating-point
/// number, with which a condition or an order goes on; an aggregate of an integer type throws
/// `.mismatch` then. A division of integers drops the fraction, as in Swift. Anything but a number
/// that another program has put into the column counts as `nil`.
///
/// A calculation runs nothing by itself. The verb that uses it throws its errors: `.misuse` for a
/// property without a column or with a ``ColumnEncoding``, `.mismatch` for a value that SQLite
/// cannot hold, such as NaN. No index answers a condition on a calculation.
public struct Calculation<R: Record, Number: NumericProperty>: Sendable {
    let term: Result<CalculationTerm, StoreError>

    /// A property as a `Double`, to calculate with it and other ones.
    ///
    /// ```swift
    /// Item.where(\.price * .double(\.count) > 99.5)
    /// ```
    ///
    /// - Parameter path: A property of numbers. An integer beyond 2^53 is rounded.
    public static func double<P: NumericProperty>(_ path: KeyPath<R, P>) -> Calculation
    where Number == Double {
        Calculation(
            term: Result.column(path).map { term in
                CalculationTerm(
                    parts: { "CAST(\(term.parts($0)) AS REAL)" }, name: "double(\(term.name))",
                    positions: term.positions)
            })
    }
}

/// The SQL of a calculation.
struct CalculationTerm: Sendable {
    /// Takes anything but a number for `nil`.
    var sql: SQL { parts("") }
    /// Ends with `refusal` at anything but a number.
    func strict(_ refusal: SQL) -> SQL { parts(" ELSE \(refusal)") }
    /// Makes the SQL. `otherwise` is for the values of columns that are neither numbers nor NULL.
    let parts: @Sendable (_ otherwise: SQL) -> SQL
    /// For errors: the names of the columns, and `?` for a value.
    let name: String
    let positions: Set<Int>
}

extension CalculationTerm {
    /// SQL of the result for a property, which fails where the result does not fit it.
    ///
    /// - Parameters:
    ///   - orNil: Whether NULL fits.
    ///   - column: The property's column, for the error.
    func sql<Number: NumericProperty>(
        fitting type: Number.Type, orNil: Bool, _ column: String
    ) throws(StoreError) -> SQL {
        let refusal = RefusedResult.sql(
            "a calculated value does not fit its property: \(column) = \(name)")
        let sql = strict(refusal)
        let fits: SQL
        if let integer = type as? any FixedWidthInteger.Type {
            let (least, greatest) = integer.bounds
            // An integer result beyond 64 bits is a real one.
            fits = "typeof(\(sql)) = 'integer' AND \(sql) BETWEEN \(least) AND \(greatest)"
        } else if type == Float.self {
            throw StoreError(
                .misuse, "SQLite calculates with 64 bits, and the property has 32",
                hint: "Make the property a Double, or calculate in Swift.", column: column)
        } else {
            fits = "typeof(\(sql)) = 'real'"
        }
        let isNull: SQL = orNil ? "WHEN \(sql) IS NULL THEN NULL " : ""
        return "CASE \(isNull)WHEN \(fits) THEN \(sql) ELSE \(refusal) END"
    }
}

extension FixedWidthInteger {
    /// The least and the greatest value that SQLite can hold.
    fileprivate static var bounds: (Int64, Int64) {
        (Int64(clamping: min), Int64(clamping: max))
    }
}

extension Result where Success == CalculationTerm, Failure == StoreError {
    /// A property.
    static func column<R: Record, P: NumericProperty>(
        _ path: KeyPath<R, P>
    ) -> Result {
        Result { () throws(StoreError) in
            let plan = try RecordPlan.of(R.self)
            let position = try plan.position(of: path)
            try plan.requireNumbers(in: position)
            let column = plan.columns[position]
            guard column.encoding == nil, column.kind != .date else {
                throw StoreError(
                    .misuse, "the column stores its values in another form than as numbers",
                    hint: "Calculate with a property of numbers.", table: plan.table,
                    column: column.name)
            }
            // SQLite takes a text or a blob for 0. It divides 7.0 without a fraction where a column
            // of another program holds it as an integer.
            let name = plan.qualifiedColumns[position]
            let number =
                P.Number.self is any BinaryInteger.Type
                ? "typeof(\(name)) = 'integer' THEN \(name)"
                : "typeof(\(name)) IN ('integer', 'real') THEN CAST(\(name) AS REAL)"
            return CalculationTerm(
                parts: { otherwise in
                    // NULL needs a case of its own only where anything else fails.
                    let null = otherwise.text.isEmpty ? "" : " WHEN \(name) IS NULL THEN NULL"
                    return "CASE WHEN \(SQL(text: number + null))\(otherwise) END"
                }, name: column.name, positions: [position])
        }
    }

    /// A value.
    static func value(_ number: some ValueConvertible) -> Result {
        let sql: SQL = "\(number)"
        if let failure = sql.failure { return .failure(failure) }
        return .success(CalculationTerm(parts: { _ in sql }, name: "?", positions: []))
    }
}

extension Calculation {
    init(
        _ left: Result<CalculationTerm, StoreError>, _ sign: String,
        _ right: Result<CalculationTerm, StoreError>
    ) {
        term = Result { () throws(StoreError) in
            let (left, right) = (try left.get(), try right.get())
            return CalculationTerm(
                parts: { "(\(left.parts($0)) \(SQL(text: sign)) \(right.parts($0)))" },
                name: "(\(left.name) \(sign) \(right.name))",
                positions: left.positions.union(right.positions))
        }
    }
}

extension Query {
    /// The rows in the order of a calculation; orders given earlier take precedence.
    ///
    /// ```swift
    /// try tx.fetch(Item.all.order(by: \.price * \.count, .descending).limit(10))
    /// ```
    ///
    /// - Parameters:
    ///   - calculation: The number that decides. `nil` comes before all numbers.
    ///   - order: Whether the smallest or the greatest value comes first.
    public func order<Number: NumericProperty>(
        by calculation: Calculation<R, Number>, _ order: QueryOrder = .ascending
    ) -> Query {
        var query = self
        switch calculation.term {
        case .success(let term): query.order.append(OrderTerm(sql: term.sql, order))
        case .failure(let error): query.order.append(OrderTerm(failure: error))
        }
        return query
    }
}

extension Record {
    /// All rows in the order of a calculation.
    ///
    /// - Parameters:
    ///   - calculation: The number that decides.
    ///   - order: Whether the smallest or the greatest value comes first.
    public static func order<Number: NumericProperty>(
        by calculation: Calculation<Self, Number>, _ order: QueryOrder = .ascending
    ) -> Query<Self> {
        Query().order(by: calculation, order)
    }
}

// MARK: Numbers

extension Int: NumericProperty {
    /// The type itself.
    public typealias Number = Int
}

extension Int8: NumericProperty {
    /// The type itself.
    public typealias Number = Int8
}

extension Int16: NumericProperty {
    /// The type itself.
    public typealias Number = Int16
}

extension Int32: NumericProperty {
    /// The type itself.
    public typealias Number = Int32
}

extension Int64: NumericProperty {
    /// The type itself.
    public typealias Number = Int64
}

extension UInt: NumericProperty {
    /// The type itself.
    public typealias Number = UInt
}

extension UInt8: NumericProperty {
    /// The type itself.
    public typealias Number = UInt8
}

extension UInt16: NumericProperty {
    /// The type itself.
    public typealias Number = UInt16
}

extension UInt32: NumericProperty {
    /// The type itself.
    public typealias Number = UInt32
}

extension UInt64: NumericProperty {
    /// The type itself.
    public typealias Number = UInt64
}

extension Double: NumericProperty {
    /// The type itself.
    public typealias Number = Double
}

extension Float: NumericProperty {
    /// The type itself.
    public typealias Number = Float
}

extension Optional: NumericProperty where Wrapped: NumericProperty {
    /// The wrapped number.
    public typealias Number = Wrapped.Number
}
