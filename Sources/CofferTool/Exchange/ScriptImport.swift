import Coffer

/// Runs the statements of an SQL file, such as a dump, as one transaction.
struct ScriptImport {
    /// Limits the size of the file, because it is held in memory.
    private static let maximumByteCount = 1_000_000_000

    private let path: String
    private let connection: Connection
    private let reporter: ProgressReporter
    private let script: SQLScript

    /// Reads the file.
    init(_ run: ImportRun) throws {
        path = run.path
        connection = run.connection
        reporter = run.reporter
        script = try SQLScript(run.input, maximumByteCount: Self.maximumByteCount)
    }

    func callAsFunction() throws -> ImportResult {
        // SQLite ignores `PRAGMA foreign_keys` in a transaction, so it runs before the transaction.
        let (start, isUnchecked) = try settings()
        let before = connection.totalChangeCount
        try connection.transaction { try statements(from: start) }
        if isUnchecked { try warnOfViolations() }
        return ImportResult(
            path: ReportedPath(path), rowCount: connection.totalChangeCount - before)
    }

    /// Runs the `PRAGMA foreign_keys` statements that a dump begins with. Returns the offset after
    /// them, and whether they switched the check off.
    private func settings() throws -> (start: Int, isUnchecked: Bool) {
        var offset = 0
        var isUnchecked = false
        while true {
            let start = offset
            let (statement, count) = try script.compile(connection, at: offset)
            offset += count
            guard let statement else {
                if count == 0 { return (start, isUnchecked) }
                continue
            }
            let words = script.bytes[start..<offset].split { !Self.isWord($0) }
            guard words.count >= 2, Self.isEqual(words[0], "pragma"),
                Self.isEqual(words[1], "foreign_keys")
            else { return (start, isUnchecked) }
            while try statement.step() {}
            isUnchecked = try connection.firstRow("PRAGMA foreign_keys")?.get(0) == 0
        }
    }

    private static func isWord(_ byte: UInt8) -> Bool {
        byte == 0x5f || (0x61...0x7a).contains(byte | 0x20) || (0x30...0x39).contains(byte)
    }

    private static func isEqual(_ bytes: ArraySlice<UInt8>, _ word: StaticString) -> Bool {
        String(decoding: bytes, as: UTF8.self).lowercased() == "\(word)"
    }

    private func statements(from start: Int) throws {
        var count = 0
        try script.forEach(connection, from: start) { statement, offset in
            try run(statement)
            count += 1
            guard count.isMultiple(of: 1024) else { return }
            try Task.checkCancellation()
            reporter.update(offset, of: script.bytes.count)
        }
    }

    private func run(_ statement: Statement) throws {
        switch statement.transactionVerb {
        case nil: while try statement.step() {}
        // The whole file is one transaction, so its own transactions and savepoints are not run. A
        // savepoint's verb is "BEGIN" too.
        case "BEGIN", "COMMIT", "RELEASE": return
        case let verb?:
            throw ToolError(
                .badInput, "\(verb) in the file is not possible: the whole file is one transaction")
        }
    }

    private func warnOfViolations() throws {
        let check = try connection.prepare("PRAGMA foreign_key_check")
        var count = 0
        while try check.step() { count += 1 }
        guard count > 0 else { return }
        Terminal.warn(
            "rows that violate a foreign key, because the file turns the check off: \(count)")
    }
}
