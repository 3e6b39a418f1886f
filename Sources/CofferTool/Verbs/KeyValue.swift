import ArgumentParser
import Coffer
import Foundation

/// `coffer kv`
struct KeyValue: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "kv",
        abstract: "Reads and writes the entries of buckets.",
        discussion: """
            Keys are text, integers, UUIDs, dates or bytes, depending on the bucket; bytes are \
            written hex:00ff, and dates as seconds since 2001. Values are text, taken literally, \
            or typed by a prefix: int:5, real:1.5, text:int:5, hex:00ff, file:PATH. The value - \
            is read from standard input, as text. A \
            program's values of Codable types are JSON text. After -- nothing is an option, so \
            that keys and values may begin with a dash.

            EXAMPLES
              coffer kv put notes.db paths home /home/ada
              coffer kv get notes.db paths home
              coffer kv list notes.db paths --prefix ho --json
              coffer kv delete notes.db paths home
              coffer kv incr notes.db counters visits
              coffer kv put --passphrase-file secret notes.db temperatures -- -k -5
            """,
        subcommands: [
            Get.self, Put.self, Delete.self, List.self, Count.self, Increment.self, Buckets.self,
            Drop.self,
        ])
}

/// Options of every verb that works on one bucket.
struct BucketOptions: ParsableArguments {
    @OptionGroup var store: StoreOptions
    @Argument(help: "The bucket's name.")
    var bucket: String

    func validate() throws {
        guard !bucket.isEmpty else { throw ValidationError("A bucket's name must not be empty.") }
    }
}

extension KeyValue {
    struct Get: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Writes the value of a key; exit code 10 if there is none.",
            discussion: "Bytes are written as they are, everything else with a newline.")

        @OptionGroup var options: BucketOptions
        @Argument(help: "The key.")
        var key: String
        @OptionGroup(title: "Secret") var secret: SecretOptions
        @OptionGroup(title: "Output") var output: OutputOptions

        func run() async throws {
            let bucket = StoredBucket(options.bucket)
            let value = try await options.store.withStore(secret, mode: .readOnly) { opened in
                try await opened.read { [key] tx in try bucket.get(key, tx) }
            }
            guard let value else {
                throw ToolError(.notFound, "the bucket \(options.bucket) has no such key")
            }
            var standardOutput = StandardOutput()
            if output.json {
                try EntryWriter.write(.text(key), value, &standardOutput)
            } else {
                try standardOutput.write(EntryWriter.bytes(of: value))
                if case .blob = value {} else { try standardOutput.write(CollectionOfOne(10)) }
            }
            try standardOutput.flush()
        }
    }

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

    struct Delete: AsyncParsableCommand, ChangingVerb {
        static let configuration = CommandConfiguration(
            abstract: "Removes a key and its value; exit code 10 if there is none.",
            discussion: """
                EXIT CODES
                  0 it is removed, even if the report could not be written; 130 interrupted: it is \
                removed or nothing was changed. Any other: nothing was changed
                """)

        @OptionGroup var options: BucketOptions
        @Argument(help: "The key.")
        var key: String
        @OptionGroup(title: "Secret") var secret: SecretOptions
        @OptionGroup(title: "Output") var output: OutputOptions

        struct Result: Report {
            let path: ReportedPath
            let bucket: String
            var lines: [(label: String, value: String)] { [("deleted from", bucket)] }
        }

        func run() async throws {
            let bucket = StoredBucket(options.bucket)
            let wasThere = try await options.store.withStore(secret) { opened in
                try await opened.write { [key] tx in try bucket.delete(key, &tx) }
            }
            guard wasThere else {
                throw ToolError(.notFound, "the bucket \(options.bucket) has no such key")
            }
            output.printDone(
                Result(path: ReportedPath(options.store.path), bucket: options.bucket))
        }
    }

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

    struct Count: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Counts the entries of a bucket.")

        @OptionGroup var options: BucketOptions
        @OptionGroup(title: "Secret") var secret: SecretOptions
        @OptionGroup(title: "Output") var output: OutputOptions

        struct Result: Encodable {
            let count: Int
        }

        func run() async throws {
            let bucket = StoredBucket(options.bucket)
            let count = try await options.store.withStore(secret, mode: .readOnly) { opened in
                try await opened.read { tx in try bucket.count(tx) }
            }
            var standardOutput = StandardOutput()
            try standardOutput.writeLine(
                output.json ? JSON.object(Result(count: count)) : String(count))
            try standardOutput.flush()
        }
    }

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
        @Option(help: ArgumentHelp("What to add; may be negative.", valueName: "number"))
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

    struct Buckets: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists the buckets of a store with their types, entries and bytes.",
            discussion: """
                A line has the name, the type of the keys, the codec of the values, the number of \
                entries and the bytes of keys and values, with tabs in between. --json writes one \
                object a line.
                """)

        @OptionGroup var store: StoreOptions
        @OptionGroup(title: "Secret") var secret: SecretOptions
        @OptionGroup(title: "Output") var output: OutputOptions

        struct Line: Encodable {
            let bucket: String
            let keyType: String?
            let codec: String?
            let count: Int
            let byteCount: Int
            let lifetimeSeconds: Double?
        }

        func run() async throws {
            let found = try await store.withStore(secret, mode: .readOnly) { opened in
                try await opened.read { tx in try tx.buckets() }
            }
            var standardOutput = StandardOutput()
            for bucket in found {
                let line = Line(
                    bucket: bucket.name, keyType: bucket.keyType?.description,
                    codec: bucket.codec, count: bucket.count, byteCount: bucket.byteCount,
                    lifetimeSeconds: bucket.lifetime.map { $0 / .seconds(1) })
                guard !output.json else {
                    try standardOutput.writeLine(JSON.object(line))
                    continue
                }
                let texts = [
                    VisibleText.of(.text(line.bucket), null: ""), line.keyType ?? "-",
                    VisibleText.of(.text(line.codec ?? "-"), null: ""), String(line.count),
                    String(line.byteCount),
                ]
                try standardOutput.writeLine(texts.joined(separator: "\t"))
            }
            try standardOutput.flush()
        }
    }

    struct Drop: AsyncParsableCommand, ChangingVerb {
        static let configuration = CommandConfiguration(
            abstract: "Removes a bucket with all its entries; exit code 10 if there is none.",
            discussion: """
                EXIT CODES
                  0 it is removed, even if the report could not be written; 130 interrupted: it is \
                removed or nothing was changed. Any other: nothing was changed
                """)

        @OptionGroup var options: BucketOptions
        @OptionGroup(title: "Secret") var secret: SecretOptions
        @OptionGroup(title: "Output") var output: OutputOptions

        struct Result: Report {
            let path: ReportedPath
            let bucket: String
            var lines: [(label: String, value: String)] { [("dropped", bucket)] }
        }

        func run() async throws {
            let name = options.bucket
            let wasThere = try await options.store.withStore(secret) { opened in
                try await opened.write { tx in try tx.dropBucket(name) }
            }
            guard wasThere else {
                throw ToolError(
                    .notFound, "there is no bucket \(name)",
                    hint: "List the buckets with coffer kv list.")
            }
            output.printDone(Result(path: ReportedPath(options.store.path), bucket: name))
        }
    }
}
