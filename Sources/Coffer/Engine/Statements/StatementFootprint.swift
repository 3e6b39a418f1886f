import CSQLCipher

/// The tables that a compiled statement reads and writes, according to SQLite itself.
///
/// Found by EXPLAIN, not by the authorizer: SQLite 3.15 does not ask the authorizer about a table
/// if no column of it is read. Examples are `SELECT count(*) FROM note` and the second table of
/// `FROM a, b`. The program names the root page of every tree that it opens, including those
/// of views, triggers and foreign key actions. See <https://www.sqlite.org/opcode.html>.
final class StatementFootprint {
    private(set) var reads = TableSet()
    private(set) var writes = TableSet()
    /// Whether it may delete rows by REPLACE, judged by its text and the texts of triggers.
    let mentionsReplace: Bool
    /// Whether it may keep a part of its changes when it fails (FAIL), judged by its text. If it
    /// runs triggers, also by their texts and by the conflict clauses of all tables.
    var mentionsFail: Bool { textMentionsFail || hasNestedPrograms && roots.mayFailHalfWay }
    private let textMentionsFail: Bool
    /// Whether it runs triggers or actions of foreign keys.
    private(set) var hasNestedPrograms = false
    /// Whether it changes one row after the other, and each change is complete before the next: no
    /// trigger, foreign key or function is called in between, and none can stop it.
    ///
    /// SQLite changes rows in one pass if it proves that too. Otherwise it gathers them first.
    private(set) var changesRowsAlone = true
    /// Whether it writes to a table that is not known.
    private(set) var writesUnknownTable = false
    private var changes: [SQLText: RowChanges] = [:]
    fileprivate let roots: SchemaRoots
    /// The tables of the cursors that the program has opened for writing.
    private var cursors: [Int: SQLText] = [:]

    fileprivate init(roots: SchemaRoots, sql: String) {
        self.roots = roots
        let text = sql.asciiLowercased
        mentionsReplace = roots.hasReplacingTriggers || text.contains("replace")
        textMentionsFail = text.contains("fail")
    }

    /// How the statement changes rows of a table of the main file; `nil` if no step does.
    ///
    /// - Parameter table: The name in lower case of ASCII.
    func rowChanges(of table: SQLText) -> RowChanges? { changes[table] }

    /// Database numbers in the program: the main file, and `temp`, which only this connection
    /// sees. An attached file has a higher number, which counts as every table.
    private static let main = 0
    private static let temp = 1

    fileprivate func add(_ step: ProgramStep) {
        if step.calls || step.opcode == "RowSetAdd" { changesRowsAlone = false }
        switch step.opcode {
        case "OpenRead", "ReopenIdx":
            if let name = table(root: step.second, in: step.third) { reads.formUnion(name) }
        case "OpenWrite":
            cursors[step.first] = addWrite(root: step.second, in: step.third)
        case "Clear":
            guard let name = addWrite(root: step.first, in: step.second) else { return }
            changes[name, default: RowChanges()].isSilent = true
        case "Insert", "Delete": addChange(step)
        case "Program": hasNestedPrograms = true
        // A virtual table reads and writes other tables; a pragma reads data outside any table.
        case "VOpen", "ReadCookie", "IntegrityCk", "Pagecount": reads.insertEverything()
        case "VUpdate", "SetCookie": writes.insertEverything()
        default: break
        }
    }

    /// Begins another program: that of a trigger, whose cursors have numbers of their own.
    fileprivate func beginProgram() { cursors = [:] }

    /// Adds a write to the table of a root, and returns the table's name if it is known.
    private func addWrite(root: Int, in schema: Int) -> SQLText? {
        guard let tables = table(root: root, in: schema) else { return nil }
        writes.formUnion(tables)
        if tables.isEverything { writesUnknownTable = true }
        return tables.names.first
    }

    /// Adds a change of a row. The update hook is told of it if the step names its table, and for a
    /// deletion also if it counts it.
    private func addChange(_ step: ProgramStep) {
        guard let name = cursors[step.first] else { return }
        var found = changes[name] ?? RowChanges()
        if step.opcode == "Insert" {
            if step.table == nil { found.isSilent = true }
        } else if step.table != nil {
            // Without a table it is the first half of an UPDATE at which foreign keys look.
            found.deletes = true
            if step.second & ProgramStep.isCounted == 0 { found.isSilent = true }
        }
        changes[name] = found
    }

