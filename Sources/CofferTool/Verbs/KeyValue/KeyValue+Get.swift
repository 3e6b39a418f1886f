import ArgumentParser
import Coffer

extension KeyValue {
    /// `coffer kv get`
    struct Get: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Writes the value of a key; exit code 10 if there is none.",
            discussion: """
                Bytes are written as they are, everything else with a newline. With --raw nothing \
                has one.

                EXAMPLES
                  coffer kv get notes.db paths home
                  coffer kv get notes.db images logo --raw > logo.png
                """)

        @OptionGroup var options: BucketOptions
        @Argument(help: "The key.")
        var key: String
        @Flag(help: "Write the bytes of the value alone, without a newline after a text.")
        var raw = false
        @OptionGroup(title: "Secret") var secret: SecretOptions
        @OptionGroup(title: "Output") var output: OutputOptions

        func validate() throws {
            guard !raw || !output.json else {
                throw ValidationError("--raw and --json exclude each other.")
            }
        }

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
                if value.storageClass != .blob, !raw {
                    try standardOutput.write(CollectionOfOne(10))
                }
            }
            try standardOutput.flush()
        }
    }
}
