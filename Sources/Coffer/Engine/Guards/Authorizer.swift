import CSQLCipher

/// Decides, while SQL is compiled, what the text may do.
///
/// SQLite asks for every action of a statement. So no spelling of `COMMIT` or `PRAGMA key` slips
/// through, as it would past a check of the text. See
/// <https://www.sqlite.org/c3ref/set_authorizer.html>.
final class Authorizer {
    /// Where the SQL comes from, which selects the rules.
    enum Scope {
        /// A user's `Connection`, which may use transaction SQL and most pragmas.
        case connection
        /// The body of a store's transaction, which Coffer begins and ends.
        case body
    }

    var scope = Scope.connection
    /// Whether the body of a connection's transaction runs: only Coffer may then end it.
    var isInBody = false
    /// Whether the rules apply. On an adopted handle they apply only to SQL compiled by Coffer.
    var isActive = true
    /// Whether SQL has ever set `defer_foreign_keys`, which delays their check until COMMIT.
    private(set) var sawDeferredKeys = false
    /// Whether the SQL being compiled will never run: pragmas must then take no effect.
    var isValidating = false
    /// True while Coffer compiles or runs internal statements, which no rule restricts.
    var isCoffer = false
    /// True once the statement being compiled turned out to control transactions, files or
    /// settings, so that it must not be wrapped in a transaction.
    private(set) var sawControl = false
    /// The verb of transaction or savepoint SQL, such as `COMMIT` or `RELEASE`.
    private(set) var transactionVerb: String?
    /// True once the statement being compiled turned out to change the schema.
    private(set) var sawSchemaChange = false
    /// How often SQLite has asked for an action, on any compilation of the handle.
    fileprivate(set) var actionCount = 0
    private var refusal: StoreError?
    /// Tables and columns that the SQL being compiled updates, if somebody has asked for them.
    fileprivate var updates: [(table: String, column: String)]?
    /// The columns of the main file that the SQL being compiled names, if somebody has asked.
    fileprivate var uses: [ColumnUse]?

    func install(on db: OpaquePointer) {
        sqlite3_set_authorizer(db, authorize, Unmanaged.passUnretained(self).toOpaque())
    }

    /// Returns the result of `body`. No rule restricts the SQL that `body` compiles or runs.
    func asCoffer<R>(_ body: () -> R) -> R {
        let was = isCoffer
        isCoffer = true
        defer { isCoffer = was }
        return body()
    }

    /// Returns the result of `body`. The rules apply to SQL that `body` compiles, even on an
    /// adopted handle. Inside `asCoffer(_:)` they do not.
    func whileActive<R>(_ body: () -> R) -> R {
        let was = isActive
        isActive = true
        defer { isActive = was }
        return body()
    }

    /// As `whileActive(_:)`, for SQL that will not run: a pragma that the rules allow takes no
    /// effect while it is compiled.
    func whileValidating<R>(_ body: () -> R) -> R {
        let was = isValidating
        isValidating = true
        defer { isValidating = was }
        return whileActive(body)
    }

    /// Resets `sawControl`, `transactionVerb`, `sawSchemaChange` and the refusal, which are about
    /// the last compilation.
    func begin() {
        sawControl = false
        transactionVerb = nil
        sawSchemaChange = false
        refusal = nil
    }

    func takeRefusal() -> StoreError? {
        defer { refusal = nil }
        return refusal
    }

    /// Begins to list the columns that UPDATEs set, also those of triggers and foreign keys.
    func willListUpdates() {
        updates = []
    }

    /// Ends the list, and returns it. SQLite calls every name of a row id `ROWID`.
    func takeUpdates() -> [(table: String, column: String)] {
        defer { updates = nil }
        return updates ?? []
    }

    /// Returns the result of `body`, and the columns of the main file that the SQL compiled by it
    /// reads or sets, those of views and triggers included.
    func listingUses<T>(_ body: () throws(StoreError) -> T) throws(StoreError) -> (T, [ColumnUse]) {
        uses = []
        defer { uses = nil }
        let value = try body()
        return (value, uses ?? [])
    }

    fileprivate func decide(_ action: Int32, _ first: String?, _ second: String?) -> Int32 {
        let reason: String?
        switch action {
        case SQLITE_TRANSACTION, SQLITE_SAVEPOINT:
            sawControl = true
            transactionVerb = first ?? ""
            let isManaged = scope == .body || isInBody
            reason = isManaged ? Self.transactionReason(action, first) : nil
        case SQLITE_ATTACH, SQLITE_DETACH:
            sawControl = true
            // VACUUM attaches a temporary file with an empty name, and detaches it as `vacuum_db`.
            let isOfVacuum = first == (action == SQLITE_ATTACH ? "" : "vacuum_db")
            reason = isOfVacuum ? nil : attachReason
        case SQLITE_ALTER_TABLE, SQLITE_CREATE_INDEX...SQLITE_CREATE_VIEW,
            SQLITE_DROP_INDEX...SQLITE_DROP_VIEW, SQLITE_CREATE_VTABLE, SQLITE_DROP_VTABLE:
            sawSchemaChange = true
            reason = nil
        case SQLITE_PRAGMA:
            let name = first?.lowercased() ?? ""
            if !Self.readingPragmas.contains(name) { sawControl = true }
            if name == "defer_foreign_keys", second != nil { sawDeferredKeys = true }
            reason = pragmaReason(name, argument: second)
        case SQLITE_FUNCTION:
            let isRefused = HostileDefence.refusedFunctions.contains(second?.lowercased() ?? "")
            reason =
                isRefused
                ? "the function \(second ?? "") is switched off: it runs foreign code" : nil
        default:
            reason = nil
        }
        guard let reason else {
            return isValidating && action == SQLITE_PRAGMA ? SQLITE_IGNORE : SQLITE_OK
        }
        refusal = StoreError(.misuse, reason)
        return SQLITE_DENY
    }

