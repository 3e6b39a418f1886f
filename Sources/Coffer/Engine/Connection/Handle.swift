import CSQLCipher

/// Owns one open `sqlite3 *`, without key, policy or cache.
///
/// Not thread-safe: it is opened without the engine's own mutex and belongs to one thread at a
/// time. The corresponding C functions are `sqlite3_open_v2` and `sqlite3_close_v2`.
final class Handle {
    let db: OpaquePointer
    /// Set if someone else has opened the database and will close it.
    let adoption: Adoption?
    private(set) var isClosed = false
    /// For objects that the engine has a pointer to.
    let link = HandleLink()

    let authorizer = Authorizer()
    let controls = ControlStatements()
    var probing = Probing()
    var schemaState = SchemaState()
    var failures = SeenFailures()
    let callback = CallbackState()
    var hooks = EngineHooks()

    /// The file at rest that it reads, if any.
    var rest: FileAtRest?
    /// The databases that SQL can name besides `main`, in order.
    var attached: [AttachedSchema] = []
    /// Whether FTS3 does not know Coffer's module yet: see `installLackingTokenizerModule`.
    var lacksTokenizerModule = false
    /// Whether a rollback has restored pages that SQLCipher may have misread: see
    /// `RestoredPages.swift`.
    var mayMisreadPages = false
    /// The counts that `Connection.takeCacheCounts` returned last.
    var toldCache: (hitCount: Int32, missCount: Int32) = (0, 0)
    /// Set while one of Coffer's transactions is a migration.
    var migrationMode = MigrationMode()
    /// Frames in the WAL after the last commit, if `Connection.watchWAL` was called.
    var walFrameCount = 0
    /// The number of statements that were begun and neither ended nor reset.
    var runningCount = 0
    /// Notified before the pointer becomes invalid.
    var interruptHandle: InterruptHandle?
    /// Called before the file closes, and with it the shared memory that the engine has mapped.
    var willClose: (() -> Void)?
    /// Notified before something is touched, while somebody observes the store.
    var touchObserver: (any TouchObserver)?
    /// `nil` until it is first requested.
    var collector: RowCollector?
    /// `nil` until it is first requested.
    var knownKeyTable: KeyTable?
    /// What the features keep for the handle. It outlives the file that the engine has open.
    private var attachments: [ObjectIdentifier: AnyObject] = [:]
    private var leftovers: [OpaquePointer] = []

    /// Whether someone else has opened the database and will close it.
    var isAdopted: Bool { adoption != nil }

    /// Opens the database at `path`, without a key.
    ///
    /// - Parameters:
    ///   - path: A path, a URI or a name of the engine, such as `:memory:`.
    ///   - flags: The flags of `sqlite3_open_v2`, except for mutex and cache.
    ///   - vfs: The name of a VFS; `nil` for the engine's default.
    /// - Throws: `.notFound` if there is no VFS of that name; the engine's errors of opening.
    init(path: String, flags: Int32, vfs: String? = nil) throws(StoreError) {
        if let vfs, vfs.utf8.contains(0) || sqlite3_vfs_find(vfs) == nil {
            throw StoreError(
                .notFound, "there is no VFS named \(vfs)",
                hint: "Register it with sqlite3_vfs_register before the connection opens.")
        }
        var opened: OpaquePointer?
        let code = sqlite3_open_v2(
            path, &opened, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE, vfs)
        guard code == SQLITE_OK, let opened else {
            let error = StoreError.of(opened, code: code, sql: nil)
            sqlite3_close_v2(opened)
            throw error
        }
        db = opened
        adoption = nil
        sqlite3_extended_result_codes(db, 1)
        link.handle = self
    }

    /// Takes a database owned by someone else. Its settings stay as they are.
    init(adopting db: OpaquePointer) {
        self.db = db
        adoption = Adoption()
        authorizer.isActive = false
        link.handle = self
    }

    deinit {
        close()
        // `close()` does nothing while the program's code runs.
        if !isClosed { endLink() }
    }

    /// The object of type `T` that a feature keeps for the handle: there is one of each type. The
    /// first call makes it with `make`.
    func attachment<T: AnyObject>(_ make: () -> T) -> T {
        if let kept = attachments[ObjectIdentifier(T.self)] as? T { return kept }
        let made = make()
        attachments[ObjectIdentifier(T.self)] = made
        return made
    }

    /// Finalizes a statement only when the file is closed: it may be in the middle of a step now.
    func finalizeLater(_ statement: OpaquePointer) {
        leftovers.append(statement)
    }