    /// Adds a column that an UPDATE in the program sets.
    fileprivate func add(updatedColumn column: String, of table: String) {
        changes[SQLText(table.asciiLowercased), default: RowChanges()].updatedColumns.insert(
            SQLText(column.asciiLowercased))
    }

    /// `nil` for a table that only the connection sees.
    private func table(root: Int, in schema: Int) -> TableSet? {
        if schema == Self.temp { return nil }
        guard schema == Self.main, let name = roots.tables[root] else { return .everything }
        return TableSet([name])
    }
}

/// How a statement changes rows of one table.
struct RowChanges {
    var deletes = false
    /// Whether rows change of which the update hook is not told.
    var isSilent = false
    /// Columns that an UPDATE sets, in lower case of ASCII. The row id is always `rowid`.
    var updatedColumns: Set<SQLText> = []
}

/// One step of a compiled statement, as EXPLAIN lists it.
private struct ProgramStep {
    let opcode: String
    let first: Int
    let second: Int
    let third: Int
    /// The table that `Insert` and `Delete` name; they pass it to the update hook.
    let table: String?

    /// Whether the step runs a trigger, a foreign key, a function or a virtual table.
    var calls: Bool {
        opcode == "Program" || opcode == "VOpen" || opcode == "VUpdate" || opcode.hasPrefix("Fk")
            || opcode.hasPrefix("Function") || opcode.hasPrefix("PureFunc")
    }

    /// The flag in the second operand of `Delete` that says that the row is counted:
    /// `OPFLAG_NCHANGE` of `sqliteInt.h`.
    static let isCounted = 0x01

    /// Reads the current row of an EXPLAIN; `nil` if it names no opcode.
    init?(_ raw: OpaquePointer?) {
        guard let opcode = sqlite3_column_text(raw, 1).map({ String(cString: $0) }) else {
            return nil
        }
        self.opcode = opcode
        first = Int(sqlite3_column_int64(raw, 2))
        second = Int(sqlite3_column_int64(raw, 3))
        third = Int(sqlite3_column_int64(raw, 4))
        let text = sqlite3_column_text(raw, 5).map { String(cString: $0) }
        table = text?.isEmpty == true ? nil : text
    }
}

/// The tables of the main file by the root pages of their trees; an index counts as its table.
private final class SchemaRoots {
    let tables: [Int: String]
    let hasReplacingTriggers: Bool
    /// Whether a trigger, or the conflict clause of a table, says FAIL.
    let mayFailHalfWay: Bool
    /// Whether foreign keys had no effect, so that statements have no actions of theirs.
    let pausesForeignKeys: Bool

    init(_ connection: Connection) throws(StoreError) {
        var tables = [1: TableSet.schemaTable]
        let rows = try connection.rows(
            "SELECT rootpage, tbl_name FROM main.sqlite_master WHERE rootpage > 0",
            isReadOnly: true)
        for row in rows {
            let name = try row.read("tbl_name", as: String.self)
            tables[try row.read("rootpage")] = name.asciiLowercased
        }
        self.tables = tables
        let triggers = try connection.firstRow(
            """
            SELECT max(type = 'trigger' AND sql LIKE '%replace%') AS replacing,
                max(sql LIKE CASE type WHEN 'trigger' THEN '%fail%' ELSE '%conflict%fail%' END)
                    AS failing
            FROM (
                SELECT type, name, sql FROM main.sqlite_master UNION ALL
                SELECT type, name, sql FROM sqlite_temp_master)
            WHERE name NOT LIKE 'coffer:%'
            """, isReadOnly: true)
        hasReplacingTriggers = triggers?["replacing"] == .integer(1)
        mayFailHalfWay = triggers?["failing"] == .integer(1)
        pausesForeignKeys = connection.handle?.migrationMode.isPausingForeignKeys ?? false
    }

