/// A failure of a store, with its reason and a hint how to continue.
///
/// An error never contains a bound value or a byte of a key, so it can be logged as it is. For a
/// row that does not fit its record type, it contains the row's key if that is one integer.
///
/// ```swift
/// do {
///     let store = try await Store(path: "notes.db", key: .passphrase(text))
/// } catch let error as StoreError where error.code == .wrongKey {
///     askAgain()
/// }
/// ```
public struct StoreError: Error, Sendable {
    /// A kind of failure, with one code for each way to react. New codes may be added.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The code's name, as spelled in this type: `wrongKey`.
        public let description: String

        package init(_ description: String) {
            self.description = description
        }
    }

    /// Keeps the error one word long, so that a typed throw stays cheap.
    private final class Storage: Sendable {
        let code: Code
        let message: String
        let hint: String?
        let sql: String?
        let sqlOffset: Int?
        let pages: [Int]
        let table: String?
        let column: String?
        let resultCode: Int32?
        let slotID: UInt16?
        let cause: (any Error)?

        init(
            code: Code, message: String, hint: String?, sql: String?, sqlOffset: Int?,
            pages: [Int], table: String?, column: String?, resultCode: Int32?,
            slotID: UInt16?, cause: (any Error)?
        ) {
            self.code = code
            self.message = message
            self.hint = hint
            self.sql = sql
            self.sqlOffset = sqlOffset
            self.pages = pages
            self.table = table
            self.column = column
            self.resultCode = resultCode
            self.slotID = slotID
            self.cause = cause
        }
    }

    private let storage: Storage

    package init(
        _ code: Code, _ message: String, hint: String? = nil, sql: String? = nil,
        sqlOffset: Int? = nil, pages: [Int] = [], table: String? = nil, column: String? = nil,
        resultCode: Int32? = nil, slotID: UInt16? = nil, cause: (any Error)? = nil
    ) {
        storage = Storage(
            code: code, message: message, hint: hint, sql: sql.map(Self.redacted),
            sqlOffset: sqlOffset, pages: pages, table: table, column: column,
            resultCode: resultCode, slotID: slotID, cause: cause.map(Self.withoutValue))
    }

    /// Removes the value from those errors of Swift's coding that contain one.
    private static func withoutValue(_ cause: any Error) -> any Error {
        let words = "the value is not shown"
        switch cause {
        case DecodingError.dataCorrupted(let context):
            return DecodingError.dataCorrupted(
                .init(codingPath: context.codingPath, debugDescription: words))
        case EncodingError.invalidValue(let value, let context):
            return EncodingError.invalidValue(
                type(of: value), .init(codingPath: context.codingPath, debugDescription: words))
        default: return cause
        }
    }

    /// Hides a possible key in SQL: `PRAGMA key = …` and `ATTACH … KEY …` keep only one word.
    static func redacted(_ sql: String) -> String {
        let words = sql.lowercased().split { !$0.isLetter && $0 != "_" }
        guard words.contains(where: { $0.hasSuffix("key") }) else { return sql }
        if words.contains("pragma") { return "PRAGMA …" }
        if words.contains("attach") { return "ATTACH …" }
        return sql
    }

    /// The kind of failure; compare with `==`.
    public var code: Code { storage.code }

    /// The failure, in one sentence without a full stop.
    public var message: String { storage.message }

    /// The next step, if Coffer knows one.
    public var hint: String? { storage.hint }

    /// The SQL text that failed, with `?` where values were bound.
    public var sql: String? { storage.sql }

    /// The offset of the failure in the SQL text, in UTF-8 bytes. It is the position that the
    /// engine reports (SQLCipher 4), and otherwise, in a script, the beginning of the statement.
    /// The corresponding C function is `sqlite3_error_offset`.
    public var sqlOffset: Int? { storage.sqlOffset }

    /// Numbers, from 1, of the pages that failed authentication, as far as known.
    public var pages: [Int] { storage.pages }

    /// The table that the failure concerns.
    public var table: String? { storage.table }

    /// The column that the failure concerns.
    public var column: String? { storage.column }

    /// SQLite's extended result code, where the engine reported the failure.
    /// See <https://www.sqlite.org/rescode.html>.
    public var resultCode: Int32? { storage.resultCode }

    /// The slot of the keyring that is for the credential already.
    package var slotID: UInt16? { storage.slotID }

    /// The error that led to this one. An error of Swift's own coding comes without the value, but
    /// its path may name a dictionary's key. An error that a type's own coding throws is unchanged.
    public var cause: (any Error)? { storage.cause }
}

