/// Reads the records of a CSV file, chunk by chunk, by the byte.
///
/// > "Fields containing line breaks (CRLF), double quotes, and commas should be enclosed in
/// > double-quotes." "If double-quotes are used to enclose fields, then a double-quote appearing
/// > inside a field must be escaped by preceding it with another double quote."
/// > <https://www.rfc-editor.org/rfc/rfc4180#section-2>
///
/// No byte of UTF-8 but the ASCII character itself is a quote, a delimiter or the end of a line.
struct CSVRecords {
    /// Bytes to read at once.
    static let chunkByteCount = 1 << 20
    /// The longest record. Without this limit a quote that never ends would fill the memory.
    static let maximumRecordByteCount = 256 << 20

    private enum Place {
        case fieldStart, plain, quoted
        /// After a quote in a quoted field: its end, or the first of two.
        case quote
        /// After a carriage return outside of quotes.
        case carriageReturn
    }

    private let input: InputFile
    private let delimiter: UInt8
    private var chunk: [UInt8] = []
    private var offset = 0
    private var isAtStart = true
    private var isAtEnd = false
    private var place = Place.fieldStart
    private var line = 1

    init(_ input: InputFile, delimiter: Character) {
        self.input = input
        self.delimiter = delimiter.asciiValue ?? 0x2c
    }

    /// Fills `record` with the next one; returns `false` at the end.
    ///
    /// - Throws: `RecordProblem` for input that is not CSV.
    mutating func next(_ record: CSVRecord) throws -> Bool {
        record.begin(line: line)
        while true {
            if offset < chunk.count {
                if try scan(record) { return true }
                guard record.byteCount <= Self.maximumRecordByteCount else {
                    throw RecordProblem(
                        line: record.line,
                        message: "the record is longer than \(Self.maximumRecordByteCount) bytes",
                        hint: "Look for a quote that never ends.")
                }
            }
            guard !isAtEnd else { return try finish(record) }
            try readChunk()
        }
    }

    private mutating func readChunk() throws {
        chunk.removeAll(keepingCapacity: true)
        offset = 0
        isAtEnd = try !input.read(Self.chunkByteCount, into: &chunk)
        // Spreadsheets put this mark before UTF-8. It does not belong to the first name.
        if isAtStart, chunk.starts(with: [0xef, 0xbb, 0xbf]) { offset = 3 }
        isAtStart = false
    }

    /// The last record, if the input does not end with its line.
    private mutating func finish(_ record: CSVRecord) throws(RecordProblem) -> Bool {
        switch place {
        case .quoted:
            throw RecordProblem(
                line: record.line, message: "a quote that begins in this record never ends")
        case .carriageReturn: throw loneCarriageReturn
        case .fieldStart where record.isEmpty: return false
        case .fieldStart, .plain, .quote:
            record.endField()
            place = .fieldStart
            return true
        }
    }

    /// Goes on until the record or the chunk ends; returns `true` for the record.
    private mutating func scan(_ record: CSVRecord) throws(RecordProblem) -> Bool {
        var (place, line, index) = (place, line, offset)
        defer { (self.place, self.line, offset) = (place, line, index) }
        let delimiter = delimiter
        return try chunk.withUnsafeBufferPointer { bytes throws(RecordProblem) in
            while index < bytes.count {
                let start = index
                switch place {
                case .quoted:
                    while index < bytes.count, bytes[index] != 0x22 {
                        if bytes[index] == 0x0a { line += 1 }
                        index += 1
                    }
                    record.append(UnsafeBufferPointer(rebasing: bytes[start..<index]))
                    guard index < bytes.count else { return false }
                    index += 1
                    place = .quote
                    continue
                case .plain:
                    while index < bytes.count {
                        let byte = bytes[index]
                        if byte == delimiter || byte == 0x0a || byte == 0x0d || byte == 0x22 {
                            break
                        }
                        index += 1
                    }
                    record.append(UnsafeBufferPointer(rebasing: bytes[start..<index]))
                    guard index < bytes.count else { return false }
                case .fieldStart, .quote, .carriageReturn: break
                }
                let byte = bytes[index]
                if place == .carriageReturn, byte != 0x0a {
                    throw Self.loneCarriageReturn(line)
                }
                switch byte {
                case delimiter:
                    record.endField()
                    place = .fieldStart
                case 0x0a:
                    record.endField()
                    place = .fieldStart
                    line += 1
                    index += 1
                    return true
                case 0x0d: place = .carriageReturn
                case 0x22:
                    // The second of two quotes is one of the field's.
                    if place == .quote {
                        record.append(UnsafeBufferPointer(rebasing: bytes[index...index]))
                    } else {
                        try Self.beginQuotes(at: place, line)
                        record.noteQuotes()
                    }
                    place = .quoted
                default:
                    guard place != .quote else {
                        throw RecordProblem(
                            line: line,
                            message: "something is between a closing quote and the delimiter",
                            hint: "Double each quote inside a quoted field.")
                    }
                    // The byte is the first of a plain field.
                    place = .plain
                    continue
                }
                index += 1
            }
            return false
        }
    }

    private static func beginQuotes(at place: Place, _ line: Int) throws(RecordProblem) {
        guard place != .fieldStart else { return }
        throw RecordProblem(
            line: line, message: "a quote inside a field that does not begin with one",
            hint: "Put the whole field in quotes and double the quotes in it.")
    }

    private var loneCarriageReturn: RecordProblem { Self.loneCarriageReturn(line) }

    private static func loneCarriageReturn(_ line: Int) -> RecordProblem {
        RecordProblem(
            line: line, message: "a carriage return without a line feed",
            hint: "Put the field in quotes, or end the lines with LF or CR LF.")
    }
}

/// A problem with a record, and its location.
struct RecordProblem: Error {
    /// The number of the line, from 1.
    let line: Int
    let message: String
    var hint: String?

    static func twice(_ column: String, line: Int) -> RecordProblem {
        RecordProblem(line: line, message: "the column \(column) appears twice")
    }
}
