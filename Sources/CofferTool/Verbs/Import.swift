import ArgumentParser
import Coffer
import Foundation

/// `coffer import`
struct Import: AsyncParsableCommand, ChangingVerb {
    static let configuration = CommandConfiguration(
        abstract: "Fills a table from CSV or JSON lines, or runs an SQL file.",
        discussion: """
            Everything is one transaction: after an error nothing is imported, and the message \
            names the line. Without --format, the file's extension gives the format.

            A table that does not exist is created. From CSV, a column is INTEGER or REAL if every \
            field of the first half megabyte is such a number in its plain form, otherwise TEXT. \
            From JSON lines, the columns have the types of the first object's values. No value is \
            altered silently: 007 in a column of integers is an error, and so is a number with \
            more digits than a REAL keeps; --text avoids it. 1.50 becomes 1.5, the same number.

            csv: RFC 4180 in UTF-8, with a header. An empty field is NULL, unless --null names \
            another text (in quotes or not). jsonl: one object a line, as coffer export writes it; \
            the column of a missing key gets its default, true and false become 1 and 0, and blank \
            lines are passed over. sql: up to 1 GB, held in memory; its BEGIN and COMMIT are \
            skipped.

            EXAMPLES
              coffer import notes.db flights.csv --table flight --null NA
              coffer import notes.db notes.jsonl --table note --passphrase-file secret
              sqlite3 plain.db .dump | coffer import notes.db - --format sql

            EXIT CODES
              0 everything is imported, even if the report could not be written; 130 after a \
            second Ctrl-C: everything or nothing is imported. Any other: nothing is imported
            """)

    @OptionGroup var store: StoreOptions
    @Argument(help: "The file, or - for standard input.", completion: .file())
    var file: String
    @Option(help: ArgumentHelp("The table to fill (not for sql).", valueName: "name"))
    var table: String?
    @Option(help: ArgumentHelp("csv, jsonl or sql.", valueName: "format"))
    var format: ExchangeFormat?
    @Option(help: ArgumentHelp("csv: the field that stands for NULL.", valueName: "text"))
    var null: String?
    @Flag(help: "csv: make all columns of a new table TEXT.")
    var text = false
    @Option(
        help: ArgumentHelp("csv: a comma (the default), tab or semicolon.", valueName: "name"),
        completion: .list([",", "tab", ";"]))
    var delimiter: Delimiter?
    @OptionGroup(title: "Secret") var secret: SecretOptions
    @OptionGroup(title: "Output") var output: OutputOptions

    enum Delimiter: String, ExpressibleByArgument, CaseIterable {
        case comma = ","
        case tab
        case semicolon = ";"

        var character: Character { self == .tab ? "\t" : Character(rawValue) }
    }

    func validate() throws {
        try StandardInput.claim(file == "-" ? "the file" : nil, secret)
        let format = try chosenFormat()
        guard table != "" else { throw ValidationError("A table's name must not be empty.") }
        guard (format == .sql) == (table == nil) else {
            throw ValidationError(
                format == .sql
                    ? "An SQL file names its tables itself: leave --table out."
                    : "Name the table to fill: --table NAME.")
        }
        guard format == .csv || (null == nil && !text && delimiter == nil) else {
            throw ValidationError("--null, --text and --delimiter are for csv.")
        }
    }

    private func chosenFormat() throws -> ExchangeFormat {
        if let format { return format }
        let ending = URL(filePath: file).pathExtension.lowercased()
        guard let format = ExchangeFormat(rawValue: ending) else {
            throw ValidationError("Name the format of \(file): --format csv, jsonl or sql.")
        }
        return format
    }

    func run() async throws {
        let input = try InputFile(file, apartFrom: store.path)
        let run = ImportRun(
            path: store.path, connection: try store.connect(secret), input: input,
            reporter: output.reporter("import", unit: "bytes"))
        defer { run.connection.close() }
        // Only the task below uses `work` until that task has ended.
        nonisolated(unsafe) let work = try work(run, chosenFormat())
        let reporter = run.reporter
        let result = try await Signals.cancelling {
            defer { reporter.finish() }
            return try work()
        }
        try warn(of: result)
        output.printDone(result)
    }

    /// Warns if the header of a new table was probably read as one column.
    private func warn(of result: ImportResult) throws {
        guard try chosenFormat() == .csv, result.isTableMade == true,
            let columns = result.columns, columns.count == 1,
            let other = CSVImport.otherDelimiter(than: delimiter, in: columns[0])
        else { return }
        Terminal.warn("the table has only the column \(columns[0]): perhaps \(other)")
    }

    private func work(
        _ run: ImportRun, _ format: ExchangeFormat
    ) -> () throws -> ImportResult {
        let connection = run.connection
        let name = table ?? ""
        switch format {
        case .csv:
            let job = CSVImport(
                run: run, table: name, delimiter: delimiter,
                null: Array((null ?? "").utf8), isTextOnly: text)
            return { try connection.transaction { try job() } }
        case .jsonl:
            let job = JSONImport(run: run, table: name)
            return { try connection.transaction { try job() } }
        case .sql: return { try ScriptImport(run)() }
        }
    }
}

/// The formats of imported and exported files.
enum ExchangeFormat: String, ExpressibleByArgument, CaseIterable {
    case csv, jsonl, sql
}
