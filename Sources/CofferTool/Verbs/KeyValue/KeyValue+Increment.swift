import ArgumentParser
import Coffer

extension KeyValue {
    /// `coffer kv incr`
    struct Increment: AsyncParsableCommand, ChangingVerb {
        static let configuration = CommandConfiguration(
            commandName: "incr",
            abstract: "Adds to an integer, and writes the sum.",
            discussion: """
                A key without a value counts as 0. The bucket must exist.

                EXIT CODES
                  0 the sum is stored, even if it could not be written; 25 the value is not an \
                integer, or the sum is too large; 130 interrupted: it is stored or nothing was \
                changed. Any other: nothing was changed
                """)

        @OptionGroup var options: BucketOptions
        @Argument(help: "The key.")
        var key: String
        @Option(
            help: ArgumentHelp("What to add; may be negative, as in --by=-7.", valueName: "number"))
        var by: Int64 = 1
        @OptionGroup(title: "Secret") var secret: SecretOptions
        @OptionGroup(title: "Output") var output: OutputOptions

        struct Result: Report {
            let path: ReportedPath
            let bucket: String
            let value: Int64
            var lines: [(label: String, value: String)] { [("value", String(value))] }
        }

        func run() async throws {
            let bucket = StoredBucket(options.bucket)
            let sum = try await options.store.withStore(secret) { opened in
                try await opened.write { [key, by] tx in
                    try bucket.increment(key, by: by, &tx)
                }
            }
            output.printDone(
                Result(
                    path: ReportedPath(options.store.path), bucket: options.bucket, value: sum))
        }
    }
}
