import CSQLCipher

extension Regexp {
    /// The SQL function of conditions: `coffer_regexp(pattern, text)`. It is 1 where the text
    /// matches, 0 where it does not, and NULL if either is NULL.
    static let function = "coffer_regexp"
}

/// Counts the regular expressions of a handle, for tests.
final class RegexpState {
    /// How many patterns were compiled for statements.
    fileprivate(set) var compiledCount = 0
}

/// SQL that calls `coffer_regexp`.
struct RegexpFunction: SQLRequirement {
    func require(on connection: Connection) throws(StoreError) {
        try connection.current().knowRegexp()
    }
}

extension Handle {
    /// Registers `coffer_regexp` at the first call. Throws the engine's error if that fails.
    func knowRegexp() throws(StoreError) {
        try registerOnce(RegexpFunction.self) { () throws(StoreError) in
            try createRegexp(Regexp.function)
        }
    }

    /// Registers the function of regular expressions under a name. Throws the engine's error if
    /// that fails.
    func createRegexp(_ name: String) throws(StoreError) {
        // The engine releases the link, even if it refuses the function.
        let code = sqlite3_create_function_v2(
            db, name, 2, FunctionOptions.deterministic.flags,
            Unmanaged.passRetained(link).toOpaque(), matchPattern, nil, nil
        ) { $0.map { Unmanaged<HandleLink>.fromOpaque($0).release() } }
        try requireRegistered(code)
    }
}

private func matchPattern(
    context: OpaquePointer?, count: Int32, arguments: UnsafeMutablePointer<OpaquePointer?>?
) {
    guard let context, let arguments, count == 2, let user = sqlite3_user_data(context) else {
        return
    }
    let handle = Unmanaged<HandleLink>.fromOpaque(user).takeUnretainedValue().handle
    let (pattern, text) = (arguments[0], arguments[1])
    guard sqlite3_value_type(pattern) != SQLITE_NULL, sqlite3_value_type(text) != SQLITE_NULL else {
        return sqlite3_result_null(context)
    }
    let compiled: RegexpMatcher
    do throws(StoreError) {
        guard let known = try matcher(of: pattern, context, handle) else {
            return sqlite3_result_error_nomem(context)
        }
        compiled = known
    } catch {
        // A damaged page explains a pattern that is none. Its error comes first.
        let failure = handle?.probeFailure() ?? error
        sqlite3_result_error(context, failure.message, -1)
        return sqlite3_result_error_code(context, failure.failStatement(of: handle))
    }
    // No text is in a blob.
    guard sqlite3_value_type(text) != SQLITE_BLOB else { return sqlite3_result_int(context, 0) }
    // Must come before the count, because it may turn UTF-16 into UTF-8.
    guard let start = sqlite3_value_text(text) else { return sqlite3_result_error_nomem(context) }
    let bytes = UnsafeRawBufferPointer(start: start, count: Int(sqlite3_value_bytes(text)))
    let db = sqlite3_context_db_handle(context)
    let outcome = compiled.search(bytes) {
        handle?.interruptHandle?.mustStop == true || coffer_is_interrupted(db)
    }
    switch outcome {
    case .found: sqlite3_result_int(context, 1)
    case .notFound: sqlite3_result_int(context, 0)
    case .stopped: sqlite3_result_error_code(context, SQLITE_INTERRUPT)
    }
}

/// The matcher of a pattern. While the statement runs, SQLite keeps that of a literal or an
/// argument: <https://www.sqlite.org/c3ref/get_auxdata.html>. It is `nil` if memory is exhausted.
private func matcher(
    of pattern: OpaquePointer?, _ context: OpaquePointer, _ handle: Handle?
) throws(StoreError) -> RegexpMatcher? {
    if let kept = sqlite3_get_auxdata(context, 0) {
        return Unmanaged<RegexpMatcher>.fromOpaque(kept).takeUnretainedValue()
    }
    guard sqlite3_value_type(pattern) == SQLITE_TEXT else {
        throw StoreError(.mismatch, "the pattern of a regular expression is not a text")
    }
    guard let start = sqlite3_value_text(pattern) else { return nil }
    let bytes = UnsafeBufferPointer(start: start, count: Int(sqlite3_value_bytes(pattern)))
    guard let text = String(exactly: bytes) else {
        throw StoreError(.mismatch, "the pattern of a regular expression is not UTF-8")
    }
    let matcher = RegexpMatcher(try Regexp(text))
    handle?.attachment { RegexpState() }.compiledCount += 1
    // SQLite may release it at once, so this function has a reference of its own.
    sqlite3_set_auxdata(context, 0, Unmanaged.passRetained(matcher).toOpaque()) {
        $0.map { Unmanaged<RegexpMatcher>.fromOpaque($0).release() }
    }
    return matcher
}
