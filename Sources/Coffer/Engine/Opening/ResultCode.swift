import CSQLCipher

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

extension StoreError {
    /// The error for an engine's result code, with the message that the engine left on the
    /// connection.
    ///
    /// - Parameters:
    ///   - db: The connection; `nil` if it does not know of the failure.
    ///   - code: The result code, basic or extended. The error has the extended one, if known.
    ///   - sql: The SQL text that failed. If it contains a key, the engine's message is left out.
    static func of(_ db: OpaquePointer?, code: Int32, sql: String?) -> StoreError {
        // SQLite quotes the word at which it failed. In a text that contains a key, that may be the
        // key. For such a text, and without a connection, the only message is the code's own.
        let isQuotable = sql.map { redacted($0) == $0 } ?? true
        let told =
            db.flatMap { isQuotable ? String(cString: sqlite3_errmsg($0)) : nil }
            ?? String(cString: sqlite3_errstr(code))
        let text = withoutArgument(told)
        let extended = db.map { sqlite3_extended_errcode($0) } ?? code
        let precise = extended & 0xff == code & 0xff ? extended : code
        let meaning = Meaning(code: precise, systemError: db.map { systemError($0, precise) } ?? 0)
        let hint = meaning.hint ?? (meaning.code == .sql ? sql.flatMap(SQLHint.of) : nil)
        return StoreError(
            meaning.code, meaning.message ?? text, hint: hint, sql: sql,
            sqlOffset: isQuotable ? sqlOffset(db, code) : nil, resultCode: precise)
    }

    /// The system's error number of the last failure of a connection.
    ///
    /// SQLite tries to open a journal for reading, after it could not make one, so the number tells
    /// of a missing file. The permission of the folder is asked for again.
    private static func systemError(_ db: OpaquePointer, _ code: Int32) -> Int32 {
        let told = sqlite3_system_errno(db)
        guard code & 0xff == SQLITE_CANTOPEN, [0, ENOENT].contains(told),
            let path = sqlite3_db_filename(db, "main").map({ String(cString: $0) }), !path.isEmpty,
            access(FileLocation(resolved: path).folder, W_OK) != 0
        else { return told }
        return errno
    }

    /// The engine's message without a bound value: full-text search quotes its argument.
    private static func withoutArgument(_ message: String) -> String {
        if message.hasPrefix("malformed MATCH expression") { return "malformed MATCH expression" }
        if message.hasPrefix("fts5: ") || message.hasPrefix("unterminated string") {
            return "malformed MATCH expression of FTS5"
        }
        return message
    }

    /// The position in bytes at which the SQL text is wrong; `nil` for an error that has none. Only
    /// an error of compiling has a position.
    private static func sqlOffset(_ db: OpaquePointer?, _ code: Int32) -> Int? {
        guard let db, code & 0xff == SQLITE_ERROR else { return nil }
        let offset = coffer_error_offset(db)
        return offset < 0 ? nil : Int(offset)
    }

    /// The same error, with its position in a longer text.
    func with(sqlOffset: Int) -> StoreError {
        StoreError(
            code, message, hint: hint, sql: sql, sqlOffset: sqlOffset, pages: pages, table: table,
            column: column, resultCode: resultCode, cause: cause)
    }

    /// The same error, naming the SQL text.
    func with(sql: String?) -> StoreError {
        StoreError(
            code, message, hint: hint, sql: sql, sqlOffset: sqlOffset, pages: pages, table: table,
            column: column, resultCode: resultCode, cause: cause)
    }

    /// The same error, with more text at the end of its message.
    func adding(_ text: String) -> StoreError {
        StoreError(
            code, "\(message); \(text)", hint: hint, sql: sql, sqlOffset: sqlOffset, pages: pages,
            table: table, column: column, resultCode: resultCode, cause: cause)
    }

    /// The same error with another hint.
    package func with(hint: String) -> StoreError {
        StoreError(
            code, message, hint: hint, sql: sql, sqlOffset: sqlOffset, pages: pages, table: table,
            column: column, resultCode: resultCode, cause: cause)
    }

    /// The same error with a cause, whose hint it takes if it has none.
    func with(cause: any Error) -> StoreError {
        StoreError(
            code, message, hint: hint ?? (cause as? StoreError)?.hint, sql: sql,
            sqlOffset: sqlOffset, pages: pages, table: table, column: column,
            resultCode: resultCode, cause: cause)
    }

