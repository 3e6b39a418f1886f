/// Creates, compares and drops the full-text index of a record type in a file.
struct FullTextSchema {
    private let index: ResolvedFullText
    private let connection: Connection

    init(_ index: ResolvedFullText, _ connection: Connection) {
        (self.index, self.connection) = (index, connection)
    }

    /// How the file has the index.
    private enum State {
        case missing
        case same
        /// Another index, or another object of its name.
        case other(String)
    }

    /// Makes the index if it is missing, with all rows of the table.
    ///
    /// - Throws: `.mismatch` if the file has another one.
    func create() throws(StoreError) {
        switch try state() {
        case .same: return
        case .other(let found): throw mismatch(found)
        case .missing:
            guard try RecordSchema(index.plan, connection).isTableAlone() else {
                throw StoreError(
                    .misuse, "a temporary table has the name of the record's table",
                    hint: "Drop it first.", table: index.plan.table)
            }
            try run(try index.table().sql)
            try run(try index.fill())
            for trigger in try index.triggers() { try run(trigger.sql) }
        }
    }

    private func mismatch(_ found: String) -> StoreError {
        StoreError(
            .mismatch,
            "the file and \(index.plan.typeName) differ: expected \(index.description), "
                + "found \(found)",
            hint: "Call tx.dropFullTextIndex(of: \(index.plan.typeName).self) in a migration, "
                + "and create(_:) makes it again; or drop what has its name.",
            table: index.plan.table)
    }

    /// - Throws: `.mismatch` if the file has another index than the type declares. It may have
    ///   none.
    func requireSame() throws(StoreError) {
        if case .other(let found) = try state() { throw mismatch(found) }
    }

    /// The difference from the type that makes `create` fail; `nil` if there is none.
    func difference() throws(StoreError) -> SchemaDifference? {
        guard case .other(let found) = try state() else { return nil }
        return SchemaDifference(column: nil, expected: index.description, found: found)
    }

    /// Whether the file has no object of the index's name.
    func isMissing() throws(StoreError) -> Bool { try sql(of: index.name, isTrigger: false) == nil }

    private func state() throws(StoreError) -> State {
        let triggers = try index.triggers()
        var found: [String?] = []
        for trigger in triggers { found.append(try sql(of: trigger.name, isTrigger: true)) }
        guard let table = try sql(of: index.name, isTrigger: false) else {
            let stray = zip(triggers, found).first { $1 != nil }
            return stray.map { .other("a trigger \($0.0.name) without it") } ?? .missing
        }
        // The file keeps the text that made the object.
        guard table == (try index.table().sql) else { return .other(table) }
        for (trigger, sql) in zip(triggers, found) where sql != trigger.sql {
            return .other(sql ?? "no trigger \(trigger.name)")
        }
        return .same
    }

    private func sql(of name: String, isTrigger: Bool) throws(StoreError) -> String? {
        try connection.fullTextObject(name, isTrigger: isTrigger)?.sql
    }

    private func run(_ sql: String) throws(StoreError) {
        do throws(StoreError) {
            try connection.perform(SQL(text: sql))
        } catch {
            throw error.with(table: index.plan.table)
        }
    }
}

extension ResolvedFullText: SQLRequirement {
    /// The indexes of a connection's file that follow their tables.
    private final class Checked {
        var names: Set<String> = []
    }

    /// Refuses a search by an index that does not follow its table, such as one whose triggers went
    /// with an older table. A missing index or table is left to the search, which fails by itself.
    func require(on connection: Connection) throws(StoreError) {
        let id = ObjectIdentifier(Checked.self)
        let kept = try connection.attachment(id) as? Checked
        if let kept, kept.names.contains(name) { return }
        guard try RecordSchema(plan, connection).kind() != .nothing else { return }
        try FullTextSchema(self, connection).requireSame()
        let checked = kept ?? Checked()
        checked.names.insert(name)
        connection.attach(checked, as: id)
    }
}

extension Connection {
    /// A trigger, or any other object, of this name in the file.
    fileprivate func fullTextObject(
        _ name: String, isTrigger: Bool
    ) throws(StoreError) -> (table: String, sql: String)? {
        let row = try firstRow(
            """
            SELECT tbl_name, coalesce(sql, '') AS sql FROM main.sqlite_master
            WHERE (type = 'trigger') = \(isTrigger) AND name = \(name) COLLATE NOCASE
            """, isReadOnly: false)
        guard let row else { return nil }
        return (try row.read("tbl_name"), try row.read("sql"))
    }

