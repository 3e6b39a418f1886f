import CSQLCipher

// Coffer uses a schema only if it was authenticated to its last byte.
//
// SQLite loads the schema while it compiles a statement. Outside a transaction it does so in an
// internal transaction, and the end of that transaction forgets that a page failed. The tail of
// the last object then reads as zeros, and its text ends there. A view loses its last condition
// and shows the rows that the condition hides; a partial index loses its condition. Hence three
// rules:
//
// 1. The schema is loaded in a transaction that holds the read lock already, so the probe of that
//    transaction sees a page that failed.
// 2. If that probe fails, or the transaction ends without one, the schema in memory is suspect.
// 3. A suspect schema is discarded and loaded again before the next statement or transaction.

/// An attached database, with the statements that read its schema.
struct AttachedSchema {
    let name: String
    /// Reads the schema; fails if a page of the open transaction has failed.
    let probe: OpaquePointer
    /// Takes the read lock without loading the schema.
    let version: OpaquePointer

    func finalize() {
        sqlite3_finalize(probe)
        sqlite3_finalize(version)
    }
}

/// What is known about the schema that SQLite has in memory.
struct SchemaState {
    /// Whether it may come from a page that failed authentication. It is then loaded again before
    /// anything else uses it.
    var isSuspect = false
    /// Whether the schema was changed since Coffer last ended a transaction. After a rollback the
    /// engine forgets the schema, and would load it again outside any transaction.
    var hasChanged = false
    /// Reads `PRAGMA schema_version`; compiled at its first use.
    var versionStatement: OpaquePointer?
}

extension Handle {
    // MARK: Loading

    /// Loads the schemas of the main file and of the attached files, unless they are in memory.
    ///
    /// The loading has a read transaction of its own, which ends before the return. Must be called
    /// outside a transaction.
    ///
    /// - Parameter locked: Runs once all read locks are taken, before a schema is loaded.
    /// - Throws: `.damaged` if the MAC of a page of a schema does not fit; `.wrongKey` if the key
    ///   does not fit the file; `.busy` if a lock cannot be taken; errors of `locked`.
    func loadSchema(locked: () throws(StoreError) -> Void = {}) throws(StoreError) {
        try run(.begin)
        do throws(StoreError) {
            try takeReadLocks()
            try locked()
            probing.cleanMissCount = nil
            if let failure = probeFailure() { throw failure }
            try run(.commit)
        } catch {
            try? run(.rollback)
            throw error
        }
    }

    /// Discards the schema in memory, and loads it again in a transaction that checks its pages.
    ///
    /// On a handle that Coffer opened, does nothing inside a transaction: `isSuspect` then keeps
    /// its value. On an adopted handle, it is the same as `verifySchema(checkingFilesOf:)`.
    ///
    /// - Throws: As `loadSchema(locked:)`. The schema is then suspect.
    @inline(never)
    func requireAuthenticSchema() throws(StoreError) {
        if isAdopted { return try verifySchema() }
        guard !isInTransaction else { return }
        // Also set after a transaction that SQLite itself has ended, without a probe.
        schemaState.isSuspect = true
        if controls.isBegun { transactionMayHaveRolledBack() }
        controls.isBegun = false
        dropRestoredPages()
        try forgetSchema()
        schemaState.isSuspect = false
        do throws(StoreError) {
            try loadSchema()
        } catch {
            schemaState.isSuspect = true
            throw error
        }
    }

