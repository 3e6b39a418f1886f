import Foundation
import Testing
import Workload

@testable import Coffer

/// The engine of regular expressions: its syntax, its limits and its work, which is linear.
@Suite(.againstHanging, .onOwnThreads) struct RegexpTests {
    private func found(_ pattern: String, _ bytes: [UInt8]) throws -> Bool {
        let matcher = RegexpMatcher(try Regexp(pattern))
        return bytes.withUnsafeBytes { matcher.search($0) { false } } == .found
    }

    private func found(_ pattern: String, _ text: String) throws -> Bool {
        try found(pattern, Array(text.utf8))
    }

    // MARK: Syntax

    struct Example: CustomTestStringConvertible, Sendable {
        let pattern: String
        let matching: [String]
        let others: [String]

        init(_ pattern: String, _ matching: [String], _ others: [String]) {
            self.pattern = pattern
            self.matching = matching
            self.others = others
        }

        var testDescription: String { pattern }
    }

    static let signs: [Example] = [
        Example("", ["", "a"], []),
        Example("b", ["b", "abc"], ["", "a", "B"]),
        Example("a.c", ["abc", "xaéc", "a🎈c", "a\u{0}c"], ["ac", "a\nc", "abbc"]),
        Example("^.$", ["a", "é", "🎈", "\u{0}", "\r"], ["", "\n", "e\u{301}"]),
        Example("cat|dog|", ["", "x"], []),
        Example("^(cat|dog)$", ["cat", "dog"], ["catdog", ""]),
        Example("^cat|dog$", ["cats", "hotdog"], ["a cat", "dogs"]),
        Example("^ab$", ["ab"], ["cab", "abc", "ab\n", "\nab", "x\nab\ny"]),
        Example("^^a$$", ["a"], ["aa"]),
        Example("^$", [""], ["a", "\n"]),
        Example("$^", [""], ["a"]),
        Example("a$b|a^b", [], ["ab", "a\nb"]),
        Example("(^a|b)+$", ["a", "ab", "cb"], ["ba", "c"]),
        Example("\\\\", ["\\"], ["/"]),
        Example("^\\.\\*\\+\\?\\(\\)\\[\\]\\{\\}\\^\\$\\|\\/\\-\\é$", [".*+?()[]{}^$|/-é"], ["a"]),
        Example("^]}-$", ["]}-"], ["]"]),
        Example("^\\n\\t\\r\\f\\v$", ["\n\t\r\u{C}\u{B}"], ["nt"]),
        Example(
            "(?i)straSSe É[^k]", ["STRASSE ÉL", "strasse É\u{212A}"], ["strasse él", "strasse ÉK"]),
        Example("(?i)", ["", "a"], []),
    ]

    static let classes: [Example] = [
        Example("^[abc]$", ["a", "c"], ["d", "A", ""]),
        Example("^[a-cx-z]+$", ["abcxyz"], ["d", "w"]),
        Example("^[^a-c]$", ["d", "\n", "é", "🎈"], ["a", "b", ""]),
        Example("^[а-я]+$", ["жук"], ["Жук", "z"]),
        Example("^[\u{D7FF}-\u{E000}]$", ["\u{D7FF}", "\u{E000}"], ["\u{D7FE}", "\u{E001}"]),
        Example("^[\u{FFFF}-\u{10FFFF}]$", ["\u{FFFF}", "🎈", "\u{10FFFF}"], ["\u{FFFE}"]),
        Example("^[-a]+$", ["-a"], ["b"]),
        Example("^[a-]+$", ["-a"], ["b"]),
        Example("^[^-]$", ["a"], ["-"]),
        Example("^[a^]+$", ["^a"], ["b"]),
        Example("^[\\]\\[\\\\\\-&.*$]+$", ["][\\-&.*$"], ["a"]),
        Example("^[\\d\\s-]+$", ["1 \t-"], ["a"]),
        Example("^[^\\w]$", [" ", "é"], ["a", "_"]),
        Example("^\\d+$", ["0123456789"], ["a", "٣", ""]),
        Example("^\\w+$", ["azAZ09_"], ["é", "-"]),
        Example("^\\s+$", [" \t\n\r\u{B}\u{C}"], ["\u{A0}", "a"]),
        Example("^\\D\\W\\S$", ["a-b", "é\u{A0}é"], ["1-b", "aab", "a- "]),
        Example("^[\\D]$", ["a"], ["1"]),
    ]

