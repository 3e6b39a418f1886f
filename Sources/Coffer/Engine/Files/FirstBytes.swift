/// The first bytes of a file, and the format that they indicate.
enum FirstBytes {
    /// The size of the smallest page.
    static let count = 512

    /// Whether the bytes begin with the header string of a plaintext database.
    ///
    /// "The header string: "SQLite format 3\000"":
    /// <https://www.sqlite.org/fileformat2.html#the_database_header>.
    static func isPlaintext(_ bytes: some Collection<UInt8>) -> Bool {
        bytes.starts(with: "SQLite format 3\0".utf8)
    }

    /// Whether a file begins like a plaintext database but is encrypted by SQLCipher 4.
    ///
    /// > "cipher_plaintext_header_size … the number of bytes at the beginning of the first page
    /// > that should remain unencrypted … recommended … 32 bytes"
    /// > <https://www.zetetic.net/sqlcipher/sqlcipher-api/#cipher_plaintext_header_size>
    ///
    /// Its pages end with bytes that are reserved for the cipher ("20: Bytes of unused "reserved"
    /// space at the end of each page. Usually 0."), and the root of the schema is ciphertext.
    static func hasPlaintextHeader(_ bytes: [UInt8]) -> Bool {
        bytes.count >= Self.count && isPlaintext(bytes) && bytes[20] != 0 && !hasSchemaRoot(bytes)
    }

    /// Whether the b-tree page header of a table follows the database header. Fewer than one in
    /// 100 000 files of ciphertext look like that.
    ///
    /// Fields of the database header that never vary are looked at too, since all but 16 bytes of
    /// it may be ciphertext: "The database page size … Must be a power of two between 512 and
    /// 32768 inclusive, or the value 1", "Maximum embedded payload fraction. Must be 64", and the
    /// two after it "Must be 32".
    ///
    /// > "The b-tree page header is 8 bytes in size for leaf pages and 12 bytes for interior
    /// > pages."
    /// > <https://www.sqlite.org/fileformat2.html#b_tree_pages>
    private static func hasSchemaRoot(_ bytes: [UInt8]) -> Bool {
        func integer(_ offset: Int) -> Int { Int(bytes[offset]) << 8 | Int(bytes[offset + 1]) }
        // "or the value 1 representing a page size of 65536", and "A zero value for this integer is
        // interpreted as 65536."
        let pageByteCount = integer(16) == 1 ? 65536 : integer(16)
        let contentStart = integer(105) == 0 ? 65536 : integer(105)
        guard pageByteCount >= 512, pageByteCount.nonzeroBitCount == 1,
            Array(bytes[21...23]) == [64, 32, 32], [5, 13].contains(bytes[100]), bytes[107] <= 60
        else { return false }
        let cells = bytes[100] == 5 ? 112 : 108
        let cellsEnd = cells + 2 * integer(103)
        guard cellsEnd <= contentStart, contentStart <= pageByteCount else { return false }
        return stride(from: cells, to: min(cellsEnd, bytes.count - 1), by: 2).allSatisfy {
            contentStart <= integer($0) && integer($0) < pageByteCount
        }
    }

    /// Whether the bytes have no control characters but tabs and line breaks. Ciphertext looks
    /// random: 512 bytes of it without a control character do not occur.
    static func isText(_ bytes: some Collection<UInt8>) -> Bool {
        bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7f || $0 == 9 || $0 == 10 || $0 == 13 }
    }

    /// Whether the bytes are all 0 or all 255, which is also true of no bytes. A crash leaves such
    /// bytes in a block that was never written, and a medium returns them for an erased block.
    static func isBlank(_ bytes: some Collection<UInt8>) -> Bool {
        bytes.allSatisfy { $0 == 0 } || bytes.allSatisfy { $0 == 0xff }
    }

    /// The `.unsupported` error for a file whose header is plaintext.
    static func plaintextHeader(of file: FileLocation) -> StoreError {
        StoreError(
            .unsupported,
            "\(file.path) is an encrypted database of SQLCipher 4 whose header is plaintext "
                + "(cipher_plaintext_header_size)",
            hint: "No such file is opened: with the program that made it, export it "
                + "(sqlcipher_export) into a file without that setting.")
    }
}
