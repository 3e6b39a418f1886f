import Foundation
import Testing

@testable import Coffer

@Suite struct BucketTests {
    struct Session: Codable, Sendable, Equatable {
        var user: String
        var roles: [String] = []
    }

    private let folder: TemporaryFolder
    private let store: Store
    private let sessions = Bucket<String, Session>("sessions")

    init() throws {
        folder = try TemporaryFolder()
        store = try Store(path: folder.path(), key: .numbered(1), configuration: .testing())
    }

    @Test func `a value is set, got, replaced and removed`() throws {
        try store.write { tx in
            try tx.set(Session(user: "ada"), for: "s1", in: sessions)
            #expect(try tx.get("s1", in: sessions) == Session(user: "ada"))
        }
        try store.write { tx in
            try tx.set(Session(user: "grace", roles: ["admin"]), for: "s1", in: sessions)
        }
        let session = try store.read { tx in try tx.get("s1", in: sessions) }
        #expect(session == Session(user: "grace", roles: ["admin"]))
        #expect(try store.write { tx in try tx.remove("s1", in: sessions) })
        #expect(try !store.write { tx in try tx.remove("s1", in: sessions) })
        #expect(try store.read { tx in try tx.get("s1", in: sessions) } == nil)
    }

    @Test func `a bucket without a table is empty and removing from it is not an error`() throws {
        let values = try store.read { tx in
            (
                try tx.get("x", in: sessions), try tx.contains("x", in: sessions),
                try tx.count(in: sessions), try tx.entries(in: sessions).count
            )
        }
        #expect(values.0 == nil && !values.1 && values.2 == 0 && values.3 == 0)
        #expect(try !store.write { tx in try tx.remove("x", in: sessions) })
        #expect(try store.write { tx in try tx.removeAll(in: sessions) } == 0)
    }

    @Test func `a table that a rollback removed is made again`() throws {
        for _ in 0..<2 {
            try? store.write { tx in
                try tx.set(Session(user: "ada"), for: "s1", in: sessions)
                throw CancellationError()
            }
            #expect(try store.read { tx in try tx.get("s1", in: sessions) } == nil)
        }
        try store.write { tx in try tx.set(Session(user: "ada"), for: "s1", in: sessions) }
        #expect(try store.read { tx in try tx.count(in: sessions) } == 1)
    }

    @Test func `values of every storage class round-trip as themselves`() throws {
        try roundTrip("text", ["", "plain", "with\0NUL", "emoji 🗝️"])
        try roundTrip("integer", [0, .min, .max])
        try roundTrip("real", [0.1, -1e300, .infinity])
        try roundTrip("bool", [true, false])
        try roundTrip("data", [Data(), Data([0, 255]), Data(repeating: 7, count: 100_000)])
        try roundTrip("bytes", [[UInt8](), [0, 255]])
        try roundTrip("date", [Date(timeIntervalSince1970: 1_700_000_000.25)])
        try roundTrip("uuid", [UUID()])
        try roundTrip("array", [["a", "b"], []])
        try roundTrip("dictionary", [["a": 1], [:]])
        try roundTrip("optional", [Optional("x")])
    }

    private func roundTrip<V: Codable & Sendable & Equatable>(_ name: String, _ values: [V]) throws
    {
        let bucket = Bucket<Int, V>(name)
        try store.write { tx in
            for (index, value) in values.enumerated() { try tx.set(value, for: index, in: bucket) }
        }
        let entries = try store.read { tx in try tx.entries(in: bucket) }
        #expect(entries.map(\.value) == values)
        #expect(entries.map(\.key) == Array(values.indices))
        let each = try store.read { tx in
            try values.indices.map { index in try tx.get(index, in: bucket) }
        }
        #expect(each == values)
    }

    @Test func `a codec is asked for values that are bytes`() throws {
        let codec = BucketCodec<[UInt8]>(name: "reversed") {
            Data($0.reversed())
        } decode: {
            $0.reversed()
        }
        let bucket = Bucket<Int, [UInt8]>("reversed", codec: codec)
        try store.write { tx in try tx.set([1, 2], for: 1, in: bucket) }
        #expect(try store.read { tx in try tx.get(1, in: bucket) } == [1, 2])
    }

    @Test func `a text is not read as bytes`() throws {
        let bucket = Bucket<Int, [UInt8]>("texts")
        try store.write { tx in
            try tx.set([1], for: 1, in: bucket)
            try tx.execute(#"UPDATE "bucket:texts" SET value = 'text'"#)
        }
        let error = #expect(throws: StoreError.self) {
            try store.read { tx in _ = try tx.get(1, in: bucket) }
        }
        #expect(error?.code == .mismatch)
        #expect(error?.table == "bucket:texts")
        #expect(error?.column == "value")
    }

    @Test func `keys come in the order of their type`() throws {
        try order([3, -5, Int.max, 0, Int.min, -1], by: <)
        try order(["z", "ab", "é", "", "b", "Z", "a"]) {
            $0.utf8.lexicographicallyPrecedes($1.utf8)
        }
        try order((0..<20).map { _ in UUID() }) { $0.uuidString < $1.uuidString }
        try order([Data([255]), Data([0, 0]), Data([1]), Data(), Data([0])]) {
            $0.lexicographicallyPrecedes($1)
        }
    }

