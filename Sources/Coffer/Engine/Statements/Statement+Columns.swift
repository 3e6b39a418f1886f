import CSQLCipher

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension Statement {
    /// Restarts the statement, steps to the end and drops rows, if any.
    ///
    /// - Returns: The number of rows that an INSERT, UPDATE or DELETE changed; else 0.
    /// - Throws: As `reset()`, for the run that was in progress, and as `step()`.
    /// - Note: The corresponding C functions are `sqlite3_step` and `sqlite3_changes`.
    @discardableResult
    public func run() throws -> Int {
        _ = try pointer()
        try endRun()
        let before = sqlite3_total_changes(handle.db)
        while try step() {}
        let isChanged = sqlite3_total_changes(handle.db) != before
        return isChanged ? Int(coffer_changes(handle.db)) : 0
    }

    // MARK: Columns

    /// Position of a column by name, counted from 0; `nil` if there is no such column. Known before
    /// the first row.
    ///
    /// An exact match comes before one in another ASCII case; the first of several counts.
    ///
    /// - Complexity: O(*columns*).
    /// - Note: The corresponding C function is `sqlite3_column_name`.
    public func columnIndex(of name: String) -> Int? { columns.index(of: name) }

    /// The current row's value in a column by name.
    ///
    /// - Throws: `StoreError` `.notFound` if there is no such column; otherwise as `value(at:)`.
    public func value(named name: String) throws -> Value {
        try column(try position(of: name))
    }

    /// The current row's value in a column by name, as a Swift type.
    ///
    /// - Throws: `StoreError` `.notFound` if there is no such column; otherwise as `value(at:as:)`.
    public func value<T: ValueConvertible>(named name: String, as type: T.Type) throws -> T {
        try column(try position(of: name), as: type)
    }

    private func position(of name: String) throws(StoreError) -> Int {
        guard let index = columnIndex(of: name) else {
            throw StoreError(
                .notFound, "the result has no column named \(name)", sql: sql, column: name)
        }
        return index
    }

    /// How the current row stores its value in a column, counted from 0.
    ///
    /// - Throws: `StoreError` `.misuse` if there is no row, `.notFound` if there is no such
    ///   column.
    /// - Note: The corresponding C function is `sqlite3_column_type`.
    public func storageClass(at index: Int) throws -> StorageClass {
        storage(of: try pointer(toColumn: index), index)
    }

    /// Whether the current row has NULL in a column, counted from 0.
    ///
    /// - Throws: `StoreError` `.misuse` if there is no row, `.notFound` if there is no such
    ///   column.
    public func isNull(at index: Int) throws -> Bool {
        try storageClass(at: index) == .null
    }

    private func storage(of raw: OpaquePointer, _ index: Int) -> StorageClass {
        switch sqlite3_column_type(raw, Int32(index)) {
        case SQLITE_INTEGER: .integer
        case SQLITE_FLOAT: .real
        case SQLITE_TEXT: .text
        case SQLITE_BLOB: .blob
        default: .null
        }
    }

    // MARK: Borrowed bytes

    /// Passes the UTF-8 bytes of a text in the current row to `body`, without copying them.
    ///
    /// The bytes come from pages whose MACs fit, and are valid UTF-8. Inside `body` a step, bind or
    /// reset of the statement throws `.misuse`.
    ///
    /// - Parameters:
    ///   - index: The column's position, counted from 0.
    ///   - body: Gets the bytes, which are valid until it returns.
    /// - Returns: The result of `body`; `nil`, without calling it, for NULL.
    /// - Throws: Any error of `body`; `StoreError` `.mismatch` for a value that is not text or not
    ///   UTF-8, `.misuse` if there is no row, `.notFound` if there is no such column, `.io` if
    ///   memory runs out.
    /// - Complexity: O(*bytes*).
    /// - Note: The corresponding C function is `sqlite3_column_text`.
    @inlinable @discardableResult
    public func withUTF8<T>(
        at index: Int, _ body: (UnsafeBufferPointer<UInt8>) throws -> T
    ) throws -> T? {
        guard let bytes = try beginLendingUTF8(at: index) else { return nil }
        defer { endLending() }
        return try body(bytes)
    }

    /// Passes the bytes of a blob in the current row to `body`, without copying them.
    ///
    /// The bytes come from pages whose MACs fit. Inside `body` a step, bind or reset of the
    /// statement throws `.misuse`.
    ///
    /// - Parameters:
    ///   - index: The column's position, counted from 0.
    ///   - body: Gets the bytes, valid until it returns; an empty buffer for an empty blob.
    /// - Returns: The result of `body`; `nil`, without calling it, for NULL.
    /// - Throws: Any error of `body`; `StoreError` `.mismatch` for a value that is not a blob,
    ///   `.misuse` if there is no row, `.notFound` if there is no such column, `.io` if memory runs
    ///   out.
    /// - Complexity: O(1).
    /// - Note: The corresponding C function is `sqlite3_column_blob`.
    @inlinable @discardableResult
    public func withBytes<T>(
        at index: Int, _ body: (UnsafeRawBufferPointer) throws -> T
    ) throws -> T? {
        guard let bytes = try beginLendingBytes(at: index) else { return nil }
        defer { endLending() }
        return try body(bytes)
    }

    // The row was probed when it was stepped to, and reading its columns reads no page.

    /// The bytes of a text in the current row, which stay valid until `endLending()`.
    ///
    /// - Returns: `nil` for NULL: then `endLending()` must not be called.
    /// - Throws: `.mismatch` for a value that is not text or not UTF-8; as `value(at:)`.
    @usableFromInline
    func beginLendingUTF8(at index: Int) throws -> UnsafeBufferPointer<UInt8>? {
        let value = try self.value(ofColumn: index)
        let type = sqlite3_value_type(value)
        guard type == SQLITE_TEXT else {
            if type == SQLITE_NULL { return nil }
            throw mismatch(at: index, .text)
        }
        let bytes = try Self.utf8(of: value)
        guard bytes.isUTF8 else { throw notUTF8(at: index) }
        beginLending()
        return bytes
    }

    /// The bytes of a blob in the current row, which stay valid until `endLending()`.
    ///
    /// - Returns: `nil` for NULL: then `endLending()` must not be called.
    /// - Throws: `.mismatch` for a value that is not a blob; as `value(at:)`.
    @usableFromInline
    func beginLendingBytes(at index: Int) throws -> UnsafeRawBufferPointer? {
        let value = try self.value(ofColumn: index)
        let type = sqlite3_value_type(value)
        guard type == SQLITE_BLOB else {
            if type == SQLITE_NULL { return nil }
            throw mismatch(at: index, .blob)
        }
        let bytes = try Self.bytes(of: value)
        beginLending()
        return bytes
    }

    @inline(never)
    private func mismatch(at index: Int, _ expected: StorageClass) -> StoreError {
        let found = raw.map { "\(storage(of: $0, index))" } ?? ""
        return StoreError(
            .mismatch, "expected \(expected), found \(found)", sql: sql,
            column: columns.names[index])
    }

    @inline(never)
    func notUTF8(at index: Int) -> StoreError {
        StoreError(
            .mismatch, "a text in the file is not valid UTF-8",
            hint: "Its bytes are there: read CAST(column AS BLOB), or hex(column).", sql: sql,
            column: columns.names[index])
    }
}

