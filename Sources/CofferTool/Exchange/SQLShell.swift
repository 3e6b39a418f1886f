import CSQLCipher
import Coffer
import Synchronization
import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// `coffer sql` for a person, who types statements and sees their rows.
struct SQLShell {
    let run: SQLRun
    let isQuiet: Bool

    private static let help = """
        .help            this list
        .tables          the tables and views
        .schema [TABLE]  the statements that made them
        .quit            leave, as Ctrl-D does
        A statement ends with a semicolon. What is typed up to there is one transaction.
        """

    /// - Throws: Only what ends the session; an error of a statement is shown.
    func run(_ path: String) throws {
        let editor = try LineEditor()
        let current = CurrentStatement(run.connection.interruptHandle, editor.interruption)
        if !isQuiet {
            let rule = run.isWriting ? "changes are allowed" : "read-only: --write allows changes"
            Terminal.note("\(path), \(rule); .help lists the commands")
        }
        var before = termios()
        let isKnown = tcgetattr(STDIN_FILENO, &before) == 0
        let restore = { @Sendable [before] in
            var before = before
            if isKnown { _ = tcsetattr(STDIN_FILENO, TCSADRAIN, &before) }
        }
        try Signals.restoring(restore) {
            try Signals.takingInterrupts(current.interrupt) { try ask(editor, current) }
        }
    }

    private func ask(_ editor: LineEditor, _ current: CurrentStatement) throws {
        var text = ""
        while true {
            switch try editor.ask(text.isEmpty ? "coffer> " : "   ...> ") {
            case .interrupted:
                Terminal.writeRaw("\n")
                text = ""
                continue
            case .end:
                Terminal.writeRaw("\n")
                if !text.isEmpty { Terminal.warn("the last statement has no end and was not run") }
                return
            case .unreadable:
                // A character in place of the bytes would change the statement.
                Terminal.fail(Failure(Self.unreadable))
                text = ""
                continue
            case .line(let line):
                text += text.isEmpty ? line : "\n" + line
            }
            let words = text.split { $0 == " " || $0 == "\t" || $0 == "\n" }
            guard let first = words.first else {
                text = ""
                continue
            }
            let isCommand = first.hasPrefix(".")
            guard isCommand || sqlite3_complete(text) != 0 else { continue }
            editor.remember(text)
            do {
                if isCommand {
                    guard try command(words) else { return }
                } else {
                    try current.run { try statements(text) }
                }
            } catch {
                Terminal.fail(Failure(error))
            }
            text = ""
        }
    }

    private static var unreadable: ToolError {
        ToolError(
            .badInput, "the line is not UTF-8, or holds a NUL: nothing of the statement was run",
            hint: "Set the terminal to UTF-8, and type the statement again.")
    }

    private func statements(_ text: String) throws {
        var output = StandardOutput()
        let script = try SQLScript(Array(text.utf8), name: nil)
        guard let changed = try run(script, [], &output), !isQuiet else { return }
        Terminal.note("changed: " + changed.counted("row"))
    }

    /// - Returns: `false` to leave.
    private func command(_ words: [Substring]) throws -> Bool {
        var output = StandardOutput()
        switch (words[0], words.count) {
        case (".quit", 1), (".exit", 1): return false
        case (".help", 1): try output.writeLine(Self.help)
        case (".tables", 1):
            for object in try SchemaObject.all(in: run.connection) where object.isTable {
                try output.writeLine(object.name)
            }
        case (".schema", 1...2):
            let name = words.count == 2 ? ColumnKey(String(words[1])) : nil
            for object in try SchemaObject.all(in: run.connection)
            where name == nil || ColumnKey(object.table) == name {
                try output.writeLine(object.statement)
            }
        default:
            throw ToolError(
                .usage, "there is no command \(words.joined(separator: " "))",
                hint: ".help lists the commands.")
        }
        try output.flush()
        return true
    }
}

/// The statement that runs, which Ctrl-C ends; at the prompt, Ctrl-C ends the line.
private final class CurrentStatement: Sendable {
    private let interruptHandle: InterruptHandle
    private let interruption: FileDescriptor
    private let state = Mutex((isRunning: false, isStopped: false))

    init(_ interruptHandle: InterruptHandle, _ interruption: FileDescriptor) {
        self.interruptHandle = interruptHandle
        self.interruption = interruption
    }

    func run(_ work: () throws -> Void) rethrows {
        state.withLock { $0.isRunning = true }
        defer {
            state.withLock { state in
                if state.isStopped { interruptHandle.endStop() }
                state = (false, false)
            }
        }
        try work()
    }

    @Sendable func interrupt() {
        state.withLock { state in
            guard state.isRunning else {
                _ = try? interruption.writeAll(CollectionOfOne(0))
                return
            }
            guard !state.isStopped else { return }
            state.isStopped = true
            interruptHandle.stop()
        }
    }
}
