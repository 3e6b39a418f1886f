import Foundation
import Testing

@testable import Coffer

@Suite struct BucketSchemaTests {
    private struct Session: Codable, Sendable, Equatable { var user: String }
    private let fixture: BucketFixture
    private var store: Store { fixture.store }

    init() throws { fixture = try BucketFixture() }

    private func execute(_ sql: String) throws {
        _ = try store.write { tx in try tx.execute(SQL(text: sql)) }
    }

    @Test func `the types that a bucket was made with are recorded and compared`() throws {
        let users = Bucket<UUID, Session>("users")
        try store.set(Session(user: "ada"), for: UUID(), in: users)
        let bytes = expect(.mismatch) {
            try store.keys(in: Bucket<Data, Session>("users"))
        }
        #expect(bytes?.message.contains("uuid") == true && bytes?.column == "key")
        let numbers = expect(.mismatch) { try store.values(in: Bucket<UUID, Int>("users")) }
        #expect(numbers?.message.contains("json") == true && numbers?.column == "value")
        let parts = Bucket<CompositeKey<String, Int>, Int>("parts")
        try store.set(1, for: CompositeKey("a", 1), in: parts)
        expect(.mismatch) { try store.keys(in: Bucket<CompositeKey<Int, String>, Int>("parts")) }
        expect(.mismatch) { try store.count(in: Bucket<UInt64, Int>("parts")) }
    }

    private static func codec(_ name: String) -> BucketCodec<Session> {
        BucketCodec(name: name) { session in
            guard session.user != "refused" else { throw CancellationError() }
            return Data(session.user.utf8)
        } decode: { bytes in
            guard let user = String(validating: bytes, as: UTF8.self) else {
                throw CancellationError()
            }
            return Session(user: user)
        }
    }

    @Test func `a codec of one's own makes the bytes, and is asked for by its name`() throws {
        let users = Bucket<Int, Session>("users", codec: Self.codec("name 1"))
        try store.set(Session(user: "ada"), for: 1, in: users)
        #expect(try store.get(1, in: users) == Session(user: "ada"))
        let stored = try store.read { tx in try tx.firstRow("SELECT value FROM \"bucket:users\"") }
        #expect(stored?[0] == .blob(Data("ada".utf8)))
        expect(.mismatch) {
            try store.get(1, in: Bucket<Int, Session>("users", codec: Self.codec("name 2")))
        }
        expect(.mismatch) { try store.get(1, in: Bucket<Int, Session>("users")) }
        expect(.mismatch) { try store.get(1, in: Bucket<Int, Data>("users")) }
        for name in ["", "json", "sql", "any"] {
            expect(.misuse) {
                try store.get(1, in: Bucket<Int, Session>("other", codec: Self.codec(name)))
            }
        }
    }

    @Test func `a codec that throws stores nothing, and its error is the cause`() throws {
        let users = Bucket<Int, Session>("users", codec: Self.codec("name 1"))
        let error = expect(.mismatch) {
            try store.write { tx in
                try tx.set(Session(user: "first"), for: 1, in: users)
                try tx.set(Session(user: "refused"), for: 2, in: users)
            }
        }
        #expect(error?.cause is CancellationError)
        #expect(try store.count(in: users) == 0)
        try store.set(Session(user: "ada"), for: 1, in: users)
        try execute("UPDATE \"bucket:users\" SET value = x'ff'")
        #expect(expect(.mismatch) { try store.get(1, in: users) }?.cause is CancellationError)
        try execute("UPDATE \"bucket:users\" SET value = 'text'")
        expect(.mismatch) { try store.get(1, in: users) }
    }

    @Test func `a bucket that an earlier version made is opened and gets expiry`() throws {
        try execute(
            "CREATE TABLE \"bucket:old\" (key TEXT PRIMARY KEY NOT NULL, value) WITHOUT ROWID")
        try execute("INSERT INTO \"bucket:old\" VALUES ('a', 1)")
        let old = Bucket<String, Int>("old")
        #expect(try store.get("a", in: old) == 1)
        try store.set(2, for: "b", in: old, expiring: .after(.seconds(5)))
        fixture.clock.advance(by: 5)
        #expect(try store.keys(in: old) == ["a"])
        expect(.mismatch) {
            try store.count(in: Bucket<String, Session>("old", codec: Self.codec("name 1")))
        }
        let found = try store.read { tx in try tx.buckets() }
        #expect(found.map(\.codec) == [nil] && found[0].keyType == .text && found[0].hasExpiry)
    }

