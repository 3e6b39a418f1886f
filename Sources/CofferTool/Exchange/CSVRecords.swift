import SwiftCSV

/// The records of a CSV file, read in chunks and parsed by SwiftCSV.
struct CSVRecords {
    /// One record with the line it begins on.
    struct Record {
        let line: Int
        let fields: [String]
    }

    /// Bytes to read at once.
    static let chunkByteCount = 1 << 20
    /// The longest record. Without this limit a quote that never ends would fill the memory.
    static let maximumRecordByteCount = 256 << 20

    private let input: InputFile
    private let layout: CSVLayout
    private let delimiter: CSVDelimiter
    private var bytes: [UInt8] = []
    private var isAtEnd = false
    private var isAtStart = true
    private var line = 1

    init(_ input: InputFile, delimiter: Character) {
        self.input = input
        self.delimiter = .character(delimiter)
        layout = CSVLayout(delimiter: delimiter.asciiValue ?? 0x2c)
    }

    /// The next records; empty at the end.
    ///
    /// - Throws: `RecordProblem` for input that is not CSV or not UTF-8.
    mutating func next() throws -> [Record] {
        var maximumCount = Self.chunkByteCount
        while true {
            if !isAtEnd { isAtEnd = try !input.read(maximumCount, into: &bytes) }
            skipByteOrderMark()
            let part = try bytes.withUnsafeBufferPointer {
                try layout.part(of: $0, line: line, isLast: isAtEnd)
            }
            bytes.removeFirst(part.byteCount)
            if !part.lines.isEmpty {
                line += part.lineCount
                return try records(of: part)
            }
            if isAtEnd { return [] }
            guard bytes.count <= Self.maximumRecordByteCount else {
                throw RecordProblem(
                    line: line,
                    message: "the record is longer than \(Self.maximumRecordByteCount) bytes",
                    hint: "Look for a quote that never ends.")
            }
            // For a record longer than a chunk, reads as much again, so that it is not scanned too
            // often.
            maximumCount = max(maximumCount, bytes.count)
        }
    }

    /// Skips the mark that spreadsheets put before UTF-8, because it does not belong to the first
    /// name.
    private mutating func skipByteOrderMark() {
        guard isAtStart else { return }
        isAtStart = false
        if bytes.starts(with: [0xef, 0xbb, 0xbf]) { bytes.removeFirst(3) }
    }

    private func records(of part: CSVLayout.Part) throws -> [Record] {
        let csv: CSV<Nothing>
        var records: [Record] = []
        records.reserveCapacity(part.lines.count)
        var failure: RecordProblem?
        do {
            csv = try CSV<Nothing>(
                string: String(decoding: part.text, as: UTF8.self), delimiter: delimiter)
            try csv.enumerateAsArray(startAt: 0, rowLimit: nil) { fields in
                let line = records.count < part.lines.count ? part.lines[records.count] : 0
                guard part.isMapped else {
                    return records.append(Record(line: line, fields: fields))
                }
                let texts = fields.map { Self.unmapped($0) }
                if let index = texts.firstIndex(of: nil) {
                    failure =
                        failure
                        ?? RecordProblem(line: line, message: "field \(index + 1) is not UTF-8")
                }
                records.append(Record(line: line, fields: texts.map { $0 ?? "" }))
            }
        } catch {
            throw RecordProblem(
                line: part.lines[min(records.count, part.lines.count - 1)],
                message: "the record cannot be parsed")
        }
        if let failure { throw failure }
        guard records.count == part.lines.count else {
            throw RecordProblem(
                line: line, message: "the records parsed are not as many as the records counted")
        }
        return records
    }

    /// The original text of a mapped field; `nil` if its bytes are not UTF-8.
    private static func unmapped(_ field: String) -> String? {
        var isMapped = false
        var bytes: [UInt8] = []
        var lead: UInt8 = 0
        for byte in field.utf8 {
            if byte < 0x80 {
                bytes.append(byte)
            } else if byte >= 0xc0 {
                isMapped = true
                lead = byte
            } else {
                bytes.append(lead << 6 | byte & 0x3f)
            }
        }
        return isMapped ? String(validating: bytes, as: UTF8.self) : field
    }

    /// An empty view: SwiftCSV enumerates rows one by one only in a `CSV` that has a view of the
    /// whole text.
    private struct Nothing: CSVView {
        let rows: [[String]] = []
        let columns: [String]? = nil

        init(
            header: [String], text: String, delimiter: CSVDelimiter, loadColumns: Bool,
            rowLimit: Int?
        ) {}

        func serialize(header: [String], delimiter: CSVDelimiter) -> String { "" }
    }
}
