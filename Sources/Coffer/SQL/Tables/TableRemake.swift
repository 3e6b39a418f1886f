/// Puts a new table in the place of one that exists, with its rows, indexes and triggers.
///
/// SQLite cannot alter everything, and SQLite 3.15 little. This is the procedure of
/// <https://www.sqlite.org/lang_altertable.html#otheralter>, in a migration's transaction: foreign
/// keys have no effect, and a renamed table takes no references along. The migration checks all
/// foreign keys at its end.
struct TableRemake {
    /// A column of the new table, and the SQL that makes its value from a row of the old one.
    struct Copy {
        let column: String
        let value: SQL
    }

    /// What happens to columns of the old table. Names are in lower case of ASCII.
    struct Changes {
        var renamed: [String: String] = [:]
        var dropped: Set<String> = []
        /// Columns that the old table has not, under no name.
        var added: Set<String> = []
        /// Whether columns that stay have another order.
        var isReordered = false

        /// Columns that no longer have their old name.
        var gone: Set<String> { dropped.union(renamed.keys) }

        /// Names that the old table has not.
        var new: Set<String> {
            added.union(renamed.values.map(\.asciiLowercased)).subtracting(renamed.keys)
        }
    }

    let connection: Connection
    /// The name as the schema has it.
    let table: String
    /// The text that made the table.
    let sql: String

    /// - Throws: `.misuse` outside of a migration and for tables of Coffer's own; `.notFound` if
    ///   there is no such table, `.mismatch` for a view, `.unsupported` for a virtual table, the
    ///   tables behind one, and a name that a temporary object has too.
    init(_ name: String, _ connection: Connection) throws(StoreError) {
        self.connection = connection
        guard try connection.current().migrationMode.isRunning else {
            throw StoreError(
                .misuse, "a table is made again in a migration only",
                hint: "Call it in the body of a Migration: elsewhere foreign keys have effect.",
                table: name)
        }
        let found = try connection.firstRow(
            """
            SELECT name, type, rootpage, sql FROM main.sqlite_master
            WHERE type IN ('table', 'view') AND name = \(name) COLLATE NOCASE
            """, isReadOnly: true)
        guard let found else {
            throw StoreError(.notFound, "there is no such table", table: name)
        }
        table = try found.read("name")
        guard found["type"] == .text("table") else {
            throw StoreError(
                .mismatch, "\(table) is a view", hint: "Drop it, and make it again.", table: table)
        }
        try Self.requireForeign(table)
        sql = try found.read("sql", as: String?.self) ?? ""
        guard try found.read("rootpage", as: Int?.self) ?? 0 > 0, try !isBehindVirtualTable() else {
            throw StoreError(
                .unsupported, "\(table) is a virtual table, or belongs to one",
                hint: "Make a new one, copy the rows, and drop the old one.", table: table)
        }
        try requireNoTemporary()
    }

    /// - Throws: `.misuse` for the name of a table that belongs to Coffer or SQLite.
    static func requireForeign(_ name: String) throws(StoreError) {
        let isOwn = ["coffer:", "bucket:", "sqlite_"].contains {
            name.asciiLowercased.hasPrefix($0)
        }
        guard isOwn else { return }
        throw StoreError(
            .misuse, "\(name) is the name of a table that Coffer or SQLite keeps for itself",
            table: name)
    }

    /// What the modules of SQLite append to a virtual table's name for the tables behind it.
    private static let shadowSuffixes = [
        "_content", "_segments", "_segdir", "_docsize", "_stat", "_data", "_idx", "_config",
        "_node", "_rowid", "_parent",
    ]

    private func isBehindVirtualTable() throws(StoreError) -> Bool {
        for suffix in Self.shadowSuffixes where table.asciiLowercased.hasSuffix(suffix) {
            let row = try connection.firstRow(
                """
                SELECT 1 FROM main.sqlite_master WHERE type = 'table' AND rootpage = 0
                AND name = \(String(table.dropLast(suffix.count))) COLLATE NOCASE
                """, isReadOnly: true)
            if row != nil { return true }
        }
        return false
    }

