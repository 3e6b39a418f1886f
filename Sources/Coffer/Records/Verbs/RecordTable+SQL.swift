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
                since2001: try columnsFrom2001(of: statement, connection))
            return try decoder.all(type, statement, isAtRow: true)
        }
    }
}

extension RecordTable {
    /// The columns of a result whose dates count from 2001. For an expression over the type's own
    /// table alone, the table's column of the same name tells.
    ///
    /// - Throws: `.mismatch` for another expression; errors of reading the schema.
    private func columnsFrom2001(
        of statement: Statement, _ connection: Connection
    ) throws(StoreError) -> ColumnSet {
        let names = plan.spelled(statement.columns.names)
        guard plan.hasDates else {
            return ColumnSet(names.indices.filter { statement.countsFrom2001($0) })
        }
        var positions: [Int] = []
        for (index, origin) in try statement.dateOrigins(count: names.count).enumerated() {
            let own = plan.columns.firstIndex { $0.name == names[index] }
            switch origin {
            case .since1970: break
            case .since2001: positions.append(index)
            case .unknown:
                guard let own, plan.columns[own].kind == .date, plan.columns[own].encoding == nil
                else { continue }
                let tables = try statement.footprint(on: connection).reads
                guard tables == TableSet([plan.table.asciiLowercased]) else {
                    _ = try origin.date(0, column: names[index])
                    continue
                }
                if since2001.contains(Int32(own)) { positions.append(index) }
            }
        }
        return ColumnSet(positions)
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
