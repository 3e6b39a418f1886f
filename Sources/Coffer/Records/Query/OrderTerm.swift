/// One column of an order.
struct OrderTerm: Sendable {
    let column: SQL
    let order: QueryOrder
    /// The column's position in its record. `nil` for an expression, and if the key path has no
    /// column or no order; then `column` holds the error.
    let position: Int?

    init<R: Record>(_ path: PartialKeyPath<R>, _ order: QueryOrder) {
        do throws(StoreError) {
            let plan = try RecordPlan.of(R.self)
            switch try plan.place(of: path) {
            case .column(let position):
                try plan.requireOrder(of: position)
                self.init(plan, at: position, order)
            case .json(let place):
                try place.requireOrder()
                self.init(sql: try place.sql(), order)
            }
        } catch {
            self.init(failure: error)
        }
    }

    init(_ plan: RecordPlan, at position: Int, _ order: QueryOrder) {
        column = SQL(text: plan.qualifiedColumns[position])
        self.order = order
        self.position = position
    }

    /// An order by an expression.
    init(sql: SQL, _ order: QueryOrder) {
        column = sql
        self.order = order
        position = nil
    }

    init(failure: StoreError) {
        column = SQL(failure: failure)
        order = .ascending
        position = nil
    }
}

extension [OrderTerm] {
    /// ` ORDER BY …`, or nothing.
    var clause: SQL {
        var sql: SQL = ""
        for (index, term) in enumerated() {
            sql.append(index == 0 ? " ORDER BY " : ", ")
            sql.append(term.column)
            sql.append(SQL(text: " \(term.order.sql)"))
        }
        return sql
    }
}

extension RecordPlan {
    /// - Throws: `.misuse` for a column whose stored text does not sort as its values do.
    func requireOrder(of position: Int) throws(StoreError) {
        try requireOrder(of: columns[position])
    }

    func requireOrder(of column: RecordColumn) throws(StoreError) {
        guard !column.kind.isOrdered || column.encoding?.isOrdered == false else { return }
        throw StoreError(
            .misuse, "the column is stored as text, which sorts differently from its values",
            hint: "Compare with == or !=, or store the property as a number.", table: table,
            column: column.name)
    }
}