    /// Reads the schemas of all files to their last byte, so that a page whose MAC does not fit is
    /// an error.
    ///
    /// Used for an adopted handle: discarding its schema would end the owner's statements that are
    /// positioned on a row. A schema that the owner has already loaded stays in memory.
    ///
    /// - Parameter names: Databases whose files may be new and still lack the `ZeroPageCheck`. They
    ///   get it; after an error it is removed again.
    /// - Throws: `.damaged` if a page of a schema fails; `.busy` if a lock cannot be taken. The
    ///   schema is then suspect.
    func verifySchema(checkingFilesOf names: [String] = []) throws(StoreError) {
        if controls.isBegun { transactionMayHaveRolledBack() }
        controls.isBegun = false
        dropRestoredPages()
        var newNames: [String] = []
        for name in names where try ZeroPageCheck.install(on: self, schema: name) {
            newNames.append(name)
        }
        do throws(StoreError) {
            try verifySchemaInTransaction()
            for name in newNames { try ZeroPageCheck.removeIfAutoVacuum(on: self, schema: name) }
        } catch {
            // The owner's reads must not be checked. The next call installs the check again.
            for name in newNames { try? ZeroPageCheck.remove(from: self, schema: name) }
            throw error
        }
    }

    private func verifySchemaInTransaction() throws(StoreError) {
        let isOwn = !isInTransaction
        if isOwn { try runUnguarded("BEGIN") }
        do throws(StoreError) {
            try takeReadLocks()
            for name in ["main"] + attached.map(\.name) {
                try readSchema(of: name)
            }
            if let failure = schemaReadFailure() ?? attachedReadFailure() { throw failure }
            adoption?.verifiedSchemaVersion = try schemaVersion()
            schemaState.isSuspect = false
            if isOwn { try runUnguarded("COMMIT") }
        } catch {
            schemaState.isSuspect = true
            if isOwn, isInTransaction { try? runUnguarded("ROLLBACK") }
            throw error
        }
    }

    private func readSchema(of name: String) throws(StoreError) {
        let quoted = try name.quotedIdentifier()
        // `length` counts the letters of a text, and so reads all of it.
        let sql = "SELECT sum(length(sql)), sum(length(name)) FROM \(quoted).sqlite_master"
        let (code, failure) = authorizer.asCoffer { () -> (Int32, StoreError?) in
            var raw: OpaquePointer?
            defer { sqlite3_finalize(raw) }
            var code = sqlite3_prepare_v2(db, sql, -1, &raw, nil)
            if code == SQLITE_OK { code = sqlite3_step(raw) }
            return (code, code == SQLITE_ROW ? nil : error(code, sql: sql))
        }
        guard let failure else { return }
        guard [SQLITE_ERROR, SQLITE_CORRUPT].contains(code & 0xff) else { throw failure }
        throw namingPages(Probe.damaged(sql: nil))
    }

    /// Makes SQLite discard the schemas that it has in memory, of all files.
    ///
    /// SQLite has no call for it. It discards the schemas of all files when a change of one of
    /// them is rolled back, and a change of the `temp` schema writes nothing to any file.
    ///
    /// - Throws: `.damaged` if a page of a schema fails; other errors of the engine. No transaction
    ///   is open afterwards.
    private func forgetSchema() throws(StoreError) {
        let isQueryOnly = try isQueryOnly()
        if isQueryOnly { try runUnguarded("PRAGMA query_only = OFF") }
        // A connection for reading must not be able to write: it is closed instead.
        defer {
            if isQueryOnly, (try? runUnguarded("PRAGMA query_only = ON")) == nil { close() }
        }
        do throws(StoreError) {
            try runUnguarded(
                """
                SAVEPOINT coffer_schema; CREATE TEMP TABLE "coffer: a schema to forget"(a);
                ROLLBACK TO coffer_schema; RELEASE coffer_schema
                """)
        } catch {
            // CREATE has loaded the schemas. If one of their pages failed, that is the reason.
            let found = isInTransaction ? schemaReadFailure() : nil
            if isInTransaction { try? runUnguarded("ROLLBACK") }
            throw found?.code == .damaged ? found ?? error : error
        }
    }

