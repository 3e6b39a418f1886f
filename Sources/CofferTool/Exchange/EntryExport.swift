import Coffer

/// Writes the entries of a bucket as JSON lines, which `EntryImport` reads back to the same keys,
/// values and times.
struct EntryExport {
    let connection: Connection
    let bucket: StoredBucket
    let selection: StoredBucket.Selection

    /// Writes the entries that have not expired. Must be called in a transaction.
    ///
    /// - Returns: Their number.
    func callAsFunction(
        _ output: inout StandardOutput, _ reporter: ProgressReporter
    ) throws -> Int {
        // Refuses a table that only has the name and the columns of one.
        _ = try connection.bucketTypes(of: bucket.name)
        let form = try bucket.requireForm { try connection.rows($0) }
        try form.requireOwnValues(bucket.name)
        let sql = try bucket.select(
            form.hasExpiry ? "key, value, expires" : "key, value", form, selection, connection)
        let total = reporter.isShown ? try count(sql) : nil
        let statement = try connection.prepare(sql.text)
        try statement.bind(sql.arguments)
        var count = 0
        var progress = ExportProgress()
        while try statement.step() {
            try write(statement, form, &output)
            count += 1
            try Task.checkCancellation()
            if progress.isDue(count, output) { reporter.update(count, of: total) }
        }
        return count
    }

    private func count(_ sql: SQL) throws -> Int? {
        let count = SQL(
            text: "SELECT count(*) FROM (\(sql.text))", arguments: sql.arguments)
        return try connection.firstRow(count)?.get(0)
    }

    private func write(
        _ statement: Statement, _ form: BucketForm, _ output: inout StandardOutput
    ) throws {
        output.buffer.append(contentsOf: "{\"key\":".utf8)
        form.append(try statement.value(at: 0), to: &output.buffer)
        output.buffer.append(contentsOf: ",\"value\":".utf8)
        try statement.withValue(at: 1) { try JSONValue.write($0, &output) }
        switch form.hasExpiry ? try statement.value(at: 2) : .null {
        case .null: break
        case .integer(let end):
            output.buffer.append(contentsOf: ",\"expires\":".utf8)
            JSONEntry.append(end: end, to: &output.buffer)
        default:
            throw ToolError(
                .badInput, "an entry of \(bucket.name) has a time of expiry that is no integer")
        }
        output.buffer.append(contentsOf: "}\n".utf8)
        try output.endRow()
    }
}
