import CSQLCipher

/// Copies a whole database row by row into an empty one, over two connections.
///
/// It copies rows, because the databases may differ in encryption, page size and reserved bytes.
/// `sqlite3_backup` from plaintext to an encrypted file reports success on SQLCipher 3 and leaves a
/// file that nobody can read. `sqlcipher_export` needs a key in SQL text and loses the row ids of
/// tables without INTEGER PRIMARY KEY, `user_version`, `application_id` and `auto_vacuum`. The
/// order is that of SQLite's VACUUM:
///
/// 1. The settings that a file accepts only while it is empty.
/// 2. Tables, then their rows. There are no triggers yet, and foreign keys are off.
/// 3. Indexes.
/// 4. Views, triggers and virtual tables, as rows of `sqlite_master`. A virtual table's data is in
///    ordinary tables, copied in step 2: its module is not needed.
struct DatabaseCopy {
    /// In a read transaction, which the caller ends.
    let source: Handle
    /// Empty, keyed and in no transaction.
    let target: Handle
    let monitor: CopyMonitor

    /// The content that was read, to compare the copy with.
    struct Content {
        let schema: CopiedSchema
        let digests: [RowDigest]
        let settings: [String: String]
    }

    /// - Returns: The source's content, proven authentic as far as its pages can be.
    /// - Throws: `.damaged` if the source is; `.unsupported` naming what cannot be copied;
    ///   `.full`, `.io`, `.cancelled`.
    func run() throws(StoreError) -> Content {
        let schema = try reading { () throws(StoreError) in try CopiedSchema(of: source) }
        let settings = try reading { () throws(StoreError) in try Self.settings(of: source) }
        try prepareTarget(settings)
        try target.run(.beginImmediate)
        for table in schema.tables where table.name != "sqlite_sequence" {
            try create(table.entry)
        }
        let digests = try copyRows(schema)
        for index in schema.indexes { try create(index) }
        try insertText(schema.textOnly)
        for name in ["user_version", "application_id"] {
            try target.run("PRAGMA \(name) = \(settings[name] ?? "0")")
        }
        // Before COMMIT: every page that was read must be authentic.
        if let failure = source.probeFailure() { throw failure }
        try target.run(.commit)
        return Content(schema: schema, digests: digests, settings: settings)
    }

    // MARK: Settings

    static func settings(of handle: Handle) throws(StoreError) -> [String: String] {
        var found: [String: String] = [:]
        for name in ["encoding", "auto_vacuum", "user_version", "application_id"] {
            found[name] = try handle.firstText("PRAGMA \(name)") ?? ""
        }
        return found
    }

    private func prepareTarget(_ settings: [String: String]) throws(StoreError) {
        try target.run("PRAGMA foreign_keys = OFF")
        // Rows that violate a CHECK constraint are copied too, and `integrity_check` reports them.
        try target.run("PRAGMA ignore_check_constraints = ON")
        try target.run("PRAGMA encoding = \"\(settings["encoding"] ?? "UTF-8")\"")
        try target.run("PRAGMA auto_vacuum = \(settings["auto_vacuum"] ?? "0")")
        // Allows creating tables with names reserved by SQLite, and writing the schema as rows.
        try target.run("PRAGMA writable_schema = ON")
    }

    // MARK: Schema

    private func create(_ entry: CopiedSchema.Entry) throws(StoreError) {
        // Only the first statement of the text is compiled, and a schema holds only CREATE
        // statements.
        guard let sql = entry.sql, sql.prefix(6).uppercased() == "CREATE" else {
            throw StoreError(
                .damaged, "the schema has an entry for \(entry.name) that SQLite never writes",
                hint: "Restore the file from a backup.", table: entry.table)
        }
        do throws(StoreError) {
            try CopyStatement(target, sql).run()
        } catch  where error.code == .sql {
            throw Self.unsupported(entry, cause: error)
        } catch  where error.code == .constraint {
            throw Self.contradiction(entry.table, cause: error)
        }
    }

    static func unsupported(
        _ entry: CopiedSchema.Entry, cause: StoreError
    ) -> StoreError {
        StoreError(
            .unsupported,
            "the \(entry.type) \(entry.name) cannot be created in the copy: \(cause.message)",
            hint: "It may need a function or collation that its own program registers; drop it "
                + "there first.",
            table: entry.table, resultCode: cause.resultCode, cause: cause)
    }

