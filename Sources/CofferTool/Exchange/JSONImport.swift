import Coffer

/// Fills a table from JSON lines.
struct JSONImport {
    let run: ImportRun
    let table: String

    /// Must be called in a transaction.
    func callAsFunction() throws -> ImportResult {
        var line = 0
        do {
            return try insert(&line)
        } catch {
            throw run.failure(error, line: line)
        }
    }

    /// The state of an import that lasts from one record to the next.
    private struct Writer {
        let table: ImportTable
        var rows: StoredRows
        let fields = FieldsBeyondArguments()
        var insertions: [[Int]: RowInsertion] = [:]
        /// The keys of the last record, and the insertion for them.
        var last: (keys: [String], insertion: RowInsertion)?
    }

    private func insert(_ line: inout Int) throws -> ImportResult {
        let lines = JSONLines(run.input)
        var target: Writer?
        while let bytes = try lines.next() {
            line += 1
            // A blank line is not data, and jq(1) passes over it too.
            if bytes.allSatisfy(JSONRecord.isSpace) { continue }
            let members = try members(of: bytes, line)
            var writer = try target ?? makeWriter(members, line)
            target = nil
            try insert(members, line, &writer)
            target = writer
        }
        guard let target else {
            throw RecordProblem(line: 1, message: "there is no object to take the columns from")
        }
        return ImportResult(
            path: ReportedPath(run.path), table: target.table.name,
            isTableMade: target.table.isMade, columns: target.table.columns.map(\.name),
            rowCount: try target.rows.finish())
    }

    private func makeWriter(_ members: [JSONRecord.Member], _ line: Int) throws -> Writer {
        let table =
            try ImportTable.existing(table, in: run.connection) ?? make(members, line)
        return Writer(table: table, rows: try StoredRows(of: table, run))
    }

    private func insert(
        _ members: [JSONRecord.Member], _ line: Int, _ writer: inout Writer
    ) throws {
        let insertion = try insertion(for: members, line, &writer)
        for (index, member) in members.enumerated() {
            let column = insertion.columns[index]
            guard column.affinity.keeps(member.value, isStrict: writer.table.isMade) else {
                throw Self.change(of: member.value, by: column, line)
            }
            try insertion.bind(member.value, at: index)
        }
        try writer.rows.insert(insertion.statement)
    }

    /// The insertion for these keys, most often that of the record before.
    private func insertion(
        for members: [JSONRecord.Member], _ line: Int, _ writer: inout Writer
    ) throws -> RowInsertion {
        if let last = writer.last, Self.hasKeys(members, last.keys) { return last.insertion }
        let positions = try positions(of: members, writer.table, line)
        let insertion =
            try writer.insertions[positions]
            ?? RowInsertion(
                into: writer.table, positions.map { writer.table.columns[$0] }, writer.fields,
                in: run.connection)
        writer.insertions[positions] = insertion
        writer.last = (members.map(\.key), insertion)
        return insertion
    }

    private func members(
        of bytes: UnsafeMutableBufferPointer<UInt8>, _ line: Int
    ) throws -> [JSONRecord.Member] {
        do throws(JSONProblem) {
            return try JSONRecord.members(of: bytes)
        } catch {
            throw RecordProblem(line: line, message: error.message, hint: error.hint)
        }
    }

    private func make(_ members: [JSONRecord.Member], _ line: Int) throws -> ImportTable {
        guard !members.isEmpty else {
            throw RecordProblem(
                line: line, message: "the first object has no keys to make columns of")
        }
        // A column without a type stores every value unchanged.
        let types = members.map { member in
            member.value.storageClass == .null ? "" : member.value.storageClass.description
        }
        return try ImportTable.make(
            table, members.map(\.key), types: types, line: line, in: run.connection)
    }

    /// Whether the record has these keys, in this order. Strings are equal whose accents are
    /// composed in another way, but columns are not.
    private static func hasKeys(_ members: [JSONRecord.Member], _ keys: [String]) -> Bool {
        members.count == keys.count
            && zip(members, keys).allSatisfy { $0.key.utf8.elementsEqual($1.utf8) }
    }

    /// The positions of an object's columns.
    private func positions(
        of members: [JSONRecord.Member], _ table: ImportTable, _ line: Int
    ) throws -> [Int] {
        var seen: Set<Int> = []
        return try members.map { member in
            guard let position = table.position(member.key) else {
                throw RecordProblem(
                    line: line,
                    message: "the table \(table.name) has no column named \(member.key)")
            }
            guard seen.insert(position).inserted else {
                throw RecordProblem.twice(member.key, line: line)
            }
            return position
        }
    }

    private static func change(
        of value: BorrowedValue, by column: ImportTable.Column, _ line: Int
    ) -> RecordProblem {
        RecordProblem(
            line: line,
            message: "column \(column.name) would change a value of the class "
                + value.storageClass.description,
            hint: "Create the table beforehand with a column that has no type: it keeps every "
                + "value as it is.")
    }
}
