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
    fileprivate let roots: SchemaRoots

    fileprivate init(roots: SchemaRoots, sql: String) {
        self.roots = roots
        mentionsReplace =
            roots.hasReplacingTriggers || sql.asciiLowercased.contains("replace")
    }

    /// Database numbers in the program: the main file, and `temp`, which only this connection
    /// sees. An attached file has a higher number, which counts as every table.
    private static let main = 0
    private static let temp = 1

    fileprivate func add(_ opcode: String, _ first: Int, _ second: Int, _ third: Int) {
        switch opcode {
        case "OpenRead", "ReopenIdx":
            if let name = table(root: second, in: third) { reads.formUnion(name) }
        case "OpenWrite":
            if let name = table(root: second, in: third) { writes.formUnion(name) }
        case "Clear":
            if let name = table(root: first, in: second) { writes.formUnion(name) }
        // A virtual table reads and writes other tables; a pragma reads data outside any table.
        case "VOpen", "ReadCookie", "IntegrityCk", "Pagecount": reads.insertEverything()
        case "VUpdate", "SetCookie": writes.insertEverything()
        default: break
        }
    }

    private func table(root: Int, in schema: Int) -> TableSet? {
        if schema == Self.temp { return nil }
        guard schema == Self.main, let name = roots.tables[root] else { return .everything }
        return TableSet([name])
    }
}

/// The tables of the main file by the root pages of their trees; an index counts as its table.
private final class SchemaRoots {
    let tables: [Int: String]
    let hasReplacingTriggers: Bool

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
        hasReplacingTriggers =
            try connection.firstRow(
                """
                SELECT 1 FROM (
                    SELECT name, sql FROM main.sqlite_master WHERE type = 'trigger' UNION ALL
                    SELECT name, sql FROM sqlite_temp_master WHERE type = 'trigger')
                WHERE sql LIKE '%replace%' AND name NOT LIKE 'coffer:%'
                """, isReadOnly: true) != nil
    }

    /// The roots in the schema as the open transaction sees it. Throws errors of reading the
    /// schema.
    static func of(_ connection: Connection) throws(StoreError) -> SchemaRoots {
        let id = ObjectIdentifier(SchemaRoots.self)
        if let known = try connection.attachment(id) as? SchemaRoots { return known }
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
        let compiled = try handle.compilingAsCoffer("EXPLAIN " + sql, &raw)
        guard compiled == SQLITE_OK else { throw handle.error(compiled, sql: sql) }
        // The keys of Coffer's own statement are a virtual table, and depend on no other table.
        var isBeforeKeys = readsKeys
        let code = handle.authorizer.asCoffer { () -> Int32 in
            while true {
                let code = sqlite3_step(raw)
                guard code == SQLITE_ROW else { return code }
                guard let opcode = sqlite3_column_text(raw, 1).map({ String(cString: $0) })
                else { continue }
                if isBeforeKeys, opcode == "VOpen" {
                    isBeforeKeys = false
                    continue
                }
                footprint.add(
                    opcode, Int(sqlite3_column_int64(raw, 2)),
                    Int(sqlite3_column_int64(raw, 3)), Int(sqlite3_column_int64(raw, 4)))
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