    @Test(arguments: [
        "CREATE VIEW \"bucket:b\" AS SELECT 1 AS key, 2 AS value",
        "CREATE TABLE \"bucket:b\" (key INTEGER PRIMARY KEY NOT NULL, value, more)",
        "CREATE TABLE \"bucket:b\" (value, key INTEGER PRIMARY KEY)",
        "CREATE TABLE \"bucket:b\" (key INTEGER, value)",
        "CREATE TABLE \"bucket:b\" (key INTEGER PRIMARY KEY, value)",
        "CREATE TABLE \"bucket:b\" (key INTEGER PRIMARY KEY NOT NULL, value TEXT)",
        "CREATE TABLE \"bucket:b\" (key INTEGER NOT NULL, value, PRIMARY KEY (key, value))",
        "CREATE TABLE \"bucket:b\" (key INTEGER NOT NULL, value, PRIMARY KEY (value, key))",
        "CREATE TABLE \"bucket:b\" (key TEXT PRIMARY KEY NOT NULL, value)",
        "CREATE VIRTUAL TABLE \"bucket:b\" USING fts4(key, value)",
    ])
    func `what only looks like a bucket is refused by every verb`(sql: String) throws {
        try execute(sql)
        let bucket = Bucket<Int, Int>("b")
        expect(.mismatch) { try store.get(1, in: bucket) }
        expect(.mismatch) { try store.set(1, for: 1, in: bucket) }
        expect(.mismatch) { try store.popFirst(in: bucket) }
        expect(.mismatch) { try store.removeAll(in: bucket) }
    }

    @Test func `keys that are compared without case are refused`() throws {
        try execute(
            """
            CREATE TABLE "bucket:b" (key TEXT PRIMARY KEY NOT NULL COLLATE NOCASE, value)
            WITHOUT ROWID
            """)
        expect(.mismatch) { try store.set(1, for: "A", in: Bucket<String, Int>("b")) }
    }

    @Test func `triggers of a program keep their own conflict clauses`() throws {
        let bucket = Bucket<String, Int>("b")
        try store.set(1, for: "a", in: bucket)
        try execute("CREATE TABLE latest (id INTEGER PRIMARY KEY, key)")
        try execute("CREATE TABLE once (value UNIQUE)")
        for event in ["INSERT", "UPDATE"] {
            try execute(
                """
                CREATE TRIGGER t\(event) AFTER \(event) ON "bucket:b"
                BEGIN INSERT OR REPLACE INTO latest VALUES (1, new.key); END
                """)
        }
        for key in ["b", "c", "a"] {
            try store.set(2, for: key, in: bucket)
            let latest = try store.read { tx in try tx.firstRow("SELECT key FROM latest") }
            #expect(latest?[0] == .text(key))
        }
        #expect(try !store.setIfAbsent(3, for: "a", in: bucket))
        #expect(try store.setIfAbsent(3, for: "d", in: bucket))
        try execute(
            """
            CREATE TRIGGER u AFTER UPDATE ON "bucket:b"
            BEGIN INSERT INTO once VALUES (new.value); END
            """)
        try store.set(7, for: "a", in: bucket)
        let value = try store.write { tx in
            expect(.constraint) { try tx.set(7, for: "b", in: bucket) }
            return try tx.get("b", in: bucket)
        }
        #expect(value == 2, "a change that was refused is undone")
    }

    @Test func `setIfAbsent does not take a refusal for a value that is there`() throws {
        let bucket = Bucket<String, Int>("b")
        try store.set(1, for: "a", in: bucket)
        try execute("CREATE UNIQUE INDEX once ON \"bucket:b\" (value)")
        expect(.constraint) { try store.setIfAbsent(1, for: "b", in: bucket) }
        #expect(try !store.setIfAbsent(1, for: "a", in: bucket))
    }

