import Foundation
import Testing
import Workload

@testable import Coffer

@Suite struct BucketKeyTests {
    private enum Channel: String, BucketKey { case mail, push, voice }
    private enum Level: Int, BucketKey {
        case low = -1
        case high = 7
    }
    private struct UserID: RawRepresentable, BucketKey { let rawValue: UUID }
    private struct Version: TextBucketKey, Hashable {
        let major: Int
        init?(_ description: String) {
            guard let major = Int(description) else { return nil }
            self.major = major
        }
        var description: String { String(major) }
    }

    private let fixture: BucketFixture
    private var store: Store { fixture.store }

    init() throws { fixture = try BucketFixture() }

    /// Checks that keys come back equal and in this order, forwards and backwards.
    private func check<K: BucketKey>(
        _ ordered: [K], _ name: String = #function,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let bucket = Bucket<K, Int>("\(name) \(K.self)")
        for (index, key) in ordered.enumerated().shuffled() {
            try store.set(index, for: key, in: bucket)
        }
        let entries = try store.entries(in: bucket)
        #expect(entries.map(\.key) == ordered, sourceLocation: sourceLocation)
        #expect(entries.map(\.value) == Array(ordered.indices), sourceLocation: sourceLocation)
        let backwards = try store.keys(in: bucket, order: .descending)
        #expect(backwards == ordered.reversed(), sourceLocation: sourceLocation)
        for (index, key) in ordered.enumerated() {
            #expect(try store.get(key, in: bucket) == index, sourceLocation: sourceLocation)
            #expect(
                try store.count(in: bucket, .below(key)) == index, sourceLocation: sourceLocation)
        }
    }

    @Test func `keys of every kind come back equal, in the order of their values`() throws {
        try check([Int8.min, -1, 0, 1, Int8.max])
        try check([Int16.min, -1, 0, Int16.max])
        try check([Int64.min, -256, -1, 0, 255, 256, Int64.max])
        try check([UInt8.min, 255])
        try check([UInt16.min, 1, 65_535])
        try check([UInt32.min, 1, UInt32.max])
        try check([UInt64.min, 1, 255, 256, UInt64(Int64.max), UInt64(Int64.max) + 1, UInt64.max])
        try check([UInt.min, UInt.max])
        try check([false, true])
        try check(["", "\0", "\0a", "a", "a\0", "a\0b", "ab", "b", "é", "\u{10FFFF}"])
        try check([Data(), Data([0]), Data([0, 0]), Data([0, 255]), Data([1]), Data([255, 0])])
        try check([Channel.mail, .push, .voice])
        try check([Level.low, .high])
        try check([Version("10")!, Version("9")!], "text order")
    }

    @Test func `dates before 1970 and far away come back to the bit`() throws {
        let dates = [
            Date.distantPast, Date(timeIntervalSince1970: -0.5), Date(timeIntervalSince1970: 0),
            Date(timeIntervalSinceReferenceDate: 0.1),
            Date(timeIntervalSinceReferenceDate: 0.1.nextUp),
            Date(timeIntervalSinceReferenceDate: 800_000_000.123456), .distantFuture,
        ]
        try check(dates)
        try check(dates.map { CompositeKey($0, 1) })
        let bucket = Bucket<Date, Int>("nan")
        expect(.mismatch) {
            try store.set(1, for: Date(timeIntervalSinceReferenceDate: .nan), in: bucket)
        }
        expect(.mismatch) {
            try store.keys(in: bucket, .from(Date(timeIntervalSinceReferenceDate: .nan)))
        }
    }

    @Test func `composite keys are ordered by their parts, whatever bytes these have`() throws {
        try check([
            CompositeKey("", 5), CompositeKey("\0", -7), CompositeKey("\0\u{1}", 0),
            CompositeKey("a", Int.min), CompositeKey("a", -1), CompositeKey("a", 0),
            CompositeKey("a", Int.max), CompositeKey("a\0", -1), CompositeKey("a\u{1}", -1),
            CompositeKey("aa", -9), CompositeKey("b", -9),
        ])
        try check([
            CompositeKey(Data(), Data(), true), CompositeKey(Data(), Data([0]), false),
            CompositeKey(Data([0]), Data(), false), CompositeKey(Data([0, 1]), Data(), false),
            CompositeKey(Data([0, 255]), Data(), false), CompositeKey(Data([1]), Data(), false),
        ])
        let user = UUID()
        try check([
            CompositeKey(UserID(rawValue: user), Channel.mail, UInt64.max, "x"),
            CompositeKey(UserID(rawValue: user), Channel.push, 0, ""),
            CompositeKey(UserID(rawValue: user), Channel.push, 1, "\0"),
        ])
        // A composite part counts as its parts.
        try check([
            CompositeKey(CompositeKey("a", "b"), 1), CompositeKey(CompositeKey("a", "b"), 2),
            CompositeKey(CompositeKey("a", "c"), 0), CompositeKey(CompositeKey("ab", ""), 0),
        ])
    }

    @Test func `random composite keys have the order of their parts`() throws {
        var random = SeededGenerator(for: #function)
        func text() -> String {
            let scalars: [Unicode.Scalar] = ["\0", "\u{1}", "a", "\u{7F}", "ÿ", "\u{10FFFF}"]
            return String(
                String.UnicodeScalarView(
                    (0..<Int.random(in: 0..<4, using: &random)).map { _ in
                        scalars.randomElement(using: &random)!
                    }))
        }
        let keys = (0..<500).map { _ in
            CompositeKey(text(), Int.random(in: -2...2, using: &random), text())
        }
        let bucket = Bucket<CompositeKey<String, Int, String>, Bool>("random")
        try store.write { tx in for key in keys { try tx.set(true, for: key, in: bucket) } }
        func precedes(
            _ left: CompositeKey<String, Int, String>, _ right: CompositeKey<String, Int, String>
        ) -> Bool {
            let (l, r) = (left.parts, right.parts)
            if Array(l.0.utf8) != Array(r.0.utf8) {
                return l.0.utf8.lexicographicallyPrecedes(r.0.utf8)
            }
            if l.1 != r.1 { return l.1 < r.1 }
            return l.2.utf8.lexicographicallyPrecedes(r.2.utf8)
        }
        #expect(try store.keys(in: bucket) == Set(keys).sorted(by: precedes))
        for key in keys.prefix(50) {
            let (first, second, third) = key.parts
            let all = Set(keys)
            #expect(
                try store.count(in: bucket, .starting(with: first))
                    == all.count { $0.parts.0 == first })
            #expect(
                try store.count(in: bucket, .starting(with: first, second))
                    == all.count { $0.parts.0 == first && $0.parts.1 == second })
            #expect(
                try store.count(in: bucket, .starting(with: first, second, prefix: third))
                    == all.count {
                        $0.parts.0 == first && $0.parts.1 == second
                            && $0.parts.2.utf8.starts(with: third.utf8)
                    })
            #expect(
                try store.count(in: bucket, .starting(withPrefix: first))
                    == all.count { $0.parts.0.utf8.starts(with: first.utf8) })
        }
    }

    @Test func `a prefix may end inside a part`() throws {
        let events = Bucket<CompositeKey<String, String>, Int>("events")
        for (user, event) in [
            ("ada", "login"), ("ada", "logout"), ("ada", "mail"), ("adam", "log"),
        ] {
            try store.set(1, for: CompositeKey(user, event), in: events)
        }
        #expect(try store.count(in: events, .starting(with: "ada")) == 3)
        #expect(try store.count(in: events, .starting(with: "ada", prefix: "log")) == 2)
        #expect(try store.count(in: events, .starting(withPrefix: "ada")) == 4)
        #expect(try store.removeAll(in: events, .starting(with: "ada")) == 3)
        #expect(try store.keys(in: events).map(\.parts.0) == ["adam"])
    }

    @Test func `prefixes at the ends of the order find all keys`() throws {
        let texts = Bucket<String, Int>("texts")
        let highest = "\u{10FFFF}"
        for key in ["\u{D7FF}", "\u{D7FF}x", "\u{E000}", highest, highest + "a", highest + highest]
        {
            try store.set(1, for: key, in: texts)
        }
        #expect(try store.count(in: texts, .prefix("\u{D7FF}")) == 2)
        #expect(try store.count(in: texts, .prefix(highest)) == 3)
        #expect(try store.count(in: texts, .prefix(highest + highest)) == 1)
        let bytes = Bucket<Data, Int>("bytes")
        for key in [Data([254]), Data([255]), Data([255, 255]), Data([255, 255, 1])] {
            try store.set(1, for: key, in: bytes)
        }
        #expect(try store.count(in: bytes, .prefix(Data([255]))) == 3)
        #expect(
            try store.keys(in: bytes, .prefix(Data([255, 255])), order: .descending).count == 2)
    }

    @Test func `a file of UTF-16 texts finds the same prefixes`() throws {
        let path = fixture.folder.path("utf16.db")
        do {
            let raw = try RawConnection(path, key: 1, pragmas: ["PRAGMA encoding = 'UTF-16le'"])
            raw.run("CREATE TABLE t (x)")
        }
        let store = try Store(path: path, key: .numbered(1), configuration: .testing())
        let encoding: String? = try store.read { tx in try tx.scalar("PRAGMA encoding") }
        #expect(encoding == "UTF-16le")
        let bucket = Bucket<String, Int>("b")
        // The first text after those that begin with ÿ is U+0100: in UTF-16le it is less than ÿ.
        let keys = ["a", "ab", "ü", "ÿ", "ÿb", "\u{FF21}", "\u{10000}", "\u{10000}x", "\u{10FFFF}"]
        for key in keys { try store.set(1, for: key, in: bucket) }
        for prefix in keys + ["", "zz"] {
            let expected = Set(keys.filter { $0.utf8.starts(with: prefix.utf8) })
            #expect(Set(try store.keys(in: bucket, .prefix(prefix))) == expected)
            #expect(
                Set(try store.keys(in: bucket, .prefix(prefix), order: .descending)) == expected)
            #expect(try store.count(in: bucket, .prefix(prefix)) == expected.count)
        }
        #expect(try store.removeAll(in: bucket, .prefix("ÿ")) == 2)
    }

    @Test func `composed and decomposed é are two keys`() throws {
        let bucket = Bucket<String, Int>("accents")
        try store.set(1, for: "\u{e9}", in: bucket)
        try store.set(2, for: "e\u{301}", in: bucket)
        #expect(try store.count(in: bucket) == 2)
        #expect(try store.get("\u{e9}", in: bucket) == 1)
        #expect(try store.count(in: bucket, .prefix("e")) == 1)
    }

    @Test func `a key of 100 000 bytes is found, and ordered by all of them`() throws {
        let long = String(repeating: "k", count: 100_000)
        try check([long, long + "a", long + "b"])
        try check([CompositeKey(long, 1), CompositeKey(long, 2), CompositeKey(long + "a", 0)])
    }

    @Test func `a stored key that is not one of the type is an error, not another key`() throws {
        let bucket = Bucket<CompositeKey<String, Bool>, Int>("b")
        try store.set(1, for: CompositeKey("a", true), in: bucket)
        for bytes in ["61", "6100", "610001", "61000102", "6100010000", "ff000101", "610002"] {
            try store.write { tx in
                try tx.removeAll(in: bucket)
                try tx.execute(
                    SQL(text: "INSERT INTO \"bucket:b\" (key, value) VALUES (x'\(bytes)', 1)"))
            }
            let error = expect(.mismatch) { try store.keys(in: bucket) }
            #expect(error?.table == "bucket:b" && error?.column == "key")
        }
    }

    @Test func `a key type is known by its name in the file`() {
        let types: [BucketKeyType] = [
            .text, .integer, .bool, .unsigned, .date, .uuid, .bytes, .composite([.text]),
            .composite([.uuid, .date, .unsigned]),
            .composite([.composite([.text, .integer]), .bytes]),
        ]
        for type in types { #expect(BucketKeyType(named: "\(type)") == type) }
        #expect("\(types.last!)" == "(text, integer, bytes)")
        for name in ["", "texts", "text, date", "(text", "(text,date)", "()", "( text)"] {
            #expect(BucketKeyType(named: name) == nil)
        }
    }
}
