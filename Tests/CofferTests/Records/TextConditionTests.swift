import Foundation
import Synchronization
import Testing

@testable import Coffer

/// Conditions on texts, with and without case: compared with what Swift says.
@Suite(.againstHanging, .onOwnThreads) struct TextConditionTests: NotesSuite {
    let fixture: RecordFixture
    private let notes: [Note]

    init() throws {
        (fixture, notes) = try Self.makeFixture()
    }

    @Test func `texts that differ in case are two values in any column`() throws {
        try fixture.store.write { tx throws in
            try tx.execute(
                """
                CREATE TABLE word(
                    id INTEGER NOT NULL PRIMARY KEY, text TEXT NOT NULL COLLATE NOCASE)
                """)
            try tx.insert([Word(id: 1, text: "a"), Word(id: 2, text: "A"), Word(id: 3, text: "a")])
            #expect(try tx.counts(by: \Word.text) == ["a": 2, "A": 1])
            #expect(try tx.distinct(\Word.text) == ["A", "a"])
            #expect(try tx.distinct(\Word.text, Word.order(by: \.id).limit(2)) == ["A", "a"])
        }
    }

    struct Word: Record, Equatable {
        var id: Int
        var text: String
    }

    @Test(arguments: [
        "", "a", "A", "%", "_", "\\", "é", "e\u{301}", "\u{10FFFF}", "a\u{0}", "\u{D7FF}",
    ])
    func `texts are compared as their bytes are`(part: String) throws {
        let texts = [
            "", "a", "A", "ab", "a%b", "a_b", "a\\b", "%", "é", "e\u{301}", "\u{10FFFF}x",
            "a\u{0}b",
            "b", "ba", "\u{D7FF}z", "\u{E000}",
        ]
        let words = texts.enumerated().map { Word(id: $0, text: $1) }
        try fixture.store.write { tx in try tx.insert(words) }
        func found(_ condition: Condition<Word>) throws -> [String] {
            try read { tx in try tx.fetch(Word.where(condition).order(by: \.id)) }.map(\.text)
        }
        func expected(_ isFound: (String) -> Bool) -> [String] { texts.filter(isFound) }
        let bytes = Array(part.utf8)
        #expect(try found(.hasPrefix(\.text, part)) == expected { $0.utf8.starts(with: bytes) })
        #expect(
            try found(.hasSuffix(\.text, part))
                == expected { $0.utf8.reversed().starts(with: bytes.reversed()) })
        #expect(
            try found(.contains(\.text, part))
                == expected { text in
                    let all = Array(text.utf8)
                    return (0...all.count).contains { all[$0...].starts(with: bytes) }
                })
    }

    @Test func `without case, and by a pattern`() throws {
        #expect(try ids(.hasPrefix(\.title, "N4", isCaseSensitive: false)) == [4, 40])
        #expect(try ids(.contains(\.title, "N4", isCaseSensitive: false)) == [4, 40])
        #expect(try ids(.hasSuffix(\.title, "N4", isCaseSensitive: false)) == [4])
        #expect(try ids(.like(\.title, "n_4")) == [14, 24, 34])
        #expect(try ids(.like(\.title, "n\\_4")) == [])
    }

    @Test func `without case, what a pattern has another meaning for is a letter`() throws {
        let texts = ["a%b", "A%B", "axb", "a_b", "a\\b", "%", "_", "\\", "ab"]
        try fixture.store.write { tx in
            try tx.insert(texts.enumerated().map { Word(id: $0, text: $1) })
        }
        for part in ["%", "_", "\\", "a%", "%b", "A_B", "a\\B"] {
            let lower = part.lowercased()
            func check(_ condition: Condition<Word>, _ isFound: (String) -> Bool) throws {
                let found = try read { tx in try tx.fetch(Word.where(condition).order(by: \.id)) }
                #expect(found.map(\.text) == texts.filter { isFound($0.lowercased()) }, "\(part)")
            }
            try check(.hasPrefix(\.text, part, isCaseSensitive: false)) { $0.hasPrefix(lower) }
            try check(.hasSuffix(\.text, part, isCaseSensitive: false)) { $0.hasSuffix(lower) }
            try check(.contains(\.text, part, isCaseSensitive: false)) { $0.contains(lower) }
        }
    }

    @Test func `without case a text ends at its first NUL`() throws {
        try fixture.store.write { tx in try tx.insert(Word(id: 1, text: "a\u{0}b")) }
        func count(_ condition: Condition<Word>) throws -> Int {
            try read { tx in try tx.count(Word.where(condition)) }
        }
        #expect(try count(.contains(\.text, "b")) == 1)
        #expect(try count(.contains(\.text, "B", isCaseSensitive: false)) == 0)
        #expect(try count(.hasPrefix(\.text, "A", isCaseSensitive: false)) == 1)
    }
}