    /// The roots in the schema as the open transaction sees it. Throws errors of reading the
    /// schema.
    static func of(_ connection: Connection) throws(StoreError) -> SchemaRoots {
        let id = ObjectIdentifier(SchemaRoots.self)
        let isPausing = connection.handle?.migrationMode.isPausingForeignKeys ?? false
        if let known = try connection.attachment(id) as? SchemaRoots,
            known.pausesForeignKeys == isPausing
        {
            return known
        }
        let made = try SchemaRoots(connection)
        connection.attach(made, as: id)
        return made
    }
}

extension Statement {
    /// The tables that the statement reads and writes; found once for each schema.
    ///
    /// - Throws: Errors of reading the schema and of EXPLAIN, such as `.damaged`; `.closed`.
    /// - Complexity: O(*objects of the schema* + *program*) the first time, then O(1).
    func footprint(on connection: Connection) throws(StoreError) -> StatementFootprint {
        // The observer must not see the queries made here.
        let observer = handle.touchObserver
        handle.touchObserver = nil
        defer { handle.touchObserver = observer }
        let roots = try SchemaRoots.of(connection)
        if let known = knownFootprint, known.roots === roots { return known }
        let made = try explain(roots)
        knownFootprint = made
        return made
    }

    private func explain(_ roots: SchemaRoots) throws(StoreError) -> StatementFootprint {
        guard let text = sqlite3_sql(try pointer()) else { throw Connection.closed }
        let sql = String(cString: text)
        let footprint = StatementFootprint(roots: roots, sql: sql)
        var raw: OpaquePointer?
        defer { sqlite3_finalize(raw) }
        handle.authorizer.willListUpdates()
        defer { _ = handle.authorizer.takeUpdates() }
        let compiled = try handle.compilingAsCoffer("EXPLAIN " + sql, &raw)
        for (table, column) in handle.authorizer.takeUpdates() {
            footprint.add(updatedColumn: column, of: table)
        }
        guard compiled == SQLITE_OK else { throw handle.error(compiled, sql: sql) }
        let keys = handle.knownKeyTable
        let code = handle.authorizer.asCoffer { () -> Int32 in
            while true {
                let code = sqlite3_step(raw)
                guard code == SQLITE_ROW else { return code }
                guard let step = ProgramStep(raw) else { continue }
                // A table of keys depends on no other table, and no commit changes it.
                if step.opcode == "VOpen", keys?.isTable(step.table) == true { continue }
                if sqlite3_column_int64(raw, 0) == 0 { footprint.beginProgram() }
                footprint.add(step)
            }
        }
        guard code == SQLITE_DONE else { throw handle.error(code, sql: sql) }
        return footprint
    }
}

extension Handle {
    /// A number that changes when another connection has committed, in this or another process.
    /// Commits of this connection do not change it.
    ///
    /// Throws as `firstText(_:)`, for example `.busy`.
    /// See <https://www.sqlite.org/pragma.html#pragma_data_version>.
    func dataVersion() throws(StoreError) -> Int {
        try firstInteger("PRAGMA data_version")
    }
}

extension Connection {
    /// Whether another connection has committed since the last call. Also true if that is unknown:
    /// on the first call, and once when the file becomes unreadable, as after a change of the key.
    /// Does not wait for a lock.
    ///
    /// - Returns: `nil` if a lock was in the way, or the connection is closed.
    func hasForeignCommit() -> Bool? {
        guard let handle, !handle.isClosed else { return nil }
        let version: Int
        do throws(StoreError) {
            version = try dataVersion(handle)
        } catch {
            guard error.code != .busy else { return nil }
            version = -1
        }
        let known = handle.attachment { KnownDataVersion() }
        defer { known.version = version }
        return known.version != version
    }

    /// Whether the last question for foreign commits could not be answered, as after a change of
    /// the key.
    var isUnreadable: Bool {
        guard let handle, !handle.isClosed else { return false }
        return handle.attachment { KnownDataVersion() }.version == -1
    }

    private func dataVersion(_ handle: Handle) throws(StoreError) -> Int {
        guard !handle.isInTransaction else { return try handle.dataVersion() }
        let policy = busyPolicy
        busyPolicy = .none
        defer { busyPolicy = policy }
        return try handle.dataVersion()
    }
}

/// The value of `PRAGMA data_version` when it was last read.
private final class KnownDataVersion {
    var version: Int?
}
