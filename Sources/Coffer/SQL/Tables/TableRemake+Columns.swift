/// Changes of a table's text: other names for columns, and fewer columns.
extension TableRemake {
    /// Gives a column another name.
    ///
    /// - Throws: `.notFound` if there is no such column, `.misuse` if another one has the new name;
    ///   otherwise as `run`.
    func renameColumn(_ old: String, to new: String) throws(StoreError) {
        let text = try text()
        let shape = try TableShape(table, connection)
        try requireColumn(old, shape)
        guard old.isSameIdentifier(as: new) || !shape.names.contains(new.asciiLowercased) else {
            throw StoreError(
                .misuse, "the table has a column \(new)", table: table, column: new)
        }
        let isText = text.mentions(of: new).contains(where: \.place.isExpression)
        guard old.isSameIdentifier(as: new) || !isText else {
            throw StoreError(
                .unsupported, "an expression of the table has \(new) in quotes, as a text",
                hint: "Choose another name.", table: table, column: new)
        }
        let names = [old.asciiLowercased: new]
        let copies = try copies { names[$0.asciiLowercased] ?? $0 }
        try run(Changes(renamed: names), copies) { name throws(StoreError) in
            try text.sql(named: name, renaming: names)
        }
        try require(shape.renaming(names, of: table))
    }

    /// Drops columns, with the constraints that only they have.
    ///
    /// - Throws: `.notFound` if there is no such column; `.unsupported` if the primary key, another
    ///   constraint or no column is left over; otherwise as `run`.
    func dropColumns(_ columns: [String]) throws(StoreError) {
        let text = try text()
        let shape = try TableShape(table, connection)
        for column in columns { try requireColumn(column, shape) }
        let dropped = Set(columns.map(\.asciiLowercased))
        if dropped.isEmpty { return }
        if let column = columns.first(where: { shape.key.contains($0.asciiLowercased) }) {
            throw refusal("the primary key", column)
        }
        guard !dropped.isSuperset(of: shape.names) else {
            throw StoreError(.unsupported, "a table needs at least one column", table: table)
        }
        let items = try items(ofDropped: dropped, text)
        let copies = try copies { dropped.contains($0.asciiLowercased) ? nil : $0 }
        try run(Changes(dropped: dropped), copies) { name throws(StoreError) in
            try text.sql(named: name, without: items)
        }
        try require(shape.without(dropped))
    }

    /// Gives columns of a table that this one refers to another name.
    func rename(_ names: [String: String], ofParent parent: String) throws(StoreError) {
        let text = try text()
        let shape = try TableShape(table, connection)
        try run(Changes(), try copies { $0 }) { name throws(StoreError) in
            try text.sql(named: name, renaming: names, ofParent: parent)
        }
        try require(shape.renaming(names, ofParent: parent))
    }

    /// Gives the table another name, also in the foreign keys of other tables.
    ///
    /// - Throws: `.alreadyExists` if an object has the name; `.misuse` for a name of Coffer's or
    ///   SQLite's own; `.unsupported` for a table with a history of changes, and if a view or
    ///   trigger names the table.
    func renameTable(to new: String) throws(StoreError) {
        try Self.requireForeign(new)
        let quoted = try new.quotedIdentifier()
        let other = try connection.firstRow(
            """
            SELECT name FROM (
                SELECT name FROM main.sqlite_master UNION ALL SELECT name FROM sqlite_temp_master)
            WHERE name = \(new) COLLATE NOCASE AND name <> \(table) COLLATE NOCASE
            """, isReadOnly: true)
        guard other == nil else {
            throw StoreError(
                .alreadyExists, "the file has a table, view, index or trigger \(new)",
                table: table)
        }
        let history = try connection.firstRow(
            """
            SELECT name FROM main.sqlite_master WHERE type = 'trigger'
            AND tbl_name = \(table) COLLATE NOCASE AND name = \("coffer:\(table):update")
            """, isReadOnly: true)
        guard history == nil else {
            throw StoreError(
                .unsupported, "the history of a table has the table's name in it",
                hint: "End it before with stopKeepingHistory(of:), and begin another one after.",
                table: table)
        }
        try requireUnqualified()
        try requireNoOuterFullText()
        let dependents = try SchemaDependents(connection)
        try connection.current().enforcingForeignKeys { () throws(StoreError) in
            _ = try connection.perform(
                SQL(text: "ALTER TABLE main.\(table.inDoubleQuotes) RENAME TO \(quoted)"))
        }
        connection.forgetAttachments()
        try dependents.requireIntact(new, renamedFrom: table, new: [])
    }

    // MARK: Inside