    @Test func `an unusable key or lifetime makes no table`() throws {
        let none = Bucket<CompositeKey<>, Int>("none")
        expect(.misuse) { try store.set(1, for: CompositeKey(), in: none) }
        let long = Bucket<String, Int>("long", lifetime: .seconds(Int64.max))
        try store.write { tx in
            expect(.mismatch) { try tx.set(1, for: "a", in: long, expiring: .never) }
            try tx.set(1, for: "a", in: Bucket<String, Int>("other"))
        }
        #expect(try store.read { tx in try tx.buckets().map(\.name) } == ["other"])
    }

    @Test func `a temporary table does not hide a bucket`() throws {
        let bucket = Bucket<Int, Int>("b")
        try store.write { tx in
            try tx.set(1, for: 1, in: bucket)
            try tx.execute("CREATE TEMP TABLE \"bucket:b\" (key, value)")
            #expect(try tx.get(1, in: bucket) == 1)
            #expect(try tx.count(in: bucket) == 1)
            try tx.execute("DROP TABLE temp.\"bucket:b\"")
        }
    }

    @Test func `values that the bucket's type cannot have are errors`() throws {
        let bucket = Bucket<Int, Int>("b")
        try store.set(1, for: 1, in: bucket)
        for value in ["NULL", "'text'", "1.5", "x'00'"] {
            try execute("UPDATE \"bucket:b\" SET value = \(value)")
            expect(.mismatch) { try store.get(1, in: bucket) }
            expect(.mismatch) { try store.increment(1, in: bucket) }
            expect(.mismatch) { try store.take(1, in: bucket) }
            expect(.mismatch) { try store.popFirst(in: bucket) }
            #expect(try store.contains(1, in: bucket), "a refused value stays")
        }
    }

    @Test func `a trigger that refuses changes makes the verb fail, not lie`() throws {
        let bucket = Bucket<Int, Int>("b")
        try store.set(1, for: 1, in: bucket)
        for event in ["INSERT", "UPDATE", "DELETE"] {
            try execute(
                """
                CREATE TRIGGER no_\(event) BEFORE \(event) ON "bucket:b"
                BEGIN SELECT RAISE(IGNORE); END
                """)
        }
        let error = expect(.constraint) { try store.set(2, for: 1, in: bucket) }
        #expect(error?.message.contains("trigger") == true)
        expect(.constraint) { try store.increment(1, in: bucket) }
        expect(.constraint) { try store.popFirst(in: bucket) }
        expect(.constraint) { try store.remove(1, in: bucket) }
        #expect(try store.removeAll(in: bucket) == 0, "none was removed")
        expect(.constraint) { try store.take(1, in: bucket) }
        #expect(try store.get(1, in: bucket) == 1)
    }

    // MARK: Buckets as things

    @Test func `buckets are listed with their types, entries and bytes`() throws {
        try store.set(Data(count: 100), for: "key", in: Bucket<String, Data>("a"))
        try store.set(Session(user: "x"), for: UUID(), in: Bucket<UUID, Session>("b"))
        let expiring = Bucket<Int, Int>("c", lifetime: .seconds(90))
        try store.set(1, for: 1, in: expiring)
        try store.set(1, for: 2, in: expiring, expiring: .after(.seconds(1)))
        try execute("CREATE TABLE \"bucket:no\" (x)")
        fixture.clock.advance(by: 1)
        let found = try store.read { tx in try tx.buckets() }
        #expect(found.map(\.name) == ["a", "b", "c"])
        #expect(found.map(\.keyType) == [.text, .uuid, .integer])
        #expect(found.map(\.codec) == ["sql", "json", "sql"])
        #expect(found.map(\.lifetime) == [nil, nil, .seconds(90)])
        #expect(found.map(\.hasExpiry) == [false, false, true])
        #expect(found.map(\.count) == [1, 1, 1])
        #expect(found.map(\.byteCount) == [103, 16 + #"{"user":"x"}"#.utf8.count, 4])
    }

