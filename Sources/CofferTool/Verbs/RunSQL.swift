import ArgumentParser
import Coffer

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// `coffer sql`
struct RunSQL: AsyncParsableCommand, ChangingVerb {
    static let configuration = CommandConfiguration(
        commandName: "sql",
        abstract: "Runs SQL statements and writes their rows.",
        discussion: """
            Read-only without --write. The argument is one statement. A script comes from --file, \
            or from standard input in place of the argument (or with -). Every user of the machine \
            can see the argument list: use a script or --bind file:PATH for a value that they must \
            not see.

            On a terminal, without a statement and without --file, statements are typed: .help \
            lists the commands. Ctrl-C ends a statement, Ctrl-D the session. With libedit there is \
            a history, in memory only.

            Each run is one transaction: after an error nothing is changed, and the message names \
            the line of the script. So BEGIN and COMMIT are refused, and in a script of several \
            statements also VACUUM and settings, which do not work in a transaction.

            --bind takes the values of ? in their order: text, taken literally, or typed by a \
            prefix: int:5, real:1.5, text:int:5, null:, hex:00ff (a blob), file:PATH (its bytes, a \
            blob).

            table is for people: control characters are shown as escapes. csv has a header; a blob \
            or an infinite number is an error. jsonl has one object a line: a real always has a \
            point or exponent, an infinite one is {"$real":"Infinity"}, and a blob is \
            {"$base64":"…"}. In csv and jsonl, a second column named a becomes a:2. An empty line \
            separates the rows of two statements, except in jsonl.

            EXAMPLES
              coffer sql notes.db 'SELECT * FROM note WHERE id = ?' --bind int:7
              coffer sql notes.db 'DELETE FROM note WHERE pinned = 0' --write
              coffer sql notes.db --json < query.sql
              coffer sql notes.db --file change.sql --write
              coffer sql notes.db 'INSERT INTO photo VALUES (?)' --bind file:a.jpg --write

            EXIT CODES
              0 done and, with --write, committed, even if the number of changed rows could not be \
            written; 130 interrupted: committed as a whole or not at all. Any other: nothing was \
            changed (a PRAGMA or VACUUM may have taken effect), even if only the rows could not be \
            written (17). Without --write nothing is changed in any case
            """)

    @OptionGroup var store: StoreOptions
    @Argument(help: "One statement; without it, or as -, a script from standard input.")
    var statement: String?
    @Option(
        name: .customLong("file"),
        help: ArgumentHelp("Read a script from this file.", valueName: "path"),
        completion: .file())
    var script: String?
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

    private var isFromStandardInput: Bool {
        script == "-" || script == nil && (statement ?? "-") == "-"
    }

    func validate() throws {
        guard script == nil || statement == nil else {
            throw ValidationError("The SQL is an argument or --file, not both.")
        }
        try StandardInput.claim(isFromStandardInput ? "the SQL" : nil, secret)
        if output.json, let format, format != .jsonl {
            throw ValidationError("--json means --format jsonl, not \(format.rawValue).")
        }
    }

    struct Result: Report {
        let changedRowCount: Int

        var lines: [(label: String, value: String)] {
            [("changed", changedRowCount.counted("row"))]
        }
    }

    func run() async throws {
        guard !isInteractive || bind.isEmpty else {
            throw ToolError(.usage, "--bind is for a statement or a script")
        }
        let arguments = try bind.map { try BoundValue.parse($0, apartFrom: store.path) }
        // A script is read before somebody is asked for a passphrase.
        let script = try isArgument || isInteractive ? nil : readScript()
        let connection = try store.connect(secret, mode: write ? .mustExist : .readOnly)
        defer { connection.close() }
        var standardOutput = StandardOutput()
        let run = SQLRun(
            connection: connection, isWriting: write,
            format: format ?? (output.json ? .jsonl : .table), null: null)
        if isInteractive { return try SQLShell(run: run, isQuiet: output.quiet).run(store.path) }
        let changed: Int?
        if let script {
            changed = try run(script, arguments, &standardOutput)
        } else {
            changed = try run(statement ?? "", arguments, &standardOutput)
        }
        guard let changed else { return }
        output.printDone(Result(changedRowCount: changed))
    }

    /// Whether a person types the statements.
    private var isInteractive: Bool {
        statement == nil && script == nil && !output.json && isatty(STDIN_FILENO) != 0
            && isatty(STDERR_FILENO) != 0
    }

    private var isArgument: Bool { script == nil && !isFromStandardInput }

    /// Limits the size of a script, because it is held in memory.
    private static let maximumByteCount = 1_000_000_000

    private func readScript() throws -> SQLScript {
        let name = isFromStandardInput ? "-" : script ?? "-"
        guard name != "-" || isatty(STDIN_FILENO) == 0 else {
            throw ToolError(
                .usage, "there is no SQL",
                hint: "Give a statement, --file PATH, or a script on standard input.")
        }
        let input = try InputFile(name, apartFrom: store.path)
        let script = try SQLScript(input, maximumByteCount: Self.maximumByteCount)
        guard String(validating: script.bytes, as: UTF8.self) != nil else {
            throw ToolError(.badInput, "\(input.name): the SQL is not UTF-8")
        }
        return script
    }
}