    static let repetitions: [Example] = [
        Example("^a*$", ["", "aaa"], ["b"]),
        Example("^a+$", ["a", "aaa"], ["", "b"]),
        Example("^ab?c$", ["ac", "abc"], ["abbc"]),
        Example("^a{3}$", ["aaa"], ["aa", "aaaa"]),
        Example("^a{2,}$", ["aa", "aaaaa"], ["a"]),
        Example("^a{1,3}$", ["a", "aa", "aaa"], ["", "aaaa"]),
        Example("^a{0,1}$", ["", "a"], ["aa"]),
        Example("^a{0}$", [""], ["a"]),
        Example("^a{0,}b{1,}$", ["b", "aabb"], ["a"]),
        Example("^(ab){2}$", ["abab"], ["ab", "aabb"]),
        Example("^(?:ab|c){1,2}$", ["ab", "cab"], ["", "ccc"]),
        Example("^(a(bc?)*)+$", ["abbca", "aa"], ["c"]),
        Example("^(a*)*$", ["", "aaa"], ["b"]),
        Example("^(a?){3}$", ["", "aaa"], ["aaaa"]),
        Example("^(|a)+$", ["", "aa"], ["b"]),
        Example("(){9}", [""], []),
        Example("^((){9999}){9999}a$", ["a"], [""]),
    ]

