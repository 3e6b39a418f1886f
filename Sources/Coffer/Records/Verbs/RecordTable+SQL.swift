extension RecordTable {
    /// The rows of a user's SELECT, with columns matched by name.
    func fetch<R: Record>(
        _ type: R.Type, named sql: SQL, isReadOnly: Bool, _ connection: Connection
    ) throws(StoreError) -> [R] {
        try run(sql, connection) { statement throws(StoreError) in
            if isReadOnly { try statement.requireReadOnly() }
            guard !statement.columns.names.isEmpty else {
                throw StoreError(.misuse, "the statement returns no rows", sql: statement.sql)
            }
            // Must step before reading the names, because SQLite recompiles the text at the first
            // step if the schema has changed. A statement that writes has written by then.
            guard try statement.advance() else { return [] }
            let decoder = RowDecoder(
                plan, names: plan.spelled(statement.columns.names), key: decoder.key,
                stored: decoder.stored,
                since2001: try columnsFrom2001(of: statement))
            return try decoder.all(type, statement, isAtRow: true)
        }
    }
}

extension RecordTable {
    /// The columns of a result whose dates count from 2001. For an expression it is the table's
    /// column of the same name that tells.
    private func columnsFrom2001(of statement: Statement) throws(StoreError) -> ColumnSet {
        let names = plan.spelled(statement.columns.names)
        guard plan.hasDates else {
            return ColumnSet(names.indices.filter { statement.countsFrom2001($0) })
        }
        let origins = try statement.dateOrigins(count: names.count)
        return ColumnSet(
            names.indices.filter { index in
                switch origins[index] {
                case .since2001: return true
                case .since1970: return false
                case .unknown:
                    let own = plan.columns.firstIndex { $0.name == names[index] }
                    return own.map { since2001.contains(Int32($0)) } ?? false
                }
            })
    }
}

extension RecordPlan {
    /// The names of a result's columns, as the type spells them. The table may spell them in
    /// another case, which SQLite ignores. A name in exactly the type's spelling takes precedence.
    fileprivate func spelled(_ names: [String]) -> [String] {
        let own = columns.map(\.name)
        let others = own.filter { !names.contains($0) }
        guard !others.isEmpty else { return names }
        return names.map { name in
            own.contains(name) ? name : others.first { $0.isSameIdentifier(as: name) } ?? name
        }
    }
}
