import Foundation
import Testing

@testable import Coffer
@testable import CofferTool

/// `coffer kv export` and `coffer kv import`.
@Suite(.againstHanging, .onOwnThreads) struct KeyValueExchangeTests {
    private let store: ToolStore

    init() throws {
        store = try ToolStore()
    }

    private func kv(
        _ verb: String, _ arguments: [String], in store: ToolStore? = nil, input: String = "",
        key: UInt8 = 1, under wrapper: [String] = []
    ) throws -> Tool.Output {
        try Tool.run(
            ["kv", verb, (store ?? self.store).path] + arguments + ["--raw-key-fd", "3"],
            input: Data(input.utf8), descriptors: [3: Tool.key(key)], under: wrapper)
    }

    private func succeed(
        _ verb: String, _ arguments: [String], in store: ToolStore? = nil, input: String = "",
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> Tool.Output {
        let output = try kv(verb, arguments, in: store, input: input)
        #expect(output.exitCode == 0, "\(output.errorText)", sourceLocation: sourceLocation)
        return output
    }

    private func write(_ body: (inout WriteTransaction) throws -> Void) throws {
        let opened = try Store(path: store.path, key: .numbered(1), mode: .mustExist)
        try opened.write(body)
        try opened.close()
    }

    private func rows(_ bucket: String, in store: ToolStore? = nil) throws -> [[Value]] {
        try (store ?? self.store).rows("SELECT * FROM \(identifier: "bucket:" + bucket)")
    }

    private func expectSame(
        _ first: [[Value]], _ second: [[Value]], sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(first.count == second.count, sourceLocation: sourceLocation)
        for (row, other) in zip(first, second) {
            #expect(
                row.count == other.count && zip(row, other).allSatisfy(isIdentical),
                "\(row) became \(other)", sourceLocation: sourceLocation)
        }
    }

    // MARK: There and back

    /// Exports a bucket to a file, imports that into another store, and compares both.
    private func expectRoundTrip(
        _ bucket: String, keyType: String, codec: [String] = [],
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let file = store.folder.path("\(UUID()).jsonl")
        _ = try succeed("export", [bucket, "--output", file], sourceLocation: sourceLocation)
        let other = try ToolStore()
        _ = try succeed(
            "import", [bucket, file, "--key-type", keyType] + codec, in: other,
            sourceLocation: sourceLocation)
        let before = try rows(bucket)
        #expect(!before.isEmpty, sourceLocation: sourceLocation)
        expectSame(before, try rows(bucket, in: other), sourceLocation: sourceLocation)
        for sql: SQL in [
            "SELECT key_type, codec FROM \"coffer:buckets\" WHERE name = \(bucket)",
            "SELECT type, sql FROM sqlite_master WHERE tbl_name = \("bucket:" + bucket) ORDER BY 1",
        ] {
            let (first, second) = (try store.rows(sql), try other.rows(sql))
            #expect(first == second, sourceLocation: sourceLocation)
        }
    }

    @Test func `keys of every type come back`() throws {
        let (id, zero) = (UUID(), Date(timeIntervalSinceReferenceDate: 0))
        try write { tx in
            let texts = awkwardValues.compactMap {
                if case .text(let text) = $0 { text } else { nil }
            }
            for text in texts { try tx.set(1, for: text, in: Bucket<String, Int>("text")) }
            for number in [Int64.min, -1, 0, 1 << 53 + 1, .max] {
                try tx.set(1, for: number, in: Bucket<Int64, Int>("integer"))
            }
            for key in [true, false] { try tx.set(1, for: key, in: Bucket<Bool, Int>("bool")) }
            for key in [0, 1, UInt64.max, 1 << 63] {
                try tx.set(1, for: key, in: Bucket<UInt64, Int>("unsigned"))
            }
            for seconds in [-0.0, 0.1, -1e300, .leastNonzeroMagnitude, 3, .infinity, -.infinity] {
                let date = Date(timeIntervalSinceReferenceDate: seconds)
                try tx.set(1, for: date, in: Bucket<Date, Int>("date"))
                try tx.set(
                    1, for: CompositeKey("\u{0}é", date),
                    in: Bucket<CompositeKey<String, Date>, Int>("pair"))
            }
            try tx.set(1, for: id, in: Bucket<UUID, Int>("uuid"))
            for bytes in [Data(), Data([0]), Data([0, 255, 1])] {
                try tx.set(1, for: bytes, in: Bucket<Data, Int>("bytes"))
                try tx.set(
                    1,
                    for: CompositeKey(bytes, id, CompositeKey(true, UInt64.max), Int64.min, bytes),
                    in: Bucket<
                        CompositeKey<Data, UUID, CompositeKey<Bool, UInt64>, Int64, Data>, Int
                    >("all"))
            }
            try tx.set(1, for: CompositeKey(zero), in: Bucket<CompositeKey<Date>, Int>("one"))
        }
        for type in ["text", "integer", "bool", "unsigned", "date", "uuid", "bytes"] {
            try expectRoundTrip(type, keyType: type)
        }
        try expectRoundTrip("pair", keyType: "(text, date)")
        try expectRoundTrip("all", keyType: "(bytes, uuid, bool, unsigned, integer, bytes)")
        try expectRoundTrip("one", keyType: "(date)")
    }

