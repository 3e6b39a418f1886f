import ArgumentParser
import Coffer

extension KeyValue {
    /// `coffer kv buckets`
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
}
