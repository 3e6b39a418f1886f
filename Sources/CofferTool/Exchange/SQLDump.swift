import Coffer

/// Writes the whole database, or some tables, as SQL.
///
/// The order is that of `sqlite3`'s own `.dump`: tables with their rows, then indexes, triggers and
/// views, so that no trigger fires while the rows are inserted again.
struct SQLDump {
    let connection: Connection
    /// The tables to write, with their indexes and triggers; empty for all.
    let tables: [String]
    let reporter: ProgressReporter
    private var rowCountTotal = 0
    private var rowCount = 0
    private var progress = ExportProgress()

    init(_ connection: Connection, tables: [String], reporter: ProgressReporter) {
        self.connection = connection
        self.tables = tables
        self.reporter = reporter
    }

    private struct Object {
        let type: String
        let name: String
        let table: String
        let sql: String
    }

    /// Must be called in a transaction. Returns the number of rows.
    mutating func write(_ output: inout StandardOutput) throws -> Int {
        let objects = try objects()
        let ordinary = objects.filter { $0.type == "table" }
        try Self.refuseVirtual(ordinary)
        for table in ordinary where reporter.isShown {
            rowCountTotal += try Self.rowCount(of: table.name, in: connection)
        }
        try output.writeLine("PRAGMA foreign_keys=OFF;")
        try output.writeLine("BEGIN TRANSACTION;")
        if tables.isEmpty { try writeNumbers(&output) }
        for table in ordinary {
            try write(table, &output)
            try writeRows(of: table.name, &output)
        }
        try writeSequences(of: ordinary, &output)
        for object in objects where object.type != "table" { try write(object, &output) }
        try output.writeLine("COMMIT;")
        return rowCount
    }

    static func rowCount(of table: String, in connection: Connection) throws -> Int {
        try connection.firstRow("SELECT count(*) FROM \(identifier: table)")?.get(0) ?? 0
    }

    /// The objects to write, without statistics (sqlite_stat…), which ANALYZE can recreate.
    private func objects() throws -> [Object] {
        let rows = try connection.rows(
            """
            SELECT type, name, tbl_name, sql FROM sqlite_master
            WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid
            """)
        let all = try rows.map { row in
            Object(
                type: try row.get(0), name: try row.get(1), table: try row.get(2),
                sql: try row.get(3))
        }
        guard !tables.isEmpty else { return all }
        let wanted = Set(tables.map(ColumnKey.init))
        for name in tables {
            let isThere = all.contains {
                $0.type == "table" && ColumnKey($0.name) == ColumnKey(name)
            }
            guard isThere else { throw ToolError(.notFound, "there is no table \(name)") }
        }
        return all.filter { wanted.contains(ColumnKey($0.table)) && $0.type != "view" }
    }

    /// Refuses virtual tables, because only a virtual table's module may write its content.
    private static func refuseVirtual(_ tables: [Object]) throws {
        for table in tables {
            let words = table.sql.split(maxSplits: 2) { $0.isWhitespace }
            guard words.count > 1, words[1].lowercased() == "virtual" else { continue }
            throw ToolError(
                .failure, "\(table.name) is a virtual table, which SQL text cannot hold",
                hint: "Name the other tables with --table NAME.")
        }
    }

    private func writeNumbers(_ output: inout StandardOutput) throws {
        for name in ["user_version", "application_id"] {
            let number: Int = try connection.firstRow(SQL(text: "PRAGMA \(name)"))?.get(0) ?? 0
            if number != 0 { try output.writeLine("PRAGMA \(name)=\(number);") }
        }
    }

    private func write(_ object: Object, _ output: inout StandardOutput) throws {
        // A comment at the end would hide the semicolon.
        try output.writeLine(object.sql + (object.sql.contains("--") ? "\n;" : ";"))
    }

    // MARK: Rows

    private mutating func writeRows(of table: String, _ output: inout StandardOutput) throws {
        let columns = try columns(of: table)
        let quoted = columns.names.map { SQL("\(identifier: $0)").text }
        var names = quoted
        if let rowID = columns.rowID { names.insert(rowID, at: 0) }
        let list = names.joined(separator: ",")
        let name = SQL("\(identifier: table)").text
        let order = columns.rowID.map { " ORDER BY \($0)" } ?? ""
        let statement = try connection.prepare("SELECT \(list) FROM \(name)\(order)")
        let literal = try SQLLiteral(connection)
        // The SELECT omits generated columns, so the INSERT needs the list.
        let start = Array("INSERT INTO \(name)(\(list)) VALUES(".utf8)
        let earlierCount = rowCount
        while try statement.step() {
            rowCount += 1
            output.buffer.append(contentsOf: start)
            do {
                for index in names.indices {
                    if index > 0 { output.buffer.append(0x2c) }
                    try statement.withValue(at: index) { try literal.write($0, &output) }
                }
            } catch let error as StoreError where error.code == .mismatch {
                throw ToolError(row: rowCount - earlierCount, of: table, error)
            }
            try output.write(");\n".utf8)
            try Task.checkCancellation()
            if progress.isDue(rowCount, output) { reporter.update(rowCount, of: rowCountTotal) }
        }
    }

    /// The columns that can be written, and a name for the row id if no column is the row id.
    private func columns(of table: String) throws -> (names: [String], rowID: String?) {
        let rows = try connection.rows("PRAGMA table_info(\(identifier: table))")
        let names: [String] = try rows.map { try $0.get("name") }
        let keys = try rows.filter { try $0.get("pk", as: Int.self) > 0 }
        let isInteger =
            try keys.count == 1
            && keys[0].get("type", as: String.self)
                .uppercased() == "INTEGER"
        // INTEGER PRIMARY KEY DESC has an index and is not the row id.
        let hasIndex = try connection.rows("PRAGMA index_list(\(identifier: table))")
            .contains { try $0.get("origin", as: String.self) == "pk" }
        if isInteger, !hasIndex { return (names, nil) }
        let taken = Set(names.map { $0.lowercased() })
        let free = RowIDName.free(beside: taken)
        guard let free else { return (names, nil) }
        // The probe does not compile for a table WITHOUT ROWID.
        let probe = SQL("SELECT \(SQL(text: free)) FROM \(identifier: table)").text
        return (names, (try? connection.prepare(probe)) == nil ? nil : free)
    }

    /// Writes the highest row id that each AUTOINCREMENT table ever had.
    private func writeSequences(
        of tables: [Object], _ output: inout StandardOutput
    ) throws {
        guard try ImportTable.existing("sqlite_sequence", in: connection) != nil else { return }
        let literal = try SQLLiteral(connection)
        let sequences = try connection.prepare(
            "SELECT name, seq FROM sqlite_sequence ORDER BY rowid")
        while try sequences.step() {
            let name = try sequences.value(at: 0, as: String.self)
            guard tables.contains(where: { $0.name == name }) else { continue }
            output.buffer.append(contentsOf: "DELETE FROM sqlite_sequence WHERE name=".utf8)
            try sequences.withValue(at: 0) { try literal.write($0, &output) }
            output.buffer.append(
                contentsOf: ";\nINSERT INTO sqlite_sequence(name,seq) VALUES(".utf8)
            try sequences.withValue(at: 0) { try literal.write($0, &output) }
            output.buffer.append(0x2c)
            try sequences.withValue(at: 1) { try literal.write($0, &output) }
            try output.write(");\n".utf8)
        }
    }
}