    /// Closes the file now, even if others still refer to the handle. All statements must be
    /// finalized before. A database owned by someone else stays open.
    ///
    /// Does nothing if the handle is closed. While a statement runs code of the program, the file
    /// stays open until the handle is deallocated.
    func close() {
        // Code called by a statement must not close the file under it: `deinit` closes it then.
        guard !isClosed, !callback.isRunning else { return }
        isClosed = true
        willClose?()
        interruptHandle?.release(self)
        for statement in leftovers { sqlite3_finalize(statement) }
        sqlite3_finalize(probing.statement)
        for schema in attached { schema.finalize() }
        sqlite3_finalize(schemaState.versionStatement)
        controls.finalize()
        endLink()
        if isAdopted { giveBack() } else { sqlite3_close_v2(db) }
    }

    /// Ends what functions, collations and tokenizers have of the handle. The owner of an adopted
    /// database may run them on another thread, with the database's mutex.
    private func endLink() {
        // Both functions take NULL, the mutex of a database that Coffer has opened.
        let mutex = sqlite3_db_mutex(db)
        sqlite3_mutex_enter(mutex)
        link.handle = nil
        sqlite3_mutex_leave(mutex)
    }

    /// Detaches the files that Coffer attached to a database owned by someone else, and removes
    /// Coffer's authorizer, busy handler and trace from it.
    private func giveBack() {
        for name in adoption?.namesToDetach ?? [] {
            guard let quoted = try? name.quotedIdentifier() else { continue }
            // Refused in a transaction that the owner has begun; the file then stays attached.
            sqlite3_exec(db, "DETACH \(quoted)", nil, nil, nil)
        }
        sqlite3_set_authorizer(db, nil, nil)
        if hooks.busyHandler != nil { sqlite3_busy_handler(db, nil, nil) }
        if hooks.trace != nil { sqlite3_trace_v2(db, 0, nil, nil) }
    }

    /// Whether a transaction is open, as SQLite itself knows it.
    /// The corresponding C function is `sqlite3_get_autocommit`.
    var isInTransaction: Bool { !isClosed && sqlite3_get_autocommit(db) == 0 }

    /// Whether a transaction is open, and no function of the program is running.
    var isFreeInTransaction: Bool { !callback.isRunning && isInTransaction }

    /// The error for a result code of the engine's last call. Must be the next call, because others
    /// overwrite the engine's message.
    ///
    /// If the authorizer refused the SQL, it is the refusal (`.misuse`). If a function of the
    /// program threw an error, that error is its cause or the result itself. An error about damage
    /// has the numbers of the pages, as `namingPages(_:)` finds them.
    func error(_ code: Int32, sql: String? = nil) -> StoreError {
        // A refused function fails with code 1 on SQLCipher 3.
        if [SQLITE_AUTH, SQLITE_ERROR].contains(code & 0xff), let refusal = authorizer.takeRefusal()
        {
            return refusal.with(sql: sql)
        }
        let error = namingPages(StoreError.of(db, code: code, sql: sql))
        guard let cause = callback.error else { return error }
        callback.error = nil
        if let failure = cause as? CallbackFailure, failure.explains(code) {
            return namingPages(failure.error.with(sql: sql))
        }
        return error.with(cause: cause)
    }

    /// The same error; if it is `.damaged`, with the numbers of the damaged pages, counted from 1.
    ///
    /// If the handle reads a file at rest that has changed, a `.damaged` error becomes `.busy`. An
    /// error that is `.damaged` or `.wrongKey` is also recorded in `failures`.
    func namingPages(_ error: StoreError) -> StoreError {
        if error.code == .wrongKey { failures.sawWrongKey = true }
        guard error.code == .damaged else { return error }
        if let failure = rest?.failure() { return failure }
        failures.sawDamage = true
        guard let damagedPages = failures.damagedPages, !isClosed else { return error }
        return error.with(pages: damagedPages())
    }

    /// Runs internal SQL, one or more statements, whose rows do not matter. No rule of the
    /// authorizer applies.
    ///
    /// - Throws: `.closed`; the engine's error of the first statement that fails.
    func run(_ sql: String) throws(StoreError) {
        guard !isClosed else { throw Connection.closed }
        // ROLLBACK TO may read pages again without counting them.
        probing.cleanMissCount = nil
        // Without the copy that Swift makes of a text that it passes to C by itself.
        let code = sql.withCString { text in
            guardingSchema { authorizer.asCoffer { sqlite3_exec(db, text, nil, nil, nil) } }
        }
        guard code == SQLITE_OK else { throw error(code, sql: sql) }
    }

