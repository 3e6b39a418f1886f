import CSQLCipher

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// One compiled SQL statement.
///
/// ```swift
/// let statement = try connection.prepare("SELECT title FROM note WHERE pinned = ?")
/// try statement.bind([true])
/// while try statement.step() { titles.append(try statement.value(at: 0, as: String.self)) }
/// ```
///
/// A failed `bind` or `step` leaves the statement usable. Like its connection it belongs to one
/// thread at a time. The corresponding C type is `sqlite3_stmt`.
public final class Statement {
    /// The SQL text.
    public let sql: String
    /// Number of `?` placeholders.
    public let parameterCount: Int
    /// Whether the statement leaves the database as it is.
    /// The corresponding C function is `sqlite3_stmt_readonly`.
    public let isReadOnly: Bool

    private(set) var raw: OpaquePointer?
    /// Keeps the pointer of the connection valid.
    let handle: Handle
    /// Begins and ends the transaction around a statement that runs outside one; `nil` for
    /// Coffer's own statements, which always run inside.
    weak var connection: Connection?
    /// Set while a caller holds a cached statement: a second caller gets one of its own.
    var isTaken = false
    /// Whether a cursor owns the statement: it then ends for good when the cursor is closed.
    var isOfCursor = false
    /// How many times it was begun with `step()` or `run()` since it was compiled.
    public private(set) var useCount = 0
    /// Whether it stands at a row, and so keeps a transaction open.
    public var isInUse: Bool { isRunning }
    /// Whether the statement controls transactions, files or settings, so that it cannot run
    /// inside a transaction of Coffer's making.
    package let isControl: Bool
    /// The verb of transaction or savepoint SQL; `nil` for other statements.
    package let transactionVerb: String?
    /// Whether the statement creates, alters or drops something.
    let changesSchema: Bool
    /// Set between the first step and the reset.
    private(set) var isRunning = false
    /// Set when the run ended underneath, by an interrupt; the next step says so.
    var wasAbandoned = false
    private var names: ColumnNames?
    /// How many closures look at bytes of the current row: until they return it has to stay.
    private var lendingDepth = 0
    /// What is to be finalized when the last of them returns.
    private var lentRaw: OpaquePointer?

    convenience init(handle: Handle, sql: String, persistent: Bool) throws(StoreError) {
        handle.authorizer.begin()
        let raw = try SQLCompiler.compile(handle, sql: sql, persistent: persistent)
        self.init(handle: handle, sql: sql, compiled: raw)
    }

    /// Takes over what was compiled right before: the authorizer still knows what it saw.
    init(handle: Handle, sql: String, compiled: OpaquePointer) {
        self.handle = handle
        self.sql = sql
        raw = compiled
        isControl = handle.authorizer.sawControl || sql.isVacuum
        transactionVerb = handle.authorizer.transactionVerb
        changesSchema = handle.authorizer.sawSchemaChange
        handle.authorizer.begin()
        parameterCount = Int(sqlite3_bind_parameter_count(raw))
        isReadOnly = sqlite3_stmt_readonly(raw) != 0
    }

    deinit {
        sqlite3_finalize(raw)
        // A cursor that is let go at a row ends its own transaction as well.
        if isRunning { try? connection?.statementEnded(isReadOnly: isReadOnly) }
    }

    /// Ends the statement for good; safe to call twice.
    /// The corresponding C function is `sqlite3_finalize`.
    func finalize() {
        if lendingDepth > 0, raw != nil { lentRaw = raw } else { sqlite3_finalize(raw) }
        raw = nil
        isRunning = false
    }

    /// Keeps the current row in memory while `body` looks at its bytes.
    func lend<T>(_ body: () throws -> T) rethrows -> T {
        lendingDepth += 1
        defer {
            lendingDepth -= 1
            if lendingDepth == 0 {
                sqlite3_finalize(lentRaw)
                lentRaw = nil
            }
        }
        return try body()
    }

    /// - Throws: `.misuse` while a closure looks at bytes of the current row.
    private func requireUnlent() throws(StoreError) {
        guard lendingDepth == 0 else {
            throw StoreError(
                .misuse, "a closure still looks at bytes of the current row",
                hint: "Step, bind and reset after it has returned.", sql: sql)
        }
    }

    /// The pointer, or `.closed` once the connection is closed.
    func pointer() throws(StoreError) -> OpaquePointer {
        guard let raw else {
            throw StoreError(
                .closed, "the statement's connection was closed or rekeyed", sql: sql)
        }
        return raw
    }

    // MARK: Binding

    /// Binds all arguments, in order.
    ///
    /// - Throws: `StoreError` `.misuse` if their number is not `parameterCount`, `.mismatch` for
    ///   NaN, `.tooBig` for a value above the engine's limit. The statement stays usable.
    /// - Note: The corresponding C functions are `sqlite3_bind_*`.
    public func bind(_ arguments: [Value]) throws {
        try bindArguments(arguments)
    }

