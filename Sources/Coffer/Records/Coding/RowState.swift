import CSQLCipher

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The state for reading one row, in its own allocation so that access counts no references.
///
/// Values come from `sqlite3_column_value`, once per column, or are a function's arguments. "If
/// SQLite is run in one of reduced mutex modes SQLITE_CONFIG_SINGLETHREAD or
/// SQLITE_CONFIG_MULTITHREAD then there is no distinction between protected and unprotected
/// sqlite3_value objects and they can be used interchangeably"
/// (<https://www.sqlite.org/c3ref/value.html>); a connection opened with SQLITE_OPEN_NOMUTEX, as by
/// `Handle`, is in that mode.
struct RowState {
    /// The statement whose row is read; `nil` otherwise, where SQLite returns NULL for every
    /// column.
    var statement: OpaquePointer?
    /// The row's values, while SQLite passes them to a function in the middle of a step.
    var values: UnsafeMutablePointer<OpaquePointer?>?
    var owner: Unmanaged<RowDecoder>?
    /// The columns whose dates count from 2001, of the first 64; the decoder has all.
    var since2001: UInt64 = 0
    /// Whether a column has a `ColumnEncoding`.
    var hasEncodings = false
    /// The first key type that was asked for, nearly always the only one. `holder` points to its
    /// `ContainerHolder`.
    var keyType: ObjectIdentifier?
    var holder: UnsafeRawPointer?

    /// Safe: the decoder owns this memory, so it is alive, and it sets `owner` in its initialiser.
    var decoder: RowDecoder { owner.unsafelyUnwrapped.takeUnretainedValue() }

    @inline(__always)
    func isNull(_ column: Int32) -> Bool {
        sqlite3_column_type(statement, column) == SQLITE_NULL
    }

    /// SQLite's value in a column of the current row.
    @inline(__always)
    func raw(_ column: Int32) -> OpaquePointer? {
        sqlite3_column_value(statement, column)
    }

    // MARK: Values. Errors name the column.

    @inline(__always)
    func integer(
        _ value: OpaquePointer?, _ column: Int32, for type: Any.Type
    ) throws -> Int64 {
        guard sqlite3_value_type(value) == SQLITE_INTEGER else { throw mismatch(column, type) }
        return sqlite3_value_int64(value)
    }

    @inline(__always)
    func integer<T: FixedWidthInteger>(
        _ value: OpaquePointer?, _ column: Int32, as type: T.Type
    ) throws -> T {
        let wide = try integer(value, column, for: type)
        guard let integer = T(exactly: wide) else { throw outOfRange(column, type) }
        return integer
    }

    @inline(__always)
    func bool(_ value: OpaquePointer?, _ column: Int32) throws -> Bool {
        let integer = try integer(value, column, for: Bool.self)
        guard integer & 1 == integer else { throw outOfRange(column, Bool.self) }
        return integer == 1
    }

    @inline(__always)
    func real(_ value: OpaquePointer?, _ column: Int32, for type: Any.Type) throws -> Double {
        guard sqlite3_value_type(value) == SQLITE_FLOAT else {
            return try exactReal(value, column, type)
        }
        return sqlite3_value_double(value)
    }

    /// Accepts an integer that a `Double` holds exactly, as columns that other programs made may
    /// have.
    @inline(never)
    private func exactReal(
        _ value: OpaquePointer?, _ column: Int32, _ type: Any.Type
    ) throws -> Double {
        guard sqlite3_value_type(value) == SQLITE_INTEGER,
            let real = Double(exactly: sqlite3_value_int64(value))
        else { throw mismatch(column, type) }
        return real
    }

    /// Rounds a real that another program wrote with more digits, but refuses one out of range.
    func float(_ value: OpaquePointer?, _ column: Int32) throws -> Float {
        let wide = try real(value, column, for: Float.self)
        let float = Float(wide)
        guard float.isFinite == wide.isFinite else { throw mismatch(column, Float.self) }
        return float
    }

