import ArgumentParser
import Coffer

extension KeyValue {
    /// `coffer kv list`
    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists the buckets of a store, or the entries of one, in the order of keys.",
            discussion: """
                An entry is a line with key, tab and value; control characters are shown as \
                escapes. --json writes one object a line.
                """)

        @OptionGroup var store: StoreOptions
        @Argument(help: "The bucket's name; without it the buckets are listed.")
        var bucket: String?
        @OptionGroup var entries: SelectionOptions
        @Flag(help: "Leave the values out.")
        var keysOnly = false
        @OptionGroup(title: "Secret") var secret: SecretOptions
        @OptionGroup(title: "Output") var output: OutputOptions

        func validate() throws {
            guard bucket != nil || !entries.isRange else {
                throw ValidationError("Name the bucket whose keys to list.")
            }
        }

        func run() async throws {
            let connection = try store.connect(secret, mode: .readOnly)
            defer { connection.close() }
            var standardOutput = StandardOutput()
            if let bucket {
                try StoredBucket(bucket).entries(connection, entries.selection) {
                    try EntryWriter.write(
                        $0, keysOnly ? Value?.none : $1, isJSON: output.json, &standardOutput)
                }
            } else {
                for name in try StoredBucket.names(connection) {
                    try EntryWriter.write(
                        .text(name), nil, isJSON: output.json, member: "bucket", &standardOutput)
                }
            }
            try standardOutput.flush()
        }
    }
}
