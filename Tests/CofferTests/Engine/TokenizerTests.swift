import Foundation
import Testing

@testable import Coffer

/// The tokens that Coffer's own tokenizers make of a text.
@Suite struct TokenizerTests {
    private func words(_ text: String, _ tokenizer: some Tokenizer = WordTokenizer()) -> [String] {
        tokenizer.tokens(in: text).map(\.text)
    }

    @Test(
        arguments: [
            ("", []), (" .,;-\n", []), ("one", ["one"]),
            ("One, TWO-three_4.5", ["one", "two", "three", "4", "5"]),
            ("don't", ["don't"]),
            ("don’t 'quoted' rock 'n' roll'", ["don't", "quoted", "rock", "n", "roll"]),
            ("''a''b'", ["a", "b"]), ("Straße", ["strasse"]), ("ΌΣΟΣ όσος", ["όσοσ", "όσοσ"]),
            ("日本 go語", ["日", "本", "go", "語"]), ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
            ("می\u{200c}خواهم a\u{200d}", ["میخواهم", "a"]),
            ("e\u{301}te\u{301}", ["e\u{301}te\u{301}"]),
            ("👍🏽 ok\u{fe0f}", ["\u{1f3fd}", "ok\u{fe0f}"].filter { $0 != "\u{1f3fd}" }),
            ("x²½", ["x²½"]),
        ] as [(String, [String])])
    func `words are runs of letters, marks and numbers`(text: String, expected: [String]) {
        #expect(words(text).map { Array($0.utf8) } == expected.map { Array($0.utf8) })
    }

    @Test func `ranges count bytes, and give back the word`() {
        let text = "  L’Été, 日本: naïve\u{200d}x e\u{301}"
        let tokens = Array(WordTokenizer(foldsCase: false).tokens(in: text))
        let bytes = Array(text.utf8)
        let parts = tokens.map { String(decoding: bytes[$0.range], as: UTF8.self) }
        #expect(parts == ["L’Été", "日", "本", "naïve\u{200d}x", "e\u{301}"])
        #expect(tokens.map(\.text) == ["L'Été", "日", "本", "naïvex", "e\u{301}"])
    }

    @Test func `accents are removed from composed and decomposed letters`() {
        let tokenizer = WordTokenizer(removesDiacritics: true)
        #expect(
            words("Ÿ e\u{301}TÉ Ệ ΐ İ й Ǖ ø \u{301}", tokenizer)
                == ["y", "ete", "e", "ι", "i", "и", "u", "ø", ""])
        let kept = WordTokenizer(foldsCase: false, removesDiacritics: true)
        #expect(words("ÉCOLE Straße", kept) == ["ECOLE", "Straße"])
    }

    @Test func `stop words are left out unless the text ends in a star`() {
        let tokenizer = StopWordTokenizer(
            words: ["The", "OF", "two words", ""], base: WordTokenizer())
        #expect(tokenizer.words == ["the", "of"])
        #expect(words("the King OF Spain", tokenizer) == ["king", "spain"])
        #expect(words("the king of*", tokenizer) == ["the", "king", "of"])
    }

    @Test func `P31 a file of stop words may have CRLF line endings and a byte order mark`() throws
    {
        let folder = try TemporaryFolder()
        let url = URL(filePath: folder.path("words.txt"))
        try Data("\u{feff}the\r\nOf\r\n\r\nà\na".utf8).write(to: url)
        let tokenizer = try StopWordTokenizer(contentsOf: url, base: WordTokenizer())
        #expect(tokenizer.words == ["the", "of", "à", "a"])
        expect(.notFound) {
            try StopWordTokenizer(
                contentsOf: URL(filePath: folder.path("none")), base: WordTokenizer())
        }
        expect(.io) {
            try StopWordTokenizer(
                contentsOf: url.deletingLastPathComponent(), base: WordTokenizer())
        }
        try Data([0x61, 0xff]).write(to: url)
        expect(.mismatch) { try StopWordTokenizer(contentsOf: url, base: WordTokenizer()) }
    }

    @Test func `bytes that are not UTF-8 become as many spaces`() {
        for (bytes, expected) in [
            ([0x61, 0xff, 0x62], "a b"), ([0xe2, 0x82], "  "), ([0xc3, 0xa9, 0xc3], "é "),
            ([0xed, 0xa0, 0x80, 0x61], "   a"), ([], ""), ([0xf0, 0x9f, 0x98, 0x61], "   a"),
        ] as [([UInt8], String)] {
            let text = bytes.withUnsafeBufferPointer { String(separatingAtBadBytes: $0) }
            #expect(text == expected)
            #expect(text.utf8.count == bytes.count)
        }
    }
}