    /// Drops the triggers by which the store observes the table, which the next transaction makes
    /// again.
    ///
    /// - Throws: `.unsupported` for a temporary object that DROP TABLE would drop, or that hides
    ///   the table.
    private func requireNoTemporary() throws(StoreError) {
        let rows = try connection.rows(
            """
            SELECT type, name FROM sqlite_temp_master
            WHERE tbl_name = \(table) COLLATE NOCASE
            """, isReadOnly: true)
        for row in rows {
            let name: String = try row.read("name")
            guard row["type"] == .text("trigger"), name.hasPrefix("coffer:") else {
                throw StoreError(
                    .unsupported,
                    "the temporary \(try row.read("type", as: String.self)) \(name) "
                        + "is on the table, or hides it",
                    hint: "Drop it before.", table: table)
            }
            try connection.perform("DROP TRIGGER temp.\(identifier: name)")
        }
    }

    // MARK: Making again

    /// Puts a new table in the old one's place.
    ///
    /// - Parameters:
    ///   - changes: The columns that the new table has under another name, or not at all.
    ///   - copies: The new table's columns with values from the old one's rows. The row id is kept
    ///     without being among them.
    ///   - sql: Makes the CREATE TABLE for a name in quotes.
    /// - Throws: `.unsupported` if an index, a trigger, a view or a foreign key names a column that
    ///   is gone, or if a row id cannot be kept; `.constraint` if a row does not fit the new table;
    ///   errors of the statements.
    /// - Complexity: O(*rows* log *rows*).
    func run(
        _ changes: Changes, _ copies: [Copy],
        sql: (_ quotedName: String) throws(StoreError) -> String
    ) throws(StoreError) {
        let dependents = try SchemaDependents(connection)
        try dependents.requireNoUse(of: changes.gone, in: table)
        try dependents.requireNoText(changes.new, in: table)
        if !changes.gone.isEmpty || !changes.new.isEmpty {
            try dependents.requireNoNaturalJoin(of: table)
        }
        if !changes.gone.isEmpty { try requireNoOuterFullText() }
        if changes.isReordered { try dependents.requireNoPlaces(in: table) }
        let children = try children(changes)
        let parts = try parts(changes)
        let before = try objects()
        try replace(copies, sql)
        for part in parts { try connection.perform(SQL(text: part)) }
        for child in children {
            try TableRemake(child, connection).rename(changes.renamed, ofParent: table)
        }
        guard try objects() == before else {
            throw StoreError(
                .unsupported, "an index or trigger of the table could not be kept", table: table)
        }
        connection.forgetAttachments()
        try dependents.requireIntact(table, new: changes.new)
    }

    /// - Throws: `.unsupported` for a full-text table that keeps no texts but reads those of the
    ///   table, by the names of its columns.
    func requireNoOuterFullText() throws(StoreError) {
        for row in try connection.rows(
            "SELECT name, sql FROM main.sqlite_master WHERE type = 'table' AND rootpage = 0",
            isReadOnly: true)
        {
            let tokens = SQLToken.tokens(of: try row.read("sql", as: String?.self) ?? "")
            let isOuter = tokens.indices.dropLast(2).contains { position in
                tokens[position].isWord("content") && tokens[position + 1].isSign("=")
                    && tokens[position + 2].name.isSameIdentifier(as: table)
            }
            guard isOuter else { continue }
            let name: String = try row.read("name")
            throw StoreError(
                .unsupported, "the full-text table \(name) reads the texts of \(table)",
                hint: "Drop it before, and make it again after.", table: table)
        }
    }

    private func replace(
        _ copies: [Copy], _ sql: (_ quotedName: String) throws(StoreError) -> String
    ) throws(StoreError) {
        let new = try freeName()
        let (old, made) = ("main.\(table.inDoubleQuotes)", "main.\(new.inDoubleQuotes)")
        let count = try rowCount(old)
        let sequence = try sequence()
        do throws(StoreError) {
            try connection.perform(SQL(text: try sql(made)))
            connection.forgetAttachments()
            try fill(made, new, copies, from: old)
        } catch {
            throw error.naming(table, insteadOf: new)
        }
        let found = try rowCount(made)
        guard found == count else {
            throw StoreError(
                .constraint, "the new table takes \(found) of \(count) rows",
                hint: "A constraint of the new table ignores or replaces rows.", table: table)
        }
        try connection.perform(SQL(text: "DROP TABLE \(old)"))
        try connection.perform(
            SQL(text: "ALTER TABLE \(made) RENAME TO \(table.inDoubleQuotes)"))
        try keep(sequence)
        connection.forgetAttachments()
    }

