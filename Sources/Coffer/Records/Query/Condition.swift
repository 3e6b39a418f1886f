/// What rows of a record type must fulfil; made by comparing key paths with values.
///
/// ```swift
/// Note.where(\.pinned == true && (\.title != "x" || [1, 2].contains(\.rank)))
/// ```
///
/// Values are always bound, never part of the SQL text. Conditions know true and false only, as
/// Swift does: `\.note == nil` is true for NULL, `\.note != "x"` is true for NULL too, `<` and its
/// kin are false for NULL, and `!` turns every one of them around.
///
/// Texts compare by their UTF-8 bytes, UUIDs and blobs by theirs; in a table of another program's
/// making by the collation that it gives the column.
public struct Condition<R: Record>: Sendable {
    /// The fragment; in parentheses where it is more than a term.
    let sql: SQL

    init(_ sql: SQL) {
        self.sql = sql
    }

    /// A fragment of SQL, for what key paths cannot say.
    ///
    /// ```swift
    /// Note.where(.sql("length(title) > \(count)") && \.pinned == true)
    /// ```
    ///
    /// - Parameter fragment: An SQL expression; `\( )` binds and never splices.
    public static func sql(_ fragment: SQL) -> Condition {
        Condition("(\(fragment))")
    }

    /// True where both are.
    public static func && (left: Condition, right: Condition) -> Condition {
        Condition("(\(left.sql) AND \(right.sql))")
    }

    /// True where one of them is.
    public static func || (left: Condition, right: Condition) -> Condition {
        Condition("(\(left.sql) OR \(right.sql))")
    }

    /// True where the condition is not: also where SQL would not know because of a NULL.
    public static prefix func ! (condition: Condition) -> Condition {
        Condition("NOT ifnull(\(condition.sql), 0)")
    }
}

// MARK: Comparisons

/// True where the column has the value; `nil` is NULL.
public func == <R: Record, V: Encodable>(path: KeyPath<R, V>, value: V) -> Condition<R> {
    Condition(path) { column throws(StoreError) in
        // IS takes an index as = does, and is never NULL; it is needed only where NULL may be.
        column.sql(column.isNullable ? "IS" : "=", try column.value(value))
    }
}

/// True where the column has another value, or NULL where the value is not `nil`.
public func != <R: Record, V: Encodable>(path: KeyPath<R, V>, value: V) -> Condition<R> {
    Condition(path) { column throws(StoreError) in
        column.sql("IS NOT", try column.value(value))
    }
}

/// True where the column is less than the value; never for NULL.
public func < <R: Record, V: Encodable>(path: KeyPath<R, V>, value: V) -> Condition<R> {
    Condition(path) { column throws(StoreError) in column.sql("<", try column.ordered(value)) }
}

/// True where the column is less than the value or equal to it; never for NULL.
public func <= <R: Record, V: Encodable>(path: KeyPath<R, V>, value: V) -> Condition<R> {
    Condition(path) { column throws(StoreError) in column.sql("<=", try column.ordered(value)) }
}

/// True where the column is greater than the value; never for NULL.
public func > <R: Record, V: Encodable>(path: KeyPath<R, V>, value: V) -> Condition<R> {
    Condition(path) { column throws(StoreError) in column.sql(">", try column.ordered(value)) }
}

/// True where the column is greater than the value or equal to it; never for NULL.
public func >= <R: Record, V: Encodable>(path: KeyPath<R, V>, value: V) -> Condition<R> {
    Condition(path) { column throws(StoreError) in column.sql(">=", try column.ordered(value)) }
}

extension Sequence where Element: Encodable {
    /// True where the column has one of these values.
    ///
    /// ```swift
    /// Note.where(["a", "b"].contains(\.title))
    /// ```
    ///
    /// Any number of values, on both engines; an index of the column is used.
    public func contains<R: Record>(_ path: KeyPath<R, Element>) -> Condition<R> {
        Condition(path) { column throws(StoreError) in try column.sql(isIn: self) }
    }

    /// True where the column has one of these values; never for NULL.
    public func contains<R: Record>(_ path: KeyPath<R, Element?>) -> Condition<R> {
        Condition(path) { column throws(StoreError) in try column.sql(isIn: self) }
    }
}

// MARK: Inside

extension Condition {
    /// A failing key path or value is kept, and thrown by the verb that uses the condition.
    init<V>(
        _ path: KeyPath<R, V>, _ make: (ConditionColumn) throws(StoreError) -> SQL
    ) {
        do throws(StoreError) {
            let plan = try RecordPlan.of(R.self)
            sql = try make(ConditionColumn(plan, at: try plan.position(of: path)))
        } catch {
            sql = SQL(failure: error)
        }
    }
}

/// The column in a condition.
struct ConditionColumn {
    private let plan: RecordPlan
    private let position: Int
    private let column: RecordColumn
    let name: String

    init(_ plan: RecordPlan, at position: Int) {
        self.plan = plan
        self.position = position
        column = plan.columns[position]
        name = plan.qualifiedColumns[position]
    }

    var isNullable: Bool { column.isNullable }

    func sql(_ comparison: String, _ value: Value) -> SQL {
        SQL(text: "\(name) \(comparison) ?", arguments: [value])
    }

    func sql<V: Encodable>(isIn values: some Sequence<V>) throws(StoreError) -> SQL {
        var wanted: [Value] = []
        for value in values { wanted.append(try self.value(value)) }
        let others = wanted.filter { $0 != .null }
        let isIn: SQL = "\(SQL(text: name)) IN (\(Self.list(others)))"
        guard others.count < wanted.count else { return isIn }
        // NULL is in a list where `nil` is an element.
        return "(\(isIn) OR \(SQL(text: name)) IS NULL)"
    }

    /// Few values are arguments of their own, many are one.
    private static func list(_ values: [Value]) -> SQL {
        guard values.count <= 100 else { return ValueList.select(values) }
        let places = repeatElement("?", count: values.count).joined(separator: ", ")
        return SQL(text: places, arguments: values)
    }

    /// The value as the column holds it.
    func value<V: Encodable>(_ value: V) throws(StoreError) -> Value {
        let encoded: Value
        do {
            encoded = try column.stored(value, by: ScalarEncoder())
        } catch let error as StoreError {
            throw error.with(table: plan.table, column: column.name)
        } catch {
            throw StoreError(
                .mismatch, "a value in a condition could not be encoded", table: plan.table,
                column: column.name, cause: error)
        }
        guard encoded.storage == nil || encoded.storage == column.storage else {
            throw StoreError(
                .mismatch,
                "the column is \(column.storage.sqlType), and the value it is compared "
                    + "with \(encoded.storageClass)",
                table: plan.table, column: column.name)
        }
        return encoded
    }

    /// A value that has an order.
    func ordered<V: Encodable>(_ value: V) throws(StoreError) -> Value {
        try plan.requireOrder(of: position)
        let encoded = try self.value(value)
        guard encoded != .null else {
            throw StoreError(
                .misuse, "nothing is less or greater than nil",
                hint: "Compare with == nil or != nil.", table: plan.table, column: column.name)
        }
        return encoded
    }
}

extension SQL {
    /// SQL that cannot be used, and why.
    init(failure: StoreError) {
        self.init(text: "")
        self.failure = failure
    }
}
