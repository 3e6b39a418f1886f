import Coffer

/// Aligned columns for people. The first rows determine the width of the columns.
struct TableWriter: RowWriter {
    /// Rows that are measured before the first one is written.
    private static let sampleCount = 200
    let null: String
    private var sample: [[String]] = []
    private var widths: [Int] = []
    private var isSampling = true

    init(null: String) {
        self.null = null
    }

    mutating func begin(_ columns: [String], _ output: inout StandardOutput) {
        sample = [columns.map { VisibleText.of($0) }]
    }

    mutating func writeRow(of statement: Statement, _ output: inout StandardOutput) throws {
        let cells = try statement.columnNames.indices.map { cell(try statement.value(at: $0)) }
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

    private func cell(_ value: Value) -> String { VisibleText.of(value, null: null) }
}
