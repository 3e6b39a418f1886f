import ArgumentParser
import Coffer
import Foundation

/// `coffer export`
struct Export: AsyncParsableCommand, ChangingVerb {
    static let configuration = CommandConfiguration(
        abstract: "Writes a table as CSV or JSON lines, or everything as SQL.",
        discussion: """
            The output is plaintext. It is one snapshot, and coffer import reads it back. A file \
            appears under its name when it is complete, and only its owner may read and write it. \
            An existing file is never replaced.

            sql (the default): schema and rows, also for the shells sqlcipher and sqlite3. Virtual \
            tables are refused; statistics are left out. jsonl: one object a line; a real always \
            has a point or exponent, an infinite one is {"$real":"Infinity"}, and a blob is \
            {"$base64":"…"}. csv: has a header; a blob or an infinite number is an error, and \
            --null names the text for NULL, so that NULL differs from an empty text.

            EXAMPLES
              coffer export notes.db --output notes.sql
              coffer export notes.db --table note --format jsonl | gzip > note.jsonl.gz
              coffer export notes.db --format csv --sql 'SELECT a FROM note' --null '\\N'

            EXIT CODES
              0 everything is written, and with --output the file exists, even if the report could \
            not be written. Any other: with --output this run made no file; standard output may \
            have received part of the content. The store is as it was in any case
            """)

    @OptionGroup var store: StoreOptions
    @Option(help: ArgumentHelp("The table; for sql it may be repeated.", valueName: "name"))
    var table: [String] = []
    @Option(help: ArgumentHelp("csv or jsonl: the rows of a SELECT.", valueName: "select"))
    var sql: String?
    @Option(help: ArgumentHelp("csv, jsonl or sql (the default).", valueName: "format"))
    var format = ExchangeFormat.sql
    @Option(help: ArgumentHelp("csv: the text that stands for NULL.", valueName: "text"))
    var null: String?
    @Option(
        name: .shortAndLong,
        help: ArgumentHelp(
            "A new file; the default is standard output.",
            valueName: "path"),
        completion: .file())
    var output: String?
    @OptionGroup(title: "Secret") var secret: SecretOptions
    @OptionGroup(title: "Output") var talk: OutputOptions

    /// Without `--output`, the signal may end the process when a reader such as `head` has enough.
    var isChanging: Bool { output != nil }

    func validate() throws {
        guard output != "", !table.contains("") else {
            throw ValidationError("A name must not be empty.")
        }
        guard null == nil || format == .csv else { throw ValidationError("--null is for csv.") }
        if format == .sql {
            guard sql == nil else { throw ValidationError("--sql is for csv and jsonl.") }
        } else if table.count + (sql == nil ? 0 : 1) != 1 {
            throw ValidationError(
                "\(format.rawValue) holds the rows of one table or --sql, not "
                    + "\(table.count + (sql == nil ? 0 : 1)).")
        }
    }

    struct Result: Report {
        let path: ReportedPath
        let rowCount: Int

        var lines: [(label: String, value: String)] {
            [("file", "\(path)"), ("exported", rowCount.counted("row") + ", in plaintext")]
        }
    }

    func run() async throws {
        if let output { try NewFile.requireFree(output) }
        let connection = try store.connect(secret, mode: .readOnly)
        defer { connection.close() }
        let export = PlaintextExport(
            connection: connection, path: output, talk: talk, verb: "export", unit: "rows",
            interruption: interruption
        ) { try write(connection, &$0, $1) }
        guard let rowCount = try await export(), let output else { return }
        talk.printDone(Result(path: ReportedPath(output), rowCount: rowCount))
    }

    private func write(
        _ connection: Connection, _ output: inout StandardOutput, _ reporter: ProgressReporter
    ) throws -> Int {
        guard format != .sql else {
            var dump = SQLDump(connection, tables: table, reporter: reporter)
            return try dump.write(&output)
        }
        let (select, total) = try select(connection, isCounted: reporter.isShown)
        var writer = (format == .csv ? RowFormat.csv : .jsonl).writer(null: null ?? "")
        try writer.begin(select.columnNames, &output)
        var count = 0
        var progress = ExportProgress()
        while try select.step() {
            count += 1
            do {
                try writer.writeRow(of: select, &output)
            } catch let error as StoreError where error.code == .mismatch {
                throw ToolError(row: count, error)
            }
            try Task.checkCancellation()
            if progress.isDue(count, output) { reporter.update(count, of: total) }
        }
        try writer.end(&output)
        return count
    }

    /// The rows to write, and their number if it is cheap to know.
    private func select(
        _ connection: Connection, isCounted: Bool
    ) throws -> (Statement, total: Int?) {
        if let sql {
            let select = try connection.prepare(sql)
            guard select.isReadOnly, select.parameterCount == 0, !select.columnNames.isEmpty else {
                throw ToolError(.usage, "--sql must be one SELECT without ?")
            }
            return (select, nil)
        }
        let name = table[0]
        guard let found = try ImportTable.existing(name, in: connection) else {
            throw ToolError(.notFound, "there is no table \(name)")
        }
        let columns = found.columns.map { SQL("\(identifier: $0.name)").text }
        let from = SQL("\(identifier: name)").text
        let select = try connection.prepare(
            "SELECT \(columns.joined(separator: ",")) FROM \(from)")
        return (select, isCounted ? try SQLDump.rowCount(of: name, in: connection) : nil)
    }
}
