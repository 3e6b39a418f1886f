import Coffer

/// Aligned columns for people. The first rows decide how wide the columns are.
struct TableWriter: RowWriter {
    /// Rows that are looked at before the first one is written.
    private static let sampleCount = 200
    let null: String
    private var sample: [[String]] = []
    private var widths: [Int] = []
    private var isSampling = true

    init(null: String) {
        self.null = null
    }

    mutating func begin(_ columns: [String], _ output: inout StandardOutput) {
        sample = [columns.map(Self.visible)]
    }

    mutating func write(_ row: [Value], _ output: inout StandardOutput) throws {
        let cells = row.map(cell)
        guard isSampling else { return try write(cells, &output) }
        sample.append(cells)
        if sample.count > Self.sampleCount { try endSample(&output) }
    }

    mutating func end(_ output: inout StandardOutput) throws {
        if isSampling { try endSample(&output) }
    }

    private mutating func endSample(_ output: inout StandardOutput) throws {
        isSampling = false
        guard let header = sample.first, !header.isEmpty else { return }
        widths = header.indices.map { column in sample.map { $0[column].count }.max() ?? 0 }
        try write(header, &output)
        try write(widths.map { String(repeating: "-", count: $0) }, &output)
        for row in sample.dropFirst() { try write(row, &output) }
        sample = []
    }

    private func write(_ cells: [String], _ output: inout StandardOutput) throws {
        var line = ""
        for (index, cell) in cells.enumerated() {
            line += cell
            if index + 1 < cells.count {
                line += String(repeating: " ", count: max(0, widths[index] - cell.count) + 2)
            }
        }
        try output.writeLine(line)
    }

    private func cell(_ value: Value) -> String {
        switch value {
        case .null: null
        case .integer(let integer): String(integer)
        case .real(let real): real.description
        case .text(let text): Self.visible(text)
        case .blob(let data):
            "x'" + data.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() + "'"
        }
    }

    /// A terminal obeys control characters, and a newline would break the table.
    private static func visible(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control })
        else { return text }
        return text.unicodeScalars.reduce(into: "") { visible, scalar in
            if scalar.properties.generalCategory == .control {
                visible += scalar.escaped(asASCII: true)
            } else {
                visible.unicodeScalars.append(scalar)
            }
        }
    }
}