    @Test func `a bucket is renamed with its types and times`() throws {
        let old = Bucket<UUID, Int>("old", lifetime: .seconds(60))
        let new = Bucket<UUID, Int>("new", lifetime: .seconds(60))
        let id = UUID()
        try store.set(7, for: id, in: old)
        try store.write { tx in try tx.renameBucket("old", to: "new") }
        #expect(try store.get(id, in: new) == 7)
        #expect(try store.get(id, in: old) == nil)
        expect(.mismatch) { try store.count(in: Bucket<Data, Int>("new")) }
        #expect(try store.remainingLifetime(of: id, in: new) == .limited(.seconds(60)))
        fixture.clock.advance(by: 60)
        #expect(try store.sweepExpiredEntries() == 1, "the index has the new name")
        // The old name is free for other types.
        try store.set(1, for: 1, in: Bucket<Int, Int>("old"))
    }

    @Test func `a bucket with a history is renamed once the history has ended`() throws {
        let old = Bucket<String, Int>("old")
        try store.set(1, for: "a", in: old)
        try store.write { tx in try tx.keepHistory(of: "bucket:old") }
        expect(.unsupported) { try store.write { tx in try tx.renameBucket("old", to: "new") } }
        try store.write { tx in
            try tx.stopKeepingHistory(of: "bucket:old")
            try tx.renameBucket("old", to: "new")
            try tx.keepHistory(of: "bucket:new")
            try tx.set(2, for: "a", in: Bucket<String, Int>("new"))
        }
        #expect(try store.get("a", in: Bucket<String, Int>("new")) == 2)
    }

    @Test func `a bucket with a history is refused also under a name like that of contents`() throws
    {
        let bucket = Bucket<String, Int>("web:content-cache")
        try store.write { tx in
            try tx.set(1, for: "a", in: bucket)
            try tx.keepHistory(of: bucket.table)
        }
        expect(.unsupported) {
            try store.write { tx in try tx.renameBucket(bucket.name, to: "new") }
        }
    }

    @Test func `a bucket that is observed is renamed and written at once`() async throws {
        let (store, old) = (store, Bucket<String, Int>("old"))
        try await store.set(1, for: "a", in: old)
        let loop = store.changes(in: old).makeAsyncIterator()
        try await store.set(2, for: "a", in: old)
        _ = try await loop.next()
        try await store.write { tx in
            try tx.renameBucket("old", to: "new")
            try tx.set(3, for: "a", in: Bucket<String, Int>("new"))
        }
        #expect(try await store.get("a", in: Bucket<String, Int>("new")) == 3)
        _ = try await loop.next()
    }

    @Test func `a bucket is copied and dropped`() throws {
        let old = Bucket<String, Int>("old", lifetime: .seconds(60))
        let copy = Bucket<String, Int>("copy")
        try store.set(["a": 1, "b": 2], in: old)
        #expect(try store.write { tx in try tx.copyBucket("old", to: "copy") } == 2)
        try store.set(3, for: "a", in: copy)
        #expect(try store.get("a", in: old) == 1)
        #expect(try store.remainingLifetime(of: "b", in: copy) == .limited(.seconds(60)))
        #expect(try store.write { tx in try tx.dropBucket("old") })
        #expect(try !store.write { tx in try tx.dropBucket("old") })
        #expect(try store.read { tx in try tx.buckets().map(\.name) } == ["copy"])
        #expect(try store.get("a", in: old) == nil)
    }

    @Test func `an unknown or taken name is an error that says what is there`() throws {
        try store.set(1, for: 1, in: Bucket<Int, Int>("one"))
        try store.set(1, for: 1, in: Bucket<Int, Int>("two"))
        let error = expect(.notFound) {
            try store.write { tx in try tx.renameBucket("three", to: "four") }
        }
        #expect(error?.hint == "The store has: one, two.")
        expect(.alreadyExists) { try store.write { tx in try tx.copyBucket("one", to: "two") } }
        expect(.misuse) { try store.write { tx in try tx.renameBucket("one", to: "TWO") } }
        expect(.misuse) { try store.write { tx in try tx.renameBucket("one", to: "") } }
        expect(.sql) { try store.write { tx in try tx.renameBucket("one", to: "a\0b") } }
        #expect(try store.read { tx in try tx.buckets().map(\.name) } == ["one", "two"])
    }
}
