import CSQLCipher

/// A function that fails a statement: `coffer_refuse(message)`.
///
/// SQL has no expression that fails with an error of its own outside of a trigger.
struct RefusedResult: SQLRequirement {
    private static let function = "coffer_refuse"

    /// SQL that fails with `.mismatch`.
    static func sql(_ message: String) -> SQL {
        var sql: SQL = "\(SQL(text: function))(\(message))"
        sql.requirements = [RefusedResult()]
        sql.mayFail = true
        return sql
    }

    /// Registers the function at the first call.
    func require(on connection: Connection) throws(StoreError) {
        let handle = try connection.current()
        try handle.registerOnce(RefusedResult.self) { () throws(StoreError) in
            // Not deterministic: SQLite calls it at the row that needs it, and never before. The
            // engine releases the link, even if it refuses the function.
            let code = sqlite3_create_function_v2(
                handle.db, Self.function, 1, FunctionOptions().flags,
                Unmanaged.passRetained(handle.link).toOpaque(), refuseResult, nil, nil
            ) { $0.map { Unmanaged<HandleLink>.fromOpaque($0).release() } }
            try handle.requireRegistered(code)
        }
    }
}

private func refuseResult(
    context: OpaquePointer?, count: Int32, arguments: UnsafeMutablePointer<OpaquePointer?>?
) {
    guard let context, let arguments, count == 1, let user = sqlite3_user_data(context) else {
        return
    }
    let handle = Unmanaged<HandleLink>.fromOpaque(user).takeUnretainedValue().handle
    let text = sqlite3_value_text(arguments[0]).map { String(cString: $0) } ?? ""
    let error = StoreError(
        .mismatch, text,
        hint: "Exclude such rows by a condition, or make the property optional or wider.")
    sqlite3_result_error(context, text, -1)
    sqlite3_result_error_code(context, error.failStatement(of: handle))
}
