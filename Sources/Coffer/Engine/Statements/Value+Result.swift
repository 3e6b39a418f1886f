import CSQLCipher

extension Value {
    /// Makes a copy of the value the result of the SQL function or column that SQLite asks for.
    @inline(never)
    func setResult(of context: OpaquePointer) {
        switch self {
        case .null: sqlite3_result_null(context)
        case .integer(let integer): sqlite3_result_int64(context, integer)
        case .real(let real): sqlite3_result_double(context, real)
        case .text(var text):
            text.withUTF8 { bytes in
                bytes.withMemoryRebound(to: CChar.self) {
                    // A null pointer would be NULL.
                    sqlite3_result_text64(
                        context, $0.baseAddress ?? emptyText, UInt64($0.count),
                        coffer_transient(), UInt8(SQLITE_UTF8))
                }
            }
        case .blob(let data):
            guard !data.isEmpty else { return sqlite3_result_zeroblob(context, 0) }
            data.withUnsafeBytes {
                sqlite3_result_blob64(
                    context, $0.baseAddress, UInt64($0.count), coffer_transient())
            }
        }
    }
}
