import CSQLCipher

/// An argument whose text stays where it is, for programs that read many of them from a buffer.
package enum BorrowedValue {
    case null
    case integer(Int64)
    case real(Double)
    /// Bytes in UTF-8.
    case text(UnsafeBufferPointer<UInt8>)
}

extension Statement {
    /// Binds one argument without copying its text, as `bind(_:at:)` does with a copy.
    ///
    /// - Parameter value: The bytes of a text must be valid UTF-8, and stay as they are until the
    ///   statement's run has ended and another argument is bound in its place.
    /// - Throws: As `bind(_:at:)`.
    package func bind(borrowing value: BorrowedValue, at index: Int) throws(StoreError) {
        let raw = try placeholder(index)
        let place = Int32(index + 1)
        let code =
            switch value {
            case .null: sqlite3_bind_null(raw, place)
            case .integer(let integer): sqlite3_bind_int64(raw, place, integer)
            case .real(let real): Self.bind(real, to: raw, at: place)
            case .text(let bytes) where bytes.isEmpty: Self.bind(utf8: bytes, to: raw, at: place)
            case .text(let bytes):
                bytes.withMemoryRebound(to: CChar.self) {
                    // Without a destructor the engine keeps the address: SQLITE_STATIC.
                    sqlite3_bind_text64(
                        raw, place, $0.baseAddress, UInt64($0.count), nil, UInt8(SQLITE_UTF8))
                }
            }
        guard code == SQLITE_OK else { throw bindingFailure(code) }
    }
}

extension Value {
    /// Calls `body` with the bytes of a text or blob where they are, and with `nil` for others.
    ///
    /// - Returns: What `body` returns.
    /// - Throws: What `body` throws.
    @inline(__always)
    func withBytes<R>(
        _ body: (UnsafeRawBufferPointer?) throws(StoreError) -> R
    ) throws(StoreError) -> R {
        switch self {
        case .text(var text):
            return try text.withUTF8 { bytes in
                Result { () throws(StoreError) in try body(UnsafeRawBufferPointer(bytes)) }
            }.get()
        case .blob(let data):
            return try data.withUnsafeBytes { bytes in
                Result { () throws(StoreError) in try body(bytes) }
            }.get()
        default: return try body(nil)
        }
    }
}

extension Statement {
    /// Binds one argument without copying its bytes.
    ///
    /// - Parameter bytes: What `Value.withBytes` gives for the argument. `forgetArguments()` must
    ///   be called before they go.
    /// - Throws: As `bindArgument`.
    @inline(__always)
    func bindArgument(
        _ argument: Value, at bytes: UnsafeRawBufferPointer?, to raw: OpaquePointer, at index: Int32
    ) throws(StoreError) {
        guard let bytes, !bytes.isEmpty else {
            return try bindArgument(argument, to: raw, at: index)
        }
        // Without a destructor the engine keeps the address: SQLITE_STATIC.
        let code: Int32
        if case .text = argument {
            code = sqlite3_bind_text64(
                raw, index, bytes.bindMemory(to: CChar.self).baseAddress, UInt64(bytes.count), nil,
                UInt8(SQLITE_UTF8))
        } else {
            code = sqlite3_bind_blob64(raw, index, bytes.baseAddress, UInt64(bytes.count), nil)
        }
        guard code == SQLITE_OK else { throw bindingFailure(code) }
    }
}