    @Test(arguments: signs + classes + repetitions)
    func `each sign of the syntax has its meaning`(example: Example) throws {
        for text in example.matching { #expect(try found(example.pattern, text), "\(text)") }
        for text in example.others { #expect(try !found(example.pattern, text), "\(text)") }
    }

    struct Refusal: CustomTestStringConvertible, Sendable {
        let pattern: String
        /// The number of the scalar, from 1.
        let place: Int

        init(_ pattern: String, _ place: Int) {
            self.pattern = pattern
            self.place = place
        }

        var testDescription: String { pattern }
    }

    static let refusals: [Refusal] = [
        Refusal("é(", 2), Refusal("(a(b)", 1), Refusal("a)", 2), Refusal("*a", 1),
        Refusal("a|+", 3), Refusal("(?)", 1), Refusal("(+)", 2), Refusal("^*", 2),
        Refusal("a${2}", 3),
        Refusal("a**", 3), Refusal("a*?", 3), Refusal("a++", 3), Refusal("a{2}?", 5),
        Refusal("a{", 2),
        Refusal("a{}", 2), Refusal("a{x}", 2), Refusal("a{,3}", 2), Refusal("a{3", 2),
        Refusal("a{3,1}", 2), Refusal("{2}", 1), Refusal("a{-1}", 2), Refusal("[", 1),
        Refusal("a[]", 2),
        Refusal("[^]", 1), Refusal("[]a]", 1), Refusal("[a", 1), Refusal("[z-a]", 2),
        Refusal("[[:alpha:]]", 2), Refusal("[a&&b]", 3), Refusal("[\\d-z]", 2),
        Refusal("[a-\\d]", 2),
        Refusal("🎈\\", 2), Refusal("[\\", 2), Refusal("(a)\\1", 4), Refusal("\\0", 1),
        Refusal("\\bword", 1), Refusal("\\Aa", 1), Refusal("a\\z", 2), Refusal("\\p{L}", 1),
        Refusal("\\x41", 1), Refusal("(?=a)", 1), Refusal("(?!a)", 1), Refusal("(?<=a)", 1),
        Refusal("(?<!a)", 1), Refusal("(?<name>a)", 1), Refusal("(?P<name>a)", 1),
        Refusal("(?#a)", 1),
        Refusal("a(?i)", 2), Refusal("(?im)a", 1), Refusal("(?>a)", 1), Refusal("(?", 1),
    ]

    @Test(arguments: refusals)
    func `a pattern that is not in the syntax is refused with its place`(refusal: Refusal) throws {
        let error = expect(.misuse) { try Regexp(refusal.pattern) }
        let place = "at character \(refusal.place) of the regular expression"
        #expect(error?.message.hasSuffix(place) == true, "\(error?.message ?? "")")
        #expect(error?.hint?.isEmpty == false)
    }

    // MARK: Against Python

    /// Makes patterns of the syntax, and texts that match some of them.
    private struct Generator {
        var numbers: SeededGenerator
        static let letters = ["a", "b", "1", "_", " ", "\\n", "\\t", "é", "\\.", "Ж", "A"]

        mutating func pick(_ choices: [String]) -> String {
            choices.randomElement(using: &numbers) ?? ""
        }

        mutating func set() -> String {
            var set = pick(["[", "[^"])
            for _ in 0..<Int.random(in: 1...3, using: &numbers) {
                set += pick(
                    Self.letters + ["a-c", "0-9", "а-я", "b-é", "\\d", "\\W", "\\s", "\\D"])
            }
            return set + "]"
        }

        mutating func atom(_ depth: Int) -> String {
            switch Int.random(in: 0..<10, using: &numbers) {
            case 0...2 where depth > 0: return pick(["(", "(?:"]) + alternatives(depth - 1) + ")"
            case 3: return "."
            case 4: return pick(["\\d", "\\w", "\\s", "\\D", "\\W", "\\S"])
            case 5: return set()
            default: return pick(Self.letters)
            }
        }

        mutating func part(_ depth: Int) -> String {
            if Int.random(in: 0..<12, using: &numbers) == 0 { return pick(["^", "$"]) }
            let none = Array(repeating: "", count: 12)
            let signs = ["*", "+", "?", "{2}", "{1,}", "{0,2}", "{1,3}", "{0}"]
            return atom(depth) + pick(signs + none)
        }

        mutating func alternatives(_ depth: Int) -> String {
            var all: [String] = []
            for _ in 0..<[1, 1, 1, 2, 3][Int.random(in: 0..<5, using: &numbers)] {
                var parts = ""
                for _ in 0..<Int.random(in: 0...4, using: &numbers) { parts += part(depth) }
                all.append(parts)
            }
            return all.joined(separator: "|")
        }

        mutating func text() -> String {
            let letters = ["a", "b", "1", "_", " ", "\n", "\t", "é", ".", "Ж", "A", "B"]
            return (0..<Int.random(in: 0...8, using: &numbers)).map { _ in pick(letters) }.joined()
        }
    }

    /// Python's `$` also matches before a newline at the end, `\Z` does not.
    private static let program = #"""
        import sys, json, re, warnings
        warnings.simplefilter("ignore")
        for pattern, text in json.load(sys.stdin):
            parts = re.findall(r"\\.|\[(?:\\.|[^\]])*\]|[^\\]", pattern, re.S)
            ours = "".join(r"\Z" if part == "$" else part for part in parts)
            print(int(re.search(ours, text, re.A) is not None))
        """#

    @Test func `random patterns match the texts that Python says`() throws {
        var generator = Generator(numbers: SeededGenerator(for: #function))
        let cases = (0..<5_000).map { index in
            let pattern = generator.alternatives(3)
            return [index % 8 == 0 ? "(?i)" + pattern : pattern, generator.text()]
        }
        let output = try Tool.runProgram(
            ["python3", "-c", Self.program],
            input: try JSONEncoder().encode(cases))
        let answers = output.text.split(separator: "\n").map { $0 == "1" }
        try #require(answers.count == cases.count, "\(output.errorText)")
        for (pair, answer) in zip(cases, answers) {
            #expect(try found(pair[0], pair[1]) == answer, "\(pair)")
        }
        #expect(Set(answers).count == 2)
    }

    // MARK: Bytes

    @Test func `a sign matches exactly the bytes that are one scalar`() throws {
        let bytes: [UInt8] = [
            0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0,
            0xE1,
            0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF,
        ]
        let matcher = RegexpMatcher(try Regexp("^.$"))
        func check(_ text: [UInt8]) {
            let isScalar = String(validating: text, as: UTF8.self)?.unicodeScalars.count == 1
            let outcome = text.withUnsafeBytes { matcher.search($0) { false } }
            #expect((outcome == .found) == isScalar, "\(text)")
        }
        for first in bytes {
            check([first])
            for second in bytes {
                check([first, second])
                for third in bytes {
                    check([first, second, third])
                    for last: UInt8 in [0x7F, 0x80, 0xBF, 0xC0] {
                        check([first, second, third, last])
                    }
                }
            }
        }
    }

    @Test(arguments: [
        [0xFF], [0xC3], [0x80], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xF0, 0x9F, 0x8E],
    ])
    func `no match reaches across a byte that is not UTF-8`(invalid: [UInt8]) throws {
        let text: [UInt8] = [0x61] + invalid + [0x62]
        for pattern in ["ab", "a.b", "a.*b", "a[^x]+b", "a\\W+b", "^b", "a$", "^..", "[^ab]"] {
            #expect(try !found(pattern, text), "\(pattern)")
        }
        for pattern in ["^a", "b$", "a|c", "[^a]$", "x*", "$", "^"] {
            #expect(try found(pattern, text), "\(pattern)")
        }
    }

    // MARK: Work

    /// Steps of a search that must find nothing, for each byte.
    private func steps(_ pattern: String, _ text: [UInt8]) throws -> Double {
        let matcher = RegexpMatcher(try Regexp(pattern))
        // A search that is not linear ends here.
        let limit = 1_000 * text.count
        let outcome = text.withUnsafeBytes { matcher.search($0) { matcher.stepCount > limit } }
        #expect(outcome == .notFound)
        return Double(matcher.stepCount) / Double(text.count)
    }

    @Test(arguments: [
        "(a*)*b", "(a|aa)+$", "(a+)+$", "^(a|a)*$", "((a*)*)*b", "(.*)(.*)(.*)x", "(x+x+)+y",
    ])
    func `a pattern that takes others forever takes one step for each byte`(pattern: String) throws
    {
        let text = [UInt8](repeating: 0x61, count: 100_000) + [0x21]
        #expect(try steps(pattern, text) < 1.1)
    }

    @Test func `a scalar visits each place of a pattern once`() throws {
        let regexp = try Regexp("(a?){300}b")
        let matcher = RegexpMatcher(regexp)
        let text = [UInt8](repeating: 0x61, count: 300)
        let outcome = text.withUnsafeBytes { matcher.search($0) { false } }
        #expect(outcome == .notFound)
        // A new state visits the places it comes from, those it leads to, and those at the end.
        let visitCount = 3 * (matcher.stateCount + 2) * regexp.instructions.count
        #expect(matcher.stepCount <= text.count + visitCount)
    }

    @Test func `a table that is full is emptied, and the search goes on`() throws {
        var numbers = SeededGenerator(for: #function)
        for _ in 0..<4 {
            var text = (0..<8_000).map { _ in UInt8.random(in: 0x61...0x62, using: &numbers) }
            text[7_000] = 0x63
            let matcher = RegexpMatcher(try Regexp("a[ab]{1000}c"))
            let outcome = text.withUnsafeBytes { matcher.search($0) { false } }
            #expect((outcome == .found) == (text[5_999] == 0x61))
            #expect(matcher.flushCount > 0)
            #expect(matcher.stateCount < 4_000)
        }
    }

    @Test func `a search asks every few thousand bytes whether to stop`() throws {
        let text = [UInt8](repeating: 0x61, count: 1_000_000)
        for pattern in ["b", "a[ab]{1000}c", "[^a]é"] {
            let matcher = RegexpMatcher(try Regexp(pattern))
            var questionCount = 0
            let outcome = text.withUnsafeBytes { bytes in
                matcher.search(bytes) {
                    questionCount += 1
                    return questionCount == 3
                }
            }
            #expect(outcome == .stopped)
            #expect(matcher.stepCount < 4 * RegexpMatcher.stepsBetweenQuestions)
        }
    }

    // MARK: Limits

    @Test func `repetitions within each other have a limit`() throws {
        let size = Regexp.maximumInstructionCount
        #expect(try Regexp("a{9999}").instructions.count == size)
        for pattern in [
            "a{10000}", "a{0,5000}", "a{99999999999999999999}", "(a{100}){100}", "(a{1000}){1000}",
        ] {
            // The next ones are larger.
            try #require(expect(.tooBig) { try Regexp(pattern) } != nil)
        }
        expect(.tooBig) { try Regexp("(((a{1000}){1000}){1000}){1000}") }
        expect(.tooBig) { try Regexp(String(repeating: "(a|", count: 90) + "b{9999}") }
    }

    @Test func `a pattern of 100 kB is refused, and a shorter one works`() throws {
        for unit in [
            "a", "é", "(a)", "[ab]", "a|", "|", "\\d", "()", "a{1}", "[^\u{1000}-\u{2000}]",
        ] {
            expect(.tooBig) {
                try Regexp(String(repeating: unit, count: 100_000 / unit.utf8.count))
            }
            let shorter = String(repeating: unit, count: 1_000)
            _ = try found(shorter, String(repeating: "a", count: 100))
            do {
                _ = try found(String(repeating: unit, count: 60_000 / unit.utf8.count), "a")
            } catch let error as StoreError {
                #expect(error.code == .tooBig)
            }
        }
        // The classes of a long pattern may have many ranges, and the table few states.
        let scalars = (0..<9_000).compactMap { Unicode.Scalar(0x100 + 2 * $0) }
        let set = String(String.UnicodeScalarView(scalars))
        #expect(try found("[\(set)]{3}$", String(set.prefix(100))))
        #expect(try !found("[\(set)]", "abc\u{101}"))
        expect(.tooBig) { try Regexp("[\(set)][^\(set)]") }
    }

    @Test func `groups within each other have a limit`() throws {
        func nested(_ count: Int) -> String {
            String(repeating: "(", count: count) + "a" + String(repeating: ")", count: count)
        }
        #expect(try found(nested(Regexp.maximumDepth), "a"))
        expect(.tooBig) { try Regexp(nested(Regexp.maximumDepth + 1)) }
        expect(.tooBig) { try Regexp(nested(30_000)) }
    }
}
