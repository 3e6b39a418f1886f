/// A word, name, literal or sign of an SQL text, with its place.
///
/// Only for texts that SQLite has accepted: those of a file's schema. See
/// <https://www.sqlite.org/draft/tokenreq.html>.
struct SQLToken {
    enum Kind {
        /// A name or keyword without quotes.
        case word
        /// A name in `"`, `` ` `` or brackets.
        case quoted
        /// A text in `'`, which SQLite also takes for a name where only a name can be.
        case text
        /// A number, a blob or a parameter.
        case literal
        /// One character of any other kind.
        case sign
    }

    let kind: Kind
    /// Its bytes in the text.
    let range: Range<Int>
    /// The name without quotes, or the token as it is.
    let name: String

    /// Whether it is a sign: `(`, `)`, `,` or another single character.
    func isSign(_ sign: String) -> Bool { kind == .sign && name == sign }

    /// Whether it is one of these keywords, which are written in lower case here.
    func isWord(_ words: String...) -> Bool {
        kind == .word && words.contains { name.isSameIdentifier(as: $0) }
    }

    /// Words that are values in an expression, unless they are in quotes.
    private static let values: Set = [
        "null", "true", "false", "current_date", "current_time", "current_timestamp",
    ]

    /// Whether it may be a value rather than the name of a column.
    var mayBeValue: Bool { kind == .word && Self.values.contains(name.asciiLowercased) }

    /// Whether it can be the name of a column in an expression.
    var isName: Bool { kind == .word || kind == .quoted }

    /// Whether a question mark has a number: `?1`.
    func isNumbered(by next: SQLToken?) -> Bool {
        next.map { $0.kind == .literal && $0.range.lowerBound == range.upperBound } ?? false
    }

    /// A literal in the place of the token, apart from the word or minus sign next to it.
    func spliced(_ literal: String, in text: String) -> String {
        let bytes = Array(text.utf8)
        func isJoined(_ position: Int) -> Bool {
            guard bytes.indices.contains(position) else { return false }
            return SQLScanner.isOfWord(bytes[position]) || SQLScanner.isDigit(bytes[position])
                || bytes[position] == UInt8(ascii: "-")
        }
        return (isJoined(range.lowerBound - 1) ? " " : "") + literal
            + (isJoined(range.upperBound) ? " " : "")
    }

    /// Whether a text has something other than space around its tokens.
    static func hasComment(_ text: String, _ tokens: [SQLToken]) -> Bool {
        let bytes = Array(text.utf8)
        let starts = [0] + tokens.map(\.range.upperBound)
        let ends = tokens.map(\.range.lowerBound) + [bytes.count]
        return !zip(starts, ends).allSatisfy { start, end in
            bytes[min(start, end)..<end].allSatisfy { $0 == 0x20 || (0x09...0x0d).contains($0) }
        }
    }

    /// The tokens of a text, without space and comments.
    static func tokens(of text: String) -> [SQLToken] {
        var scanner = SQLScanner(bytes: Array(text.utf8))
        var tokens: [SQLToken] = []
        while let token = scanner.next() { tokens.append(token) }
        return tokens
    }
}

struct SQLScanner {
    let bytes: [UInt8]
    private var position = 0

    init(bytes: [UInt8]) { self.bytes = bytes }

    private func byte(_ offset: Int = 0) -> UInt8? {
        position + offset < bytes.count ? bytes[position + offset] : nil
    }

