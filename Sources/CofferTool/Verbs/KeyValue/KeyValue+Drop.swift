import ArgumentParser
import Coffer

extension KeyValue {
    /// `coffer kv drop`
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
