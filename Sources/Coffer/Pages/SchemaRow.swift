/// A row of the schema table for a table or an index, which have a b-tree.
///
/// > "CREATE TABLE sqlite_schema( type text, name text, tbl_name text, rootpage integer,
/// > sql text );" <https://www.sqlite.org/fileformat2.html#storage_of_the_sql_database_schema>
struct SchemaRow: Equatable {
    let isIndex: Bool
    let name: String
    let tableName: String
    /// Number of the root page, from 1.
    let rootPage: Int

    /// The encoding of stored names; "the database text encoding" at offset 56 of the header.
    enum Encoding: Int {
        case utf8 = 1
        case utf16LittleEndian = 2
        case utf16BigEndian = 3

        func text(_ bytes: ArraySlice<UInt8>) -> String {
            guard self != .utf8 else { return String(decoding: bytes, as: UTF8.self) }
            let pairs = stride(from: bytes.startIndex, to: bytes.endIndex - 1, by: 2)
            let units = pairs.map { index -> UInt16 in
                let (first, second) = (UInt16(bytes[index]), UInt16(bytes[index + 1]))
                return self == .utf16BigEndian ? first << 8 | second : second << 8 | first
            }
            return String(decoding: units, as: UTF16.self)
        }
    }

    /// Reads the first four columns of a record.
    ///
    /// > "The header begins with a single varint which determines the total number of bytes in the
    /// > header. The varint value is the size of the header in bytes including the size varint
    /// > itself. Following the size varint are one or more additional varints, one per column."
    /// > <https://www.sqlite.org/fileformat2.html#record_format>
    ///
    /// - Returns: `nil` if the record does not describe a table or index with a b-tree, or if
    ///   `start` ends before the fourth column does.
    init?(record start: [UInt8], encoding: Encoding) {
        let record = PageBytes(start)
        var typeOffset = 0
        guard var offset = record.varint(at: &typeOffset) else { return nil }
        var columns: [ArraySlice<UInt8>] = []
        for index in 0..<4 {
            guard let type = record.varint(at: &typeOffset),
                let byteCount = Self.byteCount(ofType: type, isText: index < 3),
                offset <= start.count, byteCount <= start.count - offset
            else { return nil }
            columns.append(start[offset..<offset + byteCount])
            offset += byteCount
        }
        let kind = encoding.text(columns[0])
        guard kind == "table" || kind == "index" else { return nil }
        isIndex = kind == "index"
        name = encoding.text(columns[1])
        tableName = encoding.text(columns[2])
        // A virtual table has no tree. The number is signed, and page numbers have 32 bits.
        guard columns[3].first ?? 0 < 0x80 else { return nil }
        rootPage = columns[3].reduce(0) { $0 << 8 | Int($1) }
        guard rootPage > 0, rootPage <= Int(UInt32.max) else { return nil }
    }

    /// "N≥13 and odd: Value is a string in the text encoding and (N-13)/2 bytes in length." "1:
    /// Value is an 8-bit twos-complement integer", 2, 3, 4: 16, 24, 32 bits; 5: 48 bits.
    private static func byteCount(ofType type: Int, isText: Bool) -> Int? {
        if isText { return type >= 13 && type % 2 == 1 ? (type - 13) / 2 : nil }
        return (1...4).contains(type) ? type : type == 5 ? 6 : nil
    }
}
