import ArgumentParser
import Coffer

extension KeyValue {
    /// `coffer kv import`
    struct ImportEntries: AsyncParsableCommand, ChangingVerb {
        static let configuration = CommandConfiguration(
            commandName: "import",
            abstract: "Fills a bucket from JSON lines, as coffer kv export writes them.",
            discussion: """
                Everything is one transaction: after an error nothing is imported, and the message \
                names the line. A key that is in the bucket already is an error, unless --replace \
                or --keep is given. An entry without expires never ends, whatever the lifetime of \
                the bucket; one that has expired is left out and counted. A bucket that does not \
                exist is made if --key-type names the type of its keys, as coffer kv buckets does. \
                Blank lines are passed over.

                EXAMPLES
                  coffer kv import notes.db sessions sessions.jsonl --key-type text
                  coffer kv export old.db paths --output paths.jsonl && \
                    coffer kv import new.db paths paths.jsonl

                EXIT CODES
                  0 everything is imported, even if the report could not be written; 22 a key is \
                in the bucket already; 130 after a second Ctrl-C: everything or nothing is \
                imported. Any other: nothing is imported
                """)

        @OptionGroup var options: BucketOptions
        @Argument(help: "The file, or - for standard input.", completion: .file())
        var file = "-"
        @Flag(help: "Overwrite entries whose keys are in the bucket already.")
        var replace = false
        @Flag(help: "Leave entries whose keys are in the bucket already as they are.")
        var keep = false
        @Option(
            help: ArgumentHelp(
                "Keys of a new bucket: text, integer, bool, unsigned, date, uuid or bytes; several "
                    + "in parentheses for composite keys: (text, date).",
                valueName: "type"),
            transform: keyType)
        var keyType: BucketKeyType?
        @Option(
            help: ArgumentHelp(
                "Values of a new bucket: sql (the default), json, any, or the name of a program's "
                    + "codec.",
                valueName: "name"))
        var codec: String?
        @OptionGroup(title: "Secret") var secret: SecretOptions
        @OptionGroup(title: "Output") var output: OutputOptions

        @Sendable private static func keyType(_ text: String) throws -> BucketKeyType {
            guard let type = BucketKeyType(named: text) else {
                throw ValidationError("There is no such type of keys.")
            }
            return type
        }

        func validate() throws {
            try StandardInput.claim(file == "-" ? "the file" : nil, secret)
            guard !replace || !keep else {
                throw ValidationError("--replace and --keep exclude each other.")
            }
            guard codec == nil || keyType != nil else {
                throw ValidationError("--codec is for a new bucket: name its --key-type too.")
            }
            guard codec != BucketForm.attachmentCodec else {
                throw ValidationError("Attachments are not entries that an import could make.")
            }
            guard codec != "" else { throw ValidationError("A name must not be empty.") }
        }

        func run() async throws {
            let input = try InputFile(file, apartFrom: options.store.path)
            let run = ImportRun(
                path: options.store.path, connection: try options.store.connect(secret),
                input: input, reporter: output.reporter("kv import", unit: "bytes"))
            defer { run.connection.close() }
            let job = EntryImport(
                run: run, bucket: StoredBucket(options.bucket),
                existing: replace ? .replaced : keep ? .kept : .refused, keyType: keyType,
                codec: codec)
            // Only the task below uses `work` until that task has ended.
            nonisolated(unsafe) let work = { try run.connection.transaction { try job() } }
            let reporter = run.reporter
            let result = try await Signals.cancelling {
                defer { reporter.finish() }
                return try work()
            }
            output.printDone(result)
        }
    }
}
