import Foundation
import Testing

@testable import Coffer

/// Files with texts stored as UTF-16, which other programs make: `PRAGMA encoding`.
@Suite(.againstHanging, .onOwnThreads) struct UTF16Tests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func open(_ encoding: String) throws -> Store {
        let connection = try Connection(
            path: folder.path(), key: .numbered(1), configuration: .testing())
        try connection.execute(SQL(text: "PRAGMA encoding = '\(encoding)'"))
        try connection.execute("CREATE TABLE other(a)")
        let found = try connection.firstRow("PRAGMA encoding")
        #expect(found?[0] == .text(encoding))
        connection.close()
        return try Store(path: folder.path(), key: .numbered(1), configuration: .testing())
    }

    struct Word<P: RecordPathsTests.Path>: Record, Equatable {
        static var access: RecordAccess { P.access }
        static var table: String { "word" }
        static var encodings: [PartialKeyPath<Self>: ColumnEncoding] { [\.tag: .uuidText] }
        static var key: [String] { ["text"] }
        var text: String
        var maybe: String?
        var list: [String]
        var tag: UUID
        var data: Data
    }

    /// Compared as bytes, because Swift treats different texts as equal.
    private static let texts: [String] = [
        "", "a", "abc", "ab\u{0}c", "\u{0}", "ä", "e\u{301}", "🎈", "🎈🎈x", "\u{feff}mark",
        "\u{feff}",
        "\u{d7ff}\u{e000}", "\u{fffd}", "\u{10ffff}", "\u{1ffff}", "\u{ff}", "\u{ff}\u{100}",
        "\u{161}", "b", String(repeating: "long ä🎈 ", count: 3_000),
    ]

    private func words<P>(_ type: Word<P>.Type) -> [Word<P>] {
        Self.texts.map { text in
            Word(
                text: text, maybe: text.isEmpty ? nil : text, list: [text, "x"],
                tag: UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)),
                data: Data(text.utf8))
        }
    }

    private static let encodings = ["UTF-16le", "UTF-16be"]

    @Test(arguments: encodings)
    func `records are written and read, every text unchanged`(encoding: String) throws {
        let store = try open(encoding)
        try check(RecordPathsTests.Own.self, store)
        try store.write { tx in _ = try tx.execute("DELETE FROM word") }
        try check(RecordPathsTests.Stored.self, store)
    }

    private func check<P: RecordPathsTests.Path>(_ path: P.Type, _ store: Store) throws {
        typealias One = Word<P>
        let report = try One.accessReport()
        #expect(report.access == P.access)
        let words = words(One.self)
        try store.write { tx in try tx.insert(words) }
        func bytes(_ words: [One]) -> [[UInt8]] {
            words.map { Array($0.text.utf8) + Array(($0.maybe ?? "").utf8) + $0.list.joined().utf8 }
        }
        try store.read { tx throws in
            #expect(bytes(try tx.fetch(One.all)) == bytes(words))
            #expect(bytes(try tx.fetch(One.limit(99))) == bytes(words))
            #expect(bytes(try tx.fetch(One.self, sql: "SELECT * FROM word")) == bytes(words))
            for word in words {
                let found = try tx.find(One.self, word.text)
                #expect(found.map { bytes([$0]) } == bytes([word]))
                #expect(found?.data == word.data)
                #expect(
                    bytes(try tx.fetch(One.where(\.maybe == word.text)))
                        == bytes(
                            word.text.isEmpty ? [] : [word]))
            }
        }
    }

    @Test(arguments: encodings)
    func `conditions on texts find what Swift finds`(encoding: String) throws {
        typealias One = Word<RecordPathsTests.Stored>
        let store = try open(encoding)
        let words = words(One.self)
        try store.write { tx in try tx.insert(words) }
        let all = words.map(\.data)
        func found(_ condition: Condition<One>) throws -> Set<Data> {
            Set(try store.read { tx in try tx.fetch(One.where(condition)).map(\.data) })
        }
        let parts = [
            "a", "b", "\u{ff}", "\u{d7ff}", "🎈", "c", "\u{10ffff}", "\u{feff}", "\u{1ffff}", "x",
            "",
        ]
        for part in parts {
            let bytes = Data(part.utf8)
            #expect(
                try found(.hasPrefix(\.text, part)) == Set(all.filter { $0.starts(with: bytes) }))
            #expect(
                try found(.hasSuffix(\.text, part))
                    == Set(all.filter { $0.reversed().starts(with: bytes.reversed()) }))
            #expect(
                try found(.contains(\.text, part))
                    == Set(all.filter { part.isEmpty || $0.range(of: bytes) != nil }))
        }
    }

    @Test func `a prefix is looked up in an index where texts are UTF-8`() throws {
        typealias One = Word<RecordPathsTests.Own>
        let fixture = try RecordFixture()
        let query = One.where(.hasPrefix(\.text, "a")).selectSQL(try RecordPlan.of(One.self))
        try fixture.store.write { tx throws in
            try tx.create(One.self)
            let steps = try tx.rows("EXPLAIN QUERY PLAN \(query)")
            let detail: String = try steps[0].get("detail")
            #expect(detail.hasPrefix("SEARCH"), "\(detail)")
            #expect(detail.hasSuffix("(text>? AND text<?)"), "\(detail)")
        }
    }

    @Test(arguments: encodings)
    func `a text that SQLite would change in conversion is refused`(encoding: String) throws {
        let store = try open(encoding)
        try checkRefusal(RecordPathsTests.Own.self, store)
        try checkRefusal(RecordPathsTests.Stored.self, store)
    }

    private func checkRefusal<P: RecordPathsTests.Path>(_ path: P.Type, _ store: Store) throws {
        guard let word = words(Word<P>.self).first else { return }
        for text in ["\u{ffff}", "a\u{fffe}b", String(repeating: "a", count: 20_000) + "\u{ffff}"] {
            var (first, second, third) = (word, word, word)
            (first.text, second.maybe, third.list) = (text, text, [text])
            try store.write { tx throws in
                for (record, column) in [(first, "text"), (second, "maybe"), (third, "list")] {
                    let error = expect(.mismatch) { try tx.insert(record) }
                    #expect(error?.column == column)
                }
                #expect(try tx.count(Word<P>.all) == 0)
                _ = expect(.mismatch) { try tx.find(Word<P>.self, text) }
            }
        }
    }

    @Test(arguments: [("UTF-16le", "61003dd8"), ("UTF-16be", "0061d83d")])
    func `a text that is not valid Unicode is a mismatch`(encoding: String, bytes: String) throws {
        let store = try open(encoding)
        try store.write { tx throws in
            try tx.insert(words(Word<RecordPathsTests.Own>.self)[1])
            try tx.execute(SQL(text: "UPDATE word SET text = CAST(x'\(bytes)' AS TEXT)"))
        }
        try store.read { tx throws in
            var error = expect(.mismatch) { try tx.fetch(Word<RecordPathsTests.Own>.all) }
            #expect(error?.column == "text")
            error = expect(.mismatch) { try tx.fetch(Word<RecordPathsTests.Stored>.all) }
            #expect(error?.column == "text")
        }
    }
}
