import CSQLCipher
import Testing

@testable import Coffer

/// Everything that a database holds, as lines to compare, read without Coffer's copying code.
enum Dump {
    static func plaintext(_ path: String) throws -> [String] {
        let raw = try RawConnection(path)
        return try withExtendedLifetime(raw) { try lines(raw.db) }
    }

    static func store(_ path: String, key: UInt8) throws -> [String] {
        let connection = try Connection(path: path, key: .numbered(key), mode: .readOnly)
        let handle = try connection.current()
        handle.authorizer.isCoffer = true
        return try withExtendedLifetime(connection) { try lines(handle.db) }
    }

    static func lines(_ db: OpaquePointer) throws -> [String] {
        var lines = try rows(
            db, "SELECT type, name, tbl_name, rootpage > 0, sql FROM sqlite_master ORDER BY 1, 2")
        for name in ["encoding", "auto_vacuum", "user_version", "application_id"] {
            lines += try rows(db, "PRAGMA \(name)")
        }
        for table in try tables(db) {
            let name = table.inDoubleQuotes
            var statement: OpaquePointer?
            let withRowID = "SELECT oid, * FROM \(name) NOT INDEXED"
            let hasRowID = sqlite3_prepare_v2(db, withRowID, -1, &statement, nil) == SQLITE_OK
            sqlite3_finalize(statement)
            lines.append("table \(table)")
            lines += try rows(db, hasRowID ? withRowID : "SELECT * FROM \(name) NOT INDEXED")
        }
        return lines
    }

    private static func tables(_ db: OpaquePointer) throws -> [String] {
        var statement: OpaquePointer?
        defer { sqlite3_finalize(statement) }
        let sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0 ORDER BY 1"
        try #require(sqlite3_prepare_v2(db, sql, -1, &statement, nil) == SQLITE_OK)
        var names: [String] = []
        while sqlite3_step(statement) == SQLITE_ROW {
            names.append(String(cString: sqlite3_column_text(statement, 0)))
        }
        return names
    }

    /// One line for each row: storage class and value, bytes in full.
    static func rows(_ db: OpaquePointer, _ sql: String) throws -> [String] {
        var statement: OpaquePointer?
        defer { sqlite3_finalize(statement) }
        try #require(sqlite3_prepare_v2(db, sql, -1, &statement, nil) == SQLITE_OK, "\(sql)")
        var lines: [String] = []
        while true {
            let code = sqlite3_step(statement)
            if code == SQLITE_DONE { return lines }
            try #require(code == SQLITE_ROW, "\(sql)")
            let columns = (0..<sqlite3_column_count(statement)).map { column -> String in
                switch sqlite3_column_type(statement, column) {
                case SQLITE_INTEGER: return "\(sqlite3_column_int64(statement, column))"
                case SQLITE_FLOAT: return "\(sqlite3_column_double(statement, column))"
                case SQLITE_NULL: return "NULL"
                case SQLITE_TEXT:
                    return "text " + String(cString: sqlite3_column_text(statement, column))
                        + suffix(statement, column)
                default:
                    return "blob" + suffix(statement, column)
                }
            }
            lines.append(columns.joined(separator: " | "))
        }
    }

    /// Bytes that a C string would not show.
    private static func suffix(_ statement: OpaquePointer?, _ column: Int32) -> String {
        let start = sqlite3_column_blob(statement, column)
        let count = Int(sqlite3_column_bytes(statement, column))
        let bytes = UnsafeRawBufferPointer(start: start, count: count)
        guard bytes.contains(where: { $0 < 0x20 || $0 > 0x7e }) || bytes.isEmpty else { return "" }
        return " \(count) \(bytes.reduce(into: UInt64(count)) { $0 = $0 &* 31 &+ UInt64($1) })"
    }
}
