import ArgumentParser
import Coffer
import Foundation

/// `coffer sql`
struct RunSQL: AsyncParsableCommand, ChangingVerb {
    static let configuration = CommandConfiguration(
        commandName: "sql",
        abstract: "Runs one SQL statement and writes its rows.",
        discussion: """
            Read-only without --write; with it, the statement is one transaction. A dash (-) in \
            place of the SQL reads it from standard input. Every user of the machine can see the \
            argument list: use - or --bind file:PATH for a value that they must not see.

            --bind takes the values of ? in their order: text, taken literally, or typed by a \
            prefix: int:5, real:1.5, text:int:5, null:, hex:00ff (a blob), file:PATH (its bytes, a \
            blob).

            table is for people: control characters are shown as escapes. csv has a header; a blob \
            or an infinite number is an error. jsonl has one object a line: a real always has a \
            point or exponent, an infinite one is {"$real":"Infinity"}, and a blob is \
            {"$base64":"…"}. In csv and jsonl, a second column named a becomes a:2.

            EXAMPLES
              coffer sql notes.db 'SELECT * FROM note WHERE id = ?' --bind int:7
              coffer sql notes.db 'DELETE FROM note WHERE pinned = 0' --write
              coffer sql notes.db - --json < query.sql
              coffer sql notes.db 'INSERT INTO photo VALUES (?)' --bind file:a.jpg --write

            EXIT CODES
              0 done and, with --write, committed, even if the number of changed rows could not be \
            written; 130 interrupted: committed as a whole or not at all. Any other: nothing was \
            changed (a PRAGMA or VACUUM may have taken effect), even if only the statement's rows \
            could not be written (17). Without --write nothing is changed in any case
            """)

    @OptionGroup var store: StoreOptions
    @Argument(help: "One statement, or - for standard input.")
    var statement: String
    @Flag(help: "Let the statement change the store.")
    var write = false
    @Option(
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp("The value of the next ?; may be repeated.", valueName: "value"))
    var bind: [String] = []
    @Option(help: ArgumentHelp("table (the default), csv or jsonl.", valueName: "format"))
    var format: RowFormat?
    @Option(
        help: ArgumentHelp("The text that stands for NULL in csv and table.", valueName: "text"))
    var null = ""
    @OptionGroup(title: "Secret") var secret: SecretOptions
    @OptionGroup(title: "Output") var output: OutputOptions

    var isChanging: Bool { write }

    func validate() throws {
        try StandardInput.claim(statement == "-" ? "the SQL" : nil, secret)
        if output.json, let format, format != .jsonl {
            throw ValidationError("--json means --format jsonl, not \(format.rawValue).")
        }
    }

    struct Result: Report {
        let changedRowCount: Int

        var lines: [(label: String, value: String)] { [("changed", "\(changedRowCount) rows")] }
    }

    func run() async throws {
        let text = try statement == "-" ? StandardInput.text("SQL") : statement
        let arguments = try bind.map { try BoundValue.parse($0, apartFrom: store.path) }
        let connection = try store.connect(secret, mode: write ? .mustExist : .readOnly)
        defer { connection.close() }
        let prepared = try connection.prepare(text)
        try check(prepared, arguments.count)
        try prepared.bind(arguments)
        let before = connection.totalChangeCount
        // Settings and VACUUM do not work in a transaction.
        if prepared.isControl || prepared.isReadOnly {
            try writeRows(of: prepared)
        } else {
            try connection.transaction { try writeRows(of: prepared) }
        }
        guard !prepared.isReadOnly, prepared.columnNames.isEmpty else { return }
        let isChanged = connection.totalChangeCount != before
        output.printDone(Result(changedRowCount: isChanged ? connection.lastChangeCount : 0))
    }

    private func check(_ prepared: Statement, _ argumentCount: Int) throws {
        guard prepared.parameterCount == argumentCount else {
            throw ToolError(
                .usage,
                "the statement has \(prepared.parameterCount) parameters, but --bind is given "
                    + "\(argumentCount) times")
        }
        guard prepared.transactionVerb == nil else {
            throw ToolError(
                .usage, "\(prepared.transactionVerb ?? "") would control a transaction",
                hint: "Every call is one transaction. Run several statements with coffer import.")
        }
        guard write || prepared.isReadOnly else {
            throw ToolError(
                .wouldChange, "the statement would change the store",
                hint: "Add --write to allow it.")
        }
    }

    /// Writes rows one by one, so that memory does not grow with their number.
    private func writeRows(of prepared: Statement) throws {
        var standardOutput = StandardOutput()
        var writer = (format ?? (output.json ? .jsonl : .table)).writer(null: null)
        let columns = prepared.columnNames
        if !columns.isEmpty { try writer.begin(columns, &standardOutput) }
        while try prepared.step() {
            try writer.write(try columns.indices.map(prepared.value), &standardOutput)
        }
        if !columns.isEmpty { try writer.end(&standardOutput) }
        try standardOutput.flush()
    }
}
