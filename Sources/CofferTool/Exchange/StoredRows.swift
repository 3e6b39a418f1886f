import Coffer

/// Inserts the records of an import, and counts those that became rows.
struct StoredRows {
    private let run: ImportRun
    private let table: ImportTable
    private let isView: Bool
    /// The rows before the import; `nil` if no insertion can remove a row.
    private let oldCount: Int?
    /// The records so far.
    private var count = 0
    /// Those of them that the table passed over.
    private var ignoredCount = 0

    /// Must be called before the first record is inserted.
    init(of table: ImportTable, _ run: ImportRun) throws {
        (self.run, self.table) = (run, table)
        let objects = try run.connection.rows(
            "SELECT type, sql FROM sqlite_master WHERE tbl_name = \(table.name) COLLATE NOCASE")
        let types = try objects.map { try $0.get("type") as String }
        let texts = try objects.map { try $0.get("sql") as String? ?? "" }
        isView = types.contains("view")
        // Only a conflict clause of the table and a trigger remove rows. Counting takes a while.
        let canRemove =
            types.contains("trigger") || texts.contains { $0.uppercased().contains("REPLACE") }
        oldCount = canRemove && !isView ? try Self.rowCount(of: table, run) : nil
    }

    /// Runs an INSERT whose values are bound.
    mutating func insert(_ statement: Statement) throws {
        let before = run.connection.totalChangeCount
        _ = try statement.step()
        // The statement's own rows, because a trigger may have ignored the record and changed
        // others. Of a view only triggers change rows.
        let isStored =
            isView
            ? run.connection.totalChangeCount != before : run.connection.lastChangeCount > 0
        if !isStored { ignoredCount += 1 }
        count += 1
        try run.passed(count)
    }

    /// Warns of records that the table passed over, and of rows that are gone.
    ///
    /// - Returns: The number of records that became rows.
    func finish() throws -> Int {
        if ignoredCount > 0 {
            Terminal.warn(
                "\(ignoredCount.counted("record")) \(ignoredCount == 1 ? "was" : "were") not "
                    + "stored: the table \(table.name) ignores them, by ON CONFLICT IGNORE or a "
                    + "trigger")
        }
        let storedCount = count - ignoredCount
        guard let oldCount else { return storedCount }
        let newCount = try Self.rowCount(of: table, run)
        let goneCount = oldCount + storedCount - newCount
        if goneCount > 0 {
            Terminal.warn(
                "\(goneCount.counted("row")) \(goneCount == 1 ? "was" : "were") replaced or "
                    + "removed: the table \(table.name) had \(oldCount.counted("row")) and has "
                    + "\(newCount), by ON CONFLICT REPLACE or a trigger")
        }
        return storedCount
    }

    private static func rowCount(of table: ImportTable, _ run: ImportRun) throws -> Int {
        let row = try run.connection.firstRow("SELECT count(*) FROM \(identifier: table.name)")
        return try row?.get(0) ?? 0
    }
}
