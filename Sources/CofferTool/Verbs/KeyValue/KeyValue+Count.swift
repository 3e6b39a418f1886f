import ArgumentParser
import Coffer

extension KeyValue {
    /// `coffer kv count`
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
}
