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
        @Option(help: ArgumentHelp("Only text keys that begin with this text.", valueName: "text"))
        var prefix: String?
        @Option(help: ArgumentHelp("Only this key and later ones.", valueName: "key"))
        var from: String?
        @Option(help: ArgumentHelp("Only keys before this one.", valueName: "key"))
        var below: String?
        @Option(
            help: ArgumentHelp(
                "Go on after this key, the last one of an earlier list.", valueName: "key"))
        var after: String?
        @Flag(help: "From the last key to the first.")
        var reverse = false
        @Option(help: ArgumentHelp("List at most this many entries.", valueName: "number"))
        var limit: Int?
        @Flag(help: "Leave the values out.")
        var keysOnly = false
        @OptionGroup(title: "Secret") var secret: SecretOptions
        @OptionGroup(title: "Output") var output: OutputOptions

        func validate() throws {
            guard limit ?? 0 >= 0 else { throw ValidationError("--limit must not be negative.") }
            let isRange = prefix != nil || from != nil || below != nil || after != nil || reverse
            guard bucket != nil || !isRange else {
                throw ValidationError("Name the bucket whose keys to list.")
            }
        }

        func run() async throws {
            let connection = try store.connect(secret, mode: .readOnly)
            defer { connection.close() }
            var standardOutput = StandardOutput()
            if let bucket {
                let selection = StoredBucket.Selection(
                    prefix: prefix, from: from, below: below, after: after, isReversed: reverse,
                    limit: limit)
                try StoredBucket(bucket).entries(connection, selection) {
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
