import ArgumentParser
import Coffer

extension KeyValue {
    /// `coffer kv export`
    struct ExportEntries: AsyncParsableCommand, ChangingVerb {
        static let configuration = CommandConfiguration(
            commandName: "export",
            abstract: "Writes the entries of a bucket as JSON lines.",
            discussion: """
                The output is plaintext. It is one snapshot, and coffer kv import reads it back: \
                {"key":…,"value":…,"expires":…}, one entry a line, in the order of the keys. A \
                real always has a point or exponent, an infinite one is {"$real":"Infinity"}, and \
                bytes are {"$base64":"…"}. A UUID, an unsigned integer and a Boolean as key are \
                text, and a composite key is an array of its parts. expires is left out for an \
                entry that never ends, and entries that have expired are left out. A file appears \
                under its name when it is complete, and only its owner may read and write it. An \
                existing file is never replaced.

                EXAMPLES
                  coffer kv export notes.db sessions --output sessions.jsonl
                  coffer kv export notes.db sessions --prefix a | gzip > sessions.jsonl.gz

                EXIT CODES
                  0 everything is written, and with --output the file exists, even if the report \
                could not be written. Any other: with --output this run made no file; standard \
                output may have received part of the content. The store is as it was in any case
                """)

        @OptionGroup var options: BucketOptions
        @OptionGroup var entries: SelectionOptions
        @Option(
            name: .shortAndLong,
            help: ArgumentHelp("A new file; the default is standard output.", valueName: "path"),
            completion: .file())
        var output: String?
        @OptionGroup(title: "Secret") var secret: SecretOptions
        @OptionGroup(title: "Output") var talk: OutputOptions

        /// Without `--output`, the signal may end the process when a reader has enough.
        var isChanging: Bool { output != nil }

        func validate() throws {
            guard output != "" else { throw ValidationError("A name must not be empty.") }
        }

        struct Result: Report {
            let path: ReportedPath
            let entryCount: Int

            var lines: [(label: String, value: String)] {
                [
                    ("file", "\(path)"),
                    ("exported", EntryImportResult.counted(entryCount) + ", in plaintext"),
                ]
            }
        }

        func run() async throws {
            if let output { try NewFile.requireFree(output) }
            let connection = try options.store.connect(secret, mode: .readOnly)
            defer { connection.close() }
            let export = EntryExport(
                connection: connection, bucket: StoredBucket(options.bucket),
                selection: entries.selection)
            let writing = PlaintextExport(
                connection: connection, path: output, talk: talk, verb: "kv export",
                unit: "entries", interruption: interruption
            ) { try export(&$0, $1) }
            guard let count = try await writing(), let output else { return }
            talk.printDone(Result(path: ReportedPath(output), entryCount: count))
        }
    }
}
