/// A view or trigger that a record type declares, and the one of that name in the file.
struct DeclaredObject {
    enum Kind {
        case view
        case trigger(String)
    }

    private let sql: String
    private let kind: Kind
    private let plan: RecordPlan
    private let connection: Connection

    /// - Parameter sql: The text that makes it.
    init(_ sql: String, _ kind: Kind, _ plan: RecordPlan, _ connection: Connection) {
        (self.sql, self.kind, self.plan, self.connection) = (sql, kind, plan, connection)
    }

    private var name: String {
        if case .trigger(let name) = kind { name } else { plan.table }
    }

    private var isView: Bool {
        if case .view = kind { true } else { false }
    }

    /// What the file has under the name.
    private struct Existing {
        let type: String
        let table: String
        let sql: String
    }

    private func existing() throws(StoreError) -> Existing? {
        let row = try connection.firstRow(
            """
            SELECT type, tbl_name, coalesce(sql, '') AS sql FROM main.sqlite_master
            WHERE name = \(name) COLLATE NOCASE AND (type = 'trigger') = \(!isView)
            """, isReadOnly: false)
        guard let row else { return nil }
        return Existing(
            type: try row.read("type"), table: try row.read("tbl_name"), sql: try row.read("sql"))
    }

    /// Whether an object of the file says the same, in any case of names and with any space. What
    /// is in quotes may be a text, so its case counts.
    private func isSame(_ found: Existing) -> Bool {
        found.type == (isView ? "view" : "trigger") && found.table.isSameIdentifier(as: plan.table)
            && Self.signature(found.sql) == Self.signature(sql)
    }

    private static func signature(_ sql: String) -> [SQLText] {
        let quoted = SQLToken.tokens(of: sql).filter { $0.kind == .quoted }.map(\.name)
        return SchemaExpression.signature(sql) + quoted.map { SQLText($0) }
    }

    /// Makes it if the file has none. In a migration, puts it in the place of another one.
    ///
    /// - Throws: `.mismatch` for another one outside of a migration, for an object of another kind
    ///   or table, and for a view with triggers; errors of the statements that it has.
    func create() throws(StoreError) {
        guard let found = try existing() else { return try make() }
        if isSame(found) { return }
        let isReplaceable =
            found.type == (isView ? "view" : "trigger")
            && found.table.isSameIdentifier(as: plan.table)
        guard isReplaceable, try connection.current().migrationMode.isRunning,
            try !hasTriggers()
        else {
            throw StoreError(
                .mismatch,
                "the file and \(plan.typeName) differ: \(difference(from: found))",
                hint: isReplaceable
                    ? "Call tx.create(\(plan.typeName).self) in a migration, which replaces it. A "
                        + "view with triggers has to be dropped before."
                    : "Give it another name, or drop what has the name.",
                table: plan.table)
        }
        let dependents = try SchemaDependents(connection)
        try run("DROP \(isView ? "VIEW" : "TRIGGER") main.\(try name.quotedIdentifier())")
        connection.forgetAttachments()
        try make()
        if isView { try dependents.requireCompiling(withoutView: name) }
    }

    private func hasTriggers() throws(StoreError) -> Bool {
        guard isView else { return false }
        return try connection.firstRow(
            """
            SELECT 1 FROM main.sqlite_master
            WHERE type = 'trigger' AND tbl_name = \(plan.table) COLLATE NOCASE
            """, isReadOnly: false) != nil
    }

    /// SQLite looks the names in a view or trigger up when it is used first.
    private func make() throws(StoreError) {
        try run(sql)
        guard isView else {
            guard let failure = try SchemaDependents(connection).failure(ofTrigger: name) else {
                return
            }
            throw failure.with(table: plan.table)
        }
        if plan.hasDates { _ = try plan.columnsFrom2001(connection) }
        do throws(StoreError) {
            try connection.compile("\(plan.selectSQL) LIMIT 0", persistent: false).finalize()
        } catch {
            guard error.code == .sql else { throw error }
            throw StoreError(
                .mismatch,
                "the view of \(plan.typeName) cannot be read: \(error.message)",
                hint: "Its columns are named as the properties: SELECT … AS total.",
                table: plan.table, cause: error)
        }
    }

    private func run(_ sql: String) throws(StoreError) {
        do throws(StoreError) {
            try connection.perform(SQL(text: sql))
        } catch {
            throw error.with(table: plan.table)
        }
    }

    // MARK: Comparing

    private func difference(from found: Existing) -> SchemaDifference {
        SchemaDifference(
            column: nil, expected: sql,
            found: found.sql.isEmpty ? "the \(found.type) \(name)" : found.sql)
    }

    /// The difference from the file that `create` resolves in a migration at most; `nil` if there
    /// is none.
    func difference() throws(StoreError) -> SchemaDifference? {
        guard let found = try existing(), !isSame(found) else { return nil }
        return difference(from: found)
    }
}

extension RecordPlan {
    /// The CREATE VIEW of a type whose records are the rows of a view.
    func viewSQL(_ select: SQL, _ connection: Connection) throws(StoreError) -> String {
        let schema = SchemaStatement(typeName: typeName, table: table, connection: connection)
        return "CREATE VIEW \(quotedTable) AS \(try schema.text(select))"
    }
}