    private func isQueryOnly() throws(StoreError) -> Bool {
        var raw: OpaquePointer?
        defer { sqlite3_finalize(raw) }
        let code = authorizer.asCoffer { () -> Int32 in
            let code = sqlite3_prepare_v2(db, "PRAGMA query_only", -1, &raw, nil)
            return code == SQLITE_OK ? sqlite3_step(raw) : code
        }
        guard code == SQLITE_ROW else { throw error(code) }
        return sqlite3_column_int(raw, 0) != 0
    }

    private func runUnguarded(_ sql: String) throws(StoreError) {
        probing.cleanMissCount = nil
        let code = authorizer.asCoffer { sqlite3_exec(db, sql, nil, nil, nil) }
        guard code == SQLITE_OK else { throw error(code, sql: sql) }
    }

    /// Takes the read lock of the main file and of every attached file, without loading a schema.
    ///
    /// Must be called inside a transaction, whose end releases the locks. On an adopted handle,
    /// a file that its owner has detached is passed over.
    ///
    /// - Throws: Errors of taking a lock, such as `.busy`.
    func takeReadLocks() throws(StoreError) {
        _ = try schemaVersion()
        for schema in attached {
            let code = authorizer.asCoffer { sqlite3_step(schema.version) }
            defer { sqlite3_reset(schema.version) }
            // The owner of an adopted handle may have detached the file.
            if isAdopted, code & 0xff == SQLITE_ERROR { continue }
            guard code == SQLITE_ROW else { throw error(code) }
        }
    }

    /// Reads the schema of the main file, and loads it again if another connection has changed it.
    ///
    /// Outside a transaction the read has one of its own.
    ///
    /// - Throws: `.damaged` if the MAC of a page does not fit; outside a transaction also the other
    ///   errors of `loadSchema(locked:)`.
    func readSchemaAgain() throws(StoreError) {
        guard isInTransaction else { return try loadSchema() }
        if let failure = schemaReadFailure() { throw failure }
    }

    /// Reads the schema, and loads it again if another connection has changed it. After a failure
    /// other than damage the schema in memory stays, and the next statement tries again.
    ///
    /// - Throws: `.damaged` if the MAC of a page of the schema does not fit; nothing else.
    func noticeSchemaChange() throws(StoreError) {
        do throws(StoreError) {
            try readSchemaAgain()
        } catch  where error.code != .damaged {}
    }

    // MARK: Compiling

    /// Compiles a statement with `prepare`, and refuses a schema from a page whose MAC does not
    /// fit.
    ///
    /// Outside a transaction the schema is checked before the return. Inside one, the
    /// transaction's next `probeFailure()` checks it.
    ///
    /// - Parameters:
    ///   - raw: `nil` at the call; afterwards the last statement that `prepare` made. It is `nil`
    ///     if this throws.
    ///   - isPragma: Whether the SQL is a pragma, for which Coffer begins no transaction.
    ///   - prepare: Compiles into its argument; may run more than once.
    /// - Returns: The result code of the last `prepare`. A code other than `SQLITE_OK` is returned,
    ///   not thrown.
    /// - Throws: `.damaged` if the schema is damaged; errors of taking the read lock; `.busy` if
    ///   other connections change the schema again and again while a pragma is compiled.
    func compiling(
        _ raw: inout OpaquePointer?, isPragma: Bool = false,
        _ prepare: (inout OpaquePointer?) -> Int32
    ) throws(StoreError) -> Int32 {
        let code = try compilingOnce(&raw, isPragma: isPragma, prepare)
        // The statement may be about a table that needs the module.
        guard code & 0xff == SQLITE_ERROR, lacksTokenizerModule else { return code }
        try installLackingTokenizerModule()
        authorizer.begin()
        return try compilingOnce(&raw, isPragma: isPragma, prepare)
    }

    private func compilingOnce(
        _ raw: inout OpaquePointer?, isPragma: Bool, _ prepare: (inout OpaquePointer?) -> Int32
    ) throws(StoreError) -> Int32 {
        if isInTransaction {
            if isAdopted, schemaState.isSuspect { try verifySchema() }
            try takeReadLocks()
            return prepare(&raw)
        }
        if schemaState.isSuspect || controls.isBegun { try requireAuthenticSchema() }
        if let code = try compilingFromMemory(&raw, prepare) { return code }
        return try isPragma ? compilingPragma(&raw, prepare) : compilingInTransaction(&raw, prepare)
    }

