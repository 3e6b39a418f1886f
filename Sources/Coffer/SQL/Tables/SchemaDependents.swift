/// The views and triggers of the main file, and the columns that they name.
///
/// Found by compiling a statement that uses each of them: SQLite resolves every name, and takes one
/// in double quotes that it does not know for a text.
struct SchemaDependents {
    private struct Dependent {
        let kind: String
        /// The table or view that a trigger is on; for a view its own name.
        let table: String
        /// The columns after UPDATE OF.
        let updated: [String]
        /// `nil` if it does not compile.
        let uses: [ColumnUse]?
        let failure: StoreError?
        let tokens: [SQLToken]

        /// Whether the text names a table, other than the one that a trigger is on.
        func mentions(_ name: String) -> Bool {
            // SQLite takes a text for a name where only a name can be.
            let found = tokens.filter {
                ($0.isName || $0.kind == .text) && $0.name.isSameIdentifier(as: name)
            }
            let isOn = kind == "trigger" && table.isSameIdentifier(as: name)
            return found.count > (isOn ? 1 : 0)
        }
    }

    private let connection: Connection
    /// By name.
    private var dependents: [(name: String, found: Dependent)] = []

    /// - Throws: Errors of reading the schema.
    /// - Complexity: O(*views* + *triggers*).
    init(_ connection: Connection) throws(StoreError) {
        self.connection = connection
        let rows = try connection.rows(
            """
            SELECT type, name, tbl_name, sql FROM main.sqlite_master
            WHERE type IN ('view', 'trigger') ORDER BY name
            """, isReadOnly: true)
        for row in rows {
            let kind: String = try row.read("type")
            let name: String = try row.read("name")
            let table: String = try row.read("tbl_name")
            let trigger = try row.read("sql", as: String?.self).flatMap { TriggerText($0) }
            let sql =
                kind == "view"
                ? "SELECT * FROM main.\(try name.quotedIdentifier()) LIMIT 0"
                : try firing(trigger, on: table)
            var (uses, failure): ([ColumnUse]?, StoreError?)
            do throws(StoreError) {
                uses = try self.uses(of: sql)
            } catch {
                guard [.sql, .misuse, .notFound].contains(error.code) else { throw error }
                failure = error
            }
            dependents.append(
                (
                    name,
                    Dependent(
                        kind: kind, table: table, updated: trigger?.columns ?? [], uses: uses,
                        failure: failure,
                        tokens: SQLToken.tokens(of: try row.read("sql", as: String?.self) ?? ""))
                ))
        }
    }

    /// A statement that fires a trigger, as SQL; an empty text if there is none.
    private func firing(_ trigger: TriggerText?, on table: String) throws(StoreError) -> String {
        let name = "main.\(try table.quotedIdentifier())"
        switch trigger?.event {
        case nil: return ""
        case .insert: return "INSERT INTO \(name) DEFAULT VALUES"
        case .delete: return "DELETE FROM \(name)"
        case .update:
            var columns = trigger?.columns ?? []
            if columns.isEmpty {
                for row in try connection.rows(
                    "PRAGMA main.table_info(\(identifier: table))", isReadOnly: true)
                {
                    columns.append(try row.read("name"))
                }
            }
            var terms: [String] = []
            for column in columns {
                let quoted = try column.quotedIdentifier()
                terms.append("\(quoted) = \(quoted)")
            }
            return "UPDATE \(name) SET \(terms.joined(separator: ", "))"
        }
    }

    private func uses(of sql: String) throws(StoreError) -> [ColumnUse] {
        let authorizer = try connection.current().authorizer
        return try authorizer.listingUses { () throws(StoreError) in
            try connection.compile(sql, persistent: false).finalize()
        }.1
    }

    /// - Parameter columns: Names in lower case of ASCII.
    /// - Throws: `.unsupported` for a view or trigger that names one of these columns.
    func requireNoUse(of columns: Set<String>, in table: String) throws(StoreError) {
        func isOne(_ name: String, of other: String) -> Bool {
            other.isSameIdentifier(as: table) && columns.contains(name.asciiLowercased)
        }
        for (name, dependent) in dependents {
            if let column = dependent.updated.first(where: { isOne($0, of: dependent.table) }) {
                throw Self.refusal("the trigger \(name)", table, column)
            }
            guard dependent.uses != nil else {
                try requireNoMention(of: columns, in: table, name, dependent)
                continue
            }
            // Names outside of views and triggers are those of the statement made here.
            let use = dependent.uses?.first { $0.owner != nil && isOne($0.column, of: $0.table) }
            guard let use, let owner = use.owner else { continue }
            let isView =
                dependent.kind == "view"
                || dependents.contains {
                    $0.name.isSameIdentifier(as: owner) && $0.found.kind == "view"
                }
            throw Self.refusal("the \(isView ? "view" : "trigger") \(owner)", table, use.column)
        }
    }

    /// SQLite cannot tell whose columns a view or trigger names that does not compile here, as with
    /// a function of another program.
    private func requireNoMention(
        of columns: Set<String>, in table: String, _ name: String, _ dependent: Dependent
    ) throws(StoreError) {
        guard dependent.table.isSameIdentifier(as: table) || dependent.mentions(table) else {
            return
        }
        let token = dependent.tokens.first { columns.contains($0.name.asciiLowercased) }
        guard let token else { return }
        throw Self.refusal("the \(dependent.kind) \(name)", table, token.name)
    }

