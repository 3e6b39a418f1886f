/// The database header on page 1, read without the engine.
///
/// The header is not secret, and the key is borrowed. Authenticate the page first.
struct FirstPage {
    /// Pages of the whole file; 0 if the header does not guarantee the number.
    let pageCount: Int
    /// Bytes per page.
    let pageByteCount: Int
    /// Bytes at the end of each page that SQLite reserves for the cipher.
    let reserveByteCount: Int
    /// Whether the file is in WAL mode.
    let isWAL: Bool

    /// Decrypts the header of a page 1.
    ///
    /// - Parameters:
    ///   - page: Page 1 as it is in the file.
    ///   - key: The key of the pages.
    ///   - profile: The layout of the page.
    /// - Returns: `nil` if the buffer is not one page, or if it does not decrypt to a header
    ///   because the key is wrong.
    init?(decrypting page: UnsafeRawBufferPointer, key: borrowing RawKey, profile: CipherProfile) {
        guard
            let header = profile.decrypt(page, number: 1, upTo: Self.headerByteCount, key: key)
        else { return nil }
        // "Maximum embedded payload fraction. Must be 64. Minimum embedded payload fraction. Must
        // be 32. Leaf payload fraction. Must be 32."
        // https://www.sqlite.org/fileformat2.html#the_database_header
        guard header[21] == 64, header[22] == 32, header[23] == 32 else { return nil }
        // "or the value 1 representing a page size of 65536"
        let size = Int(header[16]) << 8 | Int(header[17])
        pageByteCount = size == 1 ? 65536 : size
        reserveByteCount = Int(header[20])
        // "19: File format read version. 1 for legacy; 2 for WAL."
        isWAL = header[19] == 2
        // "The in-header database size is only considered to be valid if it is non-zero and if the
        // 4-byte change counter at offset 24 exactly matches the 4-byte version-valid-for number
        // at offset 92." https://www.sqlite.org/fileformat2.html#in_header_database_size
        let isValid = Self.integer(header, at: 24) == Self.integer(header, at: 92)
        pageCount = isValid ? Self.integer(header, at: 28) : 0
    }

    /// Bytes of the header that are decrypted: up to offset 96, a whole number of AES blocks.
    private static let headerByteCount = 96

    /// Reads four bytes, big-endian.
    private static func integer(_ header: [UInt8], at offset: Int) -> Int {
        header[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) }
    }
}
