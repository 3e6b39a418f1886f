import CSQLCipher

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Arguments and columns of the types that SQLite itself knows, without a detour through `Value`.
///
/// The compiler prefers these to the generic `bind(_:at:)` and `value(at:as:)`, which do the same.
extension Statement {
    // MARK: Arguments

    /// Binds an integer to the placeholder at `index`, counted from 0.
    ///
    /// - Throws: As `bind(_:at:)` of any value.
    /// - Note: The corresponding C function is `sqlite3_bind_int64`.
    public func bind(_ value: Int64, at index: Int) throws {
        let raw = try placeholder(index)
        try bound(sqlite3_bind_int64(raw, Int32(index + 1), value))
    }

    /// Binds an integer to the placeholder at `index`, counted from 0.
    ///
    /// - Throws: As `bind(_:at:)` of any value.
    /// - Note: The corresponding C function is `sqlite3_bind_int64`.
    public func bind(_ value: Int, at index: Int) throws {
        let raw = try placeholder(index)
        try bound(sqlite3_bind_int64(raw, Int32(index + 1), Int64(value)))
    }

    /// Binds 1 or 0 to the placeholder at `index`, counted from 0.
    ///
    /// - Throws: As `bind(_:at:)` of any value.
    /// - Note: The corresponding C function is `sqlite3_bind_int64`.
    public func bind(_ value: Bool, at index: Int) throws {
        try bind(value ? 1 : 0 as Int64, at: index)
    }

    /// Binds a real to the placeholder at `index`, counted from 0; NaN is `.mismatch`.
    ///
    /// - Throws: As `bind(_:at:)` of any value.
    /// - Note: The corresponding C function is `sqlite3_bind_double`.
    public func bind(_ value: Double, at index: Int) throws {
        let raw = try placeholder(index)
        try bound(Self.bind(value, to: raw, at: Int32(index + 1)))
    }

    /// Binds a copy of a text to the placeholder at `index`, counted from 0.
    ///
    /// - Throws: As `bind(_:at:)` of any value.
    /// - Note: The corresponding C function is `sqlite3_bind_text64`.
    public func bind(_ value: String, at index: Int) throws {
        let raw = try placeholder(index)
        var text = value
        try bound(text.withUTF8 { Self.bind(utf8: $0, to: raw, at: Int32(index + 1)) })
    }

    /// Binds a copy of a blob to the placeholder at `index`, counted from 0.
    ///
    /// - Throws: As `bind(_:at:)` of any value.
    /// - Note: The corresponding C function is `sqlite3_bind_blob64`.
    public func bind(_ value: Data, at index: Int) throws {
        let raw = try placeholder(index)
        try bound(value.withUnsafeBytes { Self.bind(bytes: $0, to: raw, at: Int32(index + 1)) })
    }

    /// Binds a copy of bytes as a blob to the placeholder at `index`, counted from 0. A buffer
    /// without address is an empty blob.
    ///
    /// - Throws: As `bind(_:at:)` of any value.
    /// - Complexity: O(*bytes*).
    /// - Note: The corresponding C function is `sqlite3_bind_blob64`.
    public func bind(bytes: UnsafeRawBufferPointer, at index: Int) throws {
        let raw = try placeholder(index)
        try bound(Self.bind(bytes: bytes, to: raw, at: Int32(index + 1)))
    }

    /// Binds a copy of UTF-8 as a text to the placeholder at `index`, counted from 0. A buffer
    /// without address is an empty text.
    ///
    /// - Throws: As `bind(_:at:)` of any value; `.mismatch` for bytes that are not UTF-8, which
    ///   leaves the arguments unchanged.
    /// - Complexity: O(*bytes*).
    /// - Note: The corresponding C function is `sqlite3_bind_text64`.
    public func bind(utf8 bytes: UnsafeBufferPointer<UInt8>, at index: Int) throws {
        let raw = try placeholder(index)
        guard bytes.isUTF8 else {
            throw StoreError(.mismatch, "the bytes of argument \(index) are not UTF-8", sql: sql)
        }
        try bound(Self.bind(utf8: bytes, to: raw, at: Int32(index + 1)))
    }