    /// - Throws: `.unsupported` for a view or trigger that joins the table by all names that it
    ///   shares with another one, as SQLite does not tell them.
    func requireNoNaturalJoin(of table: String) throws(StoreError) {
        for (name, dependent) in dependents where dependent.mentions(table) {
            guard dependent.tokens.contains(where: { $0.isWord("natural") }) else { continue }
            throw StoreError(
                .unsupported, "the \(dependent.kind) \(name) has a NATURAL JOIN of the table",
                hint: "Drop it before, and make it again after.", table: table)
        }
    }

    /// - Parameter columns: Names of columns that the table gets, in lower case of ASCII.
    /// - Throws: `.unsupported` for a view or trigger that has one of them in quotes. SQLite took
    ///   it for a text, and would take it for the column.
    func requireNoText(_ columns: Set<String>, in table: String) throws(StoreError) {
        for (name, dependent) in dependents {
            guard dependent.table.isSameIdentifier(as: table) || dependent.mentions(table) else {
                continue
            }
            let token = dependent.tokens.first {
                $0.kind == .quoted && columns.contains($0.name.asciiLowercased)
            }
            guard let token else { continue }
            throw Self.refusal("the \(dependent.kind) \(name)", table, token.name)
        }
    }

    /// - Throws: `.unsupported` for a view or trigger that takes the columns of a table by their
    ///   places.
    func requireNoPlaces(in table: String) throws(StoreError) {
        for (name, dependent) in dependents where dependent.mentions(table) {
            let tokens = dependent.tokens
            for (position, token) in tokens.enumerated() where position > 0 {
                let before = tokens[position - 1]
                let isStar =
                    token.isSign("*")
                    && (before.isSign(".") || before.isSign(",")
                        || before.isWord("select", "distinct", "all"))
                let next = position + 1 < tokens.count ? tokens[position + 1] : nil
                let isWhole =
                    (token.isName || token.kind == .text)
                    && token.name.isSameIdentifier(as: table)
                    && (before.isWord("into") || before.isSign("."))
                    && next?.isSign("(") == false && next?.isSign(".") == false
                    && tokens[..<position].suffix(3).contains { $0.isWord("into") }
                guard isStar || isWhole else { continue }
                throw StoreError(
                    .unsupported,
                    "the \(dependent.kind) \(name) takes the columns by their places",
                    hint: "Keep the order of the properties, or drop it before, and make it again "
                        + "after.",
                    table: table)
            }
        }
    }

    /// Why a trigger does not compile; `nil` if it does.
    func failure(ofTrigger name: String) -> StoreError? {
        dependents.first { $0.name.isSameIdentifier(as: name) && $0.found.kind == "trigger" }?
            .found.failure
    }

    private static func refusal(
        _ object: String, _ table: String, _ column: String
    ) -> StoreError {
        StoreError(
            .unsupported, "\(object) names the column \(column)",
            hint: "Drop it before, and make it again after. The history of a table ends with "
                + "stopKeepingHistory(of:).",
            table: table, column: column)
    }

    /// Checks that views and triggers mean what they meant when `self` was made.
    ///
    /// - Parameters:
    ///   - table: The changed table, by its present name.
    ///   - old: The name that it had.
    ///   - new: Columns that it has gained, in lower case of ASCII.
    /// - Throws: `.unsupported` for one that compiled, and does not compile now; for one that no
    ///   longer names a column that it named, as another one of that name is nearer; for one
    ///   that names a new column.
    func requireIntact(
        _ table: String, renamedFrom old: String? = nil, new: Set<String>
    ) throws(StoreError) {
        let now = try SchemaDependents(connection)
        try requireCompiling(now, table)
        func count(_ uses: [ColumnUse]?) -> [[String]: Int] {
            var counts: [[String]: Int] = [:]
            for use in uses ?? [] {
                guard let owner = use.owner else { continue }
                let isOfTable = [table, old ?? table].contains {
                    $0.isSameIdentifier(as: use.table)
                }
                let key = [
                    isOfTable ? "" : use.table.asciiLowercased, use.column.asciiLowercased,
                    owner.asciiLowercased,
                ]
                counts[key, default: 0] += 1
            }
            return counts
        }
        for (name, before) in dependents where before.uses != nil {
            let after = now.dependents.first { $0.name == name && $0.found.kind == before.kind }
            let (earlier, later) = (count(before.uses), count(after?.found.uses))
            if let lost = earlier.first(where: { later[$0.key] ?? 0 < $0.value }) {
                throw Self.refusal("the \(before.kind) \(name)", table, lost.key[1])
            }
            for (key, number) in later where key[0].isEmpty && new.contains(key[1]) {
                let owner = dependents.first { $0.name.isSameIdentifier(as: key[2]) }?.found
                // A view of all columns has the new one too.
                let takesAll = owner?.tokens.contains { $0.isSign("*") } == true
                guard number > earlier[key] ?? 0, !takesAll else { continue }
                throw Self.refusal("the \(before.kind) \(name)", table, key[1])
            }
        }
    }

    /// Checks that what reads a view still compiles, now that the view was made again.
    func requireCompiling(withoutView view: String) throws(StoreError) {
        try requireCompiling(try SchemaDependents(connection), view)
    }

    private func requireCompiling(
        _ now: SchemaDependents, _ table: String
    ) throws(StoreError) {
        for (name, before) in dependents where before.uses != nil {
            let found = now.dependents.first { $0.name == name && $0.found.kind == before.kind }?
                .found
            guard found?.uses == nil else { continue }
            throw StoreError(
                .unsupported,
                "the \(before.kind) \(name) does not fit the changed table: "
                    + (found?.failure?.message ?? "it is gone"),
                hint: "Drop it before, and make it again after.", table: table,
                cause: found?.failure)
        }
    }
}