    /// SQLite 3.15 renames a table without these names, and cannot read its own schema afterwards.
    ///
    /// - Throws: `.unsupported` if an expression of the table or of an index names the table.
    private func requireUnqualified() throws(StoreError) {
        var isQualified = TableText(sql)?.isQualified != false
        for row in try connection.rows(
            """
            SELECT sql FROM main.sqlite_master
            WHERE type = 'index' AND tbl_name = \(table) COLLATE NOCASE AND sql IS NOT NULL
            """, isReadOnly: true)
        {
            let text = IndexText(try row.read("sql", as: String.self))
            isQualified = isQualified || text?.isQualified(by: table) != false
        }
        guard !isQualified else {
            throw StoreError(
                .unsupported, "an expression of the table or of an index names the table",
                hint: "Alter the table by its record type, or drop the index before.", table: table)
        }
    }

    private func text() throws(StoreError) -> TableText {
        guard let text = TableText(sql), !sql.isEmpty else { throw isUnreadable }
        let columns = text.items.compactMap { $0.column?.asciiLowercased }
        guard try columns == TableShape(table, connection).names else { throw isUnreadable }
        return text
    }

    private var isUnreadable: StoreError {
        StoreError(
            .unsupported, "the text that made the table cannot be changed",
            hint: "Make a new table with SQL, copy the rows, and drop the old one.", table: table)
    }

    private func requireColumn(_ column: String, _ shape: TableShape) throws(StoreError) {
        guard !shape.names.contains(column.asciiLowercased) else { return }
        throw StoreError(.notFound, "there is no such column", table: table, column: column)
    }

    /// Compares the table with what was expected of it.
    private func require(_ expected: TableShape) throws(StoreError) {
        guard try TableShape(table, connection).isSame(as: expected) else { throw isUnreadable }
    }

    /// Copies of all columns that an INSERT can set.
    ///
    /// - Parameter name: The new name of a column; `nil` to leave it out.
    private func copies(_ name: (String) -> String?) throws(StoreError) -> [Copy] {
        var copies: [Copy] = []
        for row in try connection.rows(
            "PRAGMA main.table_info(\(identifier: table))", isReadOnly: true)
        {
            let old: String = try row.read("name")
            guard let new = name(old) else { continue }
            copies.append(
                Copy(
                    column: new,
                    value: "\(identifier: table).\(identifier: old)"))
        }
        return copies
    }

    /// The parts of the text that go with the columns.
    ///
    /// - Throws: `.unsupported` if a part that stays names one of them.
    private func items(
        ofDropped dropped: Set<String>, _ text: TableText
    ) throws(StoreError) -> Set<Int> {
        var items: Set<Int> = []
        for (index, item) in text.items.enumerated() {
            if let column = item.column, dropped.contains(column.asciiLowercased) {
                items.insert(index)
            }
        }
        for column in dropped.sorted() {
            for mention in text.mentions(of: column) where !items.contains(mention.item) {
                let isAlone =
                    text.items[mention.item].column == nil
                    && text.isOneConstraint(mention.item)
                let columns = text.mentions.filter {
                    $0.item == mention.item && $0.place == mention.place
                }.map { text.tokens[$0.token].name.asciiLowercased }
                guard isAlone, mention.place == .key || mention.place == .foreignKey,
                    dropped.isSuperset(of: columns)
                else { throw refusal("a constraint", column) }
                items.insert(mention.item)
            }
        }
        // A CHECK behind a dropped column may be about others too.
        for mention in text.mentions
        where mention.place == .check && items.contains(mention.item) {
            let name = text.tokens[mention.token].name
            let isColumn = text.items.contains { $0.column?.isSameIdentifier(as: name) == true }
            guard !isColumn || dropped.contains(name.asciiLowercased) else {
                throw refusal("a constraint of a dropped column", name)
            }
        }
        return items
    }

    private func refusal(_ object: String, _ column: String) -> StoreError {
        StoreError(
            .unsupported, "\(object) of the table names the column \(column)",
            hint: "Alter the table by its record type: tx.alter(…).", table: table, column: column)
    }
}

extension TableText {
    /// Whether an item without a column is one constraint: SQLite needs no comma between two.
    func isOneConstraint(_ item: Int) -> Bool {
        var depth = 0
        var count = 0
        for token in tokens[items[item].tokens] {
            if token.isSign("(") { depth += 1 }
            if token.isSign(")") { depth -= 1 }
            if depth == 0, token.isWord("primary", "unique", "check", "foreign") { count += 1 }
        }
        return count == 1
    }
}

extension StoreError {
    /// The same error, with a table's name in place of the one that the new table has until it
    /// takes the old one's place.
    func naming(_ table: String, insteadOf other: String) -> StoreError {
        StoreError(
            code, message.replacing(other, with: table), hint: hint, sql: sql,
            sqlOffset: sqlOffset, pages: pages, table: table, column: column,
            resultCode: resultCode, cause: cause)
    }
}

extension Connection {
    /// Runs changes of a table's schema in a savepoint, so that an error leaves nothing of them.
    func altering(
        _ table: String, _ body: (TableRemake) throws(StoreError) -> Void
    ) throws(StoreError) {
        do {
            try savepoint { try body(try TableRemake(table, self)) }
        } catch let error as StoreError {
            throw error
        } catch {
            throw StoreError(.sql, "the table could not be altered", table: table, cause: error)
        }
    }
}
