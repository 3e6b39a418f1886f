/// A table that a join adds to the tables before it.
struct JoinedTable: Sendable {
    let plan: RecordPlan
    /// The name in the SQL of the join, quoted. It is the table's own, unless a table before it
    /// has that.
    let name: String
    /// Whether it is a LEFT JOIN, so that rows without a partner stay.
    let isOptional: Bool
    /// The columns that are equal in rows that belong together.
    private let equality: String
    /// Whether the row has a partner in this table: in that, this column is not NULL.
    let presence: String
    private let condition: SQL?
    private let datePairs: [DatePair]
    let order: [OrderTerm]

    /// - Parameters:
    ///   - child: The name of the table that refers to this one.
    ///   - names: The names of the tables before this one.
    /// - Throws: `.misuse` for a query that a join cannot use.
    init<Parent: Record>(
        _ parents: Query<Parent>, _ reference: ReferenceColumns, from child: String,
        isOptional: Bool, after names: [String]
    ) throws(StoreError) {
        guard parents.maximumCount == nil else {
            throw StoreError(
                .misuse, "the joined query has a limit, which would count other rows",
                hint: "Limit the query that joins it: limit(…).joining(…).",
                table: reference.parent.table)
        }
        let plan = reference.parent
        let name = plan.quotedTable.unusedName(names)
        // The parent column comes first, because a foreign key compares by the parent's collation.
        equality = zip(reference.parentPositions, reference.childPositions).map {
            "\(name).\(plan.quotedColumns[$0]) = \(child).\(reference.child.quotedColumns[$1])"
        }.joined(separator: " AND ")
        presence = "\(name).\(plan.quotedColumns[reference.parentPositions[0]]) IS NOT NULL"
        condition = parents.condition?.sql
        datePairs = reference.datePairs
        order = try parents.order.map { term throws(StoreError) in
            try name == plan.quotedTable ? term : term.moved(to: name, plan)
        }
        (self.plan, self.name, self.isOptional) = (plan, name, isOptional)
    }

    /// Whether the table has another name in the join than its own.
    private var isRenamed: Bool { name != plan.quotedTable }

    /// The columns as a read of records selects them.
    var selectedColumns: [String] {
        hasOwnQuery ? plan.quotedColumns.map { "\(name).\($0)" } : plan.selectedColumns(of: name)
    }

    /// Whether the table is a query of its own in the join. A condition names the columns by the
    /// table's own name, which another table of the join has.
    private var hasOwnQuery: Bool { isRenamed && condition != nil }

    /// ` JOIN … ON …`
    var clause: SQL {
        var sql = SQL(text: isOptional ? " LEFT JOIN " : " JOIN ")
        sql.append(source)
        sql.append(SQL(text: " ON \(equality)"))
        sql.datePairs += datePairs
        // After the join it would remove the rows without a partner.
        if isOptional, !isRenamed, let condition { sql.append(" AND \(condition)") }
        return sql
    }

    /// The condition on the rows of the join; `nil` if there is none, or if it is part of `clause`.
    var filter: SQL? { isOptional || isRenamed ? nil : condition }

    private var source: SQL {
        guard isRenamed else { return SQL(text: name) }
        guard let condition else { return SQL(text: "\(plan.quotedTable) AS \(name)") }
        // SQLite may keep these rows in memory, so values of Lazy properties stay out.
        let columns = zip(plan.selectedColumns, plan.quotedColumns).map { "\($0) AS \($1)" }
            .joined(separator: ", ")
        return """
            (SELECT \(SQL(text: columns)) FROM \(SQL(text: plan.quotedTable)) \
            WHERE \(condition)) AS \(SQL(text: name))
            """
    }
}

extension String {
    /// The name, or another one if it is among `names`, as SQLite compares names.
    fileprivate func unusedName(_ names: [String]) -> String {
        let taken = Set(names.map(\.asciiLowercased))
        guard taken.contains(asciiLowercased) else { return self }
        var number = 2
        while taken.contains("\"coffer_\(number)\"") { number += 1 }
        return "\"coffer_\(number)\""
    }
}

extension OrderTerm {
    /// The same order of a table that has another name in a join.
    ///
    /// - Throws: `.misuse` for an order by an expression.
    fileprivate func moved(to table: String, _ plan: RecordPlan) throws(StoreError) -> OrderTerm {
        guard column.failure == nil else { return self }
        guard let position else {
            throw StoreError(
                .misuse, "a join uses the table twice, and orders it by an expression",
                hint: "Order by a property.", table: plan.table)
        }
        return OrderTerm(sql: SQL(text: "\(table).\(plan.quotedColumns[position])"), order)
    }
}
