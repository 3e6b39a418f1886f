import ArgumentParser
import Coffer

extension KeyValue {
    /// `coffer kv put`
    struct Put: AsyncParsableCommand, ChangingVerb {
        static let configuration = CommandConfiguration(
            abstract: "Puts a value under a key, and replaces any earlier one.",
            discussion: """
                A bucket that does not exist is created, with text keys unless --key-type says \
                otherwise. Every user of the machine can see the argument list: use - or file:PATH \
                for a value that they must not see.

                EXIT CODES
                  0 the value is stored, even if the report could not be written; 130 interrupted: \
                it is stored or nothing was changed. Any other: nothing was changed
                """)

        @OptionGroup var options: BucketOptions
        @Argument(help: "The key.")
        var key: String
        @Argument(help: "The value, or - for standard input.")
        var value: String
        @Option(help: "Keys of a new bucket: text, integer or bytes.")
        var keyType = StoredBucket.KeyType.text
        @OptionGroup(title: "Secret") var secret: SecretOptions
        @OptionGroup(title: "Output") var output: OutputOptions

        func validate() throws {
            try StandardInput.claim(value == "-" ? "the value" : nil, secret)
        }

        struct Result: Report {
            let path: ReportedPath
            let bucket: String
            var lines: [(label: String, value: String)] { [("put into", bucket)] }
        }

        func run() async throws {
            let path = options.store.path
            let stored: Value =
                try value == "-"
                ? .text(StandardInput.text("value"))
                : BoundValue.parse(value, apartFrom: path)
            guard stored != .null else {
                throw ToolError(
                    .usage, "a value must not be null",
                    hint: "Remove the key with coffer kv delete.")
            }
            let bucket = StoredBucket(options.bucket)
            try await options.store.withStore(secret) { opened in
                try await opened.write { [key, keyType] tx in
                    try bucket.put(stored, key, making: keyType, &tx)
                }
            }
            output.printDone(
                Result(path: ReportedPath(options.store.path), bucket: options.bucket))
        }
    }
}