    func bindArguments(_ arguments: [Value]) throws(StoreError) {
        let raw = try pointer()
        try endRun()
        guard arguments.count == parameterCount else {
            throw StoreError(
                .misuse, "\(parameterCount) arguments expected, \(arguments.count) given", sql: sql)
        }
        for (index, argument) in arguments.enumerated() {
            try bindArgument(argument, to: raw, at: Int32(index + 1))
        }
    }

    /// Binds one argument of a statement that does not run, positions counted from 1.
    @inline(__always)
    func bindArgument(
        _ argument: Value, to raw: OpaquePointer, at index: Int32
    ) throws(StoreError) {
        let code = Self.bind(argument, to: raw, at: index)
        guard code == SQLITE_OK else { throw bindingFailure(code) }
    }

    @inline(never)
    private func bindingFailure(_ code: Int32) -> StoreError {
        sqlite3_clear_bindings(raw)
        return code == Self.notANumber
            ? StoreError(.mismatch, "NaN cannot be stored: SQLite makes it NULL", sql: sql)
            : handle.error(code, sql: sql)
    }

    /// Not a code of SQLite's: NaN, which `sqlite3_bind_double` would turn into NULL.
    private static let notANumber: Int32 = -1

    private static func bind(_ value: Value, to raw: OpaquePointer, at index: Int32) -> Int32 {
        switch value {
        case .null: return sqlite3_bind_null(raw, index)
        case .integer(let integer): return sqlite3_bind_int64(raw, index, integer)
        case .real(let real):
            return real.isNaN ? notANumber : sqlite3_bind_double(raw, index, real)
        case .text(var text):
            return text.withUTF8 { bytes in
                bytes.withMemoryRebound(to: CChar.self) {
                    // A null pointer would bind NULL; the empty text has an address of its own.
                    sqlite3_bind_text64(
                        raw, index, $0.baseAddress ?? emptyText, UInt64($0.count),
                        coffer_transient(), UInt8(SQLITE_UTF8))
                }
            }
        case .blob(let data):
            if data.isEmpty { return sqlite3_bind_zeroblob(raw, index, 0) }
            return data.withUnsafeBytes {
                sqlite3_bind_blob64(
                    raw, index, $0.baseAddress, UInt64($0.count), coffer_transient())
            }
        }
    }

    // MARK: Running

    /// Goes to the next row: `true` on a row, `false` at the end.
    ///
    /// Before a row is handed out, the pages it came from are known to be authentic. Outside a
    /// transaction the statement runs in one of its own, which its end or `reset` commits.
    ///
    /// - Throws: `StoreError` `.damaged` if a page failed authentication; `.busy`, `.constraint`,
    ///   `.full`, `.io`. The statement is reset and can be used again.
    /// - Note: The corresponding C function is `sqlite3_step`.
    public func step() throws -> Bool {
        guard let connection else {
            throw StoreError(.closed, "the statement's connection is gone", sql: sql)
        }
        guard !handle.isInCallback else {
            _ = try connection.current()
            return false
        }
        try requireUnlent()
        try connection.statementWillStep(self)
        if !isRunning { useCount += 1 }
        do {
            let isRow = try advance()
            // Also at the end: that there is no row may be wrong as well.
            if isRow || !isControl { try connection.probe() }
            if isRow { return true }
        } catch {
            // An open cursor would carry the failure into the next transaction.
            rewind()
            connection.statementFailed(self)
            throw error
        }
        try connection.statementEnded(self)
        return false
    }

    /// Steps once, without transaction or probe. Resets at the end and on failure.
    @inline(__always)
    func advance() throws(StoreError) -> Bool {
        let raw = try pointer()
        if !isRunning {
            isRunning = true
            // The first step compiles the text again if the schema has changed.
            names = nil
        }
        let code = changesSchema ? stepChangingSchema(raw) : sqlite3_step(raw)
        if code == SQLITE_ROW { return true }
        if code == SQLITE_DONE {
            rewind()
            return false
        }
        throw failure(code)
    }

    /// Captures the error of a failed step, and resets.
    @inline(never)
    func failure(_ code: Int32) -> StoreError {
        // Code 1 of a statement that compiled is a failed page or a function's own error: ask
        // while the statement is still open, since afterwards the failure is forgotten.
        let error = handle.error(code, sql: sql)
        let probed = code & 0xff == SQLITE_ERROR ? handle.probeFailure() : nil
        rewind()
        return probed?.with(sql: sql) ?? error
    }

    /// Rewinds the statement and keeps its arguments. Ends its own transaction if it has one.
    ///
    /// - Throws: `StoreError` `.busy`, `.full`, `.io`, `.damaged` if what the statement changed
    ///   outside a transaction could not be committed.
    /// - Note: The corresponding C function is `sqlite3_reset`.
    public func reset() throws {
        try endRun()
    }

