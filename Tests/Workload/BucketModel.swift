import Coffer
import Foundation

/// The keys of a comparison with the model: which there are, and in which order they come.
public struct ModelKeys<Key: BucketKey>: Sendable {
    /// Gives keys that meet each other often.
    public let random: @Sendable (inout SeededGenerator) -> Key
    /// The order of the keys, without the bytes that the file has.
    public let precedes: @Sendable (Key, Key) -> Bool
    /// Gives ranges of a kind that only some types of keys have.
    var special: @Sendable (inout SeededGenerator) -> Range? = { _ in nil }

    /// A range, and which keys are in it.
    public struct Range {
        public let range: KeyRange<Key>
        public let contains: @Sendable (Key) -> Bool
    }

    public func randomRange(_ random: inout SeededGenerator) -> Range {
        if Bool.random(using: &random), let range = special(&random) { return range }
        let (first, last) = (self.random(&random), self.random(&random))
        let precedes = precedes
        switch Int.random(in: 0..<5, using: &random) {
        case 0: return Range(range: .all) { _ in true }
        case 1: return Range(range: .from(first)) { !precedes($0, first) }
        case 2: return Range(range: .below(last)) { precedes($0, last) }
        case 3:
            return Range(range: .from(first, below: last)) {
                !precedes($0, first) && precedes($0, last)
            }
        default:
            return Range(range: .from(first, through: last)) {
                !precedes($0, first) && !precedes(last, $0)
            }
        }
    }
}

extension ModelKeys<Int> {
    public static let integers = Self { random in
        [.min, -256, -2, -1, 0, 1, 2, 255, 256, .max].randomElement(using: &random) ?? 0
    } precedes: {
        $0 < $1
    }
}

extension ModelKeys<String> {
    public static let texts = Self { random in
        text(&random)
    } precedes: {
        $0.utf8.lexicographicallyPrecedes($1.utf8)
    } special: { random in
        let prefix = text(&random)
        return Range(range: .prefix(prefix)) { $0.utf8.starts(with: prefix.utf8) }
    }

    fileprivate static func text(_ random: inout SeededGenerator) -> String {
        ["", "\0", "a", "a\0", "ab", "b", "\u{E9}", "e\u{301}", "\u{10FFFF}"]
            .randomElement(using: &random) ?? ""
    }
}

extension ModelKeys<CompositeKey<String, Int>> {
    public static let pairs = Self { random in
        CompositeKey(
            ModelKeys<String>.text(&random), Int.random(in: -1...1, using: &random))
    } precedes: { left, right in
        let (left, right) = (left.parts, right.parts)
        guard Array(left.0.utf8) == Array(right.0.utf8) else {
            return left.0.utf8.lexicographicallyPrecedes(right.0.utf8)
        }
        return left.1 < right.1
    } special: { random in
        let first = ModelKeys<String>.text(&random)
        if Bool.random(using: &random) {
            return Range(range: .starting(with: first)) {
                Array($0.parts.0.utf8) == Array(first.utf8)
            }
        }
        return Range(range: .starting(withPrefix: first)) {
            $0.parts.0.utf8.starts(with: first.utf8)
        }
    }
}

/// What a bucket must hold, in memory: a list in the order of the keys, with times of expiry.
public struct BucketModel<Key: BucketKey>: Sendable {
    public struct Entry: Sendable {
        public let key: Key
        public var value: Int8
        /// Seconds from the start of the test; `nil` for never.
        public var end: Int?
    }

    public let keys: ModelKeys<Key>

    /// In the order of the keys. Two keys are the same if neither comes before the other: equal
    /// texts of Swift may be two keys.
    public private(set) var entries: [Entry] = []
    /// Seconds from the start of the test.
    public var now = 0

    public init(_ keys: ModelKeys<Key>) {
        self.keys = keys
    }

    private func isSame(_ left: Key, _ right: Key) -> Bool {
        !keys.precedes(left, right) && !keys.precedes(right, left)
    }

    public var live: [Entry] { entries.filter { ($0.end ?? .max) > now } }

    public func live(_ contains: (Key) -> Bool) -> [Entry] { live.filter { contains($0.key) } }

    public func entry(_ key: Key) -> Entry? { live.first { isSame($0.key, key) } }

    public mutating func set(_ value: Int8, _ key: Key, until end: Int?) {
        remove(key)
        let index = entries.firstIndex { keys.precedes(key, $0.key) } ?? entries.count
        entries.insert(Entry(key: key, value: value, end: end), at: index)
    }

    public mutating func remove(_ key: Key) {
        entries = entries.filter { !isSame($0.key, key) }
    }

    public mutating func removeAll(_ contains: (Key) -> Bool) {
        entries.removeAll { contains($0.key) }
    }

    /// Removes what has expired, and returns how many entries that were.
    public mutating func sweep() -> Int {
        let count = entries.count
        entries = live
        return count - entries.count
    }
}

// MARK: As a line of text

extension BucketModel.Entry: Codable where Key: Codable {}

extension BucketModel where Key: Codable {
    private struct State: Codable {
        let now: Int
        let entries: [Entry]
    }

    public var line: String {
        get throws {
            let state = State(now: now, entries: entries)
            return String(decoding: try JSONEncoder().encode(state), as: UTF8.self)
        }
    }

    public init(_ keys: ModelKeys<Key>, line: String) throws {
        let state = try JSONDecoder().decode(State.self, from: Data(line.utf8))
        self.init(keys)
        (now, entries) = (state.now, state.entries)
    }
}
