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
                for a value that they must not see. With --raw the value of - is stored as bytes, \
                byte for byte, as that of file:PATH always is.

                EXAMPLES
                  coffer kv put notes.db sessions ada token --expires-after 15m
                  coffer kv put notes.db images logo - --raw < logo.png

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
        @Flag(help: "Store standard input, or the file of file:PATH, as bytes and unchanged.")
        var raw = false
        @OptionGroup var expiry: ExpiryOptions
        @OptionGroup(title: "Secret") var secret: SecretOptions
        @OptionGroup(title: "Output") var output: OutputOptions

        func validate() throws {
            guard !raw || value == "-" || value.hasPrefix("file:") else {
                throw ValidationError("--raw needs standard input, -, or file:PATH as the value.")
            }
            try StandardInput.claim(value == "-" ? "the value" : nil, secret)
        }

        struct Result: Report {
            let path: ReportedPath
            let bucket: String
            let expires: String?
            var lines: [(label: String, value: String)] {
                [("put into", bucket)] + (expires.map { [("expires", $0)] } ?? [])
            }
        }

        func run() async throws {
            let stored = try givenValue()
            guard stored != .null else {
                throw ToolError(
                    .usage, "a value must not be null",
                    hint: "Remove the key with coffer kv delete.")
            }
            let bucket = StoredBucket(options.bucket)
            let changed = try await options.store.withStore(secret) { opened in
                try await opened.write { [key, keyType, end = expiry.end] tx in
                    try bucket.put(stored, key, making: keyType, ending: end, &tx)
                }
            }
            output.printDone(
                Result(
                    path: ReportedPath(options.store.path), bucket: options.bucket,
                    expires: changed.end.flatMap(ExactTime.text)))
        }

        private func givenValue() throws -> Value {
            guard value == "-" else {
                return try BoundValue.parse(value, apartFrom: options.store.path)
            }
            return try raw ? .blob(StandardInput.bytes()) : .text(StandardInput.text("value"))
        }
    }
}