    func endRun() throws(StoreError) {
        wasAbandoned = false
        guard isRunning else { return }
        try requireUnlent()
        rewind()
        try connection?.statementEnded(self)
    }

    /// - Throws: `.readOnly` if the statement changes anything.
    func requireReadOnly() throws(StoreError) {
        guard isReadOnly else {
            throw StoreError(
                .readOnly, "a read cannot change anything", hint: "Use store.write { }.", sql: sql)
        }
    }

    func rewind() {
        // Bytes of the row are lent: they stay until they are given back.
        guard lendingDepth == 0 else { return }
        sqlite3_reset(raw)
        isRunning = false
        // The next run may find another schema.
        names = nil
    }

    /// Lets the arguments go, which may be large.
    func forgetArguments() {
        // The engine would follow a null pointer: the connection may have been closed meanwhile.
        if let raw { sqlite3_clear_bindings(raw) }
    }

    /// Steps to the end, ignoring rows.
    func runToEnd() throws(StoreError) {
        while try advance() {}
    }

    // MARK: Columns

    /// Names of the result's columns, in order; empty for a statement without result.
    public var columnNames: [String] { columns.names }

    /// The names with their positions, made once for each run.
    var columns: ColumnNames {
        if let names { return names }
        let count = sqlite3_column_count(raw)
        let pointers = (0..<count).map { sqlite3_column_name(raw, $0) }
        let made = ColumnNames(
            pointers.map { $0.map { String(cString: $0) } ?? "" },
            isExact: pointers.allSatisfy { $0.map { String(validatingCString: $0) != nil } ?? true }
        )
        names = made
        return made
    }

    /// The current row's value in a column.
    ///
    /// - Throws: `StoreError` `.misuse` if there is no row or no such column, `.mismatch` for a
    ///   text that is not UTF-8.
    /// - Note: The corresponding C functions are `sqlite3_column_*`.
    public func value(at index: Int) throws -> Value {
        try column(index)
    }

    func column(_ index: Int) throws(StoreError) -> Value {
        try Self.value(of: try pointer(toColumn: index), at: Int32(index))
    }

    /// The pointer, if it stands at a row that has the column.
    func pointer(toColumn index: Int) throws(StoreError) -> OpaquePointer {
        let raw = try pointer()
        guard isRunning, index >= 0, index < Int(sqlite3_data_count(raw)) else {
            throw StoreError(.misuse, "no row, or no column \(index)", sql: sql)
        }
        return raw
    }

    /// The current row's value in a column, as a Swift type.
    ///
    /// - Throws: `StoreError` `.mismatch` if the stored value does not fit the type.
    public func value<T: ValueConvertible>(
        at index: Int, as type: T.Type
    ) throws -> T {
        try column(index, as: type)
    }

    func column<T: ValueConvertible>(_ index: Int, as type: T.Type) throws(StoreError) -> T {
        try T(try column(index))
    }

    /// A value of the current row; the index is known to be in range.
    static func value(of raw: OpaquePointer, at index: Int32) throws(StoreError) -> Value {
        switch sqlite3_column_type(raw, index) {
        case SQLITE_INTEGER: return .integer(sqlite3_column_int64(raw, index))
        case SQLITE_FLOAT: return .real(sqlite3_column_double(raw, index))
        case SQLITE_TEXT: return .text(try text(of: raw, at: index))
        case SQLITE_BLOB: return .blob(try blob(of: raw, at: index))
        default: return .null
        }
    }

    /// Text by its length, so that a NUL inside does not end it.
    @inline(__always)
    static func text(of raw: OpaquePointer, at index: Int32) throws(StoreError) -> String {
        guard let start = sqlite3_column_text(raw, index) else {
            throw StoreError(.io, "the engine is out of memory")
        }
        let bytes = UnsafeBufferPointer(start: start, count: Int(sqlite3_column_bytes(raw, index)))
        guard let text = String(exactly: bytes) else {
            throw StoreError(.mismatch, "a text in the file is not UTF-8")
        }
        return text
    }

    /// The bytes of a blob; an empty one has no address.
    @inline(__always)
    static func blob(of raw: OpaquePointer, at index: Int32) throws(StoreError) -> Data {
        guard let start = sqlite3_column_blob(raw, index) else {
            guard sqlite3_column_bytes(raw, index) == 0 else {
                throw StoreError(.io, "the engine is out of memory")
            }
            return Data()
        }
        return Data(bytes: start, count: Int(sqlite3_column_bytes(raw, index)))
    }
}

/// An address for texts without bytes; one NUL that is never read.
nonisolated(unsafe) let emptyText: UnsafePointer<CChar> = {
    // Never freed: one byte per process, and never written again.
    let byte = UnsafeMutablePointer<CChar>.allocate(capacity: 1)
    byte.initialize(to: 0)
    return UnsafePointer(byte)
}()