    /// Runs `prepare` outside a transaction, with the schema that is in memory.
    ///
    /// - Returns: The result code of `prepare`. `nil` if it read pages, as it does to load a schema
    ///   or a virtual table: the statement is then finalized, and the schema loaded again.
    /// - Throws: Errors of loading the schema again.
    private func compilingFromMemory(
        _ raw: inout OpaquePointer?, _ prepare: (inout OpaquePointer?) -> Int32
    ) throws(StoreError) -> Int32? {
        let missCount = coffer_cache_miss_count(db)
        let code = prepare(&raw)
        if coffer_cache_miss_count(db) == missCount { return code }
        sqlite3_finalize(raw)
        raw = nil
        try requireAuthenticSchema()
        authorizer.begin()
        return nil
    }

    func compilingAsCoffer(
        _ sql: String, _ raw: inout OpaquePointer?
    ) throws(StoreError) -> Int32 {
        try compiling(&raw) { raw in
            authorizer.asCoffer { sqlite3_prepare_v2(db, sql, -1, &raw, nil) }
        }
    }

    private func compilingInTransaction(
        _ raw: inout OpaquePointer?, _ prepare: (inout OpaquePointer?) -> Int32
    ) throws(StoreError) -> Int32 {
        try run(.begin)
        do throws(StoreError) {
            try takeReadLocks()
            let code = prepare(&raw)
            if let failure = probeFailure() { throw failure }
            try run(.commit)
            guard code == SQLITE_OK else {
                // The commit has replaced the engine's message, which compiling brings back.
                authorizer.begin()
                return try compilingFromMemory(&raw, prepare) ?? code
            }
            return code
        } catch {
            sqlite3_finalize(raw)
            raw = nil
            try? run(.rollback)
            throw error
        }
    }

    /// Compiles a pragma outside a transaction, in up to three attempts. Some pragmas take effect
    /// while they are compiled, and some have no effect inside a transaction.
    ///
    /// - Throws: `.busy` if every attempt had to load the schema; errors of loading it.
    private func compilingPragma(
        _ raw: inout OpaquePointer?, _ prepare: (inout OpaquePointer?) -> Int32
    ) throws(StoreError) -> Int32 {
        for _ in 0..<3 {
            if let code = try compilingFromMemory(&raw, prepare) { return code }
        }
        throw StoreError(
            .busy, "another connection changes the schema again and again", hint: "Try again.")
    }

    // MARK: Undetected loads of a schema

    /// Runs `work`, and marks the schema suspect if `work` read more than `pageCount` pages from
    /// disk: it may have loaded a schema that nothing checked. Inside a transaction, only runs
    /// `work`. Returns and throws what `work` does.
    ///
    /// - Parameter pageCount: How many pages `work` reads without loading a schema.
    func guardingSchema<T>(pageCount: Int32 = 0, _ work: () throws -> T) rethrows -> T {
        guard !isInTransaction else { return try work() }
        let missCount = coffer_cache_miss_count(db)
        defer {
            if !isClosed, coffer_cache_miss_count(db) &- missCount > pageCount {
                schemaState.isSuspect = true
            }
        }
        return try work()
    }

    /// Marks the schema suspect if the transaction has changed it, or has read a page whose MAC
    /// does not fit. Must come before ROLLBACK: the end of the transaction forgets that a page
    /// failed.
    func judgeSchemaBeforeRollback() {
        if schemaState.hasChanged { schemaState.isSuspect = true }
        guard !schemaState.isSuspect, isInTransaction, !callback.isRunning else { return }
        if let failure = probeFailure(), failure.code != .closed { schemaState.isSuspect = true }
    }
}