    @Test func `values of every class, and codecs, come back`() throws {
        try write { tx in
            try tx.set(["a": [1.5]], for: "k", in: Bucket<String, [String: [Double]]>("json"))
            let codec = BucketCodec<Data>(name: "mine") {
                $0
            } decode: {
                $0
            }
            try tx.set(Data([0, 255]), for: "k", in: Bucket<String, Data>("own", codec: codec))
            try tx.set(0, for: "0", in: Bucket<String, Int>("b"))
        }
        for (index, value) in awkwardValues.enumerated() {
            try store.execute(
                "INSERT INTO \"bucket:b\"(key, value) VALUES (\("k\(index)"), \(value))")
        }
        try expectRoundTrip("b", keyType: "text")
        try expectRoundTrip("json", keyType: "text", codec: ["--codec", "json"])
        try write { tx in
            try tx.set(nil, for: "k", in: Bucket<String, Int?>("optional"))
        }
        try expectRoundTrip("optional", keyType: "text")
        try expectRoundTrip("own", keyType: "text", codec: ["--codec", "mine"])
    }

    @Test func `times come back to the microsecond, and what has expired is left out`() throws {
        let now = Int64(Date().timeIntervalSince1970 * 1e6)
        try write { tx in
            let bucket = Bucket<Int, String>("b")
            try tx.set("v", for: 0, in: bucket, expiring: .after(.seconds(3600)))
        }
        let ends = [
            now + 3_600_000_001, 253_402_300_799_999_999, 253_402_300_800_000_000, Int64.max,
        ]
        for (index, end) in ends.enumerated() {
            try store.execute(
                "INSERT INTO \"bucket:b\" VALUES (\(index + 1), 'v', \(end))")
        }
        try store.execute("INSERT INTO \"bucket:b\" VALUES (9, 'never', NULL)")
        try expectRoundTrip("b", keyType: "integer")
        try store.execute("INSERT INTO \"bucket:b\" VALUES (10, 'old', \(now - 1))")
        let lines = try succeed("export", ["b"]).text.split(separator: "\n")
        #expect(lines.count == 6 && !lines.contains { $0.contains("old") })
        #expect(
            lines[2] == #"{"key":2,"value":"v","expires":"9999-12-31T23:59:59.999999Z"}"#)
        #expect(lines[3] == #"{"key":3,"value":"v","expires":253402300800000000}"#)
        #expect(lines[5] == #"{"key":9,"value":"never"}"#)
    }

