import Coffer
import CofferObservation
import CofferReplica
import CofferTestKit
import Foundation
import Observation

/// The symbols that the README's table of parts names, each in a call that only has to compile.
/// `TableSymbolTests` compares the comments with the table, and the words with the code.
private enum ReadmeSymbols {
    struct Note: Record, Equatable {
        // `RecordAccess.storedProperties`
        static var access: RecordAccess { RecordAccess.storedProperties }
        var id: Int
        var title: String
        var author: Int
    }

    struct Author: Record {
        var id: Int
        var name: String
    }

    struct Mail: Record {
        static var fullTextIndex: FullTextIndex<Self>? { FullTextIndex(\.text) }
        static var references: [Reference<Self>] { [Reference(\.thread, to: Mail.self)] }
        var id: Int
        var text: String
        var thread: Int?
        var names: [String]?
        // `jsonPaths`
        static var jsonPaths: [PartialKeyPath<Self>: JSONPath] {
            [\.names?[0]: JSONPath("names", 0)]
        }
    }

    static func tests(_ migrations: [Migration]) throws {
        // `CofferTestKit`, `StoreTemplate`, `TemporaryStore`
        let template: StoreTemplate = try CofferTestKit.StoreTemplate { _ in }
        let _: TemporaryStore = try template.copy()
        // `ManualClock`
        ManualClock().advance(by: .seconds(1))
        // `Migration.rehearse(_:on:for:)`
        _ = Migration.rehearse(migrations, on: [], for: Note.self)
    }

    static func stores() async throws {
        // `Store`, `Store(.memory)`
        let store: Store = try await Store(.memory)
        // `write`, `savepoint`
        try await store.write { tx in try tx.savepoint { inner in try inner.execute("SELECT 1") } }
        // `read`
        try await store.read { tx in _ = try tx.rows("SELECT 1") }
        // `snapshot`
        _ = try await store.snapshot()
        // `suspend`
        try await store.suspend()
        // `rotate`
        _ = try await store.rotate()
        // `rekey`, `StoreKey`, `rekey(to:)`, `raw`
        _ = try await store.rekey(to: StoreKey.raw([UInt8](repeating: 1, count: 32)))
        // `verify`
        _ = try await store.verify()
        // `backup`
        _ = try await store.backup(to: "copy.db")
        // `restore`
        try await Store.restore(from: "copy.db", key: .passphrase("correct horse"), to: "notes.db")
        // `salvage`
        _ = try await Store.salvage(
            damagedAt: "notes.db", key: .passphrase("correct horse"), to: "rest.db")
        // `compact`
        _ = try await store.compact()
        // `migrate([Migration])`
        let migrations: [Migration] = []
        try await store.migrate(migrations)
        // `raw(hex:)`, `passphrase(contentsOfFile:)`, `random`, `copy`
        _ = try StoreKey.raw(hex: "00")
        _ = try StoreKey.passphrase(contentsOfFile: "/run/secrets/store").copy()
        _ = StoreKey.random()
        // `Store.upgrade`, `passphrase`
        _ = try await Store.upgrade(
            from: "old.db", key: StoreKey.passphrase("text"), to: "new.db")
    }

    static func keyring(_ store: Store) async throws {
        // `StoreKey.keyring`
        _ = StoreKey.keyring(.passphrase("text"))
        // `store.keys`
        _ = try store.keys.slots
        // `Keyring(of:)`
        _ = try Keyring(of: "notes.db")
        // `Store.enableKeyring`
        _ = try await Store.enableKeyring(
            "notes.db", key: .passphrase("text"), as: .passphrase("text"), label: "me",
            recovery: nil)
        // `rebuild`
        _ = try await Keyring.rebuild(
            for: "notes.db", rootBackup: [], as: .passphrase("text"), label: "me")
    }

    static func observation(_ store: Store) async throws {
        // `observe`
        for try await _ in store.observe({ tx in try tx.count(Note.all) }) {}
        let notes = store.observe { tx in try tx.fetch(Note.all) }
        // `throttle(for:)`, `differences(by:)`
        _ = notes.throttle(for: .seconds(1)).differences(by: \.id)
        // `changes(in:)`
        for try await _ in store.changes(in: Note.self) {}
        // `ChangeToken`, `changes(since:)`
        let token: ChangeToken = try await store.read { tx in try tx.changeToken() }
        _ = try await store.changes(since: token)
    }