// MARK: The engine's values

extension Statement {
    /// A value of the current row. The index counts from 0 and must be in range.
    ///
    /// - Throws: `.mismatch` for a text that is not UTF-8, `.io` if memory runs out.
    static func value(of raw: OpaquePointer, at index: Int32) throws(StoreError) -> Value {
        try value(of: sqlite3_column_value(raw, index))
    }

    @inline(__always)
    static func value(of value: OpaquePointer?) throws(StoreError) -> Value {
        switch sqlite3_value_type(value) {
        case SQLITE_INTEGER: return .integer(sqlite3_value_int64(value))
        case SQLITE_FLOAT: return .real(sqlite3_value_double(value))
        case SQLITE_TEXT: return .text(try text(of: value))
        case SQLITE_BLOB: return .blob(try blob(of: value))
        default: return .null
        }
    }

    /// The bytes of a blob in the current row. The index counts from 0 and must be in range.
    ///
    /// - Throws: `.mismatch` unless the value is a blob; `.io` if memory runs out.
    static func bytes(of raw: OpaquePointer, at index: Int32) throws(StoreError) -> [UInt8] {
        let value = sqlite3_column_value(raw, index)
        guard sqlite3_value_type(value) == SQLITE_BLOB else {
            throw .mismatch(try Self.value(of: value), [UInt8].self)
        }
        return [UInt8](try bytes(of: value))
    }

    /// The text of SQLite's value, read by its length, so that a NUL inside does not end it.
    ///
    /// - Throws: `.mismatch` if it is not UTF-8, `.io` if memory runs out.
    @inline(__always)
    static func text(of value: OpaquePointer?) throws(StoreError) -> String {
        guard let text = String(exactly: try utf8(of: value)) else {
            throw StoreError(.mismatch, "a text in the file is not valid UTF-8")
        }
        return text
    }

    /// A copy of the bytes of SQLite's value. Throws `.io` if memory runs out.
    @inline(__always)
    static func blob(of value: OpaquePointer?) throws(StoreError) -> Data {
        let bytes = try Self.bytes(of: value)
        return bytes.baseAddress.map { Data(bytes: $0, count: bytes.count) } ?? Data()
    }

    // Fetching the value once costs half as much as asking the statement for type, bytes and count.
    // A statement belongs to one thread, where protected and unprotected values are the same:
    // <https://www.sqlite.org/c3ref/value.html>

    @inline(__always)
    static func utf8(of value: OpaquePointer?) throws(StoreError) -> UnsafeBufferPointer<UInt8> {
        guard let start = sqlite3_value_text(value) else { throw noMemory }
        return UnsafeBufferPointer(start: start, count: Int(sqlite3_value_bytes(value)))
    }

    @inline(__always)
    static func bytes(of value: OpaquePointer?) throws(StoreError) -> UnsafeRawBufferPointer {
        let start = sqlite3_value_blob(value)
        let count = Int(sqlite3_value_bytes(value))
        guard start != nil || count == 0 else { throw noMemory }
        return UnsafeRawBufferPointer(start: start, count: count)
    }

    private static let noMemory = StoreError(.io, "the engine is out of memory")
}
