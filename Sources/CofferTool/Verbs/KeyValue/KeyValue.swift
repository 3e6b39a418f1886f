import ArgumentParser
import Coffer

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
              coffer kv put notes.db sessions ada token --expires-after 15m
              coffer kv put notes.db images logo - --raw < logo.png
              coffer kv list notes.db paths --prefix ho --json
              coffer kv delete notes.db paths home
              coffer kv incr notes.db counters visits
              coffer kv expire notes.db sessions ada --after 15m
              coffer kv export notes.db paths --output paths.jsonl
              coffer kv import notes.db paths paths.jsonl --replace
              coffer kv put --passphrase-file secret notes.db temperatures -- -k -5
            """,
        subcommands: [
            Get.self, Put.self, Delete.self, List.self, Count.self, Increment.self, Expire.self,
            ExportEntries.self, ImportEntries.self, Buckets.self, Drop.self,
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