    private static func transactionReason(_ action: Int32, _ verb: String?) -> String {
        action == SQLITE_SAVEPOINT
            ? "savepoint SQL would end or hide Coffer's own; use savepoint { }"
            : "\(verb ?? "this") would break the transaction that this body runs in; "
                + "return to commit and throw to roll back"
    }

    private var attachReason: String {
        scope == .body
            ? "a store is one file; nest the write of another Store in this one's body, or use "
                + "attach(_:as:key:) of a Connection"
            : "ATTACH and DETACH are not for SQL text; use attach(_:as:key:) and detach"
    }

    private func pragmaReason(_ name: String, argument: String?) -> String? {
        if let verb = Self.secretPragmas[name] {
            if scope == .body {
                return "PRAGMA \(name) would put a key or a cipher setting into SQL text; "
                    + "the store has been given its own, and store.rekey(to:) changes the key"
            }
            return "PRAGMA \(name) would put a key or a cipher setting into SQL text; use \(verb)"
        }
        if name.hasPrefix("cipher"), argument != nil {
            return "PRAGMA \(name) changes how pages are encrypted; name a CipherProfile instead"
        }
        if name == "journal_mode", argument != nil {
            return "PRAGMA journal_mode could lose another process's commit; "
                + "set Configuration.journalMode and open the file again"
        }
        if Self.unsafePragmas.contains(name), argument != nil {
            return "PRAGMA \(name) is set by Coffer on every connection and stays as it is"
        }
        if scope == .body, argument != nil, !Self.bodyPragmas.contains(name) {
            return "PRAGMA \(name) cannot be set inside a transaction of the store; "
                + "use the store's Configuration"
        }
        return nil
    }

    private static let secretPragmas = [
        "key": "setKey(_:)", "hexkey": "setKey(_:)", "textkey": "setKey(_:)",
        "rekey": "rekey(to:)", "hexrekey": "rekey(to:)", "textrekey": "rekey(to:)",
        "rekey_kdf_iter": "rekey(to:)",
        "rekey_cipher": "rekey(to:)", "cipher_store_pass": "setKey(_:)",
        "kdf_iter": "a CipherProfile", "fast_kdf_iter": "a CipherProfile",
        "cipher_migrate": "Store.upgrade",
    ]

    private static let unsafePragmas: Set = [
        // Plaintext would reach /var/tmp: measured with temp_store=FILE on both engines.
        "temp_store", "temp_store_directory", "data_store_directory",
        "writable_schema", "trusted_schema", "page_size", "locking_mode",
        // `query_only` prevents changes through a connection that was opened for reading.
        "query_only",
    ]

    /// Pragmas that read or write pages like a query: they run in a transaction and are probed.
    private static let readingPragmas: Set = [
        "table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo",
        "foreign_key_list", "foreign_key_check", "integrity_check", "quick_check",
        "user_version", "application_id", "page_count", "freelist_count",
    ]

    /// Pragmas whose argument only names an object to read, or whose effect belongs to the
    /// transaction.
    private static let bodyPragmas = readingPragmas.union(["defer_foreign_keys", "optimize"])
}

/// A column that SQL reads or sets.
struct ColumnUse {
    let table: String
    let column: String
    /// The innermost view or trigger that names it; `nil` for the statement itself.
    let owner: String?
}

private func authorize(
    context: UnsafeMutableRawPointer?, action: Int32, first: UnsafePointer<CChar>?,
    second: UnsafePointer<CChar>?, database: UnsafePointer<CChar>?,
    trigger: UnsafePointer<CChar>?
) -> Int32 {
    guard let context else { return SQLITE_DENY }
    // Unretained: the authorizer lives in the handle whose connection calls it.
    let authorizer = Unmanaged<Authorizer>.fromOpaque(context).takeUnretainedValue()
    authorizer.actionCount &+= 1
    if action == SQLITE_UPDATE, authorizer.updates != nil, let first, let second {
        authorizer.updates?.append((String(cString: first), String(cString: second)))
    }
    if action == SQLITE_UPDATE || action == SQLITE_READ, authorizer.uses != nil {
        let isMain = database.map { String(cString: $0) } == "main"
        if isMain, let first, let second {
            authorizer.uses?.append(
                ColumnUse(
                    table: String(cString: first), column: String(cString: second),
                    owner: trigger.map { String(cString: $0) }))
        }
    }
    if authorizer.isCoffer || !authorizer.isActive { return SQLITE_OK }
    switch action {
    case SQLITE_READ, SQLITE_SELECT, SQLITE_INSERT, SQLITE_UPDATE, SQLITE_DELETE:
        return SQLITE_OK  // by far the most frequent, once per column: no strings are made
    default:
        return authorizer.decide(
            action, first.map { String(cString: $0) }, second.map { String(cString: $0) })
    }
}
