import CSQLCipher

/// The schema of a database, as far as a copy row by row needs it.
struct CopiedSchema: Equatable {
    /// A row of `sqlite_master`, without the root page, which differs between copies.
    struct Entry: Hashable {
        let type: String
        let name: String
        let table: String
        /// `nil` for an index that a constraint makes.
        let sql: String?

        /// Compared byte by byte: `String` treats texts that differ in normalisation as equal.
        private var bytes: [[UInt8]?] {
            [Array(type.utf8), Array(name.utf8), Array(table.utf8), sql.map { Array($0.utf8) }]
        }

        static func == (one: Entry, other: Entry) -> Bool { one.bytes == other.bytes }

        func hash(into hasher: inout Hasher) { hasher.combine(bytes) }
    }

    /// A table with its own pages: neither a view nor a virtual table.
    struct Table: Equatable {
        let entry: Entry
        /// The columns to select and insert, ready for SQL: an alias of the row id if there is one,
        /// then every writable column.
        let columns: [String]

        var name: String { entry.name }
        var quotedName: String { name.inDoubleQuotes }

        /// `NOT INDEXED` makes SQLite read rows from the table itself, in its own order. Columns
        /// are qualified, because SQLite treats an unknown, unqualified `"name"` as a text:
        /// <https://www.sqlite.org/quirks.html#dblquote>.
        var select: String {
            let columns = columns.map { "\(quotedName).\($0)" }.joined(separator: ", ")
            return "SELECT \(columns) FROM \(quotedName) NOT INDEXED"
        }

        /// `OR ABORT` overrides a constraint's ON CONFLICT clause, so no row is dropped or
        /// replaced.
        var insert: String {
            let values = columns.map { _ in "?" }.joined(separator: ", ")
            return "INSERT OR ABORT INTO \(quotedName)(\(columns.joined(separator: ", "))) "
                + "VALUES (\(values))"
        }

        /// Whether the table is internal to SQLite, such as `sqlite_sequence` or `sqlite_stat1`.
        var isInternal: Bool { name.hasPrefix("sqlite_") }
    }

    /// All rows of `sqlite_master`, in row id order.
    let entries: [Entry]
    /// `sqlite_sequence` comes last, because inserting rows into other tables changes it.
    let tables: [Table]
    /// Created from their SQL after the rows are copied.
    let indexes: [Entry]
    /// Views, triggers and virtual tables, which are rows of `sqlite_master` and nothing else.
    let textOnly: [Entry]

    /// Reads the schema. Must run in a transaction, so that the schema cannot change.
    ///
    /// - Parameter withColumns: `true` if rows will be selected, `false` if they are only counted.
    /// - Throws: `.unsupported` for a table whose row ids cannot be named; `.damaged`.
    init(of handle: Handle, withColumns: Bool = true) throws(StoreError) {
        let rows = try CopyStatement(
            handle, "SELECT type, name, tbl_name, rootpage, sql FROM sqlite_master ORDER BY rowid")
        var entries: [Entry] = []
        var tables: [Entry] = []
        var indexes: [Entry] = []
        var textOnly: [Entry] = []
        while try rows.step() {
            let entry = Entry(
                type: try rows.text(0) ?? "", name: try rows.text(1) ?? "",
                table: try rows.text(2) ?? "", sql: try rows.text(4))
            entries.append(entry)
            switch entry.type {
            case "table" where rows.integer(3) > 0: tables.append(entry)
            case "index": if entry.sql != nil { indexes.append(entry) }
            default: textOnly.append(entry)
            }
        }
        let last = tables.filter { $0.name == "sqlite_sequence" }
        var read: [Table] = []
        for entry in tables.filter({ $0.name != "sqlite_sequence" }) + last {
            let columns = withColumns ? try Self.columns(of: entry.name, handle) : []
            read.append(Table(entry: entry, columns: columns))
        }
        self.entries = entries
        self.tables = read
        self.indexes = indexes
        self.textOnly = textOnly
    }

    private static func columns(of table: String, _ handle: Handle) throws(StoreError) -> [String] {
        var names: Set<String> = []
        var columns: [String] = []
        // SQLite 3.15 has no table_xinfo and returns no row; it has no generated columns either.
        for pragma in ["table_xinfo", "table_info"] where columns.isEmpty {
            let rows = try CopyStatement(handle, "PRAGMA \(pragma)(\(table.inDoubleQuotes))")
            while try rows.step() {
                let name = try rows.text(1) ?? ""
                names.insert(name.lowercased())
                // 2 and 3: generated columns, which are computed and cannot be written.
                if pragma == "table_info" || rows.integer(6) == 0 {
                    columns.append(name.inDoubleQuotes)
                }
            }
        }
        let free = RowIDName.free(beside: names)
        guard let free else {
            throw StoreError(
                .unsupported, "\(table) has columns named rowid, _rowid_ and oid",
                hint: "Rename one of them: the row ids cannot be copied otherwise.", table: table)
        }
        // A table WITHOUT ROWID has no such column. The name is not quoted, because SQLite might
        // read a quoted one as a text.
        let rowID = "SELECT \(free) FROM \(table.inDoubleQuotes) NOT INDEXED"
        return try CopyStatement.compiles(handle, rowID) ? [free] + columns : columns
    }
}