    /// Drops an index and its triggers.
    ///
    /// - Parameter table: The record's table.
    /// - Throws: `.mismatch` for an object that Coffer has not made.
    fileprivate func dropFullText(_ name: String, of table: String) throws(StoreError) {
        func refuse(_ name: String) -> StoreError {
            StoreError(
                .mismatch, "\(name) is not a full-text index that Coffer has made of the table",
                hint: "Give the index another name, or drop this object with SQL.", table: table)
        }
        let quoted = try name.quotedIdentifier()
        for suffix in ResolvedFullText.triggerSuffixes {
            let trigger = "\(name)_\(suffix)"
            guard let found = try fullTextObject(trigger, isTrigger: true) else { continue }
            guard found.table.isSameIdentifier(as: table), found.sql.contains(quoted) else {
                throw refuse(trigger)
            }
            try perform("DROP TRIGGER main.\(SQL(text: trigger.quotedIdentifier()))")
        }
        guard let found = try fullTextObject(name, isTrigger: false) else { return }
        guard isFullTextOfCoffer(found.sql, quoted) else { throw refuse(name) }
        try perform("DROP TABLE main.\(SQL(text: quoted))")
    }

    /// Whether Coffer has made a table: nobody else quotes the first column of an index of words
    /// and names the tokenizer last.
    private func isFullTextOfCoffer(_ sql: String, _ quotedName: String) -> Bool {
        sql.hasPrefix("CREATE VIRTUAL TABLE \(quotedName) USING fts4(\"")
            && sql.contains("\", tokenize=")
    }

    /// Fills the full-text indexes of a table again, whose rows have changed without a trigger.
    func refillFullTexts(of table: String) throws(StoreError) {
        let end = "_\(ResolvedFullText.triggerSuffixes[0])"
        let triggers = try rows(
            """
            SELECT name FROM main.sqlite_master
            WHERE type = 'trigger' AND tbl_name = \(table) COLLATE NOCASE
            """, isReadOnly: false)
        for trigger in triggers {
            let name = try trigger.read("name", as: String.self)
            guard name.hasSuffix(end) else { continue }
            let index = String(name.dropLast(end.count))
            let quoted = try index.quotedIdentifier()
            guard let found = try fullTextObject(index, isTrigger: false),
                isFullTextOfCoffer(found.sql, quoted),
                let rowID = try freeRowIDName(of: table, schema: "main")
            else { continue }
            var names: [String] = []
            for column in try rows(
                "PRAGMA main.table_info(\(identifier: index))", isReadOnly: false)
            {
                names.append(try column.read("name", as: String.self).quotedIdentifier())
            }
            let columns = names.joined(separator: ", ")
            try perform(SQL(text: "DELETE FROM main.\(quoted)"))
            try perform(
                SQL(
                    text:
                        "INSERT INTO main.\(quoted)(docid, \(columns)) SELECT \(rowID), \(columns) "
                        + "FROM main.\(try table.quotedIdentifier())"))
        }
    }
}

extension RecordPlan {
    /// The full-text index that the type declares.
    ///
    /// - Throws: `.misuse` if it declares none.
    func requireFullText() throws(StoreError) -> ResolvedFullText {
        guard let index = try declaration().fullText else {
            throw StoreError(
                .misuse, "\(typeName) declares no full-text index",
                hint: "Declare static var fullTextIndex: FullTextIndex<Self>? "
                    + "{ FullTextIndex(\\.…) }.", table: table)
        }
        return index
    }
}

extension WriteTransaction {
    /// Drops the full-text index of a record type, so that `create` makes it again as the type now
    /// declares it.
    ///
    /// ```swift
    /// Migration("search in titles too") { tx in
    ///     struct Note: Record {  // as it was then
    ///         static var fullTextIndex: FullTextIndex<Self>? { FullTextIndex(\.title, \.body) }
    ///         …
    ///     }
    ///     try tx.dropFullTextIndex(of: Note.self)
    ///     try tx.create(Note.self)
    /// }
    /// ```
    ///
    /// The type need not declare one any more. Nothing happens if the file has none. Call this
    /// before you drop or rename the record's table.
    ///
    /// - Parameters:
    ///   - type: The record type.
    ///   - name: The name of the index; `nil` for the one that the type declares, or would have by
    ///     default.
    /// - Throws: `StoreError` `.mismatch` if an object that Coffer has not made has its name.
    public func dropFullTextIndex<R: Record>(of type: R.Type, named name: String? = nil) throws {
        let connection = try connection()
        let plan = try RecordPlan.of(type)
        let declared = try plan.declaration().fullText?.name
        let name = name ?? declared ?? ResolvedFullText.defaultName(plan)
        try connection.undoing { () throws(StoreError) in
            try connection.dropFullText(name, of: plan.table)
        }
    }
}
