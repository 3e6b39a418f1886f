/// A regular expression, compiled for `RegexpMatcher`, which takes time in proportion to the text.
///
/// The syntax is in the article Queries. A pattern compiles to the instructions of a machine that
/// is in many places at once, after Ken Thompson: <https://swtch.com/~rsc/regexp/regexp2.html>. The
/// number of places bounds the work for each scalar of a text, whatever the pattern is.
struct Regexp: Sendable {
    /// One step of the machine. Jumps are relative, so a copy of a part works at another place.
    enum Instruction: Sendable {
        /// Goes to the next place with a scalar of the class, by the class's number.
        case consume(Int32)
        /// Goes on at both places.
        case split(Int32, Int32)
        case jump(Int32)
        /// Goes to the next place at the beginning of the text only.
        case begin
        /// Goes to the next place at the end of the text only.
        case end
        case match
    }

    /// The most instructions of a pattern, with all repetitions written out.
    static let maximumInstructionCount = 10_000
    /// The most ranges in all classes of a pattern.
    static let maximumRangeCount = 10_000
    static let maximumPatternByteCount = 65_536
    /// The most groups within each other. The parser calls itself for each, and threads have small
    /// stacks.
    static let maximumDepth = 100
    /// Before a pattern that ignores the case of A to Z. It counts for no limit.
    static let ignoringCase = "(?i)"

    let instructions: [Instruction]
    let alphabet: RegexpAlphabet

    /// Whether a pattern ignores the case of A to Z.
    static func ignoresCase(_ pattern: String) -> Bool {
        pattern.unicodeScalars.starts(with: ignoringCase.unicodeScalars)
    }

    /// Compiles a pattern.
    ///
    /// - Throws: `.misuse` for a pattern that is not in the syntax, with its place and a hint;
    ///   `.tooBig` for one that exceeds a limit.
    /// - Complexity: O(*length of the pattern* + *instructions*).
    init(_ pattern: String) throws(StoreError) {
        var parser = try RegexpParser(pattern)
        instructions = try parser.parsed() + [.match]
        alphabet = RegexpAlphabet(parser.classes)
    }
}

/// Scalars that the pattern tells apart. All scalars between two bounds of its classes are one
/// symbol, and a class is a few ranges of symbols.
struct RegexpAlphabet: Sendable {
    /// The symbol of a byte that is not part of a valid scalar. It is in no class.
    static let invalid: UInt16 = 0

    /// The first scalar of each symbol from 1 on, in ascending order.
    private let beginnings: [UInt32]
    /// The symbols of U+0000 to U+007F.
    let ascii: [UInt16]
    /// The ranges of all classes; those of one class are in ascending order.
    private let ranges: [ClosedRange<UInt16>]
    /// Where the ranges of each class are.
    private let classes: [Range<Int>]

    var symbolCount: Int { beginnings.count + 1 }

    init(_ classes: [RegexpClass]) {
        var bounds: Set<UInt32> = [0]
        for range in classes.lazy.flatMap(\.ranges) {
            bounds.insert(range.lowerBound)
            bounds.insert(range.upperBound + 1)
        }
        let beginnings = bounds.sorted()
        self.beginnings = beginnings
        ascii = (0..<128).map { Self.symbol(of: $0, beginnings) }
        var ranges: [ClosedRange<UInt16>] = []
        self.classes = classes.map { scalars in
            let first = ranges.count
            for range in scalars.ranges {
                let last = Self.symbol(of: range.upperBound, beginnings)
                ranges.append(Self.symbol(of: range.lowerBound, beginnings)...last)
            }
            return first..<ranges.count
        }
        self.ranges = ranges
    }

    func symbol(of scalar: UInt32) -> UInt16 { Self.symbol(of: scalar, beginnings) }

    /// The number of beginnings up to the scalar. There are at most two for each range, and so less
    /// than 65,536.
    private static func symbol(of scalar: UInt32, _ beginnings: [UInt32]) -> UInt16 {
        var (low, high) = (0, beginnings.count)
        while low < high {
            let middle = (low + high) / 2
            if beginnings[middle] <= scalar { low = middle + 1 } else { high = middle }
        }
        return UInt16(low)
    }

    func has(_ symbol: UInt16, in number: Int32) -> Bool {
        let places = classes[Int(number)]
        var (low, high) = (places.lowerBound, places.upperBound)
        while low < high {
            let middle = (low + high) / 2
            if ranges[middle].contains(symbol) { return true }
            if ranges[middle].upperBound < symbol { low = middle + 1 } else { high = middle }
        }
        return false
    }
}

/// A set of scalars.
struct RegexpClass: Sendable {
    typealias Scalars = ClosedRange<UInt32>

    static let all: Scalars = 0...0x10FFFF

    /// In ascending order, with a scalar between each two.
    private(set) var ranges: [Scalars]

    init(_ ranges: [Scalars]) {
        self.ranges = []
        for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            guard let last = self.ranges.last, range.lowerBound <= last.upperBound + 1 else {
                self.ranges.append(range)
                continue
            }
            let end = max(last.upperBound, range.upperBound)
            self.ranges[self.ranges.count - 1] = last.lowerBound...end
        }
    }

    static func scalar(_ scalar: Unicode.Scalar) -> RegexpClass {
        RegexpClass([scalar.value...scalar.value])
    }

    /// `\d`, `\w` or `\s` by its letter; `nil` for another one.
    static func named(_ letter: Unicode.Scalar) -> RegexpClass? {
        switch letter {
        case "d": RegexpClass([0x30...0x39])
        case "w": RegexpClass([0x30...0x39, 0x41...0x5A, 0x5F...0x5F, 0x61...0x7A])
        case "s": RegexpClass([0x09...0x0D, 0x20...0x20])
        case "D": named("d")?.inverted
        case "W": named("w")?.inverted
        case "S": named("s")?.inverted
        default: nil
        }
    }

    /// Every scalar but the end of a line.
    static let dot = RegexpClass.scalar("\n").inverted

    var inverted: RegexpClass {
        var others: [Scalars] = []
        var next = Self.all.lowerBound
        for range in ranges {
            if next < range.lowerBound { others.append(next...range.lowerBound - 1) }
            next = range.upperBound + 1
        }
        if next <= Self.all.upperBound { others.append(next...Self.all.upperBound) }
        return RegexpClass(others)
    }

    /// With both cases of each letter of A to Z.
    var ignoringCase: RegexpClass {
        let (upper, lower): (Scalars, Scalars) = (0x41...0x5A, 0x61...0x7A)
        var both = ranges
        for range in ranges {
            if range.overlaps(upper) {
                let part = range.clamped(to: upper)
                both.append(part.lowerBound + 32...part.upperBound + 32)
            }
            if range.overlaps(lower) {
                let part = range.clamped(to: lower)
                both.append(part.lowerBound - 32...part.upperBound - 32)
            }
        }
        return RegexpClass(both)
    }
}
