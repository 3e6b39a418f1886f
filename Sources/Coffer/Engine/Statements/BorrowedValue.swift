import CSQLCipher

/// An argument or a column whose text or blob stays where it is, for programs that move many of
/// them from or to a buffer.
package enum BorrowedValue {
    case null
    case integer(Int64)
    case real(Double)
    /// Bytes in UTF-8.
    case text(UnsafeBufferPointer<UInt8>)
    case blob(UnsafeRawBufferPointer)

    package var storageClass: StorageClass {
        switch self {
        case .null: .null
        case .integer: .integer
        case .real: .real
        case .text: .text
        case .blob: .blob
        }
    }
}

extension Statement {
    /// Binds one argument without copying its text, as `bind(_:at:)` does with a copy.
    ///
    /// - Parameter value: The bytes must stay as they are until the statement's run has ended and
    ///   another argument is bound in its place. Those of a text must be valid UTF-8.
    /// - Throws: As `bind(_:at:)`.
    package func bind(borrowing value: BorrowedValue, at index: Int) throws(StoreError) {
        try bindArgument(borrowing: value, to: try placeholder(index), at: Int32(index + 1))
    }

    /// Does what `bind(borrowing:at:)` does, for a statement and a position that are known to be
    /// usable.
    ///
    /// - Throws: As `bindArgument(_:to:at:)`.
    @inline(__always)
    func bindArgument(
        borrowing value: BorrowedValue, to raw: OpaquePointer, at index: Int32
    ) throws(StoreError) {
        let code =
            switch value {
            case .null: sqlite3_bind_null(raw, index)
            case .integer(let integer): sqlite3_bind_int64(raw, index, integer)
            case .real(let real): Self.bind(real, to: raw, at: index)
            case .text(let bytes) where bytes.isEmpty: Self.bind(utf8: bytes, to: raw, at: index)
            case .text(let bytes):
                bytes.withMemoryRebound(to: CChar.self) {
                    // Without a destructor the engine keeps the address: SQLITE_STATIC.
                    sqlite3_bind_text64(
                        raw, index, $0.baseAddress, UInt64($0.count), nil, UInt8(SQLITE_UTF8))
                }
            case .blob(let bytes) where bytes.isEmpty: sqlite3_bind_zeroblob(raw, index, 0)
            case .blob(let bytes):
                sqlite3_bind_blob64(raw, index, bytes.baseAddress, UInt64(bytes.count), nil)
            }
        guard code == SQLITE_OK else { throw bindingFailure(code) }
    }

    /// Passes the current row's value in a column to `body`, without copying its text or blob.
    ///
    /// - Parameters:
    ///   - index: The column's position, counted from 0.
    ///   - body: Gets the value, whose bytes are valid until it returns. Inside it a step, bind or
    ///     reset of the statement throws `.misuse`.
    /// - Throws: What `body` throws; `.mismatch` for a text that is not UTF-8; as `value(at:)`.
    package func withValue(
        at index: Int, _ body: (BorrowedValue) throws -> Void
    ) throws {
        let value = try self.value(ofColumn: index)
        switch sqlite3_value_type(value) {
        case SQLITE_INTEGER: return try body(.integer(sqlite3_value_int64(value)))
        case SQLITE_FLOAT: return try body(.real(sqlite3_value_double(value)))
        case SQLITE_TEXT:
            let bytes = try Self.utf8(of: value)
            guard bytes.isUTF8 else { throw notUTF8(at: index) }
            beginLending()
            defer { endLending() }
            return try body(.text(bytes))
        case SQLITE_BLOB:
            let bytes = try Self.bytes(of: value)
            beginLending()
            defer { endLending() }
            return try body(.blob(bytes))
        default: return try body(.null)
        }
    }
}

extension Value {
    /// Lends the value to `body`, with its text or blob where it is.
    ///
    /// - Returns: What `body` returns.
    /// - Throws: What `body` throws.
    @inline(__always)
    func withBorrowed<R>(
        _ body: (BorrowedValue) throws(StoreError) -> R
    ) throws(StoreError) -> R {
        switch self {
        case .null: return try body(.null)
        case .integer(let integer): return try body(.integer(integer))
        case .real(let real): return try body(.real(real))
        case .text(var text):
            return try text.withUTF8 { bytes in
                Result { () throws(StoreError) in try body(.text(bytes)) }
            }.get()
        case .blob(let data):
            return try data.withUnsafeBytes { bytes in
                Result { () throws(StoreError) in try body(.blob(bytes)) }
            }.get()
        }
    }
}
