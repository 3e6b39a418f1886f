// A type without a table has no rows, also where a condition refers to it.

extension RecordTable {
    /// A query with an empty result in place of each missing table of a type that this one refers
    /// to, or that the query names; `nil` if no table is missing, or if the query failed for
    /// another reason.
    ///
    /// An observer learns that the query reads the schema, so it looks again when a table comes.
    func withEmptyParents(
        _ sql: SQL, after error: StoreError, _ connection: Connection
    ) throws(StoreError) -> SQL? {
        guard error.code == .sql else { return nil }
        var empty: [String] = []
        var known: Set<String> = [plan.table.asciiLowercased]
        let others = sql.otherTables.compactMap { $0 as? RecordPlan }
        for other in try plan.parents() + others
        where known.insert(other.table.asciiLowercased).inserted {
            guard try !connection.findsTable(of: other) else { continue }
            // A missing view would have rows, if it were made.
            guard try other.declaration().view == nil else { throw try other.notFound }
            let nulls = other.columns.map { _ in "NULL" }.joined(separator: ", ")
            let names = other.quotedColumns.joined(separator: ", ")
            empty.append("\(other.quotedTable)(\(names)) AS (SELECT \(nulls) WHERE 0)")
        }
        guard !empty.isEmpty else { return nil }
        // The name of a common table expression hides a table's.
        return SQL(text: "WITH \(empty.joined(separator: ", ")) ").appending(sql)
    }
}

extension RecordPlan {
    /// The error for a missing table or view.
    var notFound: StoreError {
        get throws(StoreError) {
            let isView = try declaration().view != nil
            return StoreError(
                .notFound, "there is no \(isView ? "view" : "table") for \(typeName)",
                hint: "Call tx.create(\(typeName).self)\(isView ? "" : ", or insert a record,") "
                    + "in a write.", table: table)
        }
    }

    /// The types that this one refers to, and those that they refer to; one for each table.
    fileprivate func parents() throws(StoreError) -> ArraySlice<RecordPlan> {
        var found = [self]
        var names: Set<String> = [table.asciiLowercased]
        var index = 0
        while index < found.count {
            for reference in try found[index].declaration().references
            where names.insert(reference.parent.table.asciiLowercased).inserted {
                found.append(reference.parent)
            }
            index += 1
        }
        return found.dropFirst()
    }
}

extension Connection {
    /// Whether SQL finds a table or view under the type's name, in any database.
    fileprivate func findsTable(of plan: RecordPlan) throws(StoreError) -> Bool {
        if try RecordSchema(plan, self).kind() != .nothing { return true }
        do throws(StoreError) {
            release(try cached("SELECT 1 FROM \(plan.quotedTable) LIMIT 0"))
            return true
        } catch {
            guard error.code == .sql else { throw error }
            return false
        }
    }
}
