import Coffer

/// Fills a table from CSV.
struct CSVImport {
    let run: ImportRun
    let table: String
    /// `nil` for the comma, which nobody has chosen.
    let delimiter: Import.Delimiter?
    /// The field that represents NULL, in UTF-8.
    let null: [UInt8]
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
        var records = CSVRecords(
            run.input, delimiter: (delimiter ?? .comma).character)
        let header = CSVRecord()
        guard try records.next(header) else {
            throw RecordProblem(line: 1, message: "there is no header")
        }
        let names = try (0..<header.fieldCount).map { index in
            try text(header[index], index, line: 1)
        }
        var first = try firstRecords(&records)
        let table = try target(names, first)
        let columns = try columns(of: names, table)
        let insertion = try RowInsertion(
            into: table, columns, FieldsBeyondArguments(), in: run.connection)
        var writer = Writer(
            columns: columns, insertion: insertion, rows: try StoredRows(of: table, run))
        for record in first { try insert(record, &line, table, &writer) }
        first = []
        let record = CSVRecord()
        while try records.next(record) { try insert(record, &line, table, &writer) }
        return ImportResult(
            path: ReportedPath(run.path), table: table.name, isTableMade: table.isMade,
            columns: columns.map(\.name), rowCount: try writer.rows.finish())
    }

    /// The records by which the types of a new table's columns are chosen: about half of the first
    /// chunk, because a record at its end could wait long for the rest of a pipe.
    private func firstRecords(_ records: inout CSVRecords) throws -> [CSVRecord] {
        var first: [CSVRecord] = []
        var byteCount = 0
        while byteCount < CSVRecords.chunkByteCount / 2 {
            let record = CSVRecord()
            guard try records.next(record) else { break }
            // A line break and the delimiters count, so that empty records come to an end too.
            byteCount += record.byteCount + record.fieldCount
            first.append(record)
        }
        return first
    }

    /// The state of an import that lasts from one record to the next.
    private struct Writer {
        let columns: [ImportTable.Column]
        let insertion: RowInsertion
        var rows: StoredRows
        /// The first of the blank lines that may end the file.
        var blankLine: Int?
    }

    private func insert(
        _ record: CSVRecord, _ line: inout Int, _ table: ImportTable, _ writer: inout Writer
    ) throws {
        line = writer.blankLine ?? record.line
        // Blank lines at the end are not records, unless a record has one field.
        if record.isBlank, writer.columns.count > 1 {
            writer.blankLine = line
            return
        }
        let fieldCount = writer.blankLine == nil ? record.fieldCount : 1
        guard fieldCount == writer.columns.count else {
            throw RecordProblem(
                line: line,
                message: "\(fieldCount) fields, but the header has \(writer.columns.count)")
        }
        for (index, column) in writer.columns.enumerated() {
            let value = try value(record[index], index, column, line, table)
            try writer.insertion.bind(value, at: index)
        }
        try writer.rows.insert(writer.insertion.statement)
    }

    private func value(
        _ field: UnsafeBufferPointer<UInt8>, _ index: Int, _ column: ImportTable.Column,
        _ line: Int, _ table: ImportTable
    ) throws -> BorrowedValue {
        if isNull(field) { return .null }
        guard let value = column.affinity.value(of: field) else {
            let kind = column.affinity == .real ? "reals" : "numbers"
            throw RecordProblem(
                line: line,
                message: "column \(column.name) holds \(kind) and would change a field of "
                    + "\(field.count) bytes",
                hint: table.isMade
                    ? "Make all columns text with --text, name the text that stands for NULL with "
                        + "--null TEXT, or create the table beforehand."
                    : "Name the text that stands for NULL with --null TEXT, or give the column "
                        + "another type.")
        }
        if case .text = value, !UTF8Check.isValid(field) { throw notUTF8(index, line: line) }
        return value
    }

    private func text(
        _ field: UnsafeBufferPointer<UInt8>, _ index: Int, line: Int
    ) throws(RecordProblem) -> String {
        guard let text = String(validating: field, as: UTF8.self) else {
            throw notUTF8(index, line: line)
        }
        return text
    }

    private func notUTF8(_ index: Int, line: Int) -> RecordProblem {
        RecordProblem(line: line, message: "field \(index + 1) is not UTF-8")
    }

    private func isNull(_ field: UnsafeBufferPointer<UInt8>) -> Bool {
        field.count == null.count && field.elementsEqual(null)
    }

    /// How to name the delimiter of a file, if its header was probably read as one column.
    ///
    /// - Parameters:
    ///   - chosen: The delimiter that was chosen; `nil` for the comma by default.
    ///   - name: The name of the column.
    static func otherDelimiter(than chosen: Import.Delimiter?, in name: String) -> String? {
        guard chosen == nil else { return nil }
        if name.contains("\t") { return "tabs separate the fields of the file: --delimiter tab" }
        return name.contains(";")
            ? "semicolons separate the fields of the file: --delimiter ';'" : nil
    }

    private func columns(
        of names: [String], _ table: ImportTable
    ) throws -> [ImportTable.Column] {
        var seen: Set<Int> = []
        return try names.map { name in
            guard let position = table.position(name) else {
                throw RecordProblem(
                    line: 1, message: "the table \(table.name) has no column named \(name)",
                    hint: Self.otherDelimiter(than: delimiter, in: name).map { "Perhaps \($0)." })
            }
            guard seen.insert(position).inserted else {
                throw RecordProblem.twice(name, line: 1)
            }
            return table.columns[position]
        }
    }

    /// The existing table, or a new one whose types fit the first records.
    private func target(_ names: [String], _ first: [CSVRecord]) throws -> ImportTable {
        if let existing = try ImportTable.existing(table, in: run.connection) {
            guard !isTextOnly else {
                throw ToolError(
                    .usage, "the table \(table) exists: --text is only for a new table")
            }
            return existing
        }
        let types = names.indices.map { isTextOnly ? "TEXT" : type(ofField: $0, in: first) }
        return try ImportTable.make(table, names, types: types, line: 1, in: run.connection)
    }

    private func type(ofField index: Int, in records: [CSVRecord]) -> String {
        var isInteger = true
        var isReal = true
        var isEmpty = true
        for record in records where index < record.fieldCount && !record.isBlank {
            let field = record[index]
            if isNull(field) { continue }
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
        return isInteger ? "INTEGER" : "REAL"
    }
}
