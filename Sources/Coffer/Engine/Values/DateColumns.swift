import CSQLCipher

/// The columns of a file whose declared type says that their dates count from 2001.
///
/// A `Date` of Swift counts from 2001. Adding the seconds since 1970 rounds two of three dates. So
/// new columns hold the count from 2001, and every date comes back to the bit. Only the declared
/// type tells the two counts apart: the numbers alone would be read 31 years off.
///
/// Found once for each schema of a connection.
final class DateColumns {
    /// The declared type of a column that counts from 2001. SQLite gives it the affinity REAL; see
    /// section 3.1 of <https://www.sqlite.org/datatype3.html>.
    static let declaredType = "REAL_SINCE_2001"

    /// The columns of a table or view, in lower case.
    struct Table {
        var from2001: Set<String> = []
        /// The columns of a view that do not tell: expressions over a table with such columns.
        var unknown: Set<String> = []
    }

    /// Where columns count from 2001.
    private struct Places {
        /// Tables of the main file, in lower case.
        var tables = TableSet()
        /// Whether an attached file or a temporary table has such columns.
        var hasOthers = false
        /// Views that put several SELECTs together, in lower case.
        var compoundViews: [String] = []

        var isEmpty: Bool { tables.isEmpty && !hasOthers }
    }

    /// By the name of the table or view in lower case; `nil` for one that is missing.
    private var tables: [String: Table?] = [:]
    private var places: Places?

    static func of(_ connection: Connection) throws(StoreError) -> DateColumns {
        let id = ObjectIdentifier(DateColumns.self)
        if let known = try connection.attachment(id) as? DateColumns { return known }
        let made = DateColumns()
        connection.attach(made, as: id)
        return made
    }

    /// What the columns of a table or view tell; `nil` if SQL finds nothing under this name.
    ///
    /// - Throws: Errors of reading the schema, such as `.damaged`.
    func table(_ name: String, _ connection: Connection) throws(StoreError) -> Table? {
        if let known = tables[name.asciiLowercased] { return known }
        let found = try connection.unobserved { () throws(StoreError) in
            try find(name, connection)
        }
        tables[name.asciiLowercased] = .some(found)
        return found
    }

    private func find(_ name: String, _ connection: Connection) throws(StoreError) -> Table? {
        // Has no row for a table that is missing, which is no error.
        let known = try connection.firstRow(
            "PRAGMA table_info(\(identifier: name))", isReadOnly: true)
        guard known != nil else { return nil }
        var table = Table()
        guard try !places(connection).isEmpty else { return table }
        let sql = SQL(text: "SELECT * FROM \(try name.quotedIdentifier()) LIMIT 0")
        try connection.run(sql, isReadOnly: true) { statement throws(StoreError) in
            // SQLite compiles the text again at the first step if the schema has changed.
            try statement.runToEnd()
            let names = statement.columnNames
            for (name, origin) in zip(names, try statement.dateOrigins(count: names.count)) {
                switch origin {
                case .since1970: break
                case .since2001: table.from2001.insert(name.asciiLowercased)
                case .unknown: table.unknown.insert(name.asciiLowercased)
                }
            }
        }
        return table
    }

    // MARK: Statements

    /// Whether a statement reads or writes a table with columns that count from 2001.
    ///
    /// - Throws: Errors of reading the schema and of EXPLAIN, such as `.damaged`.
    /// - Complexity: O(1) in a file without such columns, once its schema was searched. Otherwise
    ///   as `Statement.footprint(on:)`.
    func isTouched(
        by statement: Statement, _ connection: Connection
    ) throws(StoreError) -> Bool {
        let places = try places(connection)
        guard !places.isEmpty else { return false }
        if places.hasOthers { return true }
        let footprint: StatementFootprint
        do throws(StoreError) {
            footprint = try statement.footprint(on: connection)
        } catch  where error.code == .sql {
            // The statement compiled, so it is an EXPLAIN, which has no dates.
            return false
        }
        return footprint.reads.intersects(places.tables)
            || footprint.writes.intersects(places.tables)
    }

