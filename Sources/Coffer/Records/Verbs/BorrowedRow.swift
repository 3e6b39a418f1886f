#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The current row of a query, read where SQLite has it. No record is made, and no text or blob is
/// copied.
///
/// ```swift
/// let (id, title) = (try Note.column(\.id), try Note.column(\.title))
/// try tx.forEachRow(Note.where(\.pinned == true)) { row in
///     let key = try row[id]
///     try row.utf8(title).withUnsafeBytes { try writer.write(key, $0) }
/// }
/// ```
///
/// It is valid only during the body's call. The compiler refuses code that keeps the row, or a
/// span of its bytes, for longer.
public struct BorrowedRow<R: Record>: ~Copyable {
    @usableFromInline let source: RowSource

    init(_ source: RowSource) { self.source = source }

    /// The value of a property, as `fetch(_:)` would make it.
    ///
    /// - Throws: `StoreError` `.mismatch` if the stored value does not fit the type, `.misuse` if
    ///   the query does not read the column.
    /// - Complexity: O(*bytes*) for a text, a blob or a value that is stored as JSON. Numbers,
    ///   dates and UUIDs allocate nothing.
    @inlinable
    public subscript<V: Codable>(column: PropertyColumn<R, V>) -> V {
        get throws {
            // The compiler knows the type where it inlines this, and leaves one line of it.
            if V.self == Int64.self { return Self.same(try source.integer(column.reading)) }
            if V.self == Double.self { return Self.same(try source.real(column.reading)) }
            if V.self == Bool.self { return Self.same(try source.bool(column.reading)) }
            if V.self == Date.self { return Self.same(try source.date(column.reading)) }
            return try withUnsafeTemporaryAllocation(of: V.self, capacity: 1) { memory in
                // A buffer of one element has an address.
                let start = memory.baseAddress.unsafelyUnwrapped
                try source.initialize(UnsafeMutableRawPointer(start), column.reading)
                return start.move()
            }
        }
    }

    /// The same value, where `T` and `V` are known to be one type.
    @inlinable @inline(__always)
    static func same<T, V>(_ value: T) -> V { unsafeBitCast(value, to: V.self) }

    /// The UTF-8 bytes of a text, where SQLite has them.
    ///
    /// - Throws: `StoreError` `.mismatch` for NULL, for a value that is not text, and for bytes
    ///   that are not UTF-8; `.misuse` if the query does not read the column.
    /// - Complexity: O(*bytes*), to validate them.
    @_lifetime(borrow self)
    public func utf8(_ column: PropertyColumn<R, String>) throws -> Span<UInt8> {
        let bytes = try source.utf8(column.reading)
        return _overrideLifetime(Span(_unsafeElements: bytes), borrowing: self)
    }

    /// The UTF-8 bytes of a text, where SQLite has them; `nil` for NULL.
    ///
    /// - Throws: As for a text that is not optional.
    /// - Complexity: O(*bytes*), to validate them.
    @_lifetime(borrow self)
    public func utf8(_ column: PropertyColumn<R, String?>) throws -> Span<UInt8>? {
        guard let bytes = try source.utf8(ifAny: column.reading) else { return nil }
        return _overrideLifetime(Span(_unsafeElements: bytes), borrowing: self)
    }

    /// The bytes of a blob, where SQLite has them.
    ///
    /// - Throws: `StoreError` `.mismatch` for NULL and for a value that is not a blob; `.misuse` if
    ///   the query does not read the column.
    /// - Complexity: O(1).
    @_lifetime(borrow self)
    public func bytes(_ column: PropertyColumn<R, Data>) throws -> Span<UInt8> {
        let bytes = try source.bytes(column.reading, Data.self)
        return _overrideLifetime(Span(_unsafeBytes: bytes), borrowing: self)
    }

    /// The bytes of a blob, where SQLite has them; `nil` for NULL.
    ///
    /// - Throws: As for a blob that is not optional.
    /// - Complexity: O(1).
    @_lifetime(borrow self)
    public func bytes(_ column: PropertyColumn<R, Data?>) throws -> Span<UInt8>? {
        guard let bytes = try source.bytes(ifAny: column.reading, Data.self) else { return nil }
        return _overrideLifetime(Span(_unsafeBytes: bytes), borrowing: self)
    }

    /// The bytes of a blob, where SQLite has them.
    ///
    /// - Throws: As for `Data`.
    /// - Complexity: O(1).
    @_lifetime(borrow self)
    public func bytes(_ column: PropertyColumn<R, [UInt8]>) throws -> Span<UInt8> {
        let bytes = try source.bytes(column.reading, [UInt8].self)
        return _overrideLifetime(Span(_unsafeBytes: bytes), borrowing: self)
    }

    /// The bytes of a blob, where SQLite has them; `nil` for NULL.
    ///
    /// - Throws: As for `Data`.
    /// - Complexity: O(1).
    @_lifetime(borrow self)
    public func bytes(_ column: PropertyColumn<R, [UInt8]?>) throws -> Span<UInt8>? {
        guard let bytes = try source.bytes(ifAny: column.reading, [UInt8].self) else { return nil }
        return _overrideLifetime(Span(_unsafeBytes: bytes), borrowing: self)
    }
}