extension StoreError.Code {
    /// No key opens this file, or this is not the key: ask again.
    public static let wrongKey = Self("wrongKey")
    /// The file is a plaintext SQLite database: encrypt it first.
    public static let notEncrypted = Self("notEncrypted")
    /// The path holds something that cannot be a store: a folder, a text, a handful of bytes.
    public static let notAStore = Self("notAStore")
    /// The file is empty, or shorter than its first page states: restore it.
    public static let truncated = Self("truncated")
    /// Pages fail authentication or do not fit together: nothing read from them was returned.
    public static let damaged = Self("damaged")
    /// The file's format needs SQLCipher 4.
    public static let needsNewerEngine = Self("needsNewerEngine")
    /// A newer version of the program has changed the schema: update the program.
    public static let needsNewerProgram = Self("needsNewerProgram")
    /// The file is in the format of SQLCipher 1 or 2: upgrade it with `Store.upgrade`.
    public static let needsUpgrade = Self("needsUpgrade")
    /// The path of a new file is already taken: choose another path.
    public static let alreadyExists = Self("alreadyExists")
    /// The linked library is not SQLCipher, or not the one Coffer was compiled for.
    public static let engine = Self("engine")
    /// Another connection or process holds the lock, or a wait took longer than it may: try again.
    public static let busy = Self("busy")
    /// A UNIQUE, NOT NULL, CHECK or FOREIGN KEY constraint refused the change.
    public static let constraint = Self("constraint")
    /// The row is not as an update expected it: read it again, and decide again.
    public static let conflict = Self("conflict")
    /// A stored value and the Swift type, or a table and the record, do not fit.
    public static let mismatch = Self("mismatch")
    /// The file, folder, table or row does not exist.
    public static let notFound = Self("notFound")
    /// The disk is full, or the store's page limit is reached: the change was rolled back.
    public static let full = Self("full")
    /// The process or the system has reached its limit of open files: close stores, or raise the
    /// limit (`ulimit -n`).
    public static let tooManyFiles = Self("tooManyFiles")
    /// Reading or writing the file failed.
    public static let io = Self("io")
    /// The store or the file cannot be written.
    public static let readOnly = Self("readOnly")
    /// The work was interrupted; nothing was changed. The asynchronous verbs throw Swift's
    /// `CancellationError` instead if their task was cancelled.
    public static let cancelled = Self("cancelled")
    /// The store, connection or statement is already closed.
    public static let closed = Self("closed")
    /// The call makes no sense as written: a bug of the caller, described in the message.
    public static let misuse = Self("misuse")
    /// SQLite rolled back the whole transaction, for the reason in `cause`.
    public static let rolledBack = Self("rolledBack")
    /// The call would deadlock: bodies of several stores would wait for each other and for this
    /// call. Nest stores in the same order everywhere.
    public static let wouldDeadlock = Self("wouldDeadlock")
    /// The store was suspended; `resume()` admits work again.
    public static let suspended = Self("suspended")
    /// A read kept its snapshot for longer than `Configuration.maximumSnapshotAge` while the WAL
    /// was above its bound, or until the WAL had `Configuration.maximumSnapshotWALByteCount`. Read
    /// again.
    public static let snapshotExpired = Self("snapshotExpired")
    /// This process already has a `Store` on the file.
    public static let alreadyOpen = Self("alreadyOpen")
    /// The change log no longer reaches back to the token: read everything again.
    public static let tokenExpired = Self("tokenExpired")
    /// The SQL text cannot be compiled or run.
    public static let sql = Self("sql")
    /// A value or a result is larger than the engine's limit.
    public static let tooBig = Self("tooBig")
    /// This engine does not have the function, or Coffer does not open this kind of file. The
    /// message names the version that has the function, or the kind of file.
    public static let unsupported = Self("unsupported")
    /// The store's keyring is missing: restore it, or rebuild it from a root backup.
    public static let keyringMissing = Self("keyringMissing")
    /// The keyring belongs to another store, or to a root key that was replaced.
    public static let keyringMismatch = Self("keyringMismatch")
    /// The keyring's bytes are not as its owners wrote them: restore it.
    public static let keyringDamaged = Self("keyringDamaged")
    /// The file is older than its keyring says, as a restored copy is: open it with
    /// `acceptsOlderFile` if it was put back on purpose.
    public static let olderFile = Self("olderFile")
    /// The slot is the only one: nothing would open the store without it.
    public static let lastSlot = Self("lastSlot")
    /// The derivation of a passphrase would take more memory or time than is allowed.
    public static let tooCostly = Self("tooCostly")
}

extension StoreError: CustomStringConvertible {
    /// Code, message, location and hint on one line; never a bound value.
    public var description: String {
        var text = "\(code): \(message)"
        if let table { text += " [table \(table)\(column.map { ", column \($0)" } ?? "")]" }
        if !pages.isEmpty { text += " [pages \(pages.map(String.init).joined(separator: ", "))]" }
        if let sql { text += " [SQL: \(sql)]" }
        if let resultCode { text += " [SQLite \(resultCode)]" }
        if let hint { text += ". \(hint)" }
        return text
    }
}
