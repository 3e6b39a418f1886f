import Coffer

/// Runs the statements of an SQL file, such as a dump, as one transaction.
struct ScriptImport {
    /// Limits the size of the file, because it is held in memory.
    private static let maximumByteCount = 1_000_000_000

    private let path: String
    private let connection: Connection
    private let input: InputFile
    private let reporter: ProgressReporter
    private let bytes: [UInt8]

    /// Reads the file.
    init(_ run: ImportRun) throws {
        path = run.path
        connection = run.connection
        input = run.input
        reporter = run.reporter
        var bytes = try input.readAll(maximumCount: Self.maximumByteCount)
        if bytes.starts(with: [0xef, 0xbb, 0xbf]) { bytes.removeFirst(3) }
        if let index = bytes.firstIndex(of: 0) {
            let line = bytes[..<index].count { $0 == 0x0a } + 1
            throw ToolError(
                .badInput, "\(input.name), line \(line): a NUL, which would end the text")
        }
        bytes.append(0)
        self.bytes = bytes
    }

    func callAsFunction() throws -> ImportResult {
        try bytes.withUnsafeBytes { raw in
            guard let text = raw.baseAddress?.assumingMemoryBound(to: CChar.self) else {
                return ImportResult(path: ReportedPath(path), rowCount: 0)
            }
            // SQLite ignores `PRAGMA foreign_keys` in a transaction, so it runs before the
            // transaction.
            let (start, isUnchecked) = try settings(text)
            let before = connection.totalChangeCount
            try connection.transaction { try statements(text, from: start) }
            if isUnchecked { try warnOfViolations() }
            return ImportResult(
                path: ReportedPath(path), rowCount: connection.totalChangeCount - before)
        }
    }

    /// Runs the `PRAGMA foreign_keys` statements that a dump begins with. Returns the offset after
    /// them, and whether they switched the check off.
    private func settings(
        _ text: UnsafePointer<CChar>
    ) throws -> (start: Int, isUnchecked: Bool) {
        var offset = 0
        var isUnchecked = false
        while true {
            let start = offset
            let (statement, count) = try compile(text, at: offset)
            offset += count
            guard let statement else {
                if count == 0 { return (start, isUnchecked) }
                continue
            }
            let words = bytes[start..<offset].split { !Self.isWord($0) }
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

    private func statements(_ text: UnsafePointer<CChar>, from start: Int) throws {
        var offset = start
        var count = 0
        while true {
            let (statement, byteCount) = try compile(text, at: offset)
            if let statement {
                do {
                    try run(statement)
                } catch {
                    throw failure(error, at: offset)
                }
            } else if byteCount == 0 {
                return
            }
            offset += byteCount
            count += 1
            guard count.isMultiple(of: 1024) else { continue }
            try Task.checkCancellation()
            reporter.update(offset, of: bytes.count)
        }
    }

    private func compile(
        _ text: UnsafePointer<CChar>, at offset: Int
    ) throws -> (statement: Statement?, byteCount: Int) {
        do {
            return try connection.prepareFirst(of: text + offset)
        } catch {
            throw failure(error, at: offset)
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

    private func failure(_ error: any Error, at offset: Int) -> any Error {
        guard !(error is CancellationError) else { return error }
        let isSpace: (UInt8) -> Bool = { $0 == 0x20 || (0x09...0x0d).contains($0) }
        let start = bytes[offset...].firstIndex { !isSpace($0) } ?? offset
        let place = "\(input.name), line \(bytes[..<start].count { $0 == 0x0a } + 1): "
        let failure = Failure(error)
        // A statement that Coffer refuses has no code of its own in the library.
        let status = failure.status == .failure ? .sql : failure.status
        return ToolError(status, place + failure.message, hint: failure.hint)
    }

    private func warnOfViolations() throws {
        let check = try connection.prepare("PRAGMA foreign_key_check")
        var count = 0
        while try check.step() { count += 1 }
        guard count > 0 else { return }
        Terminal.warn("\(count) rows violate a foreign key, because the file turns the check off")
    }
}
