import Coffer

/// Fills a table from JSON lines.
struct JSONImport {
    /// The longest line, which is about the engine's own limit for a value.
    private static let maximumLineByteCount = 1 << 30

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

    private func insert(_ line: inout Int) throws -> ImportResult {
        var target = try ImportTable.existing(table, in: run.connection)
        var insertions: [[Int]: Statement] = [:]
        var lines = Lines(input: run.input)
        var rows: StoredRows?
        while let bytes = try lines.next() {
            line += 1
            let members = try members(of: bytes, line)
            let table = try target ?? make(members)
            target = table
            let positions = try positions(of: members, table, line)
            let insertion =
                try insertions[positions]
                ?? table.insertion(
                    positions.map { table.columns[$0].name }, in: run.connection)
            insertions[positions] = insertion
            try insertion.bind(members.map(\.value))
            if rows == nil { rows = try StoredRows(of: table, run) }
            try rows?.insert(insertion)
        }
        guard let target else {
            throw RecordProblem(line: 1, message: "there is no object to take the columns from")
        }
        return ImportResult(
            path: ReportedPath(run.path), table: target.name, isTableMade: target.isMade,
            columns: target.columns.map(\.name), rowCount: try rows?.finish() ?? 0)
    }

    private func members(
        of bytes: [UInt8], _ line: Int
    ) throws -> [(key: String, value: Value)] {
        do {
            return try bytes.withUnsafeBufferPointer { bytes throws(JSONProblem) in
                try JSONRecord.members(of: bytes)
            }
        } catch {
            throw RecordProblem(line: line, message: error.message, hint: error.hint)
        }
    }

    private func make(_ members: [(key: String, value: Value)]) throws -> ImportTable {
        guard !members.isEmpty else {
            throw RecordProblem(line: 1, message: "the first object has no keys to make columns of")
        }
        // A column without a type stores every value unchanged.
        let types = members.map { $0.value == .null ? "" : $0.value.storageClass.description }
        return try ImportTable.make(table, members.map(\.key), types: types, in: run.connection)
    }

    /// The positions of an object's columns, each of which stores its value unchanged.
    private func positions(
        of members: [(key: String, value: Value)], _ table: ImportTable, _ line: Int
    ) throws -> [Int] {
        var seen: Set<Int> = []
        return try members.map { member in
            guard let position = table.position(member.key) else {
                throw RecordProblem(
                    line: line,
                    message: "the table \(table.name) has no column named \(member.key)")
            }
            guard seen.insert(position).inserted else {
                throw RecordProblem(
                    line: line, message: "the column \(member.key) appears twice")
            }
            let column = table.columns[position]
            guard column.affinity.keeps(member.value, isStrict: table.isMade) else {
                throw RecordProblem(
                    line: line,
                    message: "column \(column.name) would change a value of the class "
                        + member.value.storageClass.description,
                    hint: "Create the table beforehand with a column that has no type: it keeps "
                        + "every value as it is.")
            }
            return position
        }
    }

    /// The lines of a file, without their LF. A CR before it remains: `JSONRecord` skips it as
    /// space.
    private struct Lines {
        let input: InputFile
        var bytes: [UInt8] = []
        var start = 0
        var isAtEnd = false
        var isAtStart = true

        mutating func next() throws -> [UInt8]? {
            var searched = start
            while true {
                if let end = bytes[searched...].firstIndex(of: 0x0a) {
                    defer { start = end + 1 }
                    return Array(bytes[start..<end])
                }
                if isAtEnd {
                    guard start < bytes.count else { return nil }
                    defer { start = bytes.count }
                    return Array(bytes[start...])
                }
                bytes.removeFirst(start)
                start = 0
                searched = bytes.count
                guard bytes.count <= JSONImport.maximumLineByteCount else {
                    throw ToolError(.badInput, "\(input.name) has a line of more than 1 GiB")
                }
                isAtEnd = try !input.read(max(1 << 20, bytes.count), into: &bytes)
                // Some editors put this mark before UTF-8.
                if isAtStart, bytes.starts(with: [0xef, 0xbb, 0xbf]) { start = 3 }
                searched = max(searched, start)
                isAtStart = false
            }
        }
    }
}
