extension RecordPlan {
    /// The type's declarations about its table, beyond the columns.
    func declaration() throws(StoreError) -> TableDeclaration {
        if let known = knownDeclaration.withLock({ $0 }) { return known }
        // Made outside the lock, because this runs the type's own code, which may refer to the
        // type.
        let made = try declare(self)
        knownDeclaration.withLock { $0 = made }
        return made
    }

    /// The key's only column, if it is the row id: SQLite chooses its value for an insert without
    /// one.
    var rowIDPosition: Int? {
        guard !isWithoutRowID, keyPositions.count == 1,
            columns[keyPositions[0]].storage == .integer
        else { return nil }
        return keyPositions[0]
    }

    /// - Throws: `.misuse` if the type has no key, or an optional property in it.
    func requireKeyOfOwn() throws(StoreError) {
        try requireKey(for: "static var isWithoutRowID")
        guard let position = keyPositions.first(where: { columns[$0].isNullable }) else { return }
        throw StoreError(
            .misuse, "the key of \(typeName) may be nil, and without row ids nothing generates one",
            hint: "Make the property non-optional.", table: table, column: columns[position].name)
    }

    /// An UPDATE of the columns `setting` in rows where the columns `condition` have given values.
    /// Parameters are numbered as for a whole record. SQLite refuses to bind a parameter beyond the
    /// last one in the text. If no column needs the record's last parameter, the text names it
    /// inside a `coalesce` that never evaluates it.
    func updateSQL(setting: [Int], where condition: [Int], orFail: Bool) -> String {
        let assignments = setting.map { "\(quotedColumns[$0]) = ?\($0 + 1)" }
        let terms = condition.map { "\(qualifiedColumns[$0]) = ?\($0 + 1)" }
        let isLastNamed = (setting + condition).contains(columns.count - 1)
        return "\(orFail ? "UPDATE OR FAIL" : "UPDATE") \(quotedTable) "
            + "SET \(assignments.joined(separator: ", ")) WHERE \(terms.joined(separator: " AND "))"
            + (isLastNamed ? "" : " AND coalesce(1, ?\(columns.count))")
    }
}
