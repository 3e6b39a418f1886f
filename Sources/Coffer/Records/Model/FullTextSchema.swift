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
        case .other:
            throw StoreError(
                .mismatch,
                "the file and \(index.plan.typeName) differ: "
                    + (try difference()?.description ?? index.description),
                hint: "Call tx.dropFullTextIndex(of: \(index.plan.typeName).self) in a migration, "
                    + "and create(_:) makes it again; or drop what has its name.",
                table: index.plan.table)
        case .missing:
            try run(try index.table().sql)
            try run(try index.fill())
            for trigger in try index.triggers() { try run(trigger.sql) }
        }
    }

    /// Drops the index and its triggers, whatever it is of.
    func drop() throws(StoreError) {
        for trigger in try index.triggers() {
            try run("DROP TRIGGER IF EXISTS \(try trigger.name.quotedIdentifier())")
        }
        guard let found = try sql(of: index.name) else { return }
        guard found.asciiLowercased.hasPrefix("create virtual table") else {
            throw StoreError(
                .mismatch, "\(index.name) is not a full-text index",
                hint: "Give the index another name.", table: index.plan.table)
        }
        try run("DROP TABLE \(try index.quotedName())")
    }

    /// What `create` cannot resolve; `nil` if there is nothing.
    func difference() throws(StoreError) -> SchemaDifference? {
        guard case .other(let found) = try state() else { return nil }
        return SchemaDifference(column: nil, expected: index.description, found: found)
    }

    /// Whether the file has no object of the index's name.
    func isMissing() throws(StoreError) -> Bool { try sql(of: index.name) == nil }

    private func state() throws(StoreError) -> State {
        let triggers = try index.triggers()
        var found: [String?] = []
        for trigger in triggers { found.append(try sql(of: trigger.name)) }
        guard let table = try sql(of: index.name) else {
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

    private func sql(of name: String) throws(StoreError) -> String? {
        let row = try connection.firstRow(
            """
            SELECT coalesce(sql, '') AS sql FROM sqlite_master
            WHERE type IN ('table', 'view', 'trigger') AND name = \(name) COLLATE NOCASE
            """, isReadOnly: false)
        return try row?.read("sql")
    }

    private func run(_ sql: String) throws(StoreError) {
        do throws(StoreError) {
            try connection.perform(SQL(text: sql))
        } catch {
            throw error.with(table: index.plan.table)
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
    ///     try tx.dropFullTextIndex(of: Note.self)
    ///     try tx.create(Note.self)
    /// }
    /// ```
    ///
    /// Nothing happens if there is none.
    ///
    /// - Throws: `StoreError` `.misuse` if the type declares no full-text index; `.mismatch` if
    ///   another object has its name.
    public func dropFullTextIndex<R: Record>(of type: R.Type) throws {
        let connection = try connection()
        let index = try RecordPlan.of(type).requireFullText()
        try connection.savepoint { try FullTextSchema(index, connection).drop() }
    }
}
