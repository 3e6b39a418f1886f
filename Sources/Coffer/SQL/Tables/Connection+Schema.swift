import CSQLCipher

/// Queries of the schema. Names are compared as SQLite does: without regard to case in ASCII, and
/// exactly beyond it.
///
/// `schema` is `main`, `temp` or the name of an attached file; `nil` means all of them, in the
/// order in which SQLite looks a name up: temp, main, then attached files.
extension Connection {
    /// All tables, indexes, views and triggers except SQLite's own, whose names begin with
    /// `sqlite_`.
    ///
    /// - Returns: Ordered by schema and table; a table before its indexes and triggers.
    /// - Throws: `StoreError` `.notFound` if there is no such schema; `.damaged`, `.busy`, `.io`.
    /// - Complexity: O(*objects*).
    public func schemaObjects(in schema: String? = nil) throws -> [SchemaObject] {
        try inRead { () throws(StoreError) in
            var objects: [SchemaObject] = []
            for place in try places(schema) {
                let sql = """
                    SELECT type, name, tbl_name, rootpage, sql FROM \(place.master)
                    WHERE substr(name, 1, 7) <> 'sqlite_' COLLATE NOCASE
                    ORDER BY tbl_name COLLATE NOCASE, type = 'table' DESC, type = 'view' DESC,
                    type, name
                    """
                for row in try rows(SQL(text: sql), isReadOnly: true) {
                    if let object = try SchemaObject(row, schema: place.name) {
                        objects.append(object)
                    }
                }
            }
            return objects
        }
    }

    /// Whether there is a table of this name, virtual ones included.
    ///
    /// - Throws: As `schemaObjects(in:)`.
    public func tableExists(_ name: String, in schema: String? = nil) throws -> Bool {
        try exists(.table, name, in: schema)
    }

    /// Whether there is a view of this name.
    ///
    /// - Throws: As `schemaObjects(in:)`.
    public func viewExists(_ name: String, in schema: String? = nil) throws -> Bool {
        try exists(.view, name, in: schema)
    }

    /// Whether there is an index of this name.
    ///
    /// - Throws: As `schemaObjects(in:)`.
    public func indexExists(_ name: String, in schema: String? = nil) throws -> Bool {
        try exists(.index, name, in: schema)
    }

    /// Whether there is a trigger of this name.
    ///
    /// - Throws: As `schemaObjects(in:)`.
    public func triggerExists(_ name: String, in schema: String? = nil) throws -> Bool {
        try exists(.trigger, name, in: schema)
    }

    /// Whether a table or view has a column of this name; `false` if there is no such table.
    ///
    /// - Throws: As `schemaObjects(in:)`.
    public func columnExists(
        _ column: String, in table: String, of schema: String? = nil
    ) throws -> Bool {
        guard let columns = try findColumns(table, schema) else { return false }
        return columns.contains { $0.name.isSameIdentifier(as: column) }
    }

    /// The columns of a table or view, in order.
    ///
    /// - Throws: `StoreError` `.notFound` if there is no such table or schema; `.damaged`.
    /// - Note: The corresponding SQL is `PRAGMA table_info`.
    public func columns(of table: String, in schema: String? = nil) throws -> [ColumnInformation] {
        guard let columns = try findColumns(table, schema) else {
            throw StoreError(.notFound, "there is no such table", table: table)
        }
        return columns
    }

    /// The indexes of a table, including those of its constraints.
    ///
    /// - Throws: `StoreError` `.notFound` if there is no such table or schema; `.damaged`.
    /// - Note: The corresponding SQL is `PRAGMA index_list` and `PRAGMA index_info`.
    public func indexes(of table: String, in schema: String? = nil) throws -> [IndexInformation] {
        try inRead { () throws(StoreError) in
            let place = try place(of: table, schema)
            var indexes: [IndexInformation] = []
            for row in try pragma("index_list", table, place) {
                let name: String = try row.read("name")
                indexes.append(
                    IndexInformation(
                        name: name, isUnique: try row.read("unique"),
                        isPartial: try row.read("partial"),
                        isOfConstraint: try row.read("origin", as: String.self) != "c",
                        columns: try columns(ofIndex: name, place)))
            }
            return indexes
        }
    }

    /// The foreign keys of a table.
    ///
    /// - Throws: `StoreError` `.notFound` if there is no such table or schema; `.damaged`.
    /// - Note: The corresponding SQL is `PRAGMA foreign_key_list`.
    public func foreignKeys(
        of table: String, in schema: String? = nil
    ) throws -> [ForeignKeyInformation] {
        try inRead { () throws(StoreError) in
            let place = try place(of: table, schema)
            let rows = try pragma("foreign_key_list", table, place)
            var keys: [ForeignKeyInformation] = []
            var first = rows[...]
            // One row for each column; the rows of one key are adjacent.
            while let row = first.first {
                let id: Int = try row.read("id")
                var references: [ForeignKeyInformation.Reference] = []
                while let part = first.first, try part.read("id", as: Int.self) == id {
                    references.append(
                        ForeignKeyInformation.Reference(
                            column: try part.read("from"), parentColumn: try part.read("to")))
                    first = first.dropFirst()
                }
                keys.append(
                    ForeignKeyInformation(
                        parentTable: try row.read("table"), references: references,
                        onUpdate: try row.read("on_update"), onDelete: try row.read("on_delete")))
            }
            return keys
        }
    }

    // MARK: Inside