    /// Binds NULL to the placeholder at `index`, counted from 0.
    ///
    /// - Throws: As `bind(_:at:)` of any value.
    /// - Note: The corresponding C function is `sqlite3_bind_null`.
    public func bindNull(at index: Int) throws {
        let raw = try placeholder(index)
        try bound(sqlite3_bind_null(raw, Int32(index + 1)))
    }

    /// The engine's pointer to the statement, if it has the placeholder. Ends a run of the
    /// statement first.
    ///
    /// - Parameter index: The placeholder's position, counted from 0.
    /// - Throws: `.misuse` if there is no such placeholder; errors of `reset()`; `.closed`.
    @inline(__always)
    func placeholder(_ index: Int) throws(StoreError) -> OpaquePointer {
        let raw = try pointer()
        if isRunning || wasAbandoned { try endRun() }
        guard index >= 0, index < parameterCount else { throw noPlaceholder(index) }
        return raw
    }

    @inline(never)
    private func noPlaceholder(_ index: Int) -> StoreError {
        StoreError(
            .misuse, "no placeholder \(index): there are \(parameterCount), counted from 0",
            sql: sql)
    }

    @inline(__always)
    private func bound(_ code: Int32) throws(StoreError) {
        guard code == SQLITE_OK else { throw bindingFailure(code) }
    }

    // MARK: Columns

    /// The current row's integer in a column, counted from 0.
    ///
    /// - Throws: As `value(at:as:)` of any type.
    /// - Note: The corresponding C function is `sqlite3_column_int64`.
    public func value(at index: Int, as type: Int64.Type) throws -> Int64 {
        let value = try self.value(ofColumn: index)
        guard sqlite3_value_type(value) == SQLITE_INTEGER else {
            return try column(index, as: Int64.self)
        }
        return sqlite3_value_int64(value)
    }

    /// The current row's integer in a column, counted from 0.
    ///
    /// - Throws: As `value(at:as:)` of any type.
    /// - Note: The corresponding C function is `sqlite3_column_int64`.
    public func value(at index: Int, as type: Int.Type) throws -> Int {
        let integer = try value(at: index, as: Int64.self)
        guard let exact = Int(exactly: integer) else { throw StoreError.outOfRange(Int.self) }
        return exact
    }

    /// The current row's number in a column, counted from 0.
    ///
    /// - Throws: As `value(at:as:)` of any type.
    /// - Note: The corresponding C function is `sqlite3_column_double`.
    public func value(at index: Int, as type: Double.Type) throws -> Double {
        let value = try self.value(ofColumn: index)
        guard sqlite3_value_type(value) == SQLITE_FLOAT else {
            return try column(index, as: Double.self)
        }
        return sqlite3_value_double(value)
    }

    /// The date in a column, counted as its declared type says; an integer that a `Double` holds
    /// exactly counts from 1970.
    ///
    /// - Throws: As `value(at:as:)` of any type.
    public func value(at index: Int, as type: Date.Type) throws -> Date {
        let value = try self.value(ofColumn: index)
        guard sqlite3_value_type(value) == SQLITE_FLOAT else {
            return try column(index, as: Date.self)
        }
        return try date(sqlite3_value_double(value), at: index)
    }

    /// The current row's text in a column, counted from 0.
    ///
    /// - Throws: As `value(at:as:)` of any type.
    /// - Complexity: O(*bytes*).
    /// - Note: The corresponding C function is `sqlite3_column_text`.
    public func value(at index: Int, as type: String.Type) throws -> String {
        let value = try self.value(ofColumn: index)
        guard sqlite3_value_type(value) == SQLITE_TEXT else {
            return try column(index, as: String.self)
        }
        return try Self.text(of: value)
    }

    /// The current row's blob in a column, counted from 0.
    ///
    /// - Throws: As `value(at:as:)` of any type.
    /// - Complexity: O(*bytes*).
    /// - Note: The corresponding C function is `sqlite3_column_blob`.
    public func value(at index: Int, as type: Data.Type) throws -> Data {
        let value = try self.value(ofColumn: index)
        guard sqlite3_value_type(value) == SQLITE_BLOB else {
            return try column(index, as: Data.self)
        }
        return try Self.blob(of: value)
    }
}
