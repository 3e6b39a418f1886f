import ArgumentParser
import Coffer

extension KeyValue {
    /// `coffer kv expire`
    struct Expire: AsyncParsableCommand, ChangingVerb {
        static let configuration = CommandConfiguration(
            abstract: "Gives an entry a time at which it ends; exit code 10 if there is none.",
            discussion: """
                The time replaces any earlier one, and counts from now: repeated for each use, \
                --after ends entries that nobody uses. The value stays as it is. A time that has \
                passed is refused: coffer kv delete removes an entry. From its time on an entry is \
                not there for any program, and programs remove it when they next write.

                EXAMPLES
                  coffer kv expire notes.db sessions ada --after 15m
                  coffer kv expire notes.db sessions ada --at 2026-12-24T18:00:00Z
                  coffer kv expire notes.db sessions ada --never

                EXIT CODES
                  0 the entry has the time, even if the report could not be written; 130 \
                interrupted: it has the time or nothing was changed. Any other: nothing was changed
                """)

        @OptionGroup var options: BucketOptions
        @Argument(help: "The key.")
        var key: String
        @Option(
            help: ArgumentHelp("End so long from now: 90s, 15m, 2h or 7d.", valueName: "duration"),
            transform: EntryEnd.after)
        var after: EntryEnd?
        @Option(
            help: ArgumentHelp(
                "End at this time: 2026-12-24T18:00:00Z or with +01:00.", valueName: "time"),
            transform: EntryEnd.at)
        var at: EntryEnd?
        @Flag(help: "Stay until it is removed.")
        var never = false
        @OptionGroup(title: "Secret") var secret: SecretOptions
        @OptionGroup(title: "Output") var output: OutputOptions

        private var ends: [EntryEnd] { [after, at, never ? .never : nil].compactMap(\.self) }

        func validate() throws {
            guard ends.count == 1 else {
                throw ValidationError("Say when the entry ends: --after, --at or --never.")
            }
            try ends.first?.requireFuture()
        }

        struct Result: Report {
            let path: ReportedPath
            let bucket: String
            let key: String
            let expires: String?
            var lines: [(label: String, value: String)] { [("expires", expires ?? "never")] }
        }

        func run() async throws {
            let bucket = StoredBucket(options.bucket)
            let end = ends.first ?? .never
            let changed = try await options.store.withStore(secret) { opened in
                try await opened.write { [key] tx in try bucket.expire(key, end, &tx) }
            }
            guard let changed else {
                throw ToolError(.notFound, "the bucket \(options.bucket) has no such key")
            }
            output.printDone(
                Result(
                    path: ReportedPath(options.store.path), bucket: options.bucket, key: key,
                    expires: changed.end.flatMap(ExactTime.text)))
        }
    }
}
