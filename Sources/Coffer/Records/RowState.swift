import CSQLCipher

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What reading a row needs at hand, in memory of its own: no reference is counted on the way.
///
/// Values are read through `sqlite3_column_value`, once for each column. "If SQLite is run in one
/// of reduced mutex modes SQLITE_CONFIG_SINGLETHREAD or SQLITE_CONFIG_MULTITHREAD then there is no
/// distinction between protected and unprotected sqlite3_value objects and they can be used
/// interchangeably" (<https://www.sqlite.org/c3ref/value.html>); a connection that was opened with
/// SQLITE_OPEN_NOMUTEX, as `Handle` does, is in that mode.
struct RowState {
    /// The statement whose row is read; `nil` outside, when the engine gives NULL for everything.
    var statement: OpaquePointer?
    var owner: Unmanaged<RowDecoder>?
    /// Whether a column keeps its values in a form of its own.
    var hasEncodings = false
    /// The container for the first key type that was asked for; nearly always the only one.
    var keyType: ObjectIdentifier?
    var holder: UnsafeRawPointer?

    /// The decoder owns this memory, so it lives, and it set itself when it made it.
    var decoder: RowDecoder { owner.unsafelyUnwrapped.takeUnretainedValue() }

    @inline(__always)
    func isNull(_ column: Int32) -> Bool {
        sqlite3_column_type(statement, column) == SQLITE_NULL
    }

    @inline(__always)
    func integer(_ column: Int32, for type: Any.Type) throws -> Int64 {
        let value = sqlite3_column_value(statement, column)
        guard sqlite3_value_type(value) == SQLITE_INTEGER else { throw mismatch(column, type) }
        return sqlite3_value_int64(value)
    }

    @inline(__always)
    func real(_ column: Int32, for type: Any.Type) throws -> Double {
        let value = sqlite3_column_value(statement, column)
        guard sqlite3_value_type(value) == SQLITE_FLOAT else {
            return try exactReal(value, column, type)
        }
        return sqlite3_value_double(value)
    }

    /// An integer is taken for a real where it is exact: a column of another program's making.
    @inline(never)
    private func exactReal(
        _ value: OpaquePointer?, _ column: Int32, _ type: Any.Type
    ) throws -> Double {
        guard sqlite3_value_type(value) == SQLITE_INTEGER,
            let real = Double(exactly: sqlite3_value_int64(value))
        else { throw mismatch(column, type) }
        return real
    }

    @inline(never)
    func text(_ column: Int32) throws -> String {
        let value = sqlite3_column_value(statement, column)
        guard sqlite3_value_type(value) == SQLITE_TEXT, let start = sqlite3_value_text(value) else {
            throw mismatch(column, String.self)
        }
        let count = Int(sqlite3_value_bytes(value))
        let bytes = UnsafeBufferPointer(start: start, count: count)
        guard let text = String(exactly: bytes) else { throw notText(column) }
        return text
    }

    /// The UTF-8 bytes of a text, for a type that is kept as JSON.
    func textData(_ column: Int32, _ type: Any.Type) throws -> Data {
        let value = sqlite3_column_value(statement, column)
        guard sqlite3_value_type(value) == SQLITE_TEXT, let start = sqlite3_value_text(value) else {
            throw mismatch(column, type)
        }
        return Data(bytes: start, count: Int(sqlite3_value_bytes(value)))
    }

    @inline(never)
    func data(_ column: Int32) throws -> Data {
        let bytes = try blob(column, for: Data.self)
        return bytes.baseAddress.map { Data(bytes: $0, count: bytes.count) } ?? Data()
    }

    /// The bytes of a blob, until the next step.
    @inline(__always)
    func blob(_ column: Int32, for type: Any.Type) throws -> UnsafeRawBufferPointer {
        let value = sqlite3_column_value(statement, column)
        guard sqlite3_value_type(value) == SQLITE_BLOB else { throw mismatch(column, type) }
        let start = sqlite3_value_blob(value)
        return UnsafeRawBufferPointer(start: start, count: Int(sqlite3_value_bytes(value)))
    }

    @inline(never)
    func uuid(_ column: Int32) throws -> UUID {
        let bytes = try blob(column, for: UUID.self)
        guard bytes.count == 16 else { throw mismatch(column, UUID.self) }
        return UUID(uuid: bytes.loadUnaligned(as: uuid_t.self))
    }

    @inline(never)
    func value(_ column: Int32) throws -> Value {
        guard let statement else { return .null }
        return try Statement.value(of: statement, at: column)
    }

    // MARK: Failures

    @inline(never)
    func mismatch(_ column: Int32, _ type: Any.Type) -> any Error {
        let found = (try? value(column).storageClass.description) ?? "TEXT that is not UTF-8"
        return decoder.failure(
            StoreError(.mismatch, "expected a value for \(type), found \(found)"), column)
    }

    @inline(never)
    func outOfRange(_ column: Int32, _ type: Any.Type) -> any Error {
        decoder.failure(StoreError.outOfRange(type), column)
    }

    @inline(never)
    private func notText(_ column: Int32) -> any Error {
        decoder.failure(StoreError(.mismatch, "a text in the file is not UTF-8"), column)
    }
}
