import Coffer

/// The table that an import fills: an existing one, or one that the import creates.
struct ImportTable {
    struct Column {
        let name: String
        let affinity: Affinity
    }

    let name: String
    let columns: [Column]
    /// Whether the import created it; if so, every value keeps its storage class.
    let isMade: Bool
    private let positions: [ColumnKey: Int]

    private init(name: String, columns: [Column], isMade: Bool) {
        self.name = name
        self.columns = columns
        self.isMade = isMade
        positions = Dictionary(
            columns.enumerated().map { (ColumnKey($0.element.name), $0.offset) },
            uniquingKeysWith: { first, _ in first })
    }

    /// The table with this name; `nil` if it does not exist.
    static func existing(_ name: String, in connection: Connection) throws -> ImportTable? {
        let rows = try connection.rows("PRAGMA table_info(\(identifier: name))")
        guard !rows.isEmpty else { return nil }
        let columns = try rows.map { row in
            Column(
                name: try row.get("name"), affinity: Affinity(declared: try row.get("type")))
        }
        return ImportTable(name: name, columns: columns, isMade: false)
    }

    /// Creates the table.
    ///
    /// - Parameters:
    ///   - types: `INTEGER`, `REAL`, `TEXT`, `BLOB` or nothing, for each name.
    ///   - line: The line of the source that has the names.
    /// - Throws: `RecordProblem` if a name appears twice.
    static func make(
        _ name: String, _ names: [String], types: [String], line: Int, in connection: Connection
    ) throws -> ImportTable {
        var seen: Set<ColumnKey> = []
        for column in names where !seen.insert(ColumnKey(column)).inserted {
            throw RecordProblem.twice(column, line: line)
        }
        var sql: SQL = "CREATE TABLE \(identifier: name)("
        for (index, column) in names.enumerated() {
            if index > 0 { sql.append(SQL(text: ", ")) }
            sql.append("\(identifier: column)")
            if !types[index].isEmpty { sql.append(SQL(text: " " + types[index])) }
        }
        sql.append(SQL(text: ")"))
        try connection.execute(sql)
        let columns = zip(names, types).map {
            Column(name: $0, affinity: Affinity(declared: $1))
        }
        return ImportTable(name: name, columns: columns, isMade: true)
    }

    /// The position of a column; `nil` if the table does not have it.
    func position(_ name: String) -> Int? {
        positions[ColumnKey(name)]
    }
}

/// A name as SQLite compares it: byte by byte, except for the case of ASCII letters. A `String`
/// would treat names as equal that differ in how their accents are composed.
struct ColumnKey: Hashable {
    private let bytes: [UInt8]

    init(_ name: String) {
        bytes = name.utf8.map { (0x41...0x5a).contains($0) ? $0 | 0x20 : $0 }
    }
}

/// The result of an import.
struct ImportResult: Report {
    let path: ReportedPath
    /// `nil` for SQL, which names its tables itself.
    var table: String?
    var isTableMade: Bool?
    var columns: [String]?
    var rowCount: Int

    var lines: [(label: String, value: String)] {
        var lines = [("store", "\(path)")]
        if let table { lines.append(("table", isTableMade == true ? "\(table), made" : table)) }
        if let columns { lines.append(("columns", columns.joined(separator: ", "))) }
        // SQL also deletes and updates rows.
        lines.append((table == nil ? "changed" : "imported", rowCount.counted("row")))
        return lines
    }
}

/// The parts of an import that all formats share: its progress, its cancellation and its errors.
struct ImportRun {
    let path: String
    let connection: Connection
    let input: InputFile
    let reporter: ProgressReporter

    /// Called for every record; checks for cancellation and reports progress every 1024 records.
    func passed(_ count: Int) throws {
        guard count.isMultiple(of: 1024) else { return }
        try Task.checkCancellation()
        reporter.update(input.readCount, of: input.byteCount)
    }

    /// The error to report for a record: the engine's error with the record's line.
    func failure(_ error: any Error, line: Int) -> any Error {
        switch error {
        case let problem as RecordProblem:
            return ToolError(
                .badInput, "\(input.name), line \(problem.line): \(problem.message)",
                hint: problem.hint)
        case let error as StoreError
        where [.constraint, .sql, .tooBig, .mismatch].contains(error.code):
            let failure = Failure(error)
            // The statements are Coffer's own, so SQL that fails has a name from the file.
            let status = error.code == .sql ? .badInput : failure.status
            return ToolError(
                status, "\(input.name), line \(line): \(failure.message)",
                hint: failure.hint)
        default: return error
        }
    }
}
