/// A value as the file stores it.
enum StoredValue: Equatable {
    case null
    case integer(Int64)
    case real(Double)
    /// The bytes of a text, in the encoding of the database.
    case text(ArraySlice<UInt8>)
    case blob(ArraySlice<UInt8>)
}

/// The values of a row, or of an entry of an index, decoded from its record.
///
/// The record is not trusted: a length that leads out of it makes it no record at all.
struct StoredRecord {
    /// The values up to the first that is not whole.
    let values: [StoredValue]
    /// The values that the record's header lists.
    let fieldCount: Int

    var isWhole: Bool { values.count == fieldCount }

    /// Decodes a record, or the beginning of one.
    ///
    /// > "The header begins with a single varint which determines the total number of bytes in the
    /// > header. The varint value is the size of the header in bytes including the size varint
    /// > itself. Following the size varint are one or more additional varints, one per column."
    /// > <https://www.sqlite.org/fileformat2.html#record_format>
    ///
    /// - Parameters:
    ///   - bytes: The record, or as much of it as is left.
    ///   - byteCount: Bytes of the whole record.
    /// - Returns: `nil` if the header is not whole, or lists more bytes than the record has.
    init?(_ bytes: [UInt8], of byteCount: Int) {
        let record = PageBytes(bytes)
        var next = 0
        guard let headerEnd = record.varint(at: &next), headerEnd >= next, headerEnd <= bytes.count
        else { return nil }
        var values: [StoredValue] = []
        var fieldCount = 0
        var offset = headerEnd
        while next < headerEnd {
            guard let type = record.varint(at: &next), next <= headerEnd,
                let length = Self.byteCount(of: type), length <= byteCount - offset
            else { return nil }
            let end = offset + length
            if end <= bytes.count, values.count == fieldCount {
                values.append(Self.value(type, bytes[offset..<end]))
            }
            fieldCount += 1
            offset = end
        }
        self.values = values
        self.fieldCount = fieldCount
    }

    /// "10,11: Reserved for internal use." `nil` for these.
    private static func byteCount(of type: Int) -> Int? {
        switch type {
        case 0...4: type
        case 5: 6
        case 6, 7: 8
        case 8, 9: 0
        case 12...: (type - 12) / 2
        default: nil
        }
    }

    /// "1: 8-bit twos-complement integer" to "6: big-endian 64-bit"; "7: Value is a big-endian IEEE
    /// 754-2008 64-bit floating point number."; "8: Value is the integer 0.", "9: … 1";
    /// "N≥12 and even: Value is a BLOB", "N≥13 and odd: Value is a string in the text encoding".
    private static func value(_ type: Int, _ bytes: ArraySlice<UInt8>) -> StoredValue {
        switch type {
        case 0: return .null
        case 8: return .integer(0)
        case 9: return .integer(1)
        case 1...7:
            let sign: UInt64 = type < 7 && bytes.first ?? 0 >= 0x80 ? .max : 0
            let bits = bytes.reduce(sign) { $0 << 8 | UInt64($1) }
            return type == 7
                ? .real(Double(bitPattern: bits)) : .integer(Int64(bitPattern: bits))
        default: return type % 2 == 0 ? .blob(bytes) : .text(bytes)
        }
    }
}
