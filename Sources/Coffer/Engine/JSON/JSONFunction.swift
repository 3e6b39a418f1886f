import CSQLCipher

/// SQL that calls `coffer_json`, which each connection knows that Coffer has opened.
///
/// `coffer_json(text, step, …)` is the value at the end of a path in a JSON text: a key is a text,
/// an index an integer. A string is a text, a number an integer or a real, `true` is 1 and `false`
/// is 0. NULL stands for `null`, for a missing value, and for a text that is NULL. An object or an
/// array is NULL too.
struct JSONFunction: SQLRequirement {
    static let name = "coffer_json"

    func require(on connection: Connection) throws(StoreError) {
        let handle = try connection.current()
        guard handle.isAdopted else { return }
        try handle.registerOnce(JSONFunction.self) { () throws(StoreError) in
            try Self.install(on: handle)
        }
    }

    /// Registers the function. Every write to a table with an index of it calls it, so it must be
    /// known before the first one. Throws the engine's error.
    static func install(on handle: Handle) throws(StoreError) {
        // An index of the schema calls it: it has no effect and reads its arguments only.
        let options: FunctionOptions = [.deterministic, .schema]
        // The engine releases the link, even if it refuses the function.
        let code = sqlite3_create_function_v2(
            handle.db, name, -1, options.flags,
            Unmanaged.passRetained(handle.link).toOpaque(), findInJSON, nil, nil
        ) { $0.map { Unmanaged<HandleLink>.fromOpaque($0).release() } }
        try handle.requireRegistered(code)
    }
}

private func findInJSON(
    context: OpaquePointer?, count: Int32, arguments: UnsafeMutablePointer<OpaquePointer?>?
) {
    guard let context, let arguments, count > 0, let user = sqlite3_user_data(context) else {
        return
    }
    let text = arguments[0]
    // Must be asked first: reading the text of a blob changes its type.
    let isBlob = sqlite3_value_type(text) == SQLITE_BLOB
    guard sqlite3_value_type(text) != SQLITE_NULL else { return sqlite3_result_null(context) }
    // Must come before the count, because it may turn UTF-16 into UTF-8.
    guard let start = sqlite3_value_text(text) else { return sqlite3_result_error_nomem(context) }
    let bytes = UnsafeRawBufferPointer(start: start, count: Int(sqlite3_value_bytes(text)))
    do throws(JSONScanner.Malformed) {
        guard !isBlob else { throw JSONScanner.Malformed() }
        var scanner = JSONScanner(bytes)
        let found = try scanner.find((1..<Int(count)).lazy.map { step(arguments[$0]) })
        try setResult(found, bytes, context)
    } catch {
        let handle = Unmanaged<HandleLink>.fromOpaque(user).takeUnretainedValue().handle
        // A damaged page explains a text that is not JSON. Its error comes first.
        let failure = handle?.probeFailure() ?? malformed
        sqlite3_result_error(context, failure.message, -1)
        sqlite3_result_error_code(context, failure.failStatement(of: handle))
    }
}

private let malformed = StoreError(
    .mismatch, "a column of JSON holds something else, which a condition or an index looks into",
    hint: "Find the row by fetching the records one by one: another program has written it.")

private func step(_ argument: OpaquePointer?) -> JSONScanner.Step<UnsafeRawBufferPointer> {
    guard sqlite3_value_type(argument) != SQLITE_INTEGER else {
        return .index(Int(sqlite3_value_int64(argument)))
    }
    // Without memory for the text, nothing has the empty key either, or the statement fails.
    let start = sqlite3_value_text(argument)
    return .key(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_value_bytes(argument))))
}

private func setResult(
    _ found: JSONScanner.Found?, _ bytes: UnsafeRawBufferPointer, _ context: OpaquePointer
) throws(JSONScanner.Malformed) {
    switch found {
    case nil, .null, .container: sqlite3_result_null(context)
    case .bool(let value): sqlite3_result_int(context, value ? 1 : 0)
    case .number(let range):
        try JSONScanner.number(UnsafeRawBufferPointer(rebasing: bytes[range]))
            .setResult(of: context)
    case .string(let range, let isPlain):
        let string = UnsafeRawBufferPointer(rebasing: bytes[range])
        guard !isPlain else { return setText(string, context) }
        try JSONScanner.unescaped(string).withUnsafeBytes { setText($0, context) }
    }
}

private func setText(_ bytes: UnsafeRawBufferPointer, _ context: OpaquePointer) {
    sqlite3_result_text64(
        context, bytes.baseAddress?.assumingMemoryBound(to: CChar.self) ?? emptyText,
        UInt64(bytes.count), coffer_transient(), UInt8(SQLITE_UTF8))
}