    private func fill(
        _ made: String, _ new: String, _ copies: [Copy], from old: String
    ) throws(StoreError) {
        var names: [String] = []
        var values = SQL(text: "")
        for copy in copies {
            if !names.isEmpty { values.append(", ") }
            names.append(try copy.column.quotedIdentifier())
            values.append(copy.value)
        }
        // A key that is the row id is among the columns.
        if try !hasKeyOfRowID(new), let rowIDs = try rowIDs(new) {
            if !names.isEmpty { values.append(", ") }
            names.append(rowIDs.new)
            values.append(SQL(text: rowIDs.old))
        }
        var insertion = SQL(text: "INSERT INTO \(made) (\(names.joined(separator: ", "))) SELECT ")
        insertion.append(values)
        insertion.append(SQL(text: " FROM \(old)"))
        try connection.perform(insertion)
    }

    /// Whether the key of a table is its row id.
    func hasKeyOfRowID(_ name: String) throws(StoreError) -> Bool {
        let columns = try connection.rows(
            "PRAGMA main.table_info(\(identifier: name))", isReadOnly: true)
        let key = columns.filter { $0["pk"] != .integer(0) }
        guard key.count == 1 else { return false }
        let indexes = try connection.rows(
            "PRAGMA main.index_list(\(identifier: name))", isReadOnly: true)
        return !indexes.contains { $0["origin"] == .text("pk") }
    }

    /// The row id's names in a new table and in the old one; `nil` if one of them has no row ids.
    ///
    /// - Throws: `.unsupported` if columns hide every name of one.
    func rowIDs(_ new: String) throws(StoreError) -> (new: String, old: String)? {
        guard try !isWithoutRowIDs(new), try !isWithoutRowIDs(table) else { return nil }
        guard let newName = try connection.freeRowIDName(of: new, schema: "main"),
            let oldName = try connection.freeRowIDName(of: table, schema: "main")
        else { throw StoreError.noRowIDs(in: table) }
        return (newName, oldName)
    }

    private func isWithoutRowIDs(_ name: String) throws(StoreError) -> Bool {
        for index in try connection.rows(
            "PRAGMA main.index_list(\(identifier: name))", isReadOnly: true)
        where index["origin"] == .text("pk") {
            let terms = try connection.rows(
                "PRAGMA main.index_xinfo(\(identifier: try index.read("name", as: String.self)))",
                isReadOnly: true)
            // An index of a table with row ids ends with the row id.
            return !terms.contains { $0["cid"] == .integer(-1) }
        }
        return false
    }

    private func freeName() throws(StoreError) -> String {
        var name = "coffer:remade"
        var number = 1
        while try connection.firstRow(
            "SELECT 1 FROM main.sqlite_master WHERE name = \(name) COLLATE NOCASE",
            isReadOnly: true) != nil
        {
            number += 1
            name = "coffer:remade\(number)"
        }
        return name
    }

    private func rowCount(_ quoted: String) throws(StoreError) -> Int64 {
        let row = try connection.firstRow(
            SQL(text: "SELECT count(*) FROM \(quoted)"), isReadOnly: true)
        guard case .integer(let count)? = row?[0] else { return 0 }
        return count
    }

    // MARK: AUTOINCREMENT

    /// The highest row id that an AUTOINCREMENT table has given out; `nil` for any other table.
    private func sequence() throws(StoreError) -> Int64? {
        guard try hasSequences() else { return nil }
        let row = try connection.firstRow(
            "SELECT seq FROM main.sqlite_sequence WHERE name = \(table)", isReadOnly: true)
        guard case .integer(let number)? = row?[0] else { return nil }
        return number
    }

    private func hasSequences() throws(StoreError) -> Bool {
        try connection.firstRow(
            "SELECT 1 FROM main.sqlite_master WHERE name = 'sqlite_sequence'", isReadOnly: true)
            != nil
    }