    /// The version of the main file's schema, as the open transaction sees it. SQLite raises it
    /// with each change of the schema.
    ///
    /// - Throws: `.closed`; errors of reading page 1, such as `.busy`.
    func schemaVersion() throws(StoreError) -> Int64 {
        guard !isClosed else { throw Connection.closed }
        let (version, code) = authorizer.asCoffer { () -> (Int64, Int32) in
            if schemaState.versionStatement == nil {
                var raw: OpaquePointer?
                sqlite3_prepare_v2(db, "PRAGMA schema_version", -1, &raw, nil)
                schemaState.versionStatement = raw
            }
            let statement = schemaState.versionStatement
            let code = sqlite3_step(statement)
            defer { sqlite3_reset(statement) }
            return (sqlite3_column_int64(statement, 0), code)
        }
        guard code == SQLITE_ROW else { throw error(code) }
        return version
    }

    /// The first column of the first row of internal SQL, as a text; `nil` without a row or for
    /// NULL.
    ///
    /// - Throws: The engine's errors of compiling and stepping; `.damaged` if the schema is
    ///   damaged.
    func firstText(_ sql: String) throws(StoreError) -> String? {
        let wasCoffer = authorizer.isCoffer
        authorizer.isCoffer = true
        defer { authorizer.isCoffer = wasCoffer }
        var raw: OpaquePointer?
        defer { sqlite3_finalize(raw) }
        var code = try compiling(&raw) { raw in
            sql.withCString { sqlite3_prepare_v2(db, $0, -1, &raw, nil) }
        }
        guard code == SQLITE_OK else { throw error(code, sql: sql) }
        // Unless it loads a schema, it reads at most page 1.
        code = guardingSchema(pageCount: 1) { sqlite3_step(raw) }
        switch code {
        case SQLITE_ROW: return sqlite3_column_text(raw, 0).map { String(cString: $0) }
        case SQLITE_DONE: return nil
        default: throw error(code, sql: sql)
        }
    }

    /// The first column of the first row of internal SQL, as an integer; 0 without a row, for NULL,
    /// and for a value that is no integer. Throws as `firstText(_:)`.
    func firstInteger(_ sql: String) throws(StoreError) -> Int {
        Int(try firstText(sql) ?? "") ?? 0
    }

    /// The journal mode of the file, `.wal` or `.delete`: a fresh connection distinguishes no
    /// others. Throws as `firstText(_:)`.
    func journalMode() throws(StoreError) -> Configuration.JournalMode {
        if let rest { return rest.journalMode }
        return try firstText("PRAGMA journal_mode") == "wal" ? .wal : .delete
    }

    /// Bytes of the main file, still encrypted, read through the engine's own descriptor.
    ///
    /// - Parameter offset: The position of the first byte, counted from 0.
    /// - Returns: Exactly `count` bytes; `nil` if the file ends before that.
    /// - Throws: The error of the read, such as `.io`.
    func rawBytes(at offset: Int, count: Int) throws(StoreError) -> [UInt8]? {
        var code = SQLITE_OK
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            code = coffer_read_raw(db, buffer.baseAddress, Int32(count), Int64(offset))
            initialized = code == SQLITE_OK ? count : 0
        }
        if code == coffer_ioerr_short_read { return nil }
        // The connection does not know of this read: its last message is about something else.
        guard code == SQLITE_OK else { throw StoreError.of(nil, code: code, sql: nil) }
        return bytes
    }

    /// Pages of the database as the open transaction sees it; `nil` if the engine does not say.
    var databasePageCount: Int? {
        guard let text = try? firstText("PRAGMA page_count"), let count = Int(text), count > 0
        else { return nil }
        return count
    }

    /// Byte count of the main file. Throws the error of the engine's file, such as `.io`.
    func rawByteCount() throws(StoreError) -> Int {
        var byteCount: Int64 = 0
        let code = coffer_raw_byte_count(db, &byteCount)
        guard code == SQLITE_OK else { throw StoreError.of(nil, code: code, sql: nil) }
        return Int(byteCount)
    }
}

/// Objects that the engine has pointers to.
struct EngineHooks {
    var busyHandler: BusyHandler?
    var trace: TraceBox?
}

/// What the handle reported; an error in a body may be about another handle.
struct SeenFailures {
    var sawDamage = false
    /// Whether the handle reported that the key no longer fits.
    var sawWrongKey = false
    /// Finds the damaged pages; set once the file's key and profile are known.
    var damagedPages: (() -> [Int])?
}
