/// A condition on groups of rows, made by comparing aggregates with values.
///
/// ```swift
/// Flight.group(by: \.carrier).having(.count > 100 && .average(\.delay) < 10)
/// ```
///
/// Values are always bound, never part of the SQL text. Conditions are only true or false, as those
/// of rows: see ``Condition``. Texts are compared by their bytes.
public struct GroupCondition<R: Record>: Sendable {
    let sql: SQL
    /// The positions of the columns that it needs.
    let positions: Set<Int>
    /// The failures of its sums and means.
    let failures: [AggregationFailure]

    init(_ sql: SQL, _ positions: Set<Int> = [], _ failures: [AggregationFailure] = []) {
        (self.sql, self.positions, self.failures) = (sql, positions, failures)
    }

    /// True where both conditions are true.
    public static func && (left: GroupCondition, right: GroupCondition) -> GroupCondition {
        GroupCondition("(\(left.sql) AND \(right.sql))", left, right)
    }

    /// True where at least one of the conditions is true.
    public static func || (left: GroupCondition, right: GroupCondition) -> GroupCondition {
        GroupCondition("(\(left.sql) OR \(right.sql))", left, right)
    }

    /// True where the condition is not true, including where SQL's result is NULL.
    public static prefix func ! (condition: GroupCondition) -> GroupCondition {
        GroupCondition(
            "NOT ifnull(\(condition.sql), 0)", condition.positions, condition.failures)
    }

    private init(_ sql: SQL, _ left: GroupCondition, _ right: GroupCondition) {
        self.init(
            sql, left.positions.union(right.positions), left.failures.union(right.failures))
    }
}

// MARK: Comparisons

/// True where the aggregate equals the value. `nil` equals NULL.
public func == <R: Record, V: Codable>(
    aggregate: Aggregation<R, V>, value: V
) -> GroupCondition<R> {
    GroupCondition(aggregate) { column throws(StoreError) in
        column.sql("IS", try column.value(value))
    }
}

/// True where the aggregate has another value, or NULL where the value is not `nil`.
public func != <R: Record, V: Codable>(
    aggregate: Aggregation<R, V>, value: V
) -> GroupCondition<R> {
    GroupCondition(aggregate) { column throws(StoreError) in
        column.sql("IS NOT", try column.value(value))
    }
}

/// True where the aggregate is less than the value; never for NULL.
///
/// - Note: The verb that uses it throws `.misuse` for `nil`.
public func < <R: Record, V: Codable>(
    aggregate: Aggregation<R, V>, value: V
) -> GroupCondition<R> {
    GroupCondition(aggregate) { column throws(StoreError) in
        column.sql("<", try column.ordered(value))
    }
}

/// True where the aggregate is less than the value or equal to it; never for NULL.
///
/// - Note: The verb that uses it throws `.misuse` for `nil`.
public func <= <R: Record, V: Codable>(
    aggregate: Aggregation<R, V>, value: V
) -> GroupCondition<R> {
    GroupCondition(aggregate) { column throws(StoreError) in
        column.sql("<=", try column.ordered(value))
    }
}

/// True where the aggregate is greater than the value; never for NULL.
///
/// - Note: The verb that uses it throws `.misuse` for `nil`.
public func > <R: Record, V: Codable>(
    aggregate: Aggregation<R, V>, value: V
) -> GroupCondition<R> {
    GroupCondition(aggregate) { column throws(StoreError) in
        column.sql(">", try column.ordered(value))
    }
}

/// True where the aggregate is greater than the value or equal to it; never for NULL.
///
/// - Note: The verb that uses it throws `.misuse` for `nil`.
public func >= <R: Record, V: Codable>(
    aggregate: Aggregation<R, V>, value: V
) -> GroupCondition<R> {
    GroupCondition(aggregate) { column throws(StoreError) in
        column.sql(">=", try column.ordered(value))
    }
}

extension GroupCondition {
    /// Keeps the error of a failing key path or value; the verb that uses the condition throws it.
    fileprivate init<V>(
        _ aggregate: Aggregation<R, V>, _ make: (ConditionColumn) throws(StoreError) -> SQL
    ) {
        do throws(StoreError) {
            let term = try aggregate.term.get()
            self.init(
                try make(term.condition(try RecordPlan.of(R.self))),
                term.positions, term.failure.map { [$0] } ?? [])
        } catch {
            self.init(SQL(failure: error))
        }
    }
}