    private func keep(_ sequence: Int64?) throws(StoreError) {
        guard let sequence, try isAutoincrement() else { return }
        let count = try connection.perform(
            """
            UPDATE main.sqlite_sequence SET seq = max(seq, \(sequence)) WHERE name = \(table)
            """)
        guard count == 0 else { return }
        try connection.perform(
            "INSERT INTO main.sqlite_sequence (name, seq) VALUES (\(table), \(sequence))")
    }

    private func isAutoincrement() throws(StoreError) -> Bool {
        let row = try connection.firstRow(
            "SELECT sql FROM main.sqlite_master WHERE type = 'table' AND name = \(table)",
            isReadOnly: true)
        let text = try row?.read("sql", as: String?.self) ?? ""
        return SQLToken.tokens(of: text).contains { $0.isWord("autoincrement") }
    }

    // MARK: What belongs to the table

    /// The texts that make the table's indexes and triggers again.
    ///
    /// - Throws: `.unsupported` for an index of a column that is dropped.
    private func parts(_ changes: Changes) throws(StoreError) -> [String] {
        let rows = try connection.rows(
            """
            SELECT type, name, sql FROM main.sqlite_master
            WHERE type IN ('index', 'trigger') AND tbl_name = \(table) COLLATE NOCASE
            AND sql IS NOT NULL ORDER BY type, rowid
            """, isReadOnly: true)
        var parts: [String] = []
        for row in rows {
            let text: String = try row.read("sql")
            let name: String = try row.read("name")
            guard row["type"] == .text("index") else {
                guard TriggerText(text) != nil else { throw unreadable("trigger", name) }
                parts.append(text)
                continue
            }
            guard let index = IndexText(text) else { throw unreadable("index", name) }
            if let column = changes.new.first(where: index.mentions) {
                throw StoreError(
                    .unsupported, "the index \(name) has \(column) in quotes, as a text",
                    hint: "Choose another name, or drop the index before.", table: table,
                    column: column)
            }
            if let column = changes.dropped.first(where: index.mentions) {
                throw StoreError(
                    .unsupported, "the index \(name) names the column \(column)",
                    hint: "Drop it before: tx.table(…).dropIndex(\"\(name)\").", table: table,
                    column: column)
            }
            parts.append(try index.sql(renaming: changes.renamed))
        }
        return parts
    }

    private func unreadable(_ kind: String, _ name: String) -> StoreError {
        StoreError(
            .unsupported, "the text of the \(kind) \(name) is not one that SQLite writes",
            hint: "Drop it before, and make it again after.", table: table)
    }

    /// The kind, name and table of every object, in lower case of ASCII.
    private func objects() throws(StoreError) -> [[Value]] {
        try connection.rows(
            """
            SELECT type, lower(name), lower(tbl_name) FROM main.sqlite_master
            WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY 1, 2, 3
            """, isReadOnly: true
        ).map(\.values)
    }

    // MARK: Tables that refer to it

    /// Other tables whose foreign keys name a column that is renamed.
    ///
    /// - Throws: `.unsupported` if a foreign key names a column that is dropped, or is that of a
    ///   table of Coffer's own.
    private func children(_ changes: Changes) throws(StoreError) -> [String] {
        guard !changes.gone.isEmpty else { return [] }
        let rows = try connection.rows(
            "SELECT name FROM main.sqlite_master WHERE type = 'table' AND rootpage > 0",
            isReadOnly: true)
        var children: [String] = []
        for row in rows {
            let name: String = try row.read("name")
            guard !name.isSameIdentifier(as: table) else { continue }
            let columns = try TableShape(name, connection).parents
                .filter { $0.table.isSameIdentifier(as: table) }.flatMap(\.columns)
            guard let column = columns.first(where: changes.gone.contains) else { continue }
            let isOwn = (try? Self.requireForeign(name)) == nil
            guard !isOwn, !columns.contains(where: changes.dropped.contains) else {
                throw StoreError(
                    .unsupported, "a foreign key of \(name) names the column \(column)",
                    hint: "Change or drop that table before.", table: table, column: column)
            }
            children.append(name)
        }
        return children
    }
}