    /// The same error, with the numbers of the pages that it is about.
    func with(pages: [Int]) -> StoreError {
        StoreError(
            code, message, hint: hint, sql: sql, sqlOffset: sqlOffset, pages: pages, table: table,
            column: column, resultCode: resultCode, cause: cause)
    }

    /// The same error, with a table and a column. If `column` is `nil`, the error's own stays.
    func with(table: String, column: String? = nil) -> StoreError {
        StoreError(
            code, message, hint: hint, sql: sql, sqlOffset: sqlOffset, pages: pages, table: table,
            column: column ?? self.column, resultCode: resultCode, cause: cause)
    }
}

/// The meaning of a result code for the caller. Codes are matched, never the engine's texts,
/// because those differ between SQLCipher 3 and 4.
private struct Meaning {
    let code: StoreError.Code
    var message: String?
    var hint: String?

    init(code: Int32, systemError: Int32) {
        // For other codes the system error may belong to an earlier operation.
        if [SQLITE_CANTOPEN, SQLITE_IOERR].contains(code & 0xff),
            let limit = DescriptorLimit(systemError: systemError)
        {
            (self.code, message, hint) = (.tooManyFiles, limit.message, limit.hint)
            return
        }
        switch code & 0xff {
        case SQLITE_BUSY, SQLITE_LOCKED, SQLITE_PROTOCOL:
            self.code = .busy
            hint = "Another connection or process holds the lock: try again, or raise busyTimeout."
        case SQLITE_CONSTRAINT:
            self.code = .constraint
        case SQLITE_FULL:
            self.code = .full
            hint = "Free some space and try again; what failed was undone."
        case SQLITE_IOERR:
            self.code = systemError == Meaning.noSpace ? .full : .io
            let said = "The system said: \(systemErrorText(systemError))."
            hint = systemError == 0 ? nil : said
            guard systemError == Meaning.noSpace else { break }
            message = "the disk is full"
            hint = "Free some space and try again. " + said
        case SQLITE_ABORT:
            self.code = .rolledBack
        case SQLITE_READONLY, SQLITE_PERM:
            self.code = .readOnly
            // Macros that Swift does not see: SQLITE_READONLY_ROLLBACK and _DIRECTORY.
            switch code {
            case SQLITE_READONLY | 3 << 8:
                message =
                    "a crash has left a journal, which must be played back before anything is read"
                hint = "Open the file again where it can be written."
            case SQLITE_READONLY | 6 << 8:
                message = "the folder of the file may not be written"
                hint = Meaning.filesInFolder + "."
            default: break
            }
        case SQLITE_CANTOPEN:
            self.code = Meaning.notAllowed.contains(systemError) ? .readOnly : .io
            message = "the file, or a file that SQLite keeps next to it, cannot be opened or made"
            // The error number of an earlier search for a WAL says nothing.
            let reason = [0, ENOENT].contains(systemError) ? "" : systemErrorText(systemError)
            hint =
                Meaning.filesInFolder
                + (reason.isEmpty ? "." : ". The system said: \(reason).")
        case SQLITE_CORRUPT:
            self.code = .damaged
            hint = "Nothing read from the damaged part was returned; restore it from a backup."
        case SQLITE_NOTADB:
            self.code = .wrongKey
            message = "the key does not open this file"
            hint =
                "If it did before, another process has changed the key: open it with the new one."
        case SQLITE_AUTH, SQLITE_MISUSE, SQLITE_RANGE:
            self.code = .misuse
        case SQLITE_TOOBIG:
            self.code = .tooBig
        case SQLITE_INTERRUPT:
            self.code = .cancelled
        case SQLITE_MISMATCH:
            self.code = .mismatch
        case SQLITE_NOMEM:
            self.code = .io
        default:
            self.code = .sql
        }
    }

    private static let noSpace: Int32 = 28  // ENOSPC, the same on Linux and Darwin

    /// The hint for a folder without write permission, without a full stop.
    private static let filesInFolder =
        "SQLite makes files in the folder: -journal to write, and -wal and -shm even to read a "
        + "store in WAL mode. Allow it"

    /// The system's answers to a user who may not make or change a file there.
    private static let notAllowed = [EPERM, EACCES, EROFS]
}

extension StoreError {
    /// Whether the engine could not open or make a file (SQLITE_CANTOPEN).
    var isCannotOpen: Bool { resultCode.map { $0 & 0xff } == SQLITE_CANTOPEN }
}
