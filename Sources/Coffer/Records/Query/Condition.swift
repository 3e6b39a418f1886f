/// A condition on rows of a record type, made by comparing key paths with values.
///
/// ```swift
/// Note.where(\.pinned == true && (\.title != "x" || [1, 2].contains(\.rank)))
/// ```
///
/// Values are always bound, never part of the SQL text. Conditions are only true or false, as in
/// Swift. `\.note == nil` and `\.note != "x"` are true for NULL; `<`, `<=`, `>` and `>=` are false
/// for NULL. `!` inverts each of them.
///
/// Texts, UUIDs and blobs compare by their bytes. A text's bytes are UTF-8, except in a UTF-16
/// file. A column's collation applies, that of ``Record/collations`` and that of another program.
public struct Condition<R: Record>: Sendable {
    /// The fragment, in parentheses if it has more than one term.
    let sql: SQL

    init(_ sql: SQL) {
        self.sql = sql
    }

    /// A fragment of SQL, for conditions that key paths cannot express.
    ///
    /// ```swift
    /// Note.where(.sql("length(title) > \(count)") && \.pinned == true)
    /// ```
    ///
    /// - Parameter fragment: An SQL expression; `\( )` binds and never splices.
    public static func sql(_ fragment: SQL) -> Condition {
        var sql: SQL = "(\(fragment))"
        sql.mayFail = true
        return Condition(sql)
    }

    /// True where both conditions are true.
    public static func && (left: Condition, right: Condition) -> Condition {
        Condition("(\(left.sql) AND \(right.sql))")
    }

    /// True where at least one of the conditions is true.
    public static func || (left: Condition, right: Condition) -> Condition {
        Condition("(\(left.sql) OR \(right.sql))")
    }

    /// True where the condition is not true, including where SQL's result is NULL.
    public static prefix func ! (condition: Condition) -> Condition {
        Condition("NOT ifnull(\(condition.sql), 0)")
    }
}

// MARK: Comparisons

/// True where the column has the value; `nil` is NULL.
public func == <R: Record, V: Encodable>(path: KeyPath<R, V>, value: V) -> Condition<R> {
    Condition(path) { column throws(StoreError) in
        // IS can use an index like =, and never yields NULL. Only nullable columns need it.
        let value = try column.value(value)
        // The text, and no argument, tells SQLite 3.15 that a partial index has the rows.
        if value.value == .null { return "\(SQL(text: column.name)) IS NULL" }
        return column.sql(column.isNullable ? "IS" : "=", value)
    }
}

