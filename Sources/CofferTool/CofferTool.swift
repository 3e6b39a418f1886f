import ArgumentParser
import CSQLCipher
import Coffer

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The root command.
struct CofferTool: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "coffer",
        abstract: "Looks after encrypted stores: their keys, their health, their content.",
        discussion: """
            Every store is an ordinary SQLCipher file. A verb that needs its key asks for the \
            passphrase on the terminal, unless a --passphrase-… or --raw-key-… option names its \
            source. A secret is never an argument, because every user of the machine can see \
            arguments. A store with a keyring opens by further credentials: coffer key --help. \
            The manual has a page for each verb: man coffer-rekey, and so on.

            EXAMPLES
              coffer init notes.db
              coffer status notes.db
              coffer rekey notes.db
              coffer verify notes.db --passphrase-file /run/secrets/notes
              coffer sql notes.db 'SELECT count(*) FROM note' --json

            EXIT CODES
              \(ExitStatus.list). Each verb's help says what its exit codes mean for the store. A \
            verb that only reads leaves the store as it was
            """,
        version: Version.text,
        groupedSubcommands: [
            CommandGroup(
                name: "Stores:",
                subcommands: [
                    Init.self, Status.self, Verify.self, Salvage.self, Compact.self,
                    Checkpoint.self,
                    JournalMode.self,
                ]),
            CommandGroup(
                name: "Keys:",
                subcommands: [
                    Key.self, Rotate.self, Revoke.self, Rekey.self, KeyGen.self,
                    ShellKey.self,
                ]),
            CommandGroup(
                name: "Copies:",
                subcommands: [
                    Backup.self, Restore.self, Upgrade.self, Encrypt.self, Decrypt.self,
                ]),
            CommandGroup(
                name: "Replicas:",
                subcommands: [Replicate.self, Replicas.self, ReplicaChecks.self]),
            CommandGroup(
                name: "Content:",
                subcommands: [
                    KeyValue.self, RunSQL.self, Tables.self, Schema.self, Import.self, Export.self,
                ]),
            CommandGroup(name: "This machine:", subcommands: [Doctor.self]),
        ]
    )
}

/// A verb that changes a store or creates a file.
protocol ChangingVerb: SendableMetatype {
    /// Whether it changes or creates anything with these options.
    var isChanging: Bool { get }
    /// The file that it makes.
    var madePath: String? { get }
    /// What an interruption leaves once the work has begun, and the next step: part of a sentence.
    var interruption: String { get }
}

extension ChangingVerb {
    var isChanging: Bool { true }
    var madePath: String? { nil }
    var interruption: String { Interruption.committedOrNot }
}

@main
enum Main {
    static func main() async {
        // Must come before any secret is in memory.
        let isHardened = coffer_forbid_dumps() == 0
        Hardening.forbidBacktraces()
        Hardening.fillStandardDescriptors()
        Hardening.widenTerminal()
        // A write beyond the file-size limit then fails, instead of ending the process.
        signal(SIGXFSZ, SIG_IGN)
        let arguments = Array(CommandLine.arguments.dropFirst())
        do {
            // Both must come before the first `await`. The runtime takes descriptors for it, and
            // Dispatch ends the process if it cannot read /proc.
            try Hardening.requireDescriptors()
            guard !CommandLine.arguments.isEmpty else {
                // Swift reads them from there. Help and a success would say that all is done.
                throw ToolError(.failure, "the arguments cannot be read", hint: "Mount /proc.")
            }
        } catch {
            collectMessages(arguments)
            exit(end(by: error))
        }
        let code =
            Worker.isWanted(arguments)
            ? await Worker.run { await run($0, isHardened: isHardened) }
            : await run(arguments, isHardened: isHardened)
        if code != ExitStatus.success.rawValue { exit(code) }
    }

    /// Runs the tool with these arguments, and returns its exit code.
    private static func run(_ arguments: [String], isHardened: Bool) async -> Int32 {
        do {
            collectMessages(arguments)
            Signals.install()
            try SecretInArguments.refuse(arguments)
            try RawArguments.requireUTF8()
            try UnknownVerb.refuse(arguments)
            try UnknownOption.refuseDashes(arguments)
            var command = try parse(arguments)
            if let verb = command as? any ChangingVerb, verb.isChanging {
                Hardening.outliveReaders()
                RunFiles.makes(verb.madePath)
                Signals.willChange(verb.interruption)
            }
            if !isHardened { Terminal.warn("core dumps could not be forbidden") }
            if var asynchronous = command as? any AsyncParsableCommand {
                try await asynchronous.run()
            } else {
                try command.run()
            }
            endMessages()
            return ExitStatus.success.rawValue
        } catch {
            return end(by: error)
        }
    }

    /// Lets messages wait for the end of the run, if the user wants JSON.
    private static func collectMessages(_ arguments: [String]) {
        guard arguments.prefix(while: { $0 != "--" }).contains("--json") else { return }
        Terminal.collectMessages()
    }

    /// Reports the error that ends a run, and returns its exit code.
    private static func end(by error: any Error) -> Int32 {
        let code = report(error)
        endMessages()
        return code
    }

    /// Writes the messages of a run, unless a signal is ending the process: then it writes them.
    private static func endMessages() {
        if Terminal.writeMessages() { return }
        while true { pause() }
    }

    /// - Throws: The parser's errors, and those of the verb's own checks. An option that does not
    ///   exist comes before the latter.
    private static func parse(_ arguments: [String]) throws -> any ParsableCommand {
        do {
            return try CofferTool.parseAsRoot(arguments)
        } catch {
            if !CofferTool.exitCode(for: error).isSuccess,
                !CofferTool.message(for: error).hasPrefix("Unknown option")
            {
                try UnknownOption.refuse(arguments)
            }
            throw error
        }
    }

    /// Reports the error and returns the exit code.
    private static func report(_ error: any Error) -> Int32 {
        if let code = error as? ExitCode { return code.rawValue }
        let code = CofferTool.exitCode(for: error)
        if code.isSuccess { return tell(CofferTool.fullMessage(for: error)) }
        guard code == .validationFailure else { return say(error) }
        guard Terminal.isJSON else {
            Terminal.write(CofferTool.fullMessage(for: error))
            return ExitStatus.usage.rawValue
        }
        return say(ToolError(.usage, CofferTool.message(for: error)))
    }

    private static func say(_ error: any Error) -> Int32 {
        // An interrupted verb that got as far as to report it has undone its work.
        let failure = Failure(
            error,
            otherwise: "N" + Interruption.nothingChanged.dropFirst() + ".", isLast: true)
        Terminal.fail(failure)
        return failure.exitCode
    }

    /// Writes help or the version to standard output, because the user asked for it.
    private static func tell(_ text: String) -> Int32 {
        var output = StandardOutput()
        do {
            try output.writeLine(text)
            try output.flush()
        } catch {
            return say(error)
        }
        return ExitStatus.success.rawValue
    }
}
