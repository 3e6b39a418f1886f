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
            arguments.

            EXAMPLES
              coffer init notes.db
              coffer status notes.db
              coffer rekey notes.db
              coffer verify notes.db --passphrase-file /run/secrets/notes
              coffer sql notes.db 'SELECT count(*) FROM note' --json

            EXIT CODES
              0 done; 1 failed; 2 wrong usage; 10 not found; 11 busy or locked; 12 wrong \
            passphrase or key; 14 damaged or tampered; 16 format that this engine does not open; \
            17 disk full or I/O error; 18 changed, but not completely: run the same command again; \
            19 the secret cannot be obtained; 21 must be writable, but this user cannot write it; \
            130 interrupted. Each verb's help says what its exit codes mean for the store. A verb \
            that only reads leaves the store as it was
            """,
        version: Version.text,
        groupedSubcommands: [
            CommandGroup(
                name: "Stores:",
                subcommands: [
                    Init.self, Status.self, Verify.self, Compact.self, Checkpoint.self,
                ]),
            CommandGroup(name: "Keys:", subcommands: [Rekey.self, ShellKey.self]),
            CommandGroup(
                name: "Copies:",
                subcommands: [Backup.self, Upgrade.self, Encrypt.self, Decrypt.self]),
            CommandGroup(
                name: "Content:",
                subcommands: [KeyValue.self, RunSQL.self, Import.self, Export.self]),
            CommandGroup(name: "This machine:", subcommands: [Doctor.self]),
        ]
    )
}

/// A verb that changes a store or creates a file.
protocol ChangingVerb: SendableMetatype {
    /// Whether it changes or creates anything with these options.
    var isChanging: Bool { get }
}

extension ChangingVerb {
    var isChanging: Bool { true }
}

@main
enum Main {
    static func main() async {
        // Must come before any secret is in memory.
        let isHardened = coffer_forbid_dumps() == 0
        Hardening.forbidBacktraces()
        Hardening.fillStandardDescriptors()
        // A write beyond the file-size limit then fails, instead of ending the process.
        signal(SIGXFSZ, SIG_IGN)
        do {
            let arguments = Array(CommandLine.arguments.dropFirst())
            try SecretInArguments.refuse(arguments)
            try RawArguments.requireUTF8()
            var command = try CofferTool.parseAsRoot(arguments)
            if (command as? any ChangingVerb)?.isChanging == true { Hardening.outliveReaders() }
            if !isHardened { Terminal.warn("core dumps could not be forbidden") }
            if var asynchronous = command as? any AsyncParsableCommand {
                try await asynchronous.run()
            } else {
                try command.run()
            }
        } catch {
            exit(report(error))
        }
    }

    /// Reports the error and returns the exit code.
    private static func report(_ error: any Error) -> Int32 {
        if let code = error as? ExitCode { return code.rawValue }
        let code = CofferTool.exitCode(for: error)
        if code.isSuccess { return tell(CofferTool.fullMessage(for: error)) }
        let isJSON = CommandLine.arguments.contains("--json")
        if code == .validationFailure {
            guard isJSON else {
                Terminal.write(CofferTool.fullMessage(for: error))
                return ExitStatus.usage.rawValue
            }
            return say(ToolError(.usage, CofferTool.message(for: error)), isJSON: true)
        }
        return say(error, isJSON: isJSON)
    }

    private static func say(_ error: any Error, isJSON: Bool) -> Int32 {
        let failure = Failure(error)
        if isJSON {
            Terminal.write(JSON.line(["error": failure]))
        } else {
            Terminal.fail(failure.message, hint: failure.hint)
        }
        return failure.exitCode
    }

    /// Writes help or the version to standard output, because the user asked for it.
    private static func tell(_ text: String) -> Int32 {
        var output = StandardOutput()
        do {
            try output.writeLine(text)
            try output.flush()
        } catch {
            return say(error, isJSON: false)
        }
        return ExitStatus.success.rawValue
    }
}