    @MainActor static func screen(_ store: Store) {
        // `CofferObservation`, `FetchedRows`
        _ = CofferObservation.FetchedRows(store, Note.all)
        // `FetchedValue`
        _ = FetchedValue(store) { tx in try tx.count(Note.all) }
        // `@Observable`
        func observe(_ model: some Observable) {}
    }

    static func records(_ store: Store) async throws {
        // `Record`
        func table<R: Record>(of type: R.Type) -> String { type.table }
        _ = table(of: Note.self)
        // `Condition`, `Query`
        let condition: Condition<Note> = \.title == "a"
        let query: Query<Note> = Note.where(condition)
        // `joining(_:to:)`
        let join = query.joining(\.author, to: Author.all)
        // `leftJoining(_:to:)`
        let left = query.leftJoining(\.author, to: Author.all)
        // `matching`, `regexp`, `isDescendant(of:by:)`
        let mails = Mail.where(.matching("words") && .regexp(\.text, "^a"))
        let below = Mail.where(.isDescendant(of: mails, by: \.thread))
        // `including(all:by:)`
        let nested = Author.all.including(all: query, by: \.author)
        try await store.read { tx throws in
            _ = try tx.fetch(join)
            _ = try tx.fetch(below)
            _ = try tx.fetch(left)
            _ = try tx.fetch(nested)
        }
        // `group(by:)`
        let groups = query.group(by: \.author)
        try await store.read { tx in _ = try tx.fetch(groups, .count) }
        // `stream`
        for try await _ in store.stream(query) {}
        // `SQL`
        let sql: SQL = "SELECT * FROM note WHERE id = \(1)"
        try await store.read { tx in _ = try tx.fetch(Note.self, sql: sql) }
    }

    static func buckets(_ store: Store) async throws {
        // `Bucket`
        let bucket: Bucket<String, Int> = Bucket("counts")
        // `CompositeKey`
        let key: CompositeKey<String, Int> = CompositeKey("a", 1)
        _ = key
        // `BucketCodec`
        let codec: BucketCodec<String> = BucketCodec(name: "utf8") {
            Data($0.utf8)
        } decode: {
            String(decoding: $0, as: UTF8.self)
        }
        _ = codec
        // `BucketCache`
        var configuration = Configuration()
        configuration.bucketCache = BucketCache(maximumCount: 100)
        // `AttachmentBucket`
        let photos: AttachmentBucket<UUID> = AttachmentBucket("photos")
        _ = photos
        // `Setting`
        let setting: Setting<Int> = Setting("size", default: 12)
        _ = setting
        try await store.write { tx in
            // `set`
            try tx.set(1, for: "a", in: bucket)
            // `get`
            _ = try tx.get("a", in: bucket)
            // `entries(in:)`
            _ = try tx.entries(in: bucket, .prefix("a"))
            // `compareExchange`
            _ = try tx.compareExchange("a", expected: 1, desired: 2, in: bucket)
            // `increment`
            _ = try tx.increment("a", in: bucket)
            // `popFirst`
            _ = try tx.popFirst(in: bucket)
            // `remove`
            _ = try tx.remove("a", in: bucket)
        }
    }

    static func replicas(_ store: Store) async throws {
        // `CofferReplica`, `Remote`, `S3Remote`
        var remote: any CofferReplica.Remote = try FolderRemote("/mnt/backups/notes")
        remote = try S3Remote("https://s3.example/backups/notes", credentials: .instance)
        // `store.replicate(to:)`
        _ = try await store.replicate(to: remote)
        // `store.replicateOnce(to:)`
        _ = try await store.replicateOnce(to: remote)
        // `Store.restore(from:to:key:at:)`
        _ = try await Store.restore(
            from: remote, to: "notes.db", key: .passphrase("text"), at: .newest)
    }

    static func connections() throws {
        // `Connection`
        let connection: Connection = try Connection(path: "notes.db", key: .passphrase("text"))
        // `Row.dictionary`
        let row: Row? = try connection.firstRow("SELECT 1")
        _ = row?.dictionary
        // `register(function:)`
        try connection.register(function: "one") { _ in 1 }
        // `withBlob`
        _ = try connection.withBlob("body", in: "note", row: 1) { blob in blob.byteCount }
        // `attach`
        try connection.attach("other.db", as: "other", key: .passphrase("text"))
        // `register(tokenizer:named:)`
        try connection.register(tokenizer: WordTokenizer(), named: "words")
        // `fullText`
        try connection.fullText(.optimize, on: "note")
    }
}
