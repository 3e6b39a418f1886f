import CSQLCipher

/// Copies a whole database into an empty one that the same connection has attached, as the engine's
/// VACUUM does: the schema first, then each table and its indexes in their own order, without
/// sorting.
///
/// VACUUM itself gives new row ids to a table with neither INTEGER PRIMARY KEY nor index:
/// "the VACUUM command may change the ROWIDs for entries in tables that do not have an explicit
/// INTEGER PRIMARY KEY" (<https://www.sqlite.org/lang_vacuum.html>). Here they are kept.
struct RowTransfer {
    /// Has the source as `main`, and the target attached as `schema`. In no transaction.
    let handle: Handle
    /// The name of the target in SQL, which needs no quotes.
    let schema: String

    /// Copies everything in one transaction.
    ///
    /// - Parameter watch: Called between the engine's operations, to report and to cancel.
    /// - Returns: The source's content, proven authentic, to compare the target with.
    /// - Throws: `.damaged` if the source is; `.unsupported` naming what cannot be copied; `.full`,
    ///   `.io`, `.busy`; what `watch` throws.
    func run(
        watch: @escaping () throws(StoreError) -> Void
    ) throws(StoreError) -> DatabaseCopy.Content {
        let wasCoffer = handle.authorizer.isCoffer
        handle.authorizer.isCoffer = true
        defer { handle.authorizer.isCoffer = wasCoffer }
        try prepare()
        try handle.run(.begin)
        let watch = OperationWatch(watch)
        watch.install(on: handle)
        do throws(StoreError) {
            defer { watch.remove(from: handle) }
            let content = try copy()
            try handle.run(.commit)
            return content
        } catch {
            let failure = watch.error ?? damage(behind: error) ?? error
            if handle.isInTransaction { try? handle.run(.rollback) }
            throw failure
        }
    }

    /// The damage of the source that may have caused an error. What has failed to be written to the
    /// target is not damage.
    private func damage(behind error: StoreError) -> StoreError? {
        let isPossible = [.damaged, .sql, .constraint, .unsupported].contains(error.code)
        guard isPossible, handle.isInTransaction else { return nil }
        guard let failure = handle.schemaReadFailure() else { return nil }
        return error.table.map { failure.with(table: $0) } ?? failure
    }

    private func prepare() throws(StoreError) {
        // Allows tables with names reserved by SQLite, and writing the schema as rows.
        _ = coffer_set_option(handle.db, Int32(coffer_option_defensive), 0)
        try handle.run("PRAGMA writable_schema = ON")
        try handle.run("PRAGMA foreign_keys = OFF")
        // Rows that violate a CHECK constraint are copied too, and `integrity_check` reports them.
        try handle.run("PRAGMA ignore_check_constraints = ON")
    }

    private func copy() throws(StoreError) -> DatabaseCopy.Content {
        let content = try CopiedSchema(of: handle)
        let settings = try DatabaseCopy.settings(of: handle)
        let textOnly = Set(content.textOnly)
        for entry in content.entries
        where entry.sql != nil && entry.name != sequence && !textOnly.contains(entry) {
            try create(entry)
        }
        for table in content.tables { try copy(table) }
        try insertText(content.textOnly)
        for name in ["user_version", "application_id"] {
            try handle.run("PRAGMA \(schema).\(name) = \(settings[name] ?? "0")")
        }
        let digests = try digests(
            content.tables, isUTF16: settings["encoding"]?.hasPrefix("UTF-16") ?? false)
        // Before COMMIT: every page that was read must be authentic.
        if let failure = handle.probeFailure() { throw failure }
        return DatabaseCopy.Content(schema: content, digests: digests, settings: settings)
    }

    private let sequence = "sqlite_sequence"

    // MARK: Schema

    /// Runs the text of a table or index, which SQLite keeps in one of three forms, with the
    /// target's name before that of the object.
    private func create(_ entry: CopiedSchema.Entry) throws(StoreError) {
        let starts = ["CREATE TABLE ", "CREATE INDEX ", "CREATE UNIQUE INDEX "]
        guard let sql = entry.sql, let start = starts.first(where: sql.hasPrefix) else {
            throw StoreError(
                .damaged, "the schema has an entry for \(entry.name) that SQLite never writes",
                hint: "Restore the file from a backup.", table: entry.table)
        }
        do throws(StoreError) {
            try CopyStatement(handle, "\(start)\(schema).\(sql.dropFirst(start.count))").run()
        } catch  where error.code == .sql {
            throw DatabaseCopy.unsupported(entry, cause: error)
        }
    }

