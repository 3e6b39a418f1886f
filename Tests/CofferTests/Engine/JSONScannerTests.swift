import Foundation
import Testing
import Workload

@testable import Coffer

/// Values inside of JSON are found as `JSONDecoder` finds them.
@Suite struct JSONScannerTests {
    /// A value as `JSONDecoder` reads it.
    private struct Leaf: Decodable {
        /// `nil` for an object or an array.
        let value: Value?

        init(from decoder: any Decoder) throws {
            guard let container = try? decoder.singleValueContainer() else {
                value = nil
                return
            }
            if container.decodeNil() {
                value = .null
            } else if let bool = try? container.decode(Bool.self) {
                value = .integer(bool ? 1 : 0)
            } else if let integer = try? container.decode(Int64.self),
                try container.decode(Double.self) == Double(integer)
            {
                // Foundation also takes a large number with a fraction for an integer near it.
                value = .integer(integer)
            } else if let real = try? container.decode(Double.self) {
                value = .real(real)
            } else if let text = try? container.decode(String.self) {
                value = .text(text)
            } else if (try? decoder.container(keyedBy: Key.self)) != nil
                || (try? decoder.unkeyedContainer()) != nil
            {
                value = nil
            } else {
                throw Unreadable()
            }
        }

        struct Unreadable: Error {}
        enum Key: CodingKey { case none }
    }

    private struct Outer: Decodable {
        struct Inner: Decodable {
            var b: Leaf?
        }
        var a: Inner?
    }

    private func isSame(_ found: Value?, _ expected: Value?) -> Bool {
        switch (found, expected) {
        case (.integer(let integer)?, .real(let real)?), (.real(let real)?, .integer(let integer)?):
            Double(integer) == real
        default: found == expected
        }
    }

    private func find(_ json: [UInt8], _ keys: [String]) throws -> Value? {
        try JSONScanner.value(of: json, keys.map { .key($0) })
    }

    private static let pieces: [String] = [
        "{", "}", "[", "]", ":", ",", "\"a\"", "\"b\"", "\"\\u0061\"", "\"c\"", "null", "true",
        "false", "0", "-1", "1.5e3", "9223372036854775807", "9223372036854775808", "\"\"",
        "\"é\\n\\ud83d\\ude00\"", "\"\\ud800\"", "\"x\\\\\"", " ", "\n", "01", "1.", "{\"a\":1}",
        "[1,[2]]", "{\"b\":", "{\"a\":", "\u{1}", "\u{FEFF}",
    ]

    /// JSON of random values, mostly with something under `a.b`.
    private func text(_ random: inout SeededGenerator, depth: Int = 0) -> String {
        switch Int.random(in: 0...(depth > 3 ? 5 : 9), using: &random) {
        case 0: return "null"
        case 1: return Bool.random(using: &random) ? "true" : " false"
        case 2: return "\(Int64.random(in: .min ... .max, using: &random))"
        case 3: return "\(Double.random(in: -1e3...1e3, using: &random))"
        case 4: return "\"x\\u00e9\\t\(Int.random(in: 0...9, using: &random))\""
        case 5: return "\"\""
        case 6:
            let count = Int.random(in: 0...3, using: &random)
            let elements = (0..<count).map { _ in text(&random, depth: depth + 1) }
            return "[\(elements.joined(separator: ","))]"
        default:
            let count = Int.random(in: 0...3, using: &random)
            let members = (0..<count).map { _ in
                let key = ["a", "b", "c", "\\u0062"].randomElement(using: &random) ?? "a"
                return "\"\(key)\" : \(text(&random, depth: depth + 1))"
            }
            return "{\(members.joined(separator: " , "))}"
        }
    }

    @Test func `a value is the one that JSONDecoder finds, and both refuse the same texts`() {
        var random = SeededGenerator(for: "JSON")
        var (decodedCount, refusedCount) = (0, 0)
        for _ in 0..<20_000 {
            var bytes = Array("{\"a\":\(text(&random)),\"b\":1}".utf8)
            if Bool.random(using: &random) {
                let piece = Array((Self.pieces.randomElement(using: &random) ?? "").utf8)
                let start = Int.random(in: 0..<bytes.count, using: &random)
                let end = min(bytes.count, start + Int.random(in: 0...3, using: &random))
                bytes.replaceSubrange(start..<end, with: piece)
            }
            let described = String(decoding: bytes, as: UTF8.self).debugDescription
            if let outer = try? JSONDecoder().decode(Outer.self, from: Data(bytes)) {
                decodedCount += 1
                let expected: Value? = outer.a?.b.map { $0.value } ?? .null
                do {
                    let found = try find(bytes, ["a", "b"])
                    #expect(isSame(found, expected), "\(described)")
                } catch {
                    Issue.record("\(described) is refused")
                }
            } else if (try? find(bytes, ["a", "b"])) == nil {
                refusedCount += 1
            }
        }
        #expect(decodedCount > 2_000 && refusedCount > 200)
    }

    @Test(arguments: [511, 512, 100_000])
    func `512 levels are read, and more are refused without running out of stack`(depth: Int) {
        for (open, close) in [("[", "]"), ("{\"k\":", "}")] {
            let nested =
                Array(repeatElement(open, count: depth).joined().utf8)
                + Array((open == "[" ? "" : "1").utf8)
                + Array(repeatElement(close, count: depth).joined().utf8)
            let json = Array("{\"x\":".utf8) + nested + Array(",\"y\":7}".utf8)
            let found = try? find(json, ["y"])
            #expect(found == (depth <= 512 ? .integer(7) : nil))
        }
    }

    @Test(
        arguments: [
            "", " ", "{", "{\"a\"", "{\"a\":", "{\"a\":\"x", "{\"a\":tru}", "{\"a\":-}",
            "{\"a\":1e}",
            "{\"a\":\"\\ud800\"}", "{\"a\":\"\\ud800\\u0041\"}", "{\"a\":\"\\udc00\\udc00\"}",
            "{\"a\":\"\\u12\"}", "{\"a\":\"\\", "{a:1}", "{\"b\" 1}", "x",
            "{\"a\":1e999}", "{\"b\":[1 2],\"a\":1}", "{\"b\":{\"c\":1,\"a\":1",
        ]
    )
    func `a text that is not JSON up to the value is refused`(json: String) {
        #expect(throws: JSONScanner.Malformed.self) { try find(Array(json.utf8), ["a"]) }
    }
}