/// True where the column has another value, or NULL where the value is not `nil`.
public func != <R: Record, V: Encodable>(path: KeyPath<R, V>, value: V) -> Condition<R> {
    Condition(path) { column throws(StoreError) in
        let value = try column.value(value)
        if value.value == .null { return "\(SQL(text: column.name)) IS NOT NULL" }
        return column.sql("IS NOT", value)
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
    /// Any number of values is allowed, on both engines; an index of the column is used.
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
    /// Keeps the error of a failing key path or value; the verb that uses the condition throws it.
    init<V>(
        _ path: KeyPath<R, V>, _ make: (ConditionColumn) throws(StoreError) -> SQL
    ) {
        do throws(StoreError) {
            let column = try RecordPlan.of(R.self).conditionColumn(of: path)
            sql = column.completed(try make(column))
        } catch {
            sql = SQL(failure: error)
        }
    }
}

/// A value that a column is compared with or set to.
struct ConditionValue {
    let value: Value
    /// Whether it is a date that counts from 2001, and the file tells from when the column counts.
    let isDate: Bool
}

/// A column in a condition.
struct ConditionColumn {
    private let plan: RecordPlan
    private let column: RecordColumn
    let errorName: String
    private let expression: SQL
    /// The place of the values, if they are inside of JSON.
    private let json: JSONPlace?
    var table: String { plan.table }
    /// The text of a column, which has no arguments.
    var name: String { expression.text }

    init(_ plan: RecordPlan, at position: Int) {
        self.init(plan, plan.columns[position], sql: SQL(text: plan.qualifiedColumns[position]))
    }

    /// - Parameters:
    ///   - column: The form in which values are stored.
    ///   - sql: The expression that has the values.
    ///   - name: The expression's name in errors; the column's if it is `nil`.
    init(_ plan: RecordPlan, _ column: RecordColumn, sql: SQL, name: String? = nil) {
        self.plan = plan
        self.column = column
        expression = sql
        json = nil
        errorName = name ?? column.name
    }

    /// A value inside of JSON.
    ///
    /// - Throws: As `sql()` of the place.
    init(_ place: JSONPlace) throws(StoreError) {
        plan = place.plan
        column = place.plan.columns[place.position]
        expression = try place.sql()
        json = place
        errorName = place.name
    }

    /// SQL that was made of the name, with what the expression needs.
    func completed(_ sql: SQL) -> SQL {
        guard json != nil else { return sql }
        var sql = sql
        sql.requirements += expression.requirements
        sql.mayFail = true
        return sql
    }

    /// A value inside of JSON may be missing.
    var isNullable: Bool { column.isNullable || json != nil }

    func sql(_ comparison: String, _ value: ConditionValue) -> SQL {
        expression.appending(sql(" \(comparison) ?", [value]))
    }

    /// SQL with a `?` for each value.
    func sql(_ text: String, _ values: [ConditionValue]) -> SQL {
        var sql = SQL(text: text, arguments: values.map(\.value))
        for (index, value) in values.enumerated() where value.isDate {
            sql.dates.append(DateArgument(index, table: plan.table, column: column.name))
        }
        return sql
    }

    func sql<V: Encodable>(isIn values: some Sequence<V>) throws(StoreError) -> SQL {
        var wanted: [ConditionValue] = []
        for value in values { wanted.append(try self.value(value)) }
        let others = wanted.filter { $0.value != .null }
        let isIn: SQL = "\(SQL(text: name)) IN (\(list(others)))"
        guard others.count < wanted.count else { return isIn }
        // A `nil` in the sequence matches NULL.
        return "(\(isIn) OR \(SQL(text: name)) IS NULL)"
    }

    /// Up to 100 values are bound one by one; more are bound as one packed blob.
    private func list(_ values: [ConditionValue]) -> SQL {
        guard values.count > 100 else {
            return sql(repeatElement("?", count: values.count).joined(separator: ", "), values)
        }
        let list = values.map(\.value)
        var sql = ValueList.select(list)
        if values.contains(where: \.isDate) {
            let packed = sql.arguments.count - 1
            sql.dates = [
                DateArgument(packed, table: plan.table, column: column.name, list: list)
            ]
        }
        return sql
    }

    /// The value in the form that the column stores.
    func value<V: Encodable>(_ value: V) throws(StoreError) -> ConditionValue {
        if let json { return ConditionValue(value: try json.value(value), isDate: false) }
        let encoded: Value
        let scalar = ScalarEncoder()
        do {
            encoded = try column.stored(value, by: scalar, countingFrom2001: true)
        } catch let error as StoreError {
            throw error.with(table: plan.table, column: errorName)
        } catch {
            throw StoreError(
                .mismatch, "a value in a condition could not be encoded", table: plan.table,
                column: errorName, cause: error)
        }
        guard encoded.storage == nil || encoded.storage == column.storage else {
            throw StoreError(
                .mismatch,
                "the column is \(column.storage.sqlType), and the value it is compared "
                    + "with \(encoded.storageClass)",
                table: plan.table, column: errorName)
        }
        let isDate = encoded != .null && scalar.kind == .date && column.encoding == nil
        return ConditionValue(value: encoded, isDate: isDate)
    }

    /// The value for a comparison by order; `.misuse` for `nil` or a column without an order.
    func ordered<V: Encodable>(_ value: V) throws(StoreError) -> ConditionValue {
        if let json { try json.requireOrder() } else { try plan.requireOrder(of: column) }
        let encoded = try self.value(value)
        guard encoded.value != .null else {
            throw StoreError(
                .misuse, "a value cannot be less or greater than nil",
                hint: "Compare with == nil or != nil.", table: plan.table, column: errorName)
        }
        return encoded
    }
}

extension RecordPlan {
    /// The column of a key path, or its place inside the JSON of a column.
    ///
    /// - Throws: As `place(of:)`, and as `sql()` of a place in JSON.
    func conditionColumn<R: Record>(
        of path: PartialKeyPath<R>
    ) throws(StoreError) -> ConditionColumn {
        switch try place(of: path) {
        case .column(let position): ConditionColumn(self, at: position)
        case .json(let place): try ConditionColumn(place)
        }
    }
}

extension SQL {
    /// Unusable SQL, with the error that explains why.
    init(failure: StoreError) {
        self.init(text: "…")
        self.failure = failure
    }
}
