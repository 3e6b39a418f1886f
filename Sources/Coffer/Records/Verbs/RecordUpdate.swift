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
    /// try tx.update(Note.where(\.id == id).set(\.readCount, sql: "readCount + \(1)"))
    /// ```
    ///
    /// - Parameters:
    ///   - path: The property.
    ///   - sql: An SQL expression; `\( )` binds and never splices. It sees the old values of
    ///     columns.
    public func set<V>(_ path: KeyPath<R, V>, sql: SQL) -> RecordUpdate {
        adding(path) { _, _ in sql }
    }

    private func adding(
        _ path: PartialKeyPath<R>, _ value: (RecordPlan, Int) throws(StoreError) -> SQL
    ) -> RecordUpdate {
        var update = self
        do throws(StoreError) {
            let plan = try RecordPlan.of(R.self)
            let position = try plan.position(of: path)
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

    /// An update that sets a property of these rows to the value of an expression of SQL. Nothing
    /// is changed before `tx.update(_:)` runs it.
    public func set<V>(_ path: KeyPath<R, V>, sql: SQL) -> RecordUpdate<R> {
        RecordUpdate(self).set(path, sql: sql)
    }
}
