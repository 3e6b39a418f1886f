import Testing

@testable import Coffer

@Suite struct SlotLabelTests {
    @Test(arguments: ["", "ops", "Büro 🗝", "日本", String(repeating: "x", count: 118)])
    func `a text that a terminal shows is a label`(_ text: String) throws {
        #expect(try SlotLabel(text).text == text)
        #expect(SlotLabel(stored: Array(text.utf8)[...])?.text == text)
    }

    @Test(arguments: [
        "two\nlines", "a\u{1b}[31m", "\u{0}", "\u{202e}spo", "\u{200b}", "\u{2028}", "\u{2029}",
        "\u{e000}", "\u{feff}", String(repeating: "x", count: 119),
    ])
    func `other texts are refused, in a file too`(_ text: String) {
        let error = #expect(throws: StoreError.self) { try SlotLabel(text) }
        #expect(error?.code == .misuse)
        #expect(SlotLabel(stored: Array(text.utf8)[...]) == nil)
    }

    @Test func `a character that only another system knows is read, and not written`() {
        let text = "\u{378}"
        #expect(throws: StoreError.self) { try SlotLabel(text) }
        #expect(SlotLabel(stored: Array(text.utf8)[...])?.text == text)
    }
}