    @Test func `the lines have the forms that are described, in the order of keys`() throws {
        let id = try #require(UUID(uuidString: "00000000-0000-0000-0000-0000000000FF"))
        try write { tx in
            let pairs = Bucket<CompositeKey<String, Bool, UInt64, UUID, Data>, Double>("b")
            let key = CompositeKey("é\n", true, UInt64.max, id, Data([255]))
            try tx.set(1, for: key, in: pairs)
            try tx.set(["a": 1, "ab": 2, "b": 3, "c": 4], in: Bucket<String, Int>("n"))
        }
        let number = "18446744073709551615"
        #expect(
            try succeed("export", ["b"]).text
                == #"{"key":["é\n","true","\#(number)","\#(id)",{"$base64":"/w=="}],"value":1.0}"#
                + "\n")
        #expect(
            try succeed("export", ["n", "--prefix", "a", "--reverse", "--limit", "1"]).text
                == "{\"key\":\"ab\",\"value\":2}\n")
        #expect(
            try succeed("export", ["n", "--from", "ab", "--below", "c"]).text
                == "{\"key\":\"ab\",\"value\":2}\n{\"key\":\"b\",\"value\":3}\n")
        #expect(
            try succeed("export", ["n", "--after", "b"]).text == "{\"key\":\"c\",\"value\":4}\n")
        #expect(try kv("export", ["n", "--limit", "-1"]).exitCode == 2)
        #expect(try kv("export", ["b", "--prefix", "a"]).exitCode == 2)
    }

    @Test func `a file is private, whole, new, and counted`() throws {
        try write { tx in try tx.set(["a": 1, "b": 2], in: Bucket<String, Int>("n")) }
        let file = store.folder.path("n.jsonl")
        let output = try succeed("export", ["n", "--output", file, "--json"])
        #expect(output.text == "{\"entryCount\":2,\"path\":\"\(file)\",\"schema\":1}\n")
        #expect(output.errorText.contains("plaintext"))
        let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions]
        #expect(mode as? Int == 0o600)
        #expect(try kv("export", ["n", "--output", file]).exitCode == 22)
        let none = store.folder.path("none.jsonl")
        #expect(try kv("export", ["none", "--output", none]).exitCode == 10)
        #expect(try kv("export", ["n", "--output", none], key: 2).exitCode == 12)
        #expect(!FileManager.default.fileExists(atPath: none))
    }

    // MARK: Import

    private let two = """
        {"key":"a","value":1}

        {"value":2,"key":"b","expires":"2126-12-24T18:00:00.000001+01:00"}

        """

    @Test func `an import is reported, and makes a bucket only if the type is named`() throws {
        #expect(try kv("import", ["n"], input: two).exitCode == 10)
        #expect(try store.tables().isEmpty)
        let made = try succeed("import", ["n", "-", "--key-type", "text", "--json"], input: two)
        #expect(
            made.text
                == #"{"bucket":"n","entryCount":2,"expiredCount":0,"isBucketMade":true,"#
                + #""keptCount":0,"path":"\#(store.path)","replacedCount":0,"schema":1}"# + "\n")
        #expect(
            try rows("n") == [
                ["a", 1, nil], ["b", 2, .integer(4_953_805_200_000_001)],
            ])
        // An empty bucket is one too.
        let empty = try succeed("import", ["none", "--key-type", "(text, date)"])
        #expect(empty.text.contains("none, made"), "\(empty.text)")
        #expect(try succeed("export", ["none"]).text == "")
    }

    @Test func `a key that is there is refused with its line, replaced, or kept`() throws {
        try write { tx in
            let bucket = Bucket<String, String>("n")
            try tx.set("canary", for: "b", in: bucket, expiring: .after(.seconds(3600)))
            try tx.set("old", for: "a", in: bucket, expiring: .at(.distantPast))
        }
        let before = try rows("n")
        let refused = try kv("import", ["n"], input: two)
        #expect(refused.exitCode == 22)
        #expect(refused.errorText.contains("line 3"), "\(refused.errorText)")
        #expect(refused.errorText.contains("entry 2"), "\(refused.errorText)")
        #expect(refused.errorText.contains("--replace"), "\(refused.errorText)")
        #expect(!refused.errorText.contains("canary"))
        #expect(try rows("n") == before, "all or nothing")
        let kept = try succeed("import", ["n", "--keep", "--json"], input: two).text
        #expect(kept.contains("\"entryCount\":1,") && kept.contains("\"keptCount\":1"), "\(kept)")
        #expect(try succeed("list", ["n"]).text == "a\t1\nb\tcanary\n")
        let replaced = try succeed("import", ["n", "--replace"], input: two).text
        #expect(replaced.contains("imported: 2 entries\nreplaced: 2 entries\n"), "\(replaced)")
        #expect(
            try rows("n") == [["a", 1, nil], ["b", 2, .integer(4_953_805_200_000_001)]])
        #expect(try kv("import", ["n", "--replace", "--keep"], input: two).exitCode == 2)
    }

    @Test func `a key that appears twice is one that is there`() throws {
        let twice = "{\"key\":1,\"value\":\"x\"}\n{\"key\":1,\"value\":\"y\"}\n"
        let type = ["--key-type", "integer"]
        #expect(try kv("import", ["n"] + type, input: twice).exitCode == 22)
        #expect(try store.tables().isEmpty, "not even the bucket is made")
        _ = try succeed("import", ["kept", "--keep"] + type, input: twice)
        _ = try succeed("import", ["replaced", "--replace"] + type, input: twice)
        #expect(try rows("kept") == [[1, "x"]])
        #expect(try rows("replaced") == [[1, "y"]])
    }

    @Test func `entries that have expired are counted, and touch nothing`() throws {
        try write { tx in
            try tx.set(1, for: "a", in: Bucket<String, Int>("n", lifetime: .seconds(9)))
        }
        let before = try rows("n")
        let old = """
            {"key":"a","value":2,"expires":"2001-01-01T00:00:00Z"}
            {"key":"b","value":3,"expires":-1}
            {"key":"c","value":4,"expires":null}
            """
        let output = try succeed("import", ["n"], input: old)
        #expect(output.text.contains("imported: 1 entry\nleft out: 2 entries, expired\n"))
        // Without a time of its own it never ends, whatever the bucket's lifetime is.
        #expect(try rows("n") == before + [["c", 4, nil]])
    }

    @Test(arguments: [
        ("[1]", "object"), ("{\"key\":1,\"value\":1", "end"), ("{\"key\":1}", "one value"),
        ("{\"value\":1}", "one key"), ("{\"key\":1,\"value\":1,\"value\":2}", "one value"),
        ("{\"key\":1,\"value\":1,\"more\":2}", "nothing else"),
        ("{\"key\":\"x\",\"value\":1}", "type: integer"), ("{\"key\":1.0,\"value\":1}", "type"),
        ("{\"key\":[1],\"value\":1}", "type"), ("{\"key\":[],\"value\":1}", "type"),
        ("{\"key\":[1,\"value\":1}", "array"), ("{\"key\":null,\"value\":1}", "type"),
        ("{\"key\":9223372036854775808,\"value\":1}", "64 bits"),
        ("{\"key\":1,\"value\":[1]}", "array"),
        ("{\"key\":1,\"value\":1,\"expires\":\"soon\"}", "no time"),
        ("{\"key\":1,\"value\":1,\"expires\":\"2126-12-24T18:00:00\"}", "no time"),
        ("{\"key\":1,\"value\":1,\"expires\":1.5}", "no time"),
        ("{\"key\":1,\"value\":{\"$base64\":\"%\"}}", "object"), ("garbage", "object"),
    ])
    func
        `a line that is no entry of the bucket is refused with its number, and nothing is imported`(
            line: String, words: String
        ) throws
    {
        let input = "{\"key\":7,\"value\":7}\n\(line)\n{\"key\":8,\"value\":8}\n"
        let output = try kv("import", ["n", "--key-type", "integer"], input: input)
        #expect(output.exitCode == 25, "\(output.errorText)")
        #expect(output.errorText.contains("line 2: "), "\(output.errorText)")
        #expect(output.errorText.contains(words), "\(output.errorText)")
        #expect(try store.tables().isEmpty)
    }

    @Test func `keys are read in the forms in which they are written, and others are refused`()
        throws
    {
        for (type, good, bad) in [
            ("bool", ["true", "\"false\""], ["2", "\"yes\"", "1.0"]),
            ("unsigned", ["5", "\"18446744073709551615\""], ["-1", "\"-1\"", "\"x\"", "1.5"]),
            ("date", ["1", "1.5"], ["\"1\"", "9007199254740993"]),
            ("uuid", ["\"\(UUID())\"", "{\"$base64\":\"AAAAAAAAAAAAAAAAAAAAAA==\"}"], ["\"x\""]),
            ("bytes", ["{\"$base64\":\"\"}", "{\"$base64\":\"AA==\"}"], ["\"x\"", "1"]),
            (
                "(integer, text)", ["[1,\"x\"]", "{\"$base64\":\"gAAAAAAAAAI=\"}"],
                [
                    "[1]", "[\"x\",1]", "[1,\"x\",2]", "{\"$base64\":\"AA==\"}", "1", "[[1],\"x\"]",
                ]
            ),
        ] {
            for key in good {
                let line = "{\"key\":\(key),\"value\":1}"
                _ = try succeed("import", [type, "--key-type", type], input: line)
            }
            for key in bad {
                let line = "{\"key\":\(key),\"value\":1}"
                let output = try kv("import", [type], input: line)
                #expect(output.exitCode == 25, "\(type) \(key): \(output.errorText)")
            }
            #expect(try rows(type).count == 2, "\(type)")
        }
    }

    @Test func `types that are not those of the bucket are refused`() throws {
        try write { tx in
            try tx.set(["x"], for: "k", in: Bucket<String, [String]>("json"))
            try tx.set(1, for: "k", in: Bucket<String, Int>("n"))
        }
        let text = "{\"key\":\"a\",\"value\":1}"
        #expect(try kv("import", ["n", "--key-type", "integer"], input: text).exitCode == 25)
        let json = ["--key-type", "text", "--codec", "json"]
        #expect(try kv("import", ["n"] + json, input: text).exitCode == 25)
        #expect(try kv("import", ["json"], input: text).exitCode == 25)
        #expect(try kv("import", ["new"] + json, input: text).exitCode == 25)
        let blob = "{\"key\":\"a\",\"value\":{\"$base64\":\"AA==\"}}"
        let refused = try kv("import", ["json"], input: blob)
        #expect(refused.exitCode == 25 && refused.errorText.contains("line 1"))
        for wrong in [["--codec", "json"], ["--key-type", "number"], ["--key-type", "(text"]] {
            #expect(try kv("import", ["new"] + wrong, input: text).exitCode == 2)
        }
        #expect(try kv("import", ["n", "-", "--passphrase-stdin"], input: text).exitCode == 2)
        #expect(try succeed("buckets", []).text.split(separator: "\n").count == 2)
    }

    @Test
    func `attachments are not values, and no verb takes or makes the ids that stand for them`()
        throws
    {
        let films = AttachmentBucket<String>("films")
        try write { tx in try tx.set(Data([1, 2, 3]), for: "k", in: films) }
        let before = try rows("films")
        let line = "{\"key\":\"k\",\"value\":1}"
        let file = store.folder.path("films.jsonl")
        for (verb, arguments) in [
            ("export", ["films"]), ("export", ["films", "--output", file]),
            ("import", ["films", "--replace"]), ("put", ["films", "k", "int:1"]),
            ("put", ["films", "k", "hex:00"]), ("put", ["films", "new", "-", "--raw"]),
            ("incr", ["films", "k"]),
        ] {
            let output = try kv(verb, arguments, input: line)
            #expect(output.exitCode == 25, "\(verb): \(output.errorText)")
            #expect(output.errorText.contains("attachments"), "\(verb): \(output.errorText)")
        }
        let made = ["--key-type", "text", "--codec", "attachment"]
        #expect(try kv("import", ["new"] + made, input: line).exitCode == 2)
        #expect(!FileManager.default.fileExists(atPath: file))
        #expect(try rows("films") == before)
        let opened = try Store(path: store.path, key: .numbered(1), mode: .mustExist)
        #expect(try opened.attachment("k", in: films)?.byteCount == 3)
        try opened.close()
    }

    @Test func `a table that is not that of a bucket is left alone`() throws {
        try store.execute(
            "CREATE TABLE t(v)", "CREATE VIEW \"bucket:view\" AS SELECT 1 AS key, 2 AS value",
            "CREATE TABLE \"bucket:keyless\"(key, value)",
            "CREATE TABLE \"bucket:nocase\"(key TEXT PRIMARY KEY COLLATE NOCASE NOT NULL, value)",
            "CREATE TABLE \"bucket:more\"(key TEXT PRIMARY KEY NOT NULL, value, more)")
        for name in ["view", "keyless", "nocase", "more"] {
            for type in [[], ["--key-type", "text"]] {
                let line = "{\"key\":\"a\",\"value\":1}"
                let output = try kv("import", [name] + type, input: line)
                #expect(output.exitCode == 25, "\(name): \(output.errorText)")
            }
            #expect(try kv("export", [name]).exitCode == 25)
        }
        #expect(try rows("keyless").isEmpty)
    }

    @Test func `a stored key that no program writes is exported as it is, and not imported`() throws
    {
        try write { tx in try tx.set(1, for: true, in: Bucket<Bool, Int>("bool")) }
        try store.execute("INSERT INTO \"bucket:bool\" VALUES (5, 1)")
        let lines = try succeed("export", ["bool"]).text
        #expect(lines == "{\"key\":\"true\",\"value\":1}\n{\"key\":5,\"value\":1}\n")
        let other = try ToolStore()
        let output = try kv("import", ["bool", "--key-type", "bool"], in: other, input: lines)
        #expect(output.exitCode == 25 && output.errorText.contains("line 2"))
    }

    @Test func `a wrong key, a busy store, a trigger and a full disk import nothing`() throws {
        try write { tx in try tx.set(1, for: "k", in: Bucket<String, Int>("n")) }
        let before = try rows("n")
        #expect(try kv("import", ["n"], input: two, key: 2).exitCode == 12)
        let connection = try store.connect()
        try connection.transaction {
            let busy = try kv("import", ["n", "--busy-timeout", "0.05"], input: two)
            #expect(busy.exitCode == 11, "\(busy.errorText)")
        }
        connection.close()
        let many = (0..<20_000).map { "{\"key\":\"\($0)\",\"value\":\"some text\"}\n" }.joined()
        let full = try kv(
            "import", ["n"], input: many, under: ["sh", "-c", "ulimit -f 64; exec \"$@\"", "sh"])
        #expect(full.exitCode == 17, "\(full.errorText)")
        try store.execute(
            "CREATE TRIGGER no BEFORE INSERT ON \"bucket:n\" BEGIN SELECT RAISE(IGNORE); END")
        let refused = try kv("import", ["n"], input: two)
        #expect(refused.exitCode == 23 && refused.errorText.contains("line 1"))
        #expect(try rows("n") == before)
    }

    @Test func `an interruption imports nothing, and names the next step`() throws {
        let tool = try Tool.start(
            ["kv", "import", store.path, "n", "--key-type", "integer", "--raw-key-fd", "3"]
                + ["--progress", "json"], descriptors: [3: Tool.key(1)])
        let lines = (0..<60_000).map { "{\"key\":\($0),\"value\":\"some text\"}\n" }.joined()
        try tool.write(Data(lines.utf8))
        try tool.waitForError("\"done\"")
        tool.send(SIGINT)
        let output = try tool.finish()
        #expect(output.exitCode == 130)
        #expect(output.errorText.contains("Nothing was changed"), "\(output.errorText)")
        #expect(output.errorText.contains("\"unit\":\"bytes\""))
        #expect(try store.tables().isEmpty)
    }

    @Test func `a value larger than any buffer comes back`() throws {
        let value = Data((0..<700_001).map { UInt8(truncatingIfNeeded: $0 &* 7) })
        try write { tx in
            try tx.set(value, for: "blob", in: Bucket<String, Data>("b"))
            try tx.set(
                String(repeating: "é\n\"", count: 200_000), for: "text",
                in: Bucket<String, String>("b"))
        }
        try expectRoundTrip("b", keyType: "text")
    }

    @Test func `an export reports its progress in entries`() throws {
        try write { tx in
            for number in 0..<3000 { try tx.set(1, for: number, in: Bucket<Int, Int>("n")) }
        }
        let output = try succeed("export", ["n", "--limit", "2500", "--progress", "json"])
        let total = "\"progress\":\"kv export\",\"schema\":1,\"total\":2500,\"unit\":\"entries\""
        #expect(output.errorText.contains(total), "\(output.errorText)")
    }
}
