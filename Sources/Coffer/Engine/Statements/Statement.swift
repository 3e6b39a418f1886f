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
    /// Number of placeholders, such as `?` and `:a`.
    public let parameterCount: Int
    /// Whether the statement leaves the database as it is.
    /// The corresponding C function is `sqlite3_stmt_readonly`.
    public let isReadOnly: Bool

    private(set) var raw: OpaquePointer?
    /// Keeps the pointer of the connection valid.
    let handle: Handle
    /// Begins and ends the transaction around a statement that runs outside one; `nil` after
    /// `finalize`. A weak reference would cost as much as reading three columns.
    ///
    /// Proof that it never dangles: only `Connection.adopt` sets it, and adds the statement to the
    /// connection's list. A connection finalizes its whole list before it goes, and `finalize`
    /// sets this to `nil`.
    private(set) unowned(unsafe) var connection: Connection?
    let link = StatementLink()
    /// Set while a caller holds a cached statement: a second caller gets a separate one.
    var isTaken = false
    /// Whether a cursor owns the statement, which is finalized when the cursor is closed.
    var isOfCursor = false
    /// How many times `step()` or `run()` has begun it since it was compiled.
    public private(set) var useCount = 0
    /// Whether it is positioned on a row, and so keeps a transaction open.
    public var isInUse: Bool { isRunning }
    /// Whether the statement controls transactions, files or settings, so that Coffer must not
    /// wrap it in a transaction.
    package let isControl: Bool
    /// The verb of transaction or savepoint SQL; `nil` for other statements.
    package let transactionVerb: String?
    /// Whether the statement creates, alters or drops a part of the schema.
    let changesSchema: Bool
    /// Set between the first step and the reset.
    private(set) var isRunning = false {
        didSet { if isRunning != oldValue { handle.runningCount += isRunning ? 1 : -1 } }
    }
    /// The id of the implicit transaction that counts this statement; 0 if none does.
    var implicitID = 0
    /// How many columns the current row has; 0 if there is no row.
    private var rowColumnCount: Int32 = 0
    /// Set when the connection ended the run along with its transaction, as after an interrupt;
    /// the next step reports it.
    var wasAbandoned = false
    private var names: ColumnNames?
    /// What the result's columns tell about their dates; `nil` if all count from 1970.
    private var knownOrigins: [DateOrigin]?
    /// `Authorizer.actionCount` when that was found; -1 before.
    private var originsCompilation = -1
    /// The tables that it touches, once an observer has asked for them.
    var knownFootprint: StatementFootprint?
    /// Whether it changes at most one row, and fails only before it does.
    var changesOneRow = false
    /// How the verb that runs it reports the rows that it changes; `nil` if it does not.
    var reportedChange: ReportedChange.Kind?
    /// How many closures read bytes of the current row, which must stay until they return.
    private var lendingDepth = 0
    /// The pointer to finalize when the last of these closures returns.
    private var lentRaw: OpaquePointer?

    convenience init(handle: Handle, sql: String, persistent: Bool) throws(StoreError) {
        handle.authorizer.begin()
        let raw = try SQLCompiler.compile(handle, sql: sql, persistent: persistent)
        self.init(handle: handle, sql: sql, compiled: raw)
    }

    /// Takes over a statement that was just compiled. Must come before the next compilation:
    /// `isControl`, `transactionVerb` and `changesSchema` are the authorizer's findings.
    init(handle: Handle, sql: String, compiled: OpaquePointer) {
        self.handle = handle
        self.sql = sql
        raw = compiled
        isControl = handle.authorizer.sawControl || Self.isVacuum(sql, compiled)
        transactionVerb = handle.authorizer.transactionVerb
        changesSchema = handle.authorizer.sawSchemaChange
        handle.authorizer.begin()
        parameterCount = Int(sqlite3_bind_parameter_count(raw))
        isReadOnly = sqlite3_stmt_readonly(raw) != 0
        link.statement = self
    }

    /// Whether it is a VACUUM. A script's statement has no `sql`: SQLite's copy of it is read.
    private static func isVacuum(_ sql: String, _ compiled: OpaquePointer) -> Bool {
        guard sql.isEmpty, let text = sqlite3_sql(compiled) else { return sql.isVacuum }
        // Enough for a comment before the verb, without copying the megabytes of an INSERT.
        let beginning = UnsafeBufferPointer(start: text, count: strnlen(text, 4096))
        return String(decoding: UnsafeRawBufferPointer(beginning), as: UTF8.self).isVacuum
    }

    deinit {
        // A finalized statement may be released on any thread.
        if raw != nil { link.statement = nil }
        sqlite3_finalize(raw)
        // A cursor that is released on a row ends its transaction as well.
        guard isRunning else { return }
        handle.runningCount -= 1
        guard let connection, implicitID != 0 else { return }
        // A write that is released never returned to its caller: it must be undone.
        if isReadOnly {
            try? connection.cursorEnded(in: implicitID, isReadOnly: true)
        } else {
            connection.cursorFailed(in: implicitID, isReadOnly: false)
        }
    }

    /// Ends the statement for good, so that every later use throws `.closed`; safe to call twice.
    ///
    /// The engine's object lives on while a closure reads bytes of the row or a function of the
    /// program runs. The corresponding C function is `sqlite3_finalize`.
    func finalize() {
        if lendingDepth > 0, raw != nil {
            lentRaw = raw
        } else if handle.callback.isRunning, let raw {
            // It may be the statement whose step called this code.
            handle.finalizeLater(raw)
        } else {
            sqlite3_finalize(raw)
        }
        raw = nil
        isRunning = false
        rowColumnCount = 0
        connection = nil
        link.statement = nil
    }

    func belong(to connection: Connection) {
        self.connection = connection
    }

    /// Keeps the current row in memory while a closure looks at its bytes, until `endLending`.
    @inline(__always)
    func beginLending() {
        lendingDepth &+= 1
    }

    @usableFromInline func endLending() {
        lendingDepth &-= 1
        if lentRaw != nil { finalizeLent() }
    }

    @inline(never)
    private func finalizeLent() {
        guard lendingDepth == 0 else { return }
        sqlite3_finalize(lentRaw)
        lentRaw = nil
    }

    /// Checks that the statement may be stepped, bound or reset now.
    ///
    /// - Throws: `.misuse` while a closure reads bytes of the current row, or in code that a
    ///   statement has called.
    func requireUnlent() throws(StoreError) {
        guard !handle.callback.isRunning else { throw Connection.inCallback }
        guard lendingDepth == 0 else {
            throw StoreError(
                .misuse, "a closure still uses the bytes of the current row",
                hint: "Step, bind or reset after the closure returns.", sql: sql)
        }
    }

    /// The engine's pointer to the statement. Throws `.closed` once the statement is finalized, as
    /// when the connection is closed.
    @inline(__always)
    func pointer() throws(StoreError) -> OpaquePointer {
        guard let raw else { throw closed }
        return raw
    }

    private var closed: StoreError {
        @inline(never)
        get {
            StoreError(
                .closed, "the statement has ended",
                hint: "Prepare it again: a statement ends with the body that prepared it, and when "
                    + "its connection is closed or rekeyed.", sql: sql)
        }
    }

    // MARK: Running

    /// Goes to the next row: `true` on a row, `false` at the end.
    ///
    /// The result is `true` only if the MACs of all pages that were read fit. Outside a transaction
    /// the statement runs in its own, which the end of the rows or `reset` commits.
    ///
    /// - Throws: `StoreError` `.damaged` if a page failed authentication; `.busy`, `.constraint`,
    ///   `.full`, `.io`. The statement is then reset and can be used again. `.cancelled` once if an
    ///   interrupt or a failure has ended the run. `.misuse`, without a reset, while a closure
    ///   reads bytes of the current row; `.closed` after the connection was closed.
    /// - Note: The corresponding C function is `sqlite3_step`.
    public func step() throws -> Bool {
        if !isRunning || lendingDepth > 0 || handle.callback.isRunning { try begin() }
        do throws(StoreError) {
            let isRow = try advance()
            // Probed at the end too: damage may also be why there is no further row.
            if isRow || !isControl, let failure = handle.probeFailure() { throw failure }
            if isRow { return true }
        } catch {
            // An open cursor would carry the failure into the next transaction.
            rewind()
            connection?.statementFailed(self)
            throw error
        }
        if changesSchema { connection?.forgetAttachments() }
        try connection?.statementEnded(self)
        return false
    }

    /// Checks that a step is allowed now. When a run begins, opens a transaction for a statement
    /// outside one.
    ///
    /// - Throws: `.closed`; as `requireUnlent()` and `Connection.statementWillStep(_:)`.
    @inline(never)
    private func begin() throws(StoreError) {
        guard let connection else { throw closed }
        if handle.callback.isRunning { _ = try connection.current() }
        try requireUnlent()
        guard !isRunning else { return }
        try connection.statementWillStep(self)
        useCount += 1
    }

    /// Steps once: `true` on a row, `false` at the end. Resets at the end and on failure.
    ///
    /// Opens no transaction, and does not check the MACs of the pages that it reads.
    ///
    /// - Throws: The error that `failure(_:)` makes of the engine's code; `.closed`; errors of an
    ///   observer at the first step.
    @inline(__always)
    func advance() throws(StoreError) -> Bool {
        let raw = try pointer()
        if !isRunning {
            isRunning = true
            // The first step compiles the text again if the schema has changed.
            names = nil
            // The owner of an adopted handle compiles without the authorizer.
            if handle.isAdopted { originsCompilation = -1 }
            // An error that nobody asked for belongs to an earlier statement.
            if handle.callback.error != nil { handle.callback.error = nil }
            if handle.touchObserver != nil { try tellObserver() }
        }
        let code = changesSchema ? stepChangingSchema(raw) : sqlite3_step(raw)
        if code == SQLITE_ROW {
            if rowColumnCount == 0 { rowColumnCount = sqlite3_data_count(raw) }
            return true
        }
        if code == SQLITE_DONE {
            rewind()
            return false
        }
        throw failure(code)
    }

    @inline(never)
    private func tellObserver() throws(StoreError) {
        guard let connection else { return }
        do throws(StoreError) {
            try handle.tellObserver { $0.willRun(self, on: connection) }
        } catch {
            rewind()
            throw error
        }
    }

    /// The error of a step that failed with this code. Resets the statement.
    ///
    /// Code 1 becomes `.damaged` if the MAC of a page that the transaction has read does not fit.
    @inline(never)
    func failure(_ code: Int32) -> StoreError {
        // Code 1 of a statement that compiled is a failed page or a function's own error. Probe
        // while the statement is still open, because SQLite then forgets the failure.
        let isOfEngine = handle.callback.error == nil
        let error = handle.error(code, sql: sql)
        if !isReadOnly {
            handle.touchObserver?.didFail(
                self, violatesConstraint: isOfEngine && code & 0xff == SQLITE_CONSTRAINT)
            rolledBack()
        }
        let probed = code & 0xff == SQLITE_ERROR ? handle.probeFailure() ?? undone() : nil
        rewind()
        return probed?.with(sql: sql) ?? error
    }

    /// Reads page 1 again after SQLite has rolled back what the statement did before it failed. If
    /// that fails, ends all running statements, and tries once more.
    private func rolledBack() {
        guard let connection, !handle.isClosed, implicitID == 0 else { return }
        if isControl, !handle.isInTransaction { handle.transactionMayHaveRolledBack() }
        if (try? handle.rereadFirstPages()) != nil { return }
        // Another statement that writes and has a current row forbids it.
        connection.abandonRunningStatements()
        wasAbandoned = false
        try? connection.rereadFirstPages(handle)
    }

    /// `.damaged` if code 1 has ended the whole transaction; otherwise `nil`. SQLite ends it only
    /// if it cannot roll back just the statement, because a page fails again.
    private func undone() -> StoreError? {
        guard !isControl, !handle.isClosed, !handle.isInTransaction else { return nil }
        return handle.namingPages(Probe.damaged(sql: nil))
    }

    /// Rewinds the statement and keeps its arguments. Commits its own transaction if it has one.
    ///
    /// - Throws: `StoreError` `.busy`, `.full`, `.io`, `.damaged` if changes that the statement
    ///   made outside a transaction could not be committed; `.misuse`, without a rewind, while a
    ///   closure reads bytes of the current row.
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

    /// Checks that the statement changes nothing.
    ///
    /// - Throws: `.readOnly` if it may change anything.
    func requireReadOnly() throws(StoreError) {
        guard isReadOnly else {
            throw StoreError(
                .readOnly, "a read cannot change anything", hint: "Use store.write { }.", sql: sql)
        }
    }

    func rewind() {
        // A closure reads bytes of the row: they stay until it returns.
        guard lendingDepth == 0 else { return }
        sqlite3_reset(raw)
        isRunning = false
        rowColumnCount = 0
        // The next run may find another schema.
        names = nil
    }

    /// Makes all arguments NULL, which frees their memory. Does nothing once finalized.
    func forgetArguments() {
        // SQLite would follow a null pointer: the connection may have been closed already.
        if let raw { sqlite3_clear_bindings(raw) }
    }

    /// Steps to the end, ignoring rows. Throws as `advance()`.
    func runToEnd() throws(StoreError) {
        while try advance() {}
    }

    /// How many rows the last INSERT, UPDATE or DELETE of the connection changed.
    var changeCount: Int64 { coffer_changes(handle.db) }

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

    /// What the result's columns tell about their dates; `nil` if all count from 1970.
    ///
    /// SQLite asks the authorizer whenever it compiles the text again, so what was found is valid
    /// until the next compilation.
    ///
    /// - Throws: Errors of reading the schema.
    @inline(__always)
    func origins() throws(StoreError) -> [DateOrigin]? {
        if originsCompilation == handle.authorizer.actionCount { return knownOrigins }
        return try findOrigins()
    }

    @inline(never)
    private func findOrigins() throws(StoreError) -> [DateOrigin]? {
        let found = try dateOrigins(count: Int(sqlite3_column_count(try pointer())))
        knownOrigins = found.contains { $0 != .since1970 } ? found : nil
        originsCompilation = handle.authorizer.actionCount
        return knownOrigins
    }

    /// The columns, with what they tell about their dates. If the schema cannot be read, they tell
    /// nothing: the end of the transaction reports why.
    func datedColumns() -> ColumnNames {
        let known = columns
        guard known.dates == nil else { return known }
        let dates: [DateOrigin]?
        do throws(StoreError) {
            dates = try origins()
        } catch {
            dates = Array(repeating: .unknown, count: known.names.count)
        }
        guard let dates else { return known }
        let made = ColumnNames(known.names, isExact: known.isExact, dates: dates)
        names = made
        return made
    }

    /// The date of a number in a column.
    ///
    /// - Throws: `.mismatch` if the number does not tell from when it counts; errors of reading the
    ///   schema.
    func date(_ seconds: Double, at index: Int) throws(StoreError) -> Date {
        guard let origins = try origins() else { return Date(timeIntervalSince1970: seconds) }
        if origins[index] == .since2001 { return Date(timeIntervalSinceReferenceDate: seconds) }
        return try origins[index].date(seconds, column: columns.names[index])
    }

    /// The current row's value in a column, counted from 0.
    ///
    /// - Throws: `StoreError` `.misuse` if there is no row, `.notFound` if there is no such column,
    ///   `.mismatch` for a text that is not UTF-8, `.closed` after the connection was closed.
    /// - Note: The corresponding C functions are `sqlite3_column_*`.
    public func value(at index: Int) throws -> Value {
        try column(index)
    }

    func column(_ index: Int) throws(StoreError) -> Value {
        try Self.value(of: try pointer(toColumn: index), at: Int32(index))
    }

    /// The engine's pointer to the statement, if there is a current row and it has the column.
    ///
    /// - Throws: `.misuse` if there is no row, `.notFound` if there is no such column, `.closed`
    ///   once finalized.
    @inline(__always)
    func pointer(toColumn index: Int) throws(StoreError) -> OpaquePointer {
        // The count is 0 once the statement is finalized. A negative index becomes a huge one.
        guard UInt(bitPattern: index) < UInt(bitPattern: Int(rowColumnCount)), let raw else {
            throw noColumn(index)
        }
        return raw
    }

    /// SQLite's value (`sqlite3_value`) in a column of the current row. Throws as
    /// `pointer(toColumn:)`.
    @inline(__always)
    func value(ofColumn index: Int) throws(StoreError) -> OpaquePointer? {
        sqlite3_column_value(try pointer(toColumn: index), Int32(truncatingIfNeeded: index))
    }

    @inline(never)
    private func noColumn(_ index: Int) -> StoreError {
        if raw == nil { return closed }
        guard rowColumnCount > 0 else {
            return StoreError(
                .misuse, "the statement is not at a row",
                hint: "Read values only after step() has returned true.", sql: sql)
        }
        return StoreError(.notFound, "the row has no column \(index)", sql: sql)
    }

    /// The current row's value in a column, counted from 0, as a Swift type.
    ///
    /// - Throws: `StoreError` `.mismatch` if the stored value does not fit the type; otherwise as
    ///   `value(at:)`.
    public func value<T: ValueConvertible>(
        at index: Int, as type: T.Type
    ) throws -> T {
        try column(index, as: type)
    }

    func column<T: ValueConvertible>(_ index: Int, as type: T.Type) throws(StoreError) -> T {
        let value = try column(index)
        guard T.self == Date.self || T.self == Date?.self, let seconds = value.seconds else {
            return try T(value)
        }
        let date = try date(seconds, at: index)
        // Equal types have the same bits.
        return T.self == Date.self
            ? unsafeBitCast(date, to: type) : unsafeBitCast(Optional(date), to: type)
    }
}

/// An address for texts without bytes; one NUL that is never read.
nonisolated(unsafe) let emptyText: UnsafePointer<CChar> = {
    // Never freed: one byte per process, and never written again.
    let byte = UnsafeMutablePointer<CChar>.allocate(capacity: 1)
    byte.initialize(to: 0)
    return UnsafePointer(byte)
}()

extension Statement: CustomStringConvertible {
    /// The SQL text and how often it was used, without bound values or a key in the text.
    public var description: String {
        let times = useCount == 1 ? "time" : "times"
        return "Statement(used \(useCount) \(times): \(StoreError.redacted(sql)))"
    }
}
