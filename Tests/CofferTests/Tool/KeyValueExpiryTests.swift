import Foundation
import Testing

@testable import Coffer

/// Entries that end: `coffer kv expire`, and the options of `coffer kv put`.
@Suite(.againstHanging, .onOwnThreads) struct KeyValueExpiryTests {
    private let store: ToolStore
    private let bucket = Bucket<String, String>("b")

    init() throws {
        store = try ToolStore()
    }

    private func kv(_ verb: String, _ arguments: String..., key: UInt8 = 1) throws -> Tool.Output {
        try Tool.run(
            ["kv", verb, store.path] + arguments + ["--raw-key-fd", "3"],
            descriptors: [3: Tool.key(key)])
    }

    private func write(_ body: (inout WriteTransaction) throws -> Void) throws {
        let opened = try Store(path: store.path, key: .numbered(1), mode: .mustExist)
        try opened.write(body)
        try opened.close()
    }

    /// The column `expires` of an entry, in microseconds since 1970.
    private func expires(_ key: String) throws -> Value? {
        try store.rows("SELECT expires FROM \"bucket:b\" WHERE key = \(key)").first?[0]
    }

    /// Expects a time that lies so many seconds after now.
    private func expectAfter(
        _ seconds: Int64, _ key: String, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        guard case .integer(let time)? = try expires(key) else {
            Issue.record("\(key) does not expire", sourceLocation: sourceLocation)
            return
        }
        let now = Int64(Date().timeIntervalSince1970 * 1e6)
        let left = time - now
        // The run of the tool took some of it.
        #expect(
            left <= seconds * 1_000_000 && left > (seconds - 60) * 1_000_000, "\(left)",
            sourceLocation: sourceLocation)
    }

    @Test func `an entry gets a time, another one, and none, and keeps its value`() throws {
        #expect(try kv("put", "b", "k", "v").exitCode == 0)
        for (duration, seconds) in [("90s", 90), ("15m", 900), ("2h", 7200), ("7d", 604_800)] {
            let output = try kv("expire", "b", "k", "--after", duration)
            #expect(output.exitCode == 0, "\(output.errorText)")
            try expectAfter(Int64(seconds), "k")
        }
        let at = try kv("expire", "b", "k", "--at", "2286-11-20T18:46:39.000001+01:00")
        #expect(at.text == "expires: 2286-11-20T17:46:39.000001Z\n", "\(at.errorText)")
        #expect(try expires("k") == .integer(9_999_999_999_000_001))
        #expect(try kv("get", "b", "k").text == "v\n")
        #expect(try kv("expire", "b", "k", "--never").text == "expires: never\n")
        #expect(try expires("k") == .null)
        // The library finds the entries by the index that it would have made itself.
        let opened = try Store(path: store.path, key: .numbered(1), mode: .mustExist)
        #expect(try opened.remainingLifetime(of: "k", in: bucket) == .unlimited)
        try opened.close()
        #expect(
            try store.rows("SELECT name FROM sqlite_master WHERE type = 'index' AND sql NOTNULL")
                == [[.text("coffer:expires:b")]])
    }

    @Test func `json has the key and the time, and no time for never`() throws {
        #expect(try kv("put", "b", "k", "v").exitCode == 0)
        let at = try kv("expire", "b", "k", "--at", "9999-12-31T23:59:59.999999Z", "--json").text
        let said = #""expires":"9999-12-31T23:59:59.999999Z","key":"k","path":"\#(store.path)""#
        #expect(at == "{\"bucket\":\"b\",\(said),\"schema\":1}\n")
        let never = try kv("expire", "b", "k", "--never", "--json").text
        #expect(
            never == "{\"bucket\":\"b\",\"key\":\"k\",\"path\":\"\(store.path)\",\"schema\":1}\n")
    }

    @Test func `never for a bucket in which nothing expires changes no schema`() throws {
        #expect(try kv("put", "b", "k", "v").exitCode == 0)
        let before = try store.rows("SELECT sql FROM sqlite_master")
        #expect(try kv("expire", "b", "k", "--never").exitCode == 0)
        #expect(try kv("expire", "b", "none", "--after", "1h").exitCode == 10)
        #expect(try store.rows("SELECT sql FROM sqlite_master") == before)
    }

    @Test func `what is not there, or has expired, is 10 and does not come back`() throws {
        try write { tx in
            try tx.set("v", for: "old", in: bucket, expiring: .at(.distantPast))
            try tx.execute("CREATE VIEW \"bucket:view\" AS SELECT 1 AS key, 2 AS value")
            try tx.execute("CREATE TABLE \"bucket:other\"(key, value, more)")
        }
        for (name, key) in [
            ("b", "old"), ("b", "none"), ("none", "k"), ("view", "1"), ("other", "k"),
        ] {
            for end in [["--never"], ["--after", "1h"]] {
                let output = try Tool.run(
                    ["kv", "expire", store.path, name, key] + end + ["--raw-key-fd", "3"],
                    descriptors: [3: Tool.key(1)])
                #expect(output.exitCode == 10, "\(name): \(output.errorText)")
                #expect(output.stdout.isEmpty)
            }
        }
        #expect(try kv("get", "b", "old").exitCode == 10)
    }

    @Test(arguments: [
        ["--after", "90"], ["--after", "s"], ["--after", ""], ["--after", "1.5h"],
        ["--after", "1w"], ["--after", "1 h"], ["--after=-5s"], ["--after=+5s"], ["--after", "0s"],
        ["--after", "9223372036854775807d"], ["--after", "99999999999999999999s"],
        ["--after", "3000000d"], ["--after", "٣s"], ["--at", "2126-12-24"],
        ["--at", "2126-12-24T18:00:00"], ["--at", "2126-12-24T18:00Z"],
        ["--at", "2126-02-30T18:00:00Z"], ["--at", "2126-12-24T25:00:00Z"],
        ["--at", "2126-12-24T18:00:00.1234567Z"], ["--at", "2126-12-24T18:00:00.Z"],
        ["--at", "2126-12-24T18:00:00Z "], ["--at", "tomorrow"], ["--at", "2001-01-01T00:00:00Z"],
        ["--at", "1969-12-31T23:59:59.5Z"], [], ["--never", "--after", "1h"],
        ["--after", "1h", "--at", "2126-12-24T18:00:00Z"],
    ])
    func `a time that cannot be meant is wrong usage, before the secret is read`(
        end: [String]
    ) throws {
        let output = try Tool.run(
            ["kv", "expire", store.path, "b", "k"] + end + ["--raw-key-fd", "9"])
        #expect(output.exitCode == 2, "\(output.errorText)")
        #expect(output.stdout.isEmpty)
        #expect(!output.errorText.contains("secret"), "\(output.errorText)")
    }

    @Test func `a wrong time says how to write one, and a past one what to do`() throws {
        let after = try kv("expire", "b", "k", "--after", "soon").errorText
        #expect(after.contains("90s, 15m, 2h or 7d"), "\(after)")
        let at = try kv("expire", "b", "k", "--at", "soon").errorText
        #expect(at.contains("2026-12-24T18:00:00Z"), "\(at)")
        let past = try kv("expire", "b", "k", "--at", "2001-01-01T00:00:00Z").errorText
        #expect(past.contains("coffer kv delete"), "\(past)")
    }

    @Test func `a wrong key, a busy store and a trigger that refuses leave the time as it is`()
        throws
    {
        try write { tx in try tx.set("v", for: "k", in: bucket, expiring: .after(.seconds(3600))) }
        let before = try expires("k")
        #expect(try kv("expire", "b", "k", "--never", key: 2).exitCode == 12)
        let connection = try store.connect()
        try connection.transaction {
            let output = try kv("expire", "b", "k", "--never", "--busy-timeout", "0.05")
            #expect(output.exitCode == 11, "\(output.errorText)")
        }
        try connection.execute(
            """
            CREATE TRIGGER no BEFORE UPDATE ON "bucket:b" BEGIN SELECT RAISE(IGNORE); END
            """)
        connection.close()
        #expect(try kv("expire", "b", "k", "--never").exitCode == 23)
        #expect(try expires("k") == before)
    }

    // MARK: put

    @Test func `put gives a new and an old entry a time, also in a bucket that it makes`() throws {
        let made = try kv("put", "b", "k", "one", "--expires-after", "15m")
        #expect(made.exitCode == 0, "\(made.errorText)")
        #expect(made.text.contains("expires: "), "\(made.text)")
        try expectAfter(900, "k")
        #expect(try kv("put", "b", "k", "two", "--expires-after", "2h").exitCode == 0)
        try expectAfter(7200, "k")
        let at = "2286-11-20T17:46:39.000001Z"
        let json = try kv("put", "b", "new", "three", "--expires-at", at, "--json").text
        #expect(json.contains("\"expires\":\"\(at)\""), "\(json)")
        #expect(try expires("new") == .integer(9_999_999_999_000_001))
        #expect(try kv("list", "b").text == "k\ttwo\nnew\tthree\n")
        // Without the option it never ends again.
        #expect(try kv("put", "b", "k", "four").text == "put into: b\n")
        #expect(try expires("k") == .null)
    }

    @Test func `a time of put goes before the bucket's lifetime`() throws {
        let lasting = Bucket<String, String>("b", lifetime: .seconds(90))
        try write { tx in try tx.set("v", for: "k", in: lasting) }
        #expect(try kv("put", "b", "k", "v", "--expires-after", "7d").exitCode == 0)
        try expectAfter(604_800, "k")
        #expect(try kv("put", "b", "k", "v").exitCode == 0)
        try expectAfter(90, "k")
    }

    @Test(arguments: [
        ["--expires-after", "soon"], ["--expires-at", "2001-01-01T00:00:00Z"],
        ["--expires-at", "2126-12-24"], ["--expires-after", "9223372036854775807d"],
        ["--expires-after", "1h", "--expires-at", "2126-12-24T18:00:00Z"],
    ])
    func `a time that cannot be meant puts nothing`(end: [String]) throws {
        let output = try Tool.run(
            ["kv", "put", store.path, "b", "k", "v"] + end + ["--raw-key-fd", "9"])
        #expect(output.exitCode == 2, "\(output.errorText)")
        #expect(try store.tables().isEmpty)
    }

    @Test func `keys of every type can expire`() throws {
        let id = UUID()
        try write { tx in
            try tx.set(1, for: UInt64.max, in: Bucket<UInt64, Int>("unsigned"))
            try tx.set(1, for: true, in: Bucket<Bool, Int>("bool"))
            try tx.set(1, for: id, in: Bucket<UUID, Int>("uuid"))
        }
        for (name, key) in [
            ("unsigned", "18446744073709551615"), ("bool", "true"), ("uuid", id.uuidString),
        ] {
            #expect(try kv("expire", name, key, "--after", "1h").exitCode == 0)
            #expect(try kv("expire", name, "wrong", "--after", "1h").exitCode == 2)
            #expect(try kv("get", name, key).text == "1\n")
        }
    }
}
