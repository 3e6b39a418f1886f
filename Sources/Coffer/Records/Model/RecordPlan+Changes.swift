extension RecordPlan {
    /// What the type declares of its table beyond its columns.
    func declaration() throws(StoreError) -> TableDeclaration {
        if let known = knownDeclaration.withLock({ $0 }) { return known }
        // Not under the lock: the type's own code runs, and may refer to the type itself.
        let made = try declare(self)
        knownDeclaration.withLock { $0 = made }
        return made
    }

    /// The key's only column, if it is the row id itself: an insert without it is given one.
    var rowIDPosition: Int? {
        guard !isWithoutRowID, keyPositions.count == 1,
            columns[keyPositions[0]].storage == .integer
        else { return nil }
        return keyPositions[0]
    }

    /// What names a row in SQL: the row id, under a name that no column has, or the key. With the
    /// table's name: SQLite takes an unknown `"name"` alone for a text.
    var rowNames: String {
        guard !isWithoutRowID else {
            return keyPositions.map { qualifiedColumns[$0] }.joined(separator: ", ")
        }
        let names = Set(columns.map(\.name.asciiLowercased))
        let name = RowIDName.free(beside: names) ?? RowIDName.all[0]
        return "\(quotedTable).\(name)"
    }

    /// - Throws: `.misuse` for a table without row ids whose key does not say which row it is.
    func requireKeyOfOwn() throws(StoreError) {
        try requireKey(for: "static var isWithoutRowID")
        guard let position = keyPositions.first(where: { columns[$0].isNullable }) else { return }
        throw StoreError(
            .misuse, "the key of \(typeName) may be nil, and without row ids nothing chooses one",
            hint: "Make the property not optional.", table: table, column: columns[position].name)
    }

    /// Sets columns of the rows in which others have certain values. All are parameters of a whole
    /// record; the engine refuses to bind one beyond the last that the text names, so that one is
    /// named where it is never looked at.
    func updateSQL(setting: [Int], where condition: [Int], orFail: Bool) -> String {
        let assignments = setting.map { "\(quotedColumns[$0]) = ?\($0 + 1)" }
        let terms = condition.map { "\(qualifiedColumns[$0]) = ?\($0 + 1)" }
        let isLastNamed = (setting + condition).contains(columns.count - 1)
        return "\(orFail ? "UPDATE OR FAIL" : "UPDATE") \(quotedTable) "
            + "SET \(assignments.joined(separator: ", ")) "
            + "WHERE \(terms.joined(separator: " AND "))"
            + (isLastNamed ? "" : " AND coalesce(1, ?\(columns.count))")
    }
}
