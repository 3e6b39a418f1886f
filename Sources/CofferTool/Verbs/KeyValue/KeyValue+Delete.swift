import ArgumentParser
import Coffer

extension KeyValue {
    /// `coffer kv delete`
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
}
