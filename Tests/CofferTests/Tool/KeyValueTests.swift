import Foundation
import Testing

@testable import Coffer

@Suite(.againstHanging, .onOwnThreads) struct KeyValueTests {
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
        try Store(path: path, key: .numbered(1), configuration: .testing()).close()
    }

    private func kv(_ arguments: String..., input: Data = Data()) throws -> Tool.Output {
        var all = ["kv", arguments[0], path] + arguments.dropFirst()
        all += ["--raw-key-fd", "3"]
        return try Tool.run(all, input: input, descriptors: [3: Tool.key(1)])
    }

    private func write(_ body: (inout WriteTransaction) throws -> Void) throws {
        let store = try Store(path: path, key: .numbered(1), mode: .mustExist)
        try store.write(body)
        try store.close()
    }

    private func get<K, V: Equatable>(_ key: K, _ bucket: Bucket<K, V>) throws -> V? {
        let store = try Store(path: path, key: .numbered(1), mode: .mustExist)
        let value = try store.read { tx in try tx.get(key, in: bucket) }
        try store.close()
        return value
    }

    @Test func `a program gets a value that the tool put, with its type`() throws {
        #expect(try kv("put", "settings", "home", "/home/ada").exitCode == 0)
        #expect(try kv("put", "counts", "7", "int:42", "--key-type", "integer").exitCode == 0)
        #expect(try kv("put", "reals", "pi", "real:3.5").exitCode == 0)
        #expect(try kv("put", "blobs", "hex:00ff", "hex:0a", "--key-type", "bytes").exitCode == 0)
        #expect(try get("home", Bucket<String, String>("settings")) == "/home/ada")
        #expect(try get(7, Bucket<Int, Int>("counts")) == 42)
        #expect(try get("pi", Bucket<String, Double>("reals")) == 3.5)
        #expect(try get(Data([0, 255]), Bucket<Data, Data>("blobs")) == Data([10]))
    }

    @Test func `the tool gets a value that a program set`() throws {
        let id = UUID()
        try write { tx in
            try tx.set("grün\nblau", for: "é", in: Bucket<String, String>("text"))
            try tx.set(["a": 1], for: id, in: Bucket<UUID, [String: Int]>("json"))
            try tx.set(Data([1, 10, 0]), for: -3, in: Bucket<Int, Data>("data"))
        }
        #expect(try kv("get", "text", "é").text == "grün\nblau\n")
        #expect(try kv("get", "json", id.uuidString).text == "{\"a\":1}\n")
        #expect(try kv("get", "data", "--", "-3").exitCode == 2)  // the options are after --
        let output = try Tool.run(
            ["kv", "get", path, "data", "--raw-key-fd", "3", "--", "-3"],
            descriptors: [3: Tool.key(1)])
        #expect(output.stdout == Data([1, 10, 0]))
        #expect(
            try kv("get", "text", "é", "--json").text
                == "{\"key\":\"é\",\"value\":\"grün\\nblau\"}\n")
    }

    @Test func `put replaces, delete removes, count counts`() throws {
        for value in ["one", "two"] { #expect(try kv("put", "b", "k", value).exitCode == 0) }
        #expect(try kv("put", "b", "-", "-", input: Data("from input".utf8)).exitCode == 0)
        #expect(try kv("get", "b", "k").text == "two\n")
        #expect(try kv("get", "b", "-").text == "from input\n")
        #expect(try kv("count", "b").text == "2\n")
        #expect(try kv("count", "b", "--json").text == "{\"count\":2,\"schema\":1}\n")
        #expect(try kv("delete", "b", "k").exitCode == 0)
        #expect(try kv("delete", "b", "k").exitCode == 10)
        #expect(try kv("count", "b").text == "1\n")
    }

    @Test func `raw bytes come back byte for byte`() throws {
        for bytes in [Data([0, 10, 255, 27, 13, 10]), Data("text\n".utf8), Data()] {
            #expect(try kv("put", "b", "k", "-", "--raw", input: bytes).exitCode == 0)
            #expect(try get("k", Bucket<String, Data>("b")) == bytes)
            #expect(try kv("get", "b", "k", "--raw").stdout == bytes)
            let file = folder.path("file")
            try bytes.write(to: URL(filePath: file))
            #expect(try kv("put", "b", "file", "file:\(file)", "--raw").exitCode == 0)
            #expect(try get("file", Bucket<String, Data>("b")) == bytes)
        }
        // Without it, standard input is text, whose newline stays too.
        #expect(try kv("put", "b", "k", "-", input: Data("text\n".utf8)).exitCode == 0)
        #expect(try get("k", Bucket<String, String>("b")) == "text\n")
        #expect(try kv("get", "b", "k").text == "text\n\n")
        #expect(try kv("get", "b", "k", "--raw").text == "text\n")
        #expect(try kv("put", "b", "k", "int:5").exitCode == 0)
        #expect(try kv("get", "b", "k", "--raw").text == "5")
    }

    @Test func `raw is refused where it makes no sense, and in a bucket without bytes`() throws {
        try write { tx in try tx.set(["a"], for: "k", in: Bucket<String, [String]>("json")) }
        for value in ["text", "int:5", "hex:00", "text:-"] {
            #expect(try kv("put", "b", "k", value, "--raw").exitCode == 2)
        }
        #expect(try kv("put", "b", "k", "-", "--raw", "--passphrase-stdin").exitCode == 2)
        #expect(try kv("get", "json", "k", "--raw", "--json").exitCode == 2)
        let output = try kv("put", "json", "k", "-", "--raw", input: Data([1]))
        #expect(output.exitCode == 25)
        #expect(output.errorText.contains("without --raw"), "\(output.errorText)")
        #expect(try kv("get", "json", "k", "--raw").text == "[\"a\"]")
        #expect(try kv("list").text == "json\n")
    }

    @Test func `list is in the order of keys, by prefix and up to a limit`() throws {
        try write { tx in
            for key in ["b", "aa", "a\t", "ab", "A"] {
                try tx.set(key.count, for: key, in: Bucket<String, Int>("b"))
            }
            for key in [10, 9, -1] { try tx.set("x", for: key, in: Bucket<Int, String>("n")) }
        }
        #expect(try kv("list").text == "b\nn\n")
        #expect(try kv("list", "--json").text == "{\"bucket\":\"b\"}\n{\"bucket\":\"n\"}\n")
        #expect(try kv("list", "b").text == "A\t1\na\\t\t2\naa\t2\nab\t2\nb\t1\n")
        #expect(try kv("list", "b", "--prefix", "a", "--keys-only").text == "a\\t\naa\nab\n")
        #expect(
            try kv("list", "b", "--limit", "1", "--json").text == "{\"key\":\"A\",\"value\":1}\n")
        #expect(try kv("list", "n", "--keys-only").text == "-1\n9\n10\n")
        #expect(try kv("list", "n", "--prefix", "1").exitCode == 2)
    }

    @Test func `a list is a range of the keys, either way, and goes on after a key`() throws {
        try write { tx in
            try tx.set(["a": 1, "ab": 2, "b": 3, "c": 4, "\u{10FFFF}": 5], in: Bucket("b"))
            try tx.set(["x": 1], in: Bucket<String, Int>("other"))
        }
        func keys(_ options: String...) throws -> String {
            let all = ["kv", "list", path, "b", "--keys-only", "--raw-key-fd", "3"] + options
            return try Tool.run(all, descriptors: [3: Tool.key(1)]).text
                .replacingOccurrences(of: "\n", with: " ")
        }
        #expect(try keys("--from", "ab", "--below", "c") == "ab b ")
        #expect(try keys("--reverse", "--below", "c") == "b ab a ")
        #expect(try keys("--after", "ab", "--limit", "1") == "b ")
        #expect(try keys("--reverse", "--after", "b") == "ab a ")
        #expect(try keys("--prefix", "a", "--reverse") == "ab a ")
        #expect(try keys("--prefix", "\u{10FFFF}").count == 2)
        #expect(try kv("list", "--reverse").exitCode == 2, "no bucket is named")
    }

    @Test func `keys of every type are written as they are read`() throws {
        let id = UUID()
        try write { tx in
            try tx.set(1, for: UInt64.max, in: Bucket<UInt64, Int>("unsigned"))
            try tx.set(1, for: true, in: Bucket<Bool, Int>("bool"))
            try tx.set(1, for: id, in: Bucket<UUID, Int>("uuid"))
            try tx.set(
                1, for: Date(timeIntervalSinceReferenceDate: 0.5), in: Bucket<Date, Int>("date"))
            try tx.set(
                1, for: CompositeKey("a", 1), in: Bucket<CompositeKey<String, Int>, Int>("pairs"))
        }
        for (bucket, key) in [
            ("unsigned", "18446744073709551615"), ("bool", "true"), ("uuid", id.uuidString),
            ("date", "0.5"), ("pairs", "hex:6100018000000000000001"),
        ] {
            #expect(try kv("list", bucket, "--keys-only").text == "\(key)\n")
            #expect(try kv("get", bucket, key).text == "1\n")
            #expect(try kv("get", bucket, "wrong").exitCode == 2)
        }
    }

    @Test func `an entry that has expired is not there, and put gives the lifetime`() throws {
        let bucket = Bucket<String, Int>("b", lifetime: .seconds(3600))
        try write { tx in
            try tx.set(1, for: "old", in: bucket, expiring: .at(.distantPast))
            try tx.set(2, for: "new", in: bucket)
        }
        #expect(try kv("get", "b", "old").exitCode == 10)
        #expect(try kv("delete", "b", "old").exitCode == 10)
        #expect(try kv("list", "b").text == "new\t2\n")
        #expect(try kv("count", "b").text == "1\n")
        #expect(try kv("put", "b", "put", "int:3").exitCode == 0)
        #expect(try kv("incr", "b", "new", "--by", "40").exitCode == 0)
        let store = try Store(path: path, key: .numbered(1), mode: .mustExist)
        #expect(try store.get("new", in: bucket) == 42)
        for key in ["put", "new"] {
            let life = try #require(try store.remainingLifetime(of: key, in: bucket))
            #expect(life != .unlimited, "\(key)")
        }
        try store.close()
    }

    @Test func `incr counts, and refuses what is no number or too large`() throws {
        #expect(try kv("incr", "none", "k").exitCode == 10)
        #expect(try kv("put", "b", "k", "int:1").exitCode == 0)
        let output = try kv("incr", "b", "k", "--json")
        let said = #"{"bucket":"b","path":"\#(path)","schema":1,"value":2}"#
        #expect(output.text == said + "\n")
        #expect(try kv("incr", "b", "new", "--by=-5").exitCode == 0)
        #expect(try kv("list", "b").text == "k\t2\nnew\t-5\n")
        #expect(try kv("incr", "b", "k", "--by", "9223372036854775807").exitCode == 25)
        #expect(try kv("put", "b", "text", "x").exitCode == 0)
        #expect(try kv("incr", "b", "text").exitCode == 25)
        #expect(try kv("get", "b", "k").text == "2\n")
    }

    @Test func `put keeps to the codec of the bucket`() throws {
        try write { tx in
            try tx.set(["a"], for: "k", in: Bucket<String, [String]>("json"))
            let codec = BucketCodec<Data>(name: "mine") {
                $0
            } decode: {
                $0
            }
            try tx.set(Data([1]), for: "k", in: Bucket<String, Data>("own", codec: codec))
        }
        #expect(try kv("put", "json", "k", "[\"b\"").exitCode == 25)
        #expect(try kv("put", "json", "k", "int:1").exitCode == 25)
        #expect(try kv("put", "json", "k", "[\"b\"]").exitCode == 0)
        #expect(try get("k", Bucket<String, [String]>("json")) == ["b"])
        #expect(try kv("put", "own", "k", "text").exitCode == 25)
        #expect(try kv("put", "own", "k", "hex:02").exitCode == 0)
    }

    @Test func `put removes no other entry, and reports no change that a trigger refused`() throws {
        #expect(try kv("put", "b", "k", "x").exitCode == 0)
        try write { tx in try tx.execute("CREATE UNIQUE INDEX u ON \"bucket:b\" (value)") }
        #expect(try kv("put", "b", "other", "x").exitCode == 23)
        #expect(try kv("put", "B", "k", "x").exitCode != 0, "the name differs in case")
        #expect(try kv("list", "b").text == "k\tx\n")
        try write { tx in
            try tx.set(1, for: "n", in: Bucket<String, Int>("n"))
            for event in ["INSERT", "UPDATE", "DELETE"] {
                try tx.execute(
                    SQL(
                        text: """
                            CREATE TRIGGER no_\(event) BEFORE \(event) ON "bucket:n"
                            BEGIN SELECT RAISE(IGNORE); END
                            """))
            }
        }
        #expect(try kv("put", "n", "n", "int:2").exitCode == 23)
        #expect(try kv("incr", "n", "n").exitCode == 23)
        #expect(try kv("delete", "n", "n").exitCode == 23)
        #expect(try kv("get", "n", "n").text == "1\n")
    }

    @Test func `put gives the lifetime also where no entry has expired yet`() throws {
        let bucket = Bucket<String, Int>("b", lifetime: .seconds(3600))
        try write { tx in try tx.set(1, for: "stays", in: bucket, expiring: .never) }
        #expect(try kv("put", "b", "k", "int:2").exitCode == 0)
        let store = try Store(path: path, key: .numbered(1), mode: .mustExist)
        let life = try #require(try store.remainingLifetime(of: "k", in: bucket))
        #expect(life != .unlimited)
        #expect(try store.remainingLifetime(of: "stays", in: bucket) == .unlimited)
        try store.close()
    }

    @Test func `buckets are listed with their types, and dropped`() throws {
        try write { tx in
            try tx.set("value", for: "key", in: Bucket<String, String>("b", lifetime: .seconds(90)))
        }
        #expect(try kv("buckets").text == "b\ttext\tsql\t1\t8\n")
        let line = try kv("buckets", "--json").text
        #expect(line.contains("\"lifetimeSeconds\":90") && line.contains("\"keyType\":\"text\""))
        #expect(try kv("drop", "b").exitCode == 0)
        #expect(try kv("drop", "b").exitCode == 10)
        #expect(try kv("buckets").text == "")
    }

    @Test func `a missing key or bucket is exit code 10, and asking makes nothing`() throws {
        for verb in [
            ["get", "none", "k"], ["delete", "none", "k"], ["count", "none"], ["list", "none"],
        ] {
            let output = try Tool.run(
                ["kv", verb[0], path] + verb.dropFirst()
                    + ["--raw-key-fd", "3"], descriptors: [3: Tool.key(1)])
            #expect(output.exitCode == 10, "\(verb): \(output.errorText)")
            #expect(output.stdout.isEmpty)
        }
        #expect(try kv("list").text == "")
    }

    @Test func `keys and values of the wrong kind are wrong usage`() throws {
        #expect(try kv("put", "n", "1", "x", "--key-type", "integer").exitCode == 0)
        #expect(try kv("put", "n", "one", "x").exitCode == 2)
        #expect(try kv("put", "n", "2", "int:two").exitCode == 2)
        #expect(try kv("put", "n", "2", "null:").exitCode == 2)
        #expect(try kv("put", "n", "2", "-", "--passphrase-stdin").exitCode == 2)
        #expect(try kv("count", "n").text == "1\n")
    }
}
