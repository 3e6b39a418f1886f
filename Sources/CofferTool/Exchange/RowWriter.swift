import ArgumentParser
import Coffer

/// The formats of written rows.
enum RowFormat: String, ExpressibleByArgument, CaseIterable {
    case table, csv, jsonl
}

/// Writes rows one after another, without keeping them.
protocol RowWriter {
    mutating func begin(_ columns: [String], _ output: inout StandardOutput) throws
    mutating func write(_ row: [Value], _ output: inout StandardOutput) throws
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
    private var keys: [[UInt8]] = []

    mutating func begin(_ columns: [String], _ output: inout StandardOutput) {
        keys = ColumnLabels.unique(columns).map { name in
            var bytes: [UInt8] = []
            JSONValue.append(name, to: &bytes)
            return bytes + [0x3a]
        }
    }

    func write(_ row: [Value], _ output: inout StandardOutput) throws {
        var line: [UInt8] = [0x7b]
        for (index, value) in row.enumerated() {
            if index > 0 { line.append(0x2c) }
            line += keys[index]
            JSONValue.append(value, to: &line)
        }
        line += [0x7d, 0x0a]
        try output.write(line)
    }

    func end(_ output: inout StandardOutput) {}
}

/// Comma-separated values in the form of RFC 4180, with a header and with LF after each record.
struct CSVWriter: RowWriter {
    let null: String
    private var columns: [String] = []
    private var isAmbiguous = false

    init(null: String) {
        self.null = null
    }

    mutating func begin(_ columns: [String], _ output: inout StandardOutput) throws {
        self.columns = ColumnLabels.unique(columns)
        try write(self.columns.map { Self.field($0, isOnly: columns.count == 1) }, &output)
    }

    mutating func write(_ row: [Value], _ output: inout StandardOutput) throws {
        var fields: [String] = []
        fields.reserveCapacity(row.count)
        for (index, value) in row.enumerated() {
            fields.append(Self.field(try text(value, index), isOnly: row.count == 1))
        }
        try write(fields, &output)
    }

    private func write(_ fields: [String], _ output: inout StandardOutput) throws {
        try output.writeLine(fields.joined(separator: ","))
    }

    private mutating func text(_ value: Value, _ index: Int) throws -> String {
        switch value {
        case .null: return null
        case .integer(let integer): return try apartFromNull(String(integer), "number", index)
        case .real(let real) where real.isFinite:
            return try apartFromNull(real.description, "number", index)
        case .real: throw unsayable("an infinite number", index)
        case .blob:
            throw unsayable("a blob", index, ", or encode blobs yourself, as with hex(…) or base64")
        case .text(let text):
            if text.isEmpty, null.isEmpty { isAmbiguous = true }
            return text.isEmpty ? text : try apartFromNull(text, "text", index)
        }
    }

    /// - Throws: `ToolError` `.failure` if a reader would take the field for NULL.
    private func apartFromNull(
        _ field: String, _ what: String, _ index: Int
    ) throws -> String {
        guard field == null, field.utf8.elementsEqual(null.utf8) else { return field }
        throw ToolError(
            .failure, "column \(columns[index]) holds the \(what) that stands for NULL",
            hint: "Choose another --null.")
    }

    private func unsayable(_ what: String, _ index: Int, _ more: String = "") -> ToolError {
        ToolError(
            .failure, "column \(columns[index]) holds \(what), which CSV cannot express",
            hint: "Use jsonl or sql\(more).")
    }

    /// Quotes text that a reader could misinterpret. In a single column it also quotes the empty
    /// text, because its line would be blank.
    private static func field(_ text: String, isOnly: Bool) -> String {
        let bytes = text.utf8
        let isPlain = bytes.allSatisfy { $0 != 0x2c && $0 != 0x22 && $0 != 0x0a && $0 != 0x0d }
        let hasEdge = [bytes.first ?? 0, bytes.last ?? 0].contains { $0 == 0x20 || $0 == 0x09 }
        if isPlain, !hasEdge, bytes.first != 0xef, !(isOnly && text.isEmpty) { return text }
        var quoted = "\""
        for scalar in text.unicodeScalars {
            if scalar == "\"" { quoted += "\"" }
            quoted.unicodeScalars.append(scalar)
        }
        return quoted + "\""
    }

    func end(_ output: inout StandardOutput) {
        guard isAmbiguous else { return }
        Terminal.warn(
            "empty texts and NULL are both written as nothing: --null TEXT tells them apart")
    }
}
