/// The rows of one statement, one after the other.
///
/// ```swift
/// let cursor = try connection.cursor("SELECT title FROM note WHERE pinned = \(true)")
/// while let row = try cursor.next() { print(try row.get("title", as: String.self)) }
/// ```
///
/// A row is handed out only if it is authentic. Outside a transaction the cursor reads in its own
/// transaction, from its first row until it reaches its end, is closed or is released.
/// The corresponding C type is `sqlite3_stmt`.
public final class Cursor {
    let statement: Statement
    private var phase = Phase.open

    private enum Phase {
        case open
        case atEnd
        case closed(cause: (any Error)?)
    }

    init(_ statement: Statement) {
        self.statement = statement
        statement.isOfCursor = true
    }

    /// The SQL text.
    public var sql: String { statement.sql }

    /// The names of the columns, in order; known before the first row.
    public var columnNames: [String] { statement.columnNames }

    /// Position of a column by name, counted from 0, as `Statement.columnIndex(of:)`; `nil` if
    /// there is no such column.
    public func columnIndex(of name: String) -> Int? { statement.columnIndex(of: name) }

    /// Whether it has a current row, which `value(at:)` and the like read.
    public var isOnRow: Bool { statement.isRunning }

    /// The next row, with a copy of its values; `nil` at the end and on every later call.
    ///
    /// - Throws: As `step()`.
    /// - Complexity: O(*bytes of the row*).
    public func next() throws -> Row? {
        try step() ? try statement.row() : nil
    }

    /// Advances to the next row without reading it: `false` at the end and on every later call.
    ///
    /// - Throws: `StoreError` `.damaged` if a page failed authentication, `.busy`, `.sql`, `.io`;
    ///   the cursor is then closed, so that an error cannot be mistaken for the end. `.closed` once
    ///   it is closed. `.misuse` while a closure reads bytes of the current row, which stays.
    /// - Note: The corresponding C function is `sqlite3_step`.
    public func step() throws -> Bool {
        switch phase {
        case .open: break
        case .atEnd: return false
        case .closed(let cause):
            throw StoreError(.closed, "the cursor was closed", sql: sql, cause: cause)
        }
        do {
            if try statement.step() { return true }
        } catch let error as StoreError where error.code == .misuse && statement.isRunning {
            // A closure is reading the row: the cursor has not moved.
            throw error
        } catch {
            phase = .closed(cause: error)
            statement.finalize()
            throw error
        }
        phase = .atEnd
        statement.finalize()
        return false
    }

    /// The current row's value in a column, counted from 0.
    ///
    /// - Throws: As `Statement.value(at:)`; `.closed` once the cursor has ended.
    public func value(at index: Int) throws -> Value { try statement.column(index) }

    /// The current row's value in a column, counted from 0, as a Swift type.
    ///
    /// - Throws: As `Statement.value(at:as:)`; `.closed` once the cursor has ended.
    public func value<T: ValueConvertible>(at index: Int, as type: T.Type) throws -> T {
        try statement.column(index, as: type)
    }

    /// Passes the UTF-8 bytes of a text in the current row to `body`, as
    /// `Statement.withUTF8(at:_:)`. `nil` for NULL.
    ///
    /// - Throws: As `Statement.withUTF8(at:_:)`; `.closed` once the cursor has ended.
    @discardableResult
    public func withUTF8<T>(
        at index: Int, _ body: (UnsafeBufferPointer<UInt8>) throws -> T
    ) throws -> T? {
        try statement.withUTF8(at: index, body)
    }

    /// Passes the bytes of a blob in the current row to `body`, as `Statement.withBytes(at:_:)`.
    /// `nil` for NULL.
    ///
    /// - Throws: As `Statement.withBytes(at:_:)`; `.closed` once the cursor has ended.
    @discardableResult
    public func withBytes<T>(
        at index: Int, _ body: (UnsafeRawBufferPointer) throws -> T
    ) throws -> T? {
        try statement.withBytes(at: index, body)
    }

    /// Ends the cursor, and commits its transaction if it has one; safe to call twice.
    ///
    /// - Throws: `StoreError` `.misuse` while a closure reads bytes of the cursor's row: the cursor
    ///   then stays open. Otherwise as `Statement.reset()`: the cursor is closed even so.
    /// - Note: The corresponding C function is `sqlite3_finalize`.
    public func close() throws {
        if case .closed = phase { return }
        try statement.requireUnlent()
        phase = .closed(cause: nil)
        defer { statement.finalize() }
        try statement.endRun()
    }
}

extension Connection {
    /// Opens a cursor over the rows of one statement, positioned before its first row.
    ///
    /// Each cursor has a separate statement: cursors over the same SQL do not disturb each other.
    ///
    /// - Throws: As `prepare(_:)`, and `.misuse` if an argument is missing.
    /// - Note: The corresponding C function is `sqlite3_prepare_v2`.
    public func cursor(_ sql: SQL) throws -> Cursor {
        let sql = try sql.checked(on: self)
        let statement = try compile(sql.text, persistent: false)
        try statement.bind(sql)
        return Cursor(statement)
    }

    /// Whether a cursor is open, or a prepared statement is positioned on a row.
    public var hasOpenCursors: Bool { !openStatements.isEmpty }

    /// Closes all cursors and resets all prepared statements that are positioned on a row. The next
    /// step of a closed cursor throws `.closed`.
    ///
    /// - Throws: The first error of `Statement.reset()`; the statement is closed or reset even so.
    ///   `.misuse` if a closure reads bytes of a statement's row; that statement stays open.
    public func closeCursors() throws {
        var failure: StoreError?
        for statement in openStatements {
            do throws(StoreError) {
                try statement.requireUnlent()
            } catch {
                failure = failure ?? error
                continue
            }
            do throws(StoreError) {
                try statement.endRun()
            } catch {
                failure = failure ?? error
            }
            if statement.isOfCursor { statement.finalize() }
        }
        if let failure { throw failure }
    }

    /// The statements that the user holds; internal ones end with the call that uses them.
    private var openStatements: [Statement] {
        statements.live.filter { statement in
            !statement.isTaken && (statement.isRunning || statement.isOpenCursor)
        }
    }
}

extension Statement {
    fileprivate var isOpenCursor: Bool { isOfCursor && raw != nil }
}