    /// Whether the dates of a column count from 2001 rather than 1970.
    @inline(__always)
    func countsFrom2001(_ column: Int32) -> Bool {
        column < 64
            ? since2001 &>> UInt64(truncatingIfNeeded: column) & 1 != 0
            : decoder.since2001.contains(column)
    }

    @inline(__always)
    func date(_ value: OpaquePointer?, _ column: Int32) throws -> Date {
        let seconds = try real(value, column, for: Date.self)
        return countsFrom2001(column)
            ? Date(timeIntervalSinceReferenceDate: seconds) : Date(timeIntervalSince1970: seconds)
    }

    @inline(never)
    func text(_ value: OpaquePointer?, _ column: Int32) throws -> String {
        let bytes = try utf8(value, column, for: String.self)
        guard let text = String(exactly: bytes) else { throw notText(column) }
        return text
    }

    /// The UTF-8 bytes of a text, for a type that is stored as JSON.
    func textData(_ column: Int32, _ type: Any.Type) throws -> Data {
        Data(buffer: try utf8(raw(column), column, for: type))
    }

    @inline(__always)
    private func utf8(
        _ value: OpaquePointer?, _ column: Int32, for type: Any.Type
    ) throws -> UnsafeBufferPointer<UInt8> {
        guard sqlite3_value_type(value) == SQLITE_TEXT, let start = sqlite3_value_text(value) else {
            throw mismatch(column, type)
        }
        return UnsafeBufferPointer(start: start, count: Int(sqlite3_value_bytes(value)))
    }

    @inline(never)
    func data(_ value: OpaquePointer?, _ column: Int32) throws -> Data {
        let bytes = try blob(value, column, for: Data.self)
        return bytes.baseAddress.map { Data(bytes: $0, count: bytes.count) } ?? Data()
    }

    func bytes(_ value: OpaquePointer?, _ column: Int32) throws -> [UInt8] {
        [UInt8](try blob(value, column, for: [UInt8].self))
    }

    /// The UTF-8 bytes of a text, valid until the next step.
    @inline(__always)
    func exactUTF8(
        _ value: OpaquePointer?, _ column: Int32, for type: Any.Type
    ) throws -> UnsafeBufferPointer<UInt8> {
        let bytes = try utf8(value, column, for: type)
        guard bytes.isUTF8 else { throw notText(column) }
        return bytes
    }

    /// The bytes of a blob, valid until the next step.
    @inline(__always)
    func blob(
        _ value: OpaquePointer?, _ column: Int32, for type: Any.Type
    ) throws -> UnsafeRawBufferPointer {
        guard sqlite3_value_type(value) == SQLITE_BLOB else { throw mismatch(column, type) }
        return try Statement.bytes(of: value)
    }

    @inline(never)
    func uuid(_ value: OpaquePointer?, _ column: Int32) throws -> UUID {
        let bytes = try blob(value, column, for: UUID.self)
        guard bytes.count == 16 else { throw mismatch(column, UUID.self) }
        return UUID(uuid: bytes.loadUnaligned(as: uuid_t.self))
    }

    @inline(never)
    func value(_ column: Int32) throws -> Value {
        guard statement != nil else { return .null }
        return try Statement.value(of: values.map { $0[Int(column)] } ?? raw(column))
    }

    // MARK: Failures

    @inline(never)
    func mismatch(_ column: Int32, _ type: Any.Type) -> any Error {
        guard let value = try? value(column) else { return notText(column) }
        return decoder.failure(StoreError.mismatch(value, type), column)
    }

    @inline(never)
    func outOfRange(_ column: Int32, _ type: Any.Type) -> any Error {
        decoder.failure(StoreError.outOfRange(type), column)
    }

    @inline(never)
    private func notText(_ column: Int32) -> any Error {
        decoder.failure(StoreError(.mismatch, "a text in the file is not valid UTF-8"), column)
    }
}
