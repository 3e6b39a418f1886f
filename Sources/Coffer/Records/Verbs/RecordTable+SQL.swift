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
                stored: decoder.stored)
            return try decoder.all(type, statement, isAtRow: true)
        }
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
