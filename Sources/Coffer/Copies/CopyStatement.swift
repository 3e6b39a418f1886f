import CSQLCipher

/// An internal statement on a handle without a `Connection`, compiled with Coffer's rights.
final class CopyStatement {
    let raw: OpaquePointer
    private let handle: Handle
    private let sql: String

    init(_ handle: Handle, _ sql: String) throws(StoreError) {
        var raw: OpaquePointer?
        let code = try handle.compilingAsCoffer(sql, &raw)
        guard code == SQLITE_OK, let raw else { throw handle.error(code, sql: sql) }
        self.raw = raw
        self.handle = handle
        self.sql = sql
    }

    deinit {
        sqlite3_finalize(raw)
    }

    /// Whether SQL that names a possibly missing object can be compiled.
    static func compiles(_ handle: Handle, _ sql: String) throws(StoreError) -> Bool {
        var raw: OpaquePointer?
        let code = try handle.compilingAsCoffer(sql, &raw)
        sqlite3_finalize(raw)
        guard code == SQLITE_OK || code == SQLITE_ERROR else { throw handle.error(code, sql: sql) }
        return code == SQLITE_OK
    }

    /// Moves to the next row; `false` at the end. The statement keeps Coffer's rights if a schema
    /// change makes SQLite recompile it here.
    func step() throws(StoreError) -> Bool {
        let code = handle.guardingSchema(pageCount: 1) {
            handle.authorizer.asCoffer { sqlite3_step(raw) }
        }
        switch code {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        default:
            let failure = handle.error(code, sql: sql)
            sqlite3_reset(raw)
            throw failure
        }
    }

    /// Runs a statement that returns no row, and resets it for the next run.
    func run() throws(StoreError) {
        while try step() {}
        sqlite3_reset(raw)
    }

    var columnCount: Int32 { sqlite3_column_count(raw) }

    /// The text of a column unchanged, to be written elsewhere.
    ///
    /// - Throws: `.unsupported` for a text that is not UTF-8 or holds a NUL: repairing or cutting
    ///   it would change it.
    func text(_ column: Int32) throws(StoreError) -> String? {
        guard let start = sqlite3_column_text(raw, column) else { return nil }
        let bytes = UnsafeBufferPointer(
            start: start, count: Int(sqlite3_column_bytes(raw, column)))
        guard let text = String(exactly: bytes), !bytes.contains(0) else {
            throw StoreError(
                .unsupported, "the schema has a name or text that is not UTF-8, or holds a NUL",
                hint: "Rename that table or column, or change the default, in the source first.",
                sql: sql)
        }
        return text
    }

    func integer(_ column: Int32) -> Int { Int(sqlite3_column_int64(raw, column)) }

    func bind(_ text: String?, at index: Int32) throws(StoreError) {
        let code =
            text.map { sqlite3_bind_text(raw, index, $0, -1, coffer_transient()) }
            ?? sqlite3_bind_null(raw, index)
        guard code == SQLITE_OK else { throw handle.error(code, sql: sql) }
    }

    /// Binds the columns of the other statement's current row, as they are stored.
    func bindRow(of other: CopyStatement) throws(StoreError) {
        for column in 0..<other.columnCount {
            let code = sqlite3_bind_value(raw, column + 1, sqlite3_column_value(other.raw, column))
            guard code == SQLITE_OK else { throw handle.error(code, sql: sql) }
        }
    }
}

/// A digest of a table's rows: equal for equal rows in equal order, in one process.
struct RowDigest: Equatable {
    private(set) var rowCount = 0
    private var hasher = Hasher()
    private let isUTF16: Bool

    init(isUTF16: Bool) {
        self.isUTF16 = isUTF16
    }

    var value: Int { hasher.finalize() }

    static func == (one: RowDigest, other: RowDigest) -> Bool {
        one.rowCount == other.rowCount && one.value == other.value
    }

    /// Adds storage class and bytes of every column in the statement's current row.
    ///
    /// Texts are read in the encoding of the database (or of the machine for UTF-16), because a
    /// conversion could make two different texts equal. Reading may change the row's own value, so
    /// bind a row elsewhere before adding it.
    mutating func add(_ row: CopyStatement) {
        rowCount += 1
        for column in 0..<row.columnCount {
            let type = sqlite3_column_type(row.raw, column)
            hasher.combine(type)
            switch type {
            case SQLITE_INTEGER: hasher.combine(sqlite3_column_int64(row.raw, column))
            // The bits: 0.0 and -0.0 are equal as numbers.
            case SQLITE_FLOAT:
                hasher.combine(sqlite3_column_double(row.raw, column).bitPattern)
            case SQLITE_TEXT where isUTF16:
                let start = sqlite3_column_text16(row.raw, column)
                add(start, byteCount: sqlite3_column_bytes16(row.raw, column))
            case SQLITE_TEXT:
                let start = UnsafeRawPointer(sqlite3_column_text(row.raw, column))
                add(start, byteCount: sqlite3_column_bytes(row.raw, column))
            case SQLITE_BLOB:
                let start = sqlite3_column_blob(row.raw, column)
                add(start, byteCount: sqlite3_column_bytes(row.raw, column))
            default: break
            }
        }
    }

    private mutating func add(_ start: UnsafeRawPointer?, byteCount: Int32) {
        hasher.combine(byteCount)
        hasher.combine(bytes: UnsafeRawBufferPointer(start: start, count: Int(byteCount)))
    }
}