    /// A schema of the connection: its name, and its `sqlite_master` table as SQL.
    struct Place {
        let name: String
        let master: String
    }

    /// Runs several reading statements in one transaction, which is probed at its end.
    private func inRead<T>(_ body: () throws(StoreError) -> T) throws -> T {
        let handle = try current()
        guard !handle.isInTransaction else {
            let result = try body()
            try probe()
            return result
        }
        try handle.run(.begin)
        schemaMayHaveChanged()
        return try finish(handle, body)
    }

    private func places(_ schema: String?) throws(StoreError) -> [Place] {
        let all = [
            // SQLite 3.15 does not know it as `temp.sqlite_master`.
            Place(name: "temp", master: "sqlite_temp_master"),
            Place(name: "main", master: "main.sqlite_master"),
        ]
        var places = all
        for name in try current().attachedNames {
            places.append(
                Place(name: name, master: "\(try name.quotedIdentifier()).sqlite_master"))
        }
        guard let schema else { return places }
        guard let place = places.first(where: { $0.name.isSameIdentifier(as: schema) }) else {
            throw StoreError(
                .notFound, "there is no schema of that name",
                hint: "Use main, temp, or the name that a file was attached with.")
        }
        return [place]
    }

    private func exists(
        _ kind: SchemaObject.Kind, _ name: String, in schema: String?
    ) throws -> Bool {
        try inRead { () throws(StoreError) in
            try find([kind], name, in: schema) != nil
        }
    }

    /// The first schema that has an object of one of these kinds and this name.
    private func find(
        _ kinds: [SchemaObject.Kind], _ name: String, in schema: String?
    ) throws(StoreError) -> Place? {
        for place in try places(schema) {
            let sql = """
                SELECT 1 FROM \(place.master) WHERE type IN (?, ?) AND name = ? COLLATE NOCASE
                """
            let arguments = [kinds[0].rawValue, kinds[kinds.count - 1].rawValue, name]
            let found = try firstRow(
                SQL(text: sql, arguments: arguments.map { .text($0) }), isReadOnly: true)
            if found != nil { return place }
        }
        return nil
    }

    /// The schema of a table or view; `nil` if there is no such table or view.
    func place(ofTable table: String, _ schema: String?) throws -> Place? {
        try inRead { () throws(StoreError) in try find([.table, .view], table, in: schema) }
    }

    private func place(of table: String, _ schema: String?) throws(StoreError) -> Place {
        guard let place = try find([.table, .view], table, in: schema) else {
            throw StoreError(.notFound, "there is no such table", table: table)
        }
        return place
    }

    private func findColumns(
        _ table: String, _ schema: String?
    ) throws -> [ColumnInformation]? {
        try inRead { () throws(StoreError) -> [ColumnInformation]? in
            guard let place = try find([.table, .view], table, in: schema) else { return nil }
            var columns: [ColumnInformation] = []
            for row in try pragma("table_info", table, place) {
                columns.append(try ColumnInformation(row))
            }
            return columns
        }
    }

    private func columns(ofIndex name: String, _ place: Place) throws(StoreError) -> [String?] {
        var columns: [String?] = []
        for row in try pragma("index_info", name, place) { columns.append(try row.read("name")) }
        return columns
    }

    /// The collation of a column of the main file; `nil` if there is no such column.
    ///
    /// - Throws: `.closed`.
    func collation(ofColumn column: String, in table: String) throws(StoreError) -> String? {
        var collation: UnsafePointer<CChar>?
        let code = sqlite3_table_column_metadata(
            try current().db, "main", table, column, nil, &collation, nil, nil, nil)
        return code == SQLITE_OK ? collation.map { String(cString: $0) } : nil
    }

    /// Runs a pragma as text: it takes no bound values, and SQLite 3.15 has no pragma functions.
    private func pragma(
        _ pragma: String, _ name: String, _ place: Place
    ) throws(StoreError) -> [Row] {
        let schema = try place.name.quotedIdentifier()
        let sql = "PRAGMA \(schema).\(pragma)(\(try name.quotedIdentifier()))"
        return try rows(SQL(text: sql), isReadOnly: true)
    }
}

extension SchemaObject {
    /// `nil` for a kind that Coffer does not know.
    fileprivate init?(_ row: Row, schema: String) throws(StoreError) {
        guard let kind = Kind(rawValue: try row.read("type")) else { return nil }
        self.init(
            kind: kind, name: try row.read("name"), table: try row.read("tbl_name"),
            schema: schema, rootPage: try row.read("rootpage", as: Int?.self) ?? 0,
            sql: try row.read("sql"))
    }
}

extension ColumnInformation {
    fileprivate init(_ row: Row) throws(StoreError) {
        self.init(
            position: try row.read("cid"), name: try row.read("name"),
            declaredType: try row.read("type", as: String?.self) ?? "",
            isNotNull: try row.read("notnull"), defaultExpression: try row.read("dflt_value"),
            primaryKeyPosition: try row.read("pk"))
    }
}

extension String {
    /// Whether SQLite treats both as the same name: without regard to case in ASCII only.
    func isSameIdentifier(as other: String) -> Bool {
        utf8.elementsEqual(other.utf8) { $0.asciiLowercased == $1.asciiLowercased }
    }
}

extension UInt8 {
    fileprivate var asciiLowercased: UInt8 { (0x41...0x5a).contains(self) ? self | 0x20 : self }
}