    static func contradiction(_ table: String, cause: StoreError) -> StoreError {
        StoreError(
            .damaged, "rows of \(table) contradict a constraint of \(table): \(cause.message)",
            hint: "The index of that constraint is damaged or was never checked: mend the source.",
            table: table, resultCode: cause.resultCode, cause: cause)
    }

    private func insertText(_ entries: [CopiedSchema.Entry]) throws(StoreError) {
        let insert = try CopyStatement(
            target,
            "INSERT INTO sqlite_master(type, name, tbl_name, rootpage, sql) VALUES (?, ?, ?, 0, ?)")
        for entry in entries {
            for (index, text) in [entry.type, entry.name, entry.table, entry.sql].enumerated() {
                try insert.bind(text, at: Int32(index + 1))
            }
            try insert.run()
        }
    }

    // MARK: Rows

    private func copyRows(_ schema: CopiedSchema) throws(StoreError) -> [RowDigest] {
        let countTotal = try countRows(schema)
        let isUTF16 = try source.firstText("PRAGMA encoding")?.hasPrefix("UTF-16") ?? false
        var digests: [RowDigest] = []
        var count = 0
        for table in schema.tables {
            if table.name == "sqlite_sequence" { try prepareSequence(table) }
            let digest = try copy(table, isUTF16: isUTF16, &count, of: countTotal)
            // Probes after each table, so that the error can name the table.
            if let failure = source.probeFailure() { throw failure.with(table: table.name) }
            digests.append(digest)
        }
        guard count == countTotal else {
            throw StoreError(
                .damaged,
                "the tables returned \(count) rows, but \(countTotal) were counted before",
                hint: "Restore the file from a backup.")
        }
        try monitor.report(.copyingRows, count, of: countTotal)
        return digests
    }

    /// Counts without indexes: one may need a missing collation, which `create` reports better.
    private func countRows(_ schema: CopiedSchema) throws(StoreError) -> Int {
        try reading { () throws(StoreError) in
            var count = 0
            for table in schema.tables {
                count += try source.firstInteger(
                    "SELECT count(*) FROM \(table.quotedName) NOT INDEXED")
            }
            return count
        }
    }

    /// Ensures an empty `sqlite_sequence`. SQLite creates it with the first table with
    /// AUTOINCREMENT, and inserting rows fills it.
    private func prepareSequence(_ table: CopiedSchema.Table) throws(StoreError) {
        let made = try target.firstInteger(
            "SELECT count(*) FROM sqlite_master WHERE name = 'sqlite_sequence'")
        if made == 0 { try create(table.entry) }
        try target.run("DELETE FROM sqlite_sequence")
    }

    private func copy(
        _ table: CopiedSchema.Table, isUTF16: Bool, _ count: inout Int, of countTotal: Int
    ) throws(StoreError) -> RowDigest {
        var digest = RowDigest(isUTF16: isUTF16)
        let insert = try statement(inserting: table)
        let select = try reading { () throws(StoreError) in
            try CopyStatement(source, table.select)
        }
        while try reading({ () throws(StoreError) in try select.step() }) {
            try insert.bindRow(of: select)
            digest.add(select)
            do throws(StoreError) {
                try insert.run()
            } catch  where error.code == .constraint {
                // The constraint must not be blamed for values that a damaged page gave.
                throw source.probeFailure() ?? Self.contradiction(table.name, cause: error)
            }
            count += 1
            if count % CopyMonitor.interval == 0 {
                try monitor.report(.copyingRows, count, of: countTotal)
            }
        }
        return digest
    }

    private func statement(inserting table: CopiedSchema.Table) throws(StoreError) -> CopyStatement
    {
        do throws(StoreError) {
            return try CopyStatement(target, table.insert)
        } catch  where error.code == .sql {
            throw Self.unsupported(table.entry, cause: error)
        }
    }

    /// Reading Coffer's own SQL fails only if the file is damaged, whatever code the engine
    /// returns.
    private func reading<T>(_ work: () throws(StoreError) -> T) throws(StoreError) -> T {
        do throws(StoreError) {
            return try work()
        } catch  where error.code == .sql || error.code == .damaged {
            throw StoreError(
                .damaged, "the source is damaged: \(error.message)",
                hint: "Nothing was copied. Restore the source from a backup.",
                table: error.table, resultCode: error.resultCode, cause: error)
        }
    }
}
