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
