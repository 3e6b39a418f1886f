/// New values for the rows that a query asks for.
///
/// ```swift
/// try tx.update(Note.where(\.pinned == true).set(\.pinned, to: false).set(\.rank, to: 0))
/// ```
///
/// It is a value and changes nothing by itself. `update(_:)` throws any error in it.
public struct RecordUpdate<R: Record>: Sendable {
    private let query: Query<R>
    private var assignments: [SQL] = []

    init(_ query: Query<R>) {
        self.query = query
    }

    /// Also sets a property of these rows.
    public func set<V: Encodable>(_ path: KeyPath<R, V>, to value: V) -> RecordUpdate {
        adding(path) { plan, position throws(StoreError) in
            let column = ConditionColumn(plan, at: position)
            return column.sql("?", [try column.value(value)])
        }
    }

    /// Also sets a property of these rows to the value of an expression of SQL.
    ///
    /// ```swift
    /// try tx.update(Note.where(\.id == id).set(\.title, sql: "trim(title)"))
    /// ```
    ///
    /// - Parameters:
    ///   - path: The property.
    ///   - sql: An SQL expression; `\( )` binds and never splices. It sees the old values of
    ///     columns. Nothing compares its result with the property's type.
    public func set<V>(_ path: KeyPath<R, V>, sql: SQL) -> RecordUpdate {
        adding(path) { _, _ in
            var sql = sql
            sql.mayFail = true
            return sql
        }
    }

    /// Also sets a property of these rows to the result of a calculation with their old values.
    ///
    /// ```swift
    /// try tx.update(Note.where(\.id == id).set(\.readCount, to: \.readCount + 1))
    /// ```
    ///
    /// - Parameters:
    ///   - path: A property of numbers.
    ///   - calculation: Its new value. If a result does not fit the property, or a step does not
    ///     fit 64 bits, `tx.update(_:)` throws `.mismatch` and changes no row. `nil` does not fit a
    ///     property that is not optional.
    public func set<P: NumericProperty>(
        _ path: KeyPath<R, P>, to calculation: Calculation<R, P.Number>
    ) -> RecordUpdate {
        adding(path) { plan, position throws(StoreError) in
            // The property has to be one that holds numbers as numbers.
            _ = try Result.column(path).get()
            let column = plan.columns[position]
            do throws(StoreError) {
                return try calculation.term.get().sql(
                    fitting: P.Number.self, orNil: column.isNullable, column.name)
            } catch {
                throw error.with(table: plan.table)
            }
        }
    }

    /// Also sets a property of these rows to the old value of another one.
    ///
    /// ```swift
    /// try tx.update(Download.where(\.isDone == true).set(\.bytesDone, to: \.bytesTotal))
    /// ```
    ///
    /// - Parameters:
    ///   - path: The property that is set.
    ///   - source: A property of the same type, stored in the same form: see ``ColumnEncoding``.
    public func set<V: Encodable>(_ path: KeyPath<R, V>, to source: KeyPath<R, V>) -> RecordUpdate {
        setting(path, to: source)
    }

    /// Also sets an optional property of these rows to the old value of another one.
    public func set<V: Encodable>(
        _ path: KeyPath<R, V?>, to source: KeyPath<R, V>
    ) -> RecordUpdate {
        setting(path, to: source)
    }

    private func setting(
        _ path: PartialKeyPath<R>, to source: PartialKeyPath<R>
    ) -> RecordUpdate {
        adding(path) { plan, position throws(StoreError) in
            let other = try plan.position(of: source)
            try plan.requireComparable(position, other, isOrder: false)
            var sql = SQL(text: plan.qualifiedColumns[other])
            if let pair = DatePair(plan, position, plan, other) { sql.datePairs = [pair] }
            // An index on an expression of the column may fail at the value of some row.
            sql.mayFail = true
            return sql
        }
    }

    private func adding(
        _ path: PartialKeyPath<R>, _ value: (RecordPlan, Int) throws(StoreError) -> SQL
    ) -> RecordUpdate {
        var update = self
        do throws(StoreError) {
            let plan = try RecordPlan.of(R.self)
            let position = try plan.position(of: path)
            try plan.requireSettable(position)
            var assignment = SQL(text: "\(plan.quotedColumns[position]) = ")
            assignment.append(try value(plan, position))
            update.assignments.append(assignment)
        } catch {
            update.assignments.append(SQL(failure: error))
        }
        return update
    }

    func sql(_ table: RecordTable, _ connection: Connection) throws(StoreError) -> SQL {
        var sql = SQL(text: "UPDATE \(table.plan.quotedTable) SET ")
        for (index, assignment) in assignments.enumerated() {
            if index > 0 { sql.append(", ") }
            sql.append(assignment)
        }
        sql.append(try query.restriction(table, connection))
        return sql
    }
}

extension Query {
    /// An update that sets a property of these rows. Nothing is changed before `tx.update(_:)` runs
    /// it.
    public func set<V: Encodable>(_ path: KeyPath<R, V>, to value: V) -> RecordUpdate<R> {
        RecordUpdate(self).set(path, to: value)
    }

    /// An update that sets a property of these rows to the result of a calculation. Nothing is
    /// changed before `tx.update(_:)` runs it.
    ///
    /// ```swift
    /// try tx.update(Item.all.set(\.price, to: \.price * 2))
    /// ```
    public func set<P: NumericProperty>(
        _ path: KeyPath<R, P>, to calculation: Calculation<R, P.Number>
    ) -> RecordUpdate<R> {
        RecordUpdate(self).set(path, to: calculation)
    }

    /// An update that sets a property of these rows to the old value of another one. Nothing is
    /// changed before `tx.update(_:)` runs it.
    public func set<V: Encodable>(
        _ path: KeyPath<R, V>, to source: KeyPath<R, V>
    ) -> RecordUpdate<R> {
        RecordUpdate(self).set(path, to: source)
    }

    /// An update that sets an optional property of these rows to the old value of another one.
    public func set<V: Encodable>(
        _ path: KeyPath<R, V?>, to source: KeyPath<R, V>
    ) -> RecordUpdate<R> {
        RecordUpdate(self).set(path, to: source)
    }

    /// An update that sets a property of these rows to the value of an expression of SQL. Nothing
    /// is changed before `tx.update(_:)` runs it.
    public func set<V>(_ path: KeyPath<R, V>, sql: SQL) -> RecordUpdate<R> {
        RecordUpdate(self).set(path, sql: sql)
    }
}