    private func insertText(_ entries: [CopiedSchema.Entry]) throws(StoreError) {
        let insert = try CopyStatement(
            handle,
            "INSERT INTO \(schema).sqlite_master(type, name, tbl_name, rootpage, sql) "
                + "VALUES (?, ?, ?, 0, ?)")
        for entry in entries {
            for (index, text) in [entry.type, entry.name, entry.table, entry.sql].enumerated() {
                try insert.bind(text, at: Int32(index + 1))
            }
            try insert.run()
        }
    }

    // MARK: Rows

    private func copy(_ table: CopiedSchema.Table) throws(StoreError) {
        if table.name == sequence { try prepareSequence(table) }
        do throws(StoreError) {
            try CopyStatement(handle, statement(copying: table)).run()
        } catch  where error.code == .constraint {
            throw DatabaseCopy.contradiction(table.name, cause: error)
        } catch  where error.code == .sql {
            throw DatabaseCopy.unsupported(table.entry, cause: error)
        }
        if let failure = handle.probeFailure() { throw failure.with(table: table.name) }
    }

    /// Ensures an empty `sqlite_sequence`: SQLite has filled it while rows were copied.
    private func prepareSequence(_ table: CopiedSchema.Table) throws(StoreError) {
        let made = try handle.firstInteger(
            "SELECT count(*) FROM \(schema).sqlite_master WHERE name = '\(sequence)'")
        if made == 0 { try create(table.entry) }
        try handle.run("DELETE FROM \(schema).\(sequence)")
    }

    /// The statement that copies the rows with their row ids: that of VACUUM if it keeps them.
    private func statement(copying table: CopiedSchema.Table) throws(StoreError) -> String {
        let target = "\(schema).\(table.quotedName)"
        let whole = "INSERT OR ABORT INTO \(target) SELECT * FROM main.\(table.quotedName)"
        if try keepsRowIDs(table), try copiesRecords(whole) { return whole }
        let columns = table.columns.joined(separator: ", ")
        return "INSERT OR ABORT INTO \(target)(\(columns)) \(table.select)"
    }

    /// Whether SQLite keeps the row ids when it copies records: it does for a table with a key or
    /// an index.
    private func keepsRowIDs(_ table: CopiedSchema.Table) throws(StoreError) -> Bool {
        let name = table.quotedName
        if try CopyStatement(handle, "PRAGMA main.index_list(\(name))").step() { return true }
        let columns = try CopyStatement(handle, "PRAGMA main.table_info(\(name))")
        while try columns.step() { if columns.integer(5) > 0 { return true } }
        return false
    }

    /// Whether SQLite copies whole records of the table and of its indexes. It does so if both
    /// tables have the same definition; its program then has an instruction for that. It may refuse
    /// generated columns, and then the statement does not even compile.
    private func copiesRecords(_ sql: String) throws(StoreError) -> Bool {
        guard try CopyStatement.compiles(handle, sql) else { return false }
        let program = try CopyStatement(handle, "EXPLAIN \(sql)")
        var isFound = false
        while try program.step() {
            if ["RowData", "RowCell"].contains(try program.text(1)) { isFound = true }
        }
        return isFound
    }

    private func digests(
        _ tables: [CopiedSchema.Table], isUTF16: Bool
    ) throws(StoreError) -> [RowDigest] {
        var digests: [RowDigest] = []
        for table in tables {
            var digest = RowDigest(isUTF16: isUTF16)
            let rows = try CopyStatement(handle, table.select)
            while try rows.step() { digest.add(rows) }
            digests.append(digest)
        }
        return digests
    }
}

/// Calls a closure after every few thousand operations of the engine, and interrupts the running
/// statement if it throws.
private final class OperationWatch {
    private let body: () throws(StoreError) -> Void
    /// What the closure threw.
    private(set) var error: StoreError?

    /// Some tenths of a millisecond.
    private static let operationCount: Int32 = 4_096

    init(_ body: @escaping () throws(StoreError) -> Void) {
        self.body = body
    }

    /// Takes the place of the connection's own check for interrupts until `remove(from:)`.
    func install(on handle: Handle) {
        sqlite3_progress_handler(
            handle.db, Self.operationCount,
            { context in
                guard let context else { return 0 }
                return Unmanaged<OperationWatch>.fromOpaque(context)
                    ._withUnsafeGuaranteedRef { $0.ask() }
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    func remove(from handle: Handle) {
        sqlite3_progress_handler(handle.db, 0, nil, nil)
        handle.interruptHandle?.aim(at: handle)
    }

    private func ask() -> Int32 {
        if error == nil {
            do throws(StoreError) { try body() } catch { self.error = error }
        }
        return error == nil ? 0 : 1
    }
}