    private func order<K: BucketKey>(_ keys: [K], by areInOrder: (K, K) -> Bool) throws {
        let bucket = Bucket<K, Int>("order \(K.self)")
        try store.write { tx in for key in keys { try tx.set(1, for: key, in: bucket) } }
        let sorted = try store.read { tx in try tx.entries(in: bucket).map(\.key) }
        #expect(sorted == keys.sorted(by: areInOrder))
        let middle = sorted[sorted.count / 2]
        let upper = try store.read { tx in try tx.keys(in: bucket, .from(middle)) }
        let lower = try store.read { tx in try tx.keys(in: bucket, .below(middle)) }
        #expect(lower + upper == sorted)
        #expect(try store.read { tx in try tx.entries(in: bucket, maximumCount: 2).count } == 2)
    }

    @Test func `a prefix finds exactly the keys that begin with it`() throws {
        let bucket = Bucket<String, Int>("prefixes")
        let keys = [
            "a", "user", "user/", "user/1", "user/2", "user/\u{10FFFF}", "user0", "v", "us%r/9",
        ]
        try store.write { tx in for key in keys { try tx.set(1, for: key, in: bucket) } }
        let found = try store.read { tx in try tx.entries(in: bucket, .prefix("user/")).map(\.key) }
        #expect(found == ["user/", "user/1", "user/2", "user/\u{10FFFF}"])
        #expect(
            try store.read { tx in try tx.entries(in: bucket, .prefix("")).count } == keys.count)
        let bytes = Bucket<Data, Int>("byte prefixes")
        try store.write { tx in
            for key in [Data([1]), Data([1, 255]), Data([1, 255, 255]), Data([2])] {
                try tx.set(1, for: key, in: bytes)
            }
        }
        #expect(
            try store.read { tx in try tx.count(in: bytes, .prefix(Data([1, 255]))) } == 2)
    }

    @Test func `keys of another type are refused, not converted`() throws {
        try store.write { tx in try tx.set(Session(user: "ada"), for: "5", in: sessions) }
        let other = Bucket<Int, Session>("sessions")
        expect(.mismatch) { try store.read { tx in try tx.get(5, in: other) } }
        expect(.mismatch) {
            try store.write { tx in try tx.set(Session(user: "x"), for: 5, in: other) }
        }
    }

    @Test func `the type of the keys is read again after a rollback`() throws {
        let texts = Bucket<String, String>("b")
        let numbers = Bucket<Int, String>("b")
        try? store.write { tx in
            try tx.set("first", for: "1", in: texts)
            try tx.set("second", for: "2", in: texts)
            throw CancellationError()
        }
        try store.write { tx in try tx.set("precious", for: 7, in: numbers) }
        expect(.mismatch) { try store.write { tx in try tx.set("text", for: "0007", in: texts) } }
        #expect(try store.read { tx in try tx.get(7, in: numbers) } == "precious")
        try store.write { tx in
            try tx.execute("DROP TABLE \(identifier: "bucket:b")")
            try tx.set("text", for: "0007", in: texts)
        }
        expect(.mismatch) { try store.write { tx in try tx.set("x", for: 7, in: numbers) } }
        #expect(try store.read { tx in try tx.get("0007", in: texts) } == "text")
    }

    @Test func `a value of another type is .mismatch with table and column`() throws {
        try store.write { tx in try tx.set(Session(user: "ada"), for: "s1", in: sessions) }
        let other = Bucket<String, Int>("sessions")
        let error = expect(.mismatch) { try store.read { tx in try tx.get("s1", in: other) } }
        #expect(error?.table == "bucket:sessions" && error?.column == "value")
        let third = Bucket<String, [Int]>("sessions")
        let decoding = expect(.mismatch) { try store.read { tx in try tx.get("s1", in: third) } }
        #expect("\(decoding!)".contains("ada") == false, "no value in an error")
    }

    @Test func `NaN and an empty bucket name are errors`() throws {
        let numbers = Bucket<Int, Double>("numbers")
        expect(.mismatch) { try store.write { tx in try tx.set(.nan, for: 1, in: numbers) } }
        let nameless = Bucket<Int, Double>("")
        expect(.misuse) { try store.write { tx in try tx.set(1, for: 1, in: nameless) } }
    }

    @Test(arguments: ["a\"b", "semi;colon", "'; DROP TABLE t; --", "🗝️", "select"])
    func `any name is a separate bucket`(name: String) throws {
        let bucket = Bucket<Int, String>(name)
        try store.write { tx in try tx.set(name, for: 1, in: bucket) }
        #expect(try store.read { tx in try tx.get(1, in: bucket) } == name)
    }

    @Test func `names that differ in normalisation are two buckets, in case an error`() throws {
        let composed = Bucket<Int, Int>("\u{e9}")
        let decomposed = Bucket<Int, Int>("e\u{301}")
        try store.write { tx in
            try tx.set(1, for: 1, in: composed)
            try tx.set(2, for: 1, in: decomposed)
        }
        #expect(try store.read { tx in try tx.get(1, in: composed) } == 1)
        try store.write { tx in try tx.set(Session(user: "ada"), for: "s1", in: sessions) }
        let shouting = Bucket<String, Session>("SESSIONS")
        expect(.misuse) { try store.read { tx in try tx.get("s1", in: shouting) } }
    }

    @Test func `removeAll counts what it removed`() throws {
        let bucket = Bucket<Int, Int>("numbers")
        try store.write { tx in for key in 0..<10 { try tx.set(key, for: key, in: bucket) } }
        #expect(try store.write { tx in try tx.removeAll(in: bucket) } == 10)
        #expect(try store.read { tx in try tx.count(in: bucket) } == 0)
    }
}
