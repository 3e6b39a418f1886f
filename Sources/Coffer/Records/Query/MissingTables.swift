// A type without a table has no rows, also where a condition refers to it.

extension SQL {
    /// The same SQL, for a type that may have no table.
    func orEmpty(_ plan: RecordPlan) -> SQL {
        var sql = self
        sql.maybeMissing = (maybeMissing ?? [:]).merging([plan.table: plan.quotedColumns]) { $1 }
        return sql
    }

    /// The SQL with an empty result in place of each table that is missing, if that is why it does
    /// not compile; else `nil`.
    ///
    /// An observer learns that the query reads the schema, so it looks again when a table comes.
    func withEmptyTables(
        after error: StoreError, _ connection: Connection
    ) throws(StoreError) -> SQL? {
        guard error.code == .sql, let maybeMissing else { return nil }
        var empty: [String] = []
        for (name, columns) in maybeMissing.sorted(by: { $0.key < $1.key }) {
            let table = try name.quotedIdentifier()
            guard try !connection.findsTable(name, quoted: table) else { continue }
            let nulls = columns.map { _ in "NULL" }.joined(separator: ", ")
            let names = columns.joined(separator: ", ")
            empty.append("\(table)(\(names)) AS (SELECT \(nulls) WHERE 0)")
        }
        guard !empty.isEmpty else { return nil }
        // The name of a common table expression hides a table's.
        var sql = SQL(text: "WITH \(empty.joined(separator: ", ")) ")
        sql.append(self)
        sql.maybeMissing = nil
        return sql
    }
}

extension Connection {
    /// Whether SQL finds a table or view of this name, in any database.
    fileprivate func findsTable(_ name: String, quoted: String) throws(StoreError) -> Bool {
        let known = try firstRow(
            """
            SELECT 1 FROM sqlite_master
            WHERE type IN ('table', 'view') AND name = \(name) COLLATE NOCASE
            """, isReadOnly: true)
        if known != nil { return true }
        do throws(StoreError) {
            release(try cached("SELECT 1 FROM \(quoted) LIMIT 0"))
            return true
        } catch {
            guard error.code == .sql else { throw error }
            return false
        }
    }
}
