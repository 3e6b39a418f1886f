import ArgumentParser
import Coffer

/// The formats of written rows.
enum RowFormat: String, ExpressibleByArgument, CaseIterable {
    case table, csv, jsonl
}

/// Writes rows one after another, without keeping them.
protocol RowWriter {
    mutating func begin(_ columns: [String], _ output: inout StandardOutput) throws
    /// Writes the current row of the statement.
    mutating func writeRow(of statement: Statement, _ output: inout StandardOutput) throws
    mutating func end(_ output: inout StandardOutput) throws
}

extension RowFormat {
    /// - Parameter null: The text for NULL in `csv` and `table`.
    func writer(null: String) -> any RowWriter {
        switch self {
        case .table: TableWriter(null: null)
        case .csv: CSVWriter(null: null)
        case .jsonl: JSONLinesWriter()
        }
    }
}

/// Numbers duplicate names, so that no column is lost: `a`, `a:2`.
enum ColumnLabels {
    static func unique(_ names: [String]) -> [String] {
        var taken = Set(names)
        var seen: Set<String> = []
        return names.map { name in
            if seen.insert(name).inserted { return name }
            var number = 2
            while !taken.insert("\(name):\(number)").inserted { number += 1 }
            return "\(name):\(number)"
        }
    }
}

/// One JSON object per line, keys in the order of the columns.
struct JSONLinesWriter: RowWriter {
    /// The bytes before the value of each column: `{"a":` for the first, then `,"b":`.
    private var starts: [[UInt8]] = []

    mutating func begin(_ columns: [String], _ output: inout StandardOutput) {
        starts = ColumnLabels.unique(columns).enumerated().map { index, name in
            var bytes: [UInt8] = [index == 0 ? 0x7b : 0x2c]
            JSONValue.append(name, to: &bytes)
            return bytes + [0x3a]
        }
    }

    func writeRow(of statement: Statement, _ output: inout StandardOutput) throws {
        for (index, start) in starts.enumerated() {
            output.buffer.append(contentsOf: start)
            try statement.withValue(at: index) { try JSONValue.write($0, &output) }
        }
        output.buffer.append(0x7d)
        output.buffer.append(0x0a)
        try output.endRow()
    }

    func end(_ output: inout StandardOutput) {}
}

/// Comma-separated values in the form of RFC 4180, with a header and with LF after each record.
struct CSVWriter: RowWriter {
    private let null: [UInt8]
    private var columns: [String] = []
    private var isAmbiguous = false

    init(null: String) {
        self.null = Array(null.utf8)
    }

    mutating func begin(_ columns: [String], _ output: inout StandardOutput) throws {
        self.columns = ColumnLabels.unique(columns)
        for (index, column) in self.columns.enumerated() {
            if index > 0 { output.buffer.append(0x2c) }
            var name = column
            try name.withUTF8 { try write($0, &output) }
        }
        output.buffer.append(0x0a)
        try output.endRow()
    }

    mutating func writeRow(of statement: Statement, _ output: inout StandardOutput) throws {
        for index in columns.indices {
            if index > 0 { output.buffer.append(0x2c) }
            try statement.withValue(at: index) { try write($0, index, &output) }
        }
        output.buffer.append(0x0a)
        try output.endRow()
    }

    private mutating func write(
        _ value: BorrowedValue, _ index: Int, _ output: inout StandardOutput
    ) throws {
        switch value {
        case .null: try null.withUnsafeBufferPointer { try write($0, &output) }
        case .integer(let integer):
            let start = output.buffer.count
            output.buffer.append(decimal: integer)
            try requireApartFromNull(numberFrom: start, output, index)
        case .real(let real) where real.isFinite:
            let start = output.buffer.count
            output.buffer.append(shortest: real)
            try requireApartFromNull(numberFrom: start, output, index)
        case .real: throw unsayable("an infinite number", index)
        case .blob:
            throw unsayable("a blob", index, ", or encode blobs yourself, as with hex(…) or base64")
        case .text(let text):
            if !text.isEmpty {
                if text.count == null.count, text.elementsEqual(null) {
                    throw likeNull("text", index)
                }
            } else if null.isEmpty {
                isAmbiguous = true
            }
            try write(text, &output)
        }
    }

    /// - Parameter start: Where the number begins that the buffer ends with.
    /// - Throws: `ToolError` `.failure` if a reader would take the number for NULL.
    private func requireApartFromNull(
        numberFrom start: Int, _ output: StandardOutput, _ index: Int
    ) throws {
        guard output.buffer.count - start == null.count,
            output.buffer[start...].elementsEqual(null)
        else { return }
        throw likeNull("number", index)
    }

    private func likeNull(_ what: String, _ index: Int) -> ToolError {
        ToolError(
            .failure, "column \(columns[index]) holds the \(what) that stands for NULL",
            hint: "Choose another --null.")
    }

    private func unsayable(_ what: String, _ index: Int, _ more: String = "") -> ToolError {
        ToolError(
            .failure, "column \(columns[index]) holds \(what), which CSV cannot express",
            hint: "Use jsonl or sql\(more).")
    }

    private func write(
        _ field: UnsafeBufferPointer<UInt8>, _ output: inout StandardOutput
    ) throws {
        guard needsQuotes(field) else {
            return try output.write(text: field) { $1.append(contentsOf: $0) }
        }
        output.buffer.append(0x22)
        try output.write(text: field) { $1.append(doubling: 0x22, in: $0) }
        output.buffer.append(0x22)
    }

    /// LF, CR, the quote and the comma, by their numbers.
    private static let specialBytes: UInt64 = 1 << 0x0a | 1 << 0x0d | 1 << 0x22 | 1 << 0x2c

    /// Whether a reader could misinterpret the text without quotes. In a single column that
    /// includes the empty text, because its line would be blank.
    private func needsQuotes(_ field: UnsafeBufferPointer<UInt8>) -> Bool {
        guard let first = field.first, let last = field.last else { return columns.count == 1 }
        // The byte 0xef may begin a byte order mark.
        if first == 0x20 || first == 0x09 || first == 0xef { return true }
        if last == 0x20 || last == 0x09 { return true }
        return field.contains { $0 < 64 && Self.specialBytes &>> UInt64($0) & 1 != 0 }
    }

    func end(_ output: inout StandardOutput) {
        guard isAmbiguous else { return }
        Terminal.warn(
            "empty texts and NULL are both written as nothing: --null TEXT tells them apart")
    }
}
