import CSQLCipher

/// Protects a process that opens a file made to attack it, in addition to the authorizer.
///
/// See "Untrusted SQLite Database Files" in <https://www.sqlite.org/security.html>.
enum HostileDefence {
    /// Functions that would run foreign code or reveal addresses.
    static let refusedFunctions: Set = ["load_extension", "fts3_tokenizer"]

    /// The module that tables of FTS3 and FTS4 name, on every connection.
    static let tokenizerModule = "coffer"

    /// Lowers the connection's limits to SQLite's defaults, and switches off memory mapping,
    /// loading of extensions, and the `refusedFunctions`. Every call of these functions fails.
    ///
    /// - Parameter tokenizerModules: Modules to register before `fts3_tokenizer` is switched off.
    ///   `nil` for a connection that only reads: `complete(_:)` registers its module when needed.
    /// - Throws: The engine's error if it refuses a pragma, a function or a module.
    static func install(on handle: Handle, tokenizerModules: [String]?) throws(StoreError) {
        try handle.run("PRAGMA cell_size_check = ON")
        // A connection begins with one limit for its files, also for those that it attaches later.
        if coffer_may_map_main_file(handle.db) { try handle.run("PRAGMA mmap_size = 0") }
        for (limit, value) in limits { sqlite3_limit(handle.db, limit, value) }
        _ = coffer_set_option(handle.db, Int32(coffer_option_load_extension), 0)
        // Also where a library was built with it switched on.
        _ = coffer_set_option(handle.db, Int32(coffer_option_fts3_tokenizer), 0)
        // Unknown to SQLCipher 3, where the authorizer takes its place.
        _ = coffer_set_option(handle.db, Int32(coffer_option_defensive), 1)
        _ = coffer_set_option(handle.db, Int32(coffer_option_trusted_schema), 0)
        try replace("load_extension", on: handle)
        guard let tokenizerModules else {
            handle.lacksTokenizerModule = true
            return
        }
        try handle.installTokenizerModules(named: tokenizerModules)
        try replace("fts3_tokenizer", on: handle)
    }

    /// Does what `install` left out on a connection for reading, before it may write.
    ///
    /// Until then SQL reaches the engine's own `fts3_tokenizer`, switched off, only through the
    /// authorizer, which refuses it, or in a CHECK or DEFAULT. On SQLCipher 4 `integrity_check`
    /// computes a CHECK too, with values that no program has bound.
    ///
    /// - Throws: The engine's error if it refuses the function or the module.
    static func complete(_ handle: Handle) throws(StoreError) {
        try handle.installLackingTokenizerModule()
        try replace("fts3_tokenizer", on: handle)
    }

    /// SQLite's default limits: a library built with higher ones must not weaken the process.
    private static let limits = [
        (SQLITE_LIMIT_EXPR_DEPTH, Int32(1000)), (SQLITE_LIMIT_TRIGGER_DEPTH, 1000),
        (SQLITE_LIMIT_COMPOUND_SELECT, 500), (SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 50_000),
        (SQLITE_LIMIT_WORKER_THREADS, 0),
    ]

    /// Replaces one of the refused functions by one that fails. Throws the engine's error.
    ///
    /// SQLite does not ask the authorizer about functions in a CHECK, nor on SQLCipher 3 in a
    /// DEFAULT. On SQLCipher 4 a CHECK can register a tokenizer, which is code at an address, even
    /// with the function switched off. SQLite allows that for a value that the program has bound.
    private static func replace(_ name: String, on handle: Handle) throws(StoreError) {
        let code = name.withCString { name in
            for argumentCount in [1, 2] as [Int32] {
                let code = sqlite3_create_function_v2(
                    handle.db, name, argumentCount, SQLITE_UTF8, nil, refuse, nil, nil, nil)
                guard code == SQLITE_OK else { return code }
            }
            return SQLITE_OK
        }
        guard code == SQLITE_OK else { throw handle.error(code) }
    }

    private static let refuse:
        @convention(c) (
            OpaquePointer?, Int32, UnsafeMutablePointer<OpaquePointer?>?
        ) -> Void = { context, _, _ in
            sqlite3_result_error(
                context, "the function is switched off: it runs foreign code", -1)
            sqlite3_result_error_code(context, SQLITE_AUTH)
        }
}