    mutating func next() -> SQLToken? {
        skipSpace()
        guard let first = byte() else { return nil }
        let start = position
        switch first {
        case UInt8(ascii: "\""), UInt8(ascii: "`"):
            return quoted(.quoted, by: first)
        case UInt8(ascii: "'"):
            return quoted(.text, by: first)
        case UInt8(ascii: "["):
            let end = bytes[position...].firstIndex(of: UInt8(ascii: "]")) ?? bytes.count - 1
            position = end + 1
            let inside = bytes[(start + 1)..<max(start + 1, end)]
            return token(.quoted, start, String(decoding: inside, as: UTF8.self))
        case UInt8(ascii: "x"), UInt8(ascii: "X"):
            guard byte(1) == UInt8(ascii: "'") else { return word() }
            position += 1
            _ = quoted(.text, by: UInt8(ascii: "'"))
            return token(.literal, start, nil)
        case UInt8(ascii: "0")...UInt8(ascii: "9"):
            return number()
        case UInt8(ascii: ".") where byte(1).map(Self.isDigit) == true:
            return number()
        case UInt8(ascii: ":"), UInt8(ascii: "@"), UInt8(ascii: "#"):
            position += 1
            skipWord()
            return token(.literal, start, nil)
        case _ where Self.isOfWord(first):
            return word()
        default:
            position += 1
            return token(.sign, start, nil)
        }
    }

    /// Skips white space and comments.
    private mutating func skipSpace() {
        while let first = byte() {
            if first == 0x20 || (0x09...0x0d).contains(first) {
                position += 1
            } else if first == UInt8(ascii: "-"), byte(1) == UInt8(ascii: "-") {
                while let next = byte(), next != 0x0a {
                    _ = next
                    position += 1
                }
            } else if first == UInt8(ascii: "/"), byte(1) == UInt8(ascii: "*") {
                position += 2
                while byte() != nil,
                    byte() != UInt8(ascii: "*") || byte(1) != UInt8(ascii: "/")
                {
                    position += 1
                }
                position = min(position + 2, bytes.count)
            } else {
                return
            }
        }
    }

    private func token(_ kind: SQLToken.Kind, _ start: Int, _ name: String?) -> SQLToken {
        SQLToken(
            kind: kind, range: start..<position,
            name: name ?? String(decoding: bytes[start..<position], as: UTF8.self))
    }

    private mutating func quoted(_ kind: SQLToken.Kind, by quote: UInt8) -> SQLToken {
        let start = position
        var inside: [UInt8] = []
        position += 1
        while let next = byte() {
            position += 1
            if next == quote {
                guard byte() == quote else { break }
                position += 1
            }
            inside.append(next)
        }
        return token(kind, start, String(decoding: inside, as: UTF8.self))
    }

    private mutating func word() -> SQLToken {
        let start = position
        skipWord()
        return token(.word, start, nil)
    }

    private mutating func number() -> SQLToken {
        let start = position
        while let next = byte() {
            let isExponent = position > start && bytes[position - 1] | 0x20 == UInt8(ascii: "e")
            let isSign = next == UInt8(ascii: "+") || next == UInt8(ascii: "-")
            let isHex = bytes[start...].starts(with: Array("0x".utf8))
            guard Self.isOfWord(next) || next == UInt8(ascii: ".") || isSign && isExponent && !isHex
            else { break }
            position += 1
        }
        return token(.literal, start, nil)
    }

    private mutating func skipWord() {
        while let next = byte(), Self.isOfWord(next) { position += 1 }
    }

    static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }

    /// Letters, digits, `_`, `$`, and all bytes beyond ASCII.
    static func isOfWord(_ byte: UInt8) -> Bool {
        let letter = byte | 0x20
        return (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(letter) || isDigit(byte)
            || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "$") || byte >= 0x80
    }
}

/// A text in which tokens are replaced.
struct EditedSQL {
    private let text: String
    private var edits: [(range: Range<Int>, text: String)] = []

    init(_ text: String) { self.text = text }

    mutating func replace(_ range: Range<Int>, by text: String) {
        edits.append((range, text))
    }

    /// The text with all replacements.
    ///
    /// - Throws: `.unsupported` if two of them overlap, as in a text that was understood wrongly.
    func result() throws(StoreError) -> String {
        var bytes = Array(text.utf8)
        var end = bytes.count
        for edit in edits.sorted(by: { $0.range.lowerBound > $1.range.lowerBound }) {
            guard edit.range.upperBound <= end else {
                throw StoreError(.unsupported, "a text of the schema cannot be changed")
            }
            end = edit.range.lowerBound
            bytes.replaceSubrange(edit.range, with: Array(edit.text.utf8))
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
