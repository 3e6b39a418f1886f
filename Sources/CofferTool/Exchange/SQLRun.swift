import Coffer

/// Runs statements for `coffer sql`, and writes their rows one by one, so that memory does not grow
/// with their number.
struct SQLRun {
    let connection: Connection
    /// Whether the statements may change the store.
    let isWriting: Bool
    let format: RowFormat
    /// The text that stands for NULL.
    let null: String

    /// Runs one statement.
    ///
    /// - Returns: The number of changed rows; `nil` if the statement cannot change any or returns
    ///   rows.
    func callAsFunction(
        _ text: String, _ arguments: [Value], _ output: inout StandardOutput
    ) throws -> Int? {
        let statement = try connection.prepare(text)
        try require(statement.parameterCount, arguments.count)
        return try single(statement, arguments, &output)
    }

    /// Runs a script as one transaction.
    ///
    /// - Returns: The number of changed rows; `nil` if no statement can change any, or one returns
    ///   rows.
    func callAsFunction(
        _ script: SQLScript, _ arguments: [Value], _ output: inout StandardOutput
    ) throws -> Int? {
        if let first = try onlyStatement(of: script) {
            try require(first.parameterCount, arguments.count)
            return try single(first, arguments, &output)
        }
        var isChanging = false
        var hasRows = false
        var usedCount = 0
        let before = connection.totalChangeCount
        try connection.transaction(isWriting ? .immediate : .deferred) {
            try script.forEach(connection) { statement, _ in
                try Task.checkCancellation()
                try check(statement)
                guard !statement.isControl else {
                    throw ToolError(
                        .usage, "a setting or VACUUM does not work in a transaction",
                        hint: "Run it alone: a script of several statements is one transaction.")
                }
                let next = arguments.dropFirst(usedCount).prefix(statement.parameterCount)
                usedCount += statement.parameterCount
                if usedCount <= arguments.count { try statement.bind(Array(next)) }
                if !statement.isReadOnly { isChanging = true }
                guard usedCount <= arguments.count else { return }
                if !statement.columnNames.isEmpty, hasRows, format != .jsonl {
                    try output.write(CollectionOfOne(10))
                }
                try writeRows(of: statement, &output)
                if !statement.columnNames.isEmpty { hasRows = true }
            }
            try require(usedCount, arguments.count)
            // Before the commit: rows that nobody got undo the change.
            try output.flush()
        }
        return isChanging && !hasRows ? connection.totalChangeCount - before : nil
    }

    /// The statement of a script that has no other: it may be a setting or VACUUM.
    private func onlyStatement(of script: SQLScript) throws -> Statement? {
        var offset = 0
        var found: Statement?
        while true {
            let next: (statement: Statement?, byteCount: Int)
            do {
                next = try script.compile(connection, at: offset)
            } catch {
                // It may need what the first statement makes.
                if found != nil { return nil }
                throw error
            }
            if let statement = next.statement {
                guard found == nil else { return nil }
                found = statement
            } else if next.byteCount == 0 {
                guard let found else {
                    throw ToolError(.sql, "\(script.name ?? "the SQL") has no statement")
                }
                return found
            }
            offset += next.byteCount
        }
    }

    private func single(
        _ statement: Statement, _ arguments: [Value], _ output: inout StandardOutput
    ) throws -> Int? {
        try check(statement)
        try statement.bind(arguments)
        let before = connection.totalChangeCount
        // Settings and VACUUM do not work in a transaction.
        if statement.isControl || statement.isReadOnly {
            try writeRows(of: statement, &output)
            try output.flush()
        } else {
            try connection.transaction {
                try writeRows(of: statement, &output)
                try output.flush()
            }
        }
        guard !statement.isReadOnly, statement.columnNames.isEmpty else { return nil }
        return connection.totalChangeCount != before ? connection.lastChangeCount : 0
    }

    private func require(_ count: Int, _ argumentCount: Int) throws {
        guard count == argumentCount else {
            throw ToolError(
                .usage,
                "the SQL has \(count) parameters, but --bind is given \(argumentCount) times")
        }
    }

    private func check(_ statement: Statement) throws {
        guard statement.transactionVerb == nil else {
            throw ToolError(
                .usage, "\(statement.transactionVerb ?? "") would control a transaction",
                hint: "What is run together is one transaction.")
        }
        guard isWriting || statement.isReadOnly else {
            // SQLite counts PRAGMA journal_mode as one, also where it only shows the mode.
            throw ToolError(
                .wouldChange,
                statement.isControl
                    ? "the statement counts as one that changes the store, even if it only shows "
                        + "a setting"
                    : "the statement would change the store",
                hint: "Add --write to allow it."
                    + (statement.isControl ? " coffer status shows the settings." : ""))
        }
    }

    private func writeRows(of statement: Statement, _ output: inout StandardOutput) throws {
        var writer = format.writer(null: null)
        let columns = statement.columnNames
        if !columns.isEmpty { try writer.begin(columns, &output) }
        while try statement.step() { try writer.writeRow(of: statement, &output) }
        if !columns.isEmpty { try writer.end(&output) }
    }
}
