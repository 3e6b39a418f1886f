import Coffer

/// Fills a table from CSV.
struct CSVImport {
    let run: ImportRun
    let table: String
    let delimiter: Character
    /// The field that represents NULL.
    let null: String
    /// Whether all columns of a new table are TEXT.
    let isTextOnly: Bool

    /// Must be called in a transaction.
    func callAsFunction() throws -> ImportResult {
        var line = 1
        do {
            return try insert(&line)
        } catch {
            throw run.failure(error, line: line)
        }
    }

    private func insert(_ line: inout Int) throws -> ImportResult {
        var records = CSVRecords(run.input, delimiter: delimiter)
        var batch = try records.next()[...]
        guard let header = batch.popFirst() else {
            throw RecordProblem(line: 1, message: "there is no header")
        }
        if batch.isEmpty { batch = try records.next()[...] }
        let table = try target(header, batch)
        let columns = try columns(of: header, table)
        let insertion = try table.insertion(columns.map(\.name), in: run.connection)
        var values = [Value](repeating: .null, count: columns.count)
        var count = 0
        while !batch.isEmpty {
            for record in batch {
                line = record.line
                guard record.fields.count == columns.count else {
                    throw RecordProblem(
                        line: line,
                        message: "\(record.fields.count) fields, but the header has "
                            + "\(columns.count)")
                }
                for (index, field) in record.fields.enumerated() {
                    values[index] = try value(field, columns[index], line, table)
                }
                try insertion.bind(values)
                _ = try insertion.step()
                count += 1
                try run.passed(count)
            }
            batch = try records.next()[...]
        }
        return ImportResult(
            path: ReportedPath(run.path), table: table.name, isTableMade: table.isMade,
            columns: columns.map(\.name), rowCount: count)
    }

    private func value(
        _ field: String, _ column: ImportTable.Column, _ line: Int, _ table: ImportTable
    ) throws -> Value {
        if isNull(field) { return .null }
        if let value = column.affinity.value(of: field) { return value }
        let kind = column.affinity == .real ? "reals" : "numbers"
        throw RecordProblem(
            line: line,
            message: "column \(column.name) holds \(kind) and would change a field of "
                + "\(field.utf8.count) bytes",
            hint: table.isMade
                ? "Make all columns text with --text, name the text that stands for NULL with "
                    + "--null TEXT, or create the table beforehand."
                : "Name the text that stands for NULL with --null TEXT, or give the column "
                    + "another type.")
    }

    /// Compares bytes, because equal `String`s may differ in how their accents are composed.
    private func isNull(_ field: String) -> Bool {
        field == null && field.utf8.elementsEqual(null.utf8)
    }

    private func columns(
        of header: CSVRecords.Record, _ table: ImportTable
    ) throws -> [ImportTable.Column] {
        var seen: Set<Int> = []
        return try header.fields.map { name in
            guard let position = table.position(name) else {
                throw RecordProblem(
                    line: 1, message: "the table \(table.name) has no column named \(name)")
            }
            guard seen.insert(position).inserted else {
                throw RecordProblem(line: 1, message: "the column \(name) appears twice")
            }
            return table.columns[position]
        }
    }

    /// The existing table, or a new one whose types fit the first records.
    private func target(
        _ header: CSVRecords.Record, _ batch: ArraySlice<CSVRecords.Record>
    ) throws -> ImportTable {
        if let existing = try ImportTable.existing(table, in: run.connection) {
            guard !isTextOnly else {
                throw ToolError(
                    .usage, "the table \(table) exists: --text is only for a new table")
            }
            return existing
        }
        let types = header.fields.indices.map { index in
            isTextOnly
                ? "TEXT"
                : Self.type(
                    of: batch.lazy.filter { $0.fields.indices.contains(index) }
                        .map { $0.fields[index] }.filter { !isNull($0) })
        }
        return try ImportTable.make(table, header.fields, types: types, in: run.connection)
    }

    private static func type(of fields: some Sequence<String>) -> String {
        var isInteger = true
        var isReal = true
        var isEmpty = true
        for field in fields {
            isEmpty = false
            if let integer = CanonicalNumber.integer(field) {
                // An integer can be stored among reals if a double holds it.
                if Double(exactly: integer) == nil { isReal = false }
            } else {
                isInteger = false
                if isReal, CanonicalNumber.real(field) == nil { isReal = false }
            }
            if !isInteger, !isReal { return "TEXT" }
        }
        if isEmpty { return "TEXT" }
        if isInteger { return "INTEGER" }
        return "REAL"
    }
}