    /// Whether a statement puts several SELECTs together, or a view that it reads may. SQLite then
    /// tells the declared types of one of them only.
    func isCompound(
        _ statement: Statement, _ connection: Connection
    ) throws(StoreError) -> Bool {
        let text = statement.compiledText.asciiLowercased
        let views = try places(connection).compoundViews
        return text.isCompoundSelect || views.contains { text.contains($0) }
    }

    /// Whether the text or a result column of a statement has the name of a column that counts from
    /// 2001. Always true if other files or temporary tables have such columns.
    func isNamed(by statement: Statement, _ connection: Connection) throws(StoreError) -> Bool {
        let places = try places(connection)
        if places.hasOthers { return true }
        let texts = [statement.compiledText] + statement.columnNames
        let words = texts.joined(separator: " ").asciiLowercased
        for name in places.tables.names {
            guard let table = try table(name.text, connection) else { continue }
            if table.from2001.contains(where: { words.contains($0) }) { return true }
        }
        return false
    }

    /// - Throws: Errors of reading the schema, such as `.damaged`.
    /// - Complexity: O(*objects of the schema*) the first time, then O(1).
    private func places(_ connection: Connection) throws(StoreError) -> Places {
        if let places { return places }
        let found = try connection.unobserved { () throws(StoreError) in
            try search(connection)
        }
        places = found
        return found
    }

    private func search(_ connection: Connection) throws(StoreError) -> Places {
        let handle = try connection.current()
        let pattern = "%\(Self.declaredType)%"
        var places = Places()
        // Reading the list of temporary tables would open their database.
        let hasTemporary = sqlite3_db_readonly(handle.db, "temp") >= 0
        for schema in (hasTemporary ? ["temp"] : []) + handle.attached.map(\.name) {
            let row = try connection.firstRow(
                """
                SELECT 1 FROM \(identifier: schema).\(identifier: Self.schemaTable(schema))
                WHERE type = 'table' AND sql LIKE \(pattern)
                """, isReadOnly: true)
            if row != nil { places.hasOthers = true }
        }
        let rows = try connection.rows(
            "SELECT name FROM main.sqlite_master WHERE type = 'table' AND sql LIKE \(pattern)",
            isReadOnly: true)
        for row in rows {
            places.tables.insert(try row.read("name", as: String.self).asciiLowercased)
        }
        guard !places.isEmpty else { return places }
        places.compoundViews = try compoundViews(
            ["main"] + (hasTemporary ? ["temp"] : []) + handle.attached.map(\.name), connection)
        return places
    }

    private static func schemaTable(_ schema: String) -> String {
        schema == "temp" ? "sqlite_temp_master" : "sqlite_master"
    }

    /// The views that put several SELECTs together, by themselves or through other views.
    private func compoundViews(
        _ schemas: [String], _ connection: Connection
    ) throws(StoreError) -> [String] {
        var views: [(name: String, text: String)] = []
        for schema in schemas {
            let rows = try connection.rows(
                """
                SELECT name, sql FROM \(identifier: schema).\(identifier: Self.schemaTable(schema))
                WHERE type = 'view'
                """, isReadOnly: true)
            for row in rows {
                views.append(
                    (
                        try row.read("name", as: String.self).asciiLowercased,
                        try row.read("sql", as: String.self).asciiLowercased
                    ))
            }
        }
        var compound: [String] = []
        while let index = views.firstIndex(where: { view in
            view.text.isCompoundSelect || compound.contains { view.text.contains($0) }
        }) {
            compound.append(views.remove(at: index).name)
        }
        return compound
    }
}

extension String {
    /// Whether a text in lower case has a word that puts SELECTs together. Also true for such a
    /// word in a comment, a name or a text.
    fileprivate var isCompoundSelect: Bool {
        contains("union") || contains("intersect") || contains("except")
    }
}

extension Connection {
    /// Runs queries that an observer of the transaction must not see.
    fileprivate func unobserved<T>(
        _ body: () throws(StoreError) -> T
    ) throws(StoreError) -> T {
        let handle = try current()
        let observer = handle.touchObserver
        handle.touchObserver = nil
        defer { handle.touchObserver = observer }
        return try body()
    }
}
