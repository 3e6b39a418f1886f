/// Reads the pattern of a regular expression, and writes the instructions of each part.
struct RegexpParser {
    /// Instructions that begin at the first one, and go on behind the last one.
    private typealias Part = [Regexp.Instruction]

    private let scalars: [Unicode.Scalar]
    private var position: Int
    private var depth = 0
    private let ignoresCase: Bool
    private(set) var classes: [RegexpClass] = []
    private var rangeCount = 0
    /// The classes of single scalars, which most patterns repeat.
    private var numbers: [Unicode.Scalar: Int32] = [:]

    init(_ pattern: String) throws(StoreError) {
        ignoresCase = Regexp.ignoresCase(pattern)
        position = ignoresCase ? Regexp.ignoringCase.utf8.count : 0
        guard pattern.utf8.count - position <= Regexp.maximumPatternByteCount else {
            throw StoreError(
                .tooBig,
                "a regular expression has at most \(Regexp.maximumPatternByteCount) bytes",
                hint: "Split it into several conditions.")
        }
        scalars = Array(pattern.unicodeScalars)
    }

    /// The instructions of the whole pattern.
    mutating func parsed() throws(StoreError) -> [Regexp.Instruction] {
        let part = try alternatives()
        guard position == scalars.count else {
            throw error(at: position, "the ) closes no group", "Write \\) for the character.")
        }
        return part
    }

    // MARK: Parts

    /// Parts with `|` between them, up to the end of the group or of the pattern.
    private mutating func alternatives() throws(StoreError) -> Part {
        var parts = [try sequence()]
        while take("|") { parts.append(try sequence()) }
        var whole: Part = []
        var left = parts.reduce(0) { $0 + $1.count + 2 } - 2
        try requireRoom(left)
        for part in parts.dropLast() {
            whole.append(.split(1, Int32(part.count + 2)))
            whole += part
            left -= part.count + 2
            whole.append(.jump(Int32(left + 1)))
        }
        return whole + (parts.last ?? [])
    }

    private mutating func sequence() throws(StoreError) -> Part {
        var whole: Part = []
        while let next = scalars[safe: position], next != "|", next != ")" {
            whole += try repeated()
            try requireRoom(whole.count)
        }
        return whole
    }

    /// One scalar, class, group or assertion, with its quantifier.
    private mutating func repeated() throws(StoreError) -> Part {
        let beginning = position
        let isAssertion = ["^", "$"].contains(scalars[beginning])
        let part = try atom()
        let place = position
        guard let count = try quantifier() else { return part }
        if isAssertion { throw repeatsNothing(at: place) }
        let second = position
        if try quantifier() != nil { throw twoQuantifiers(at: second) }
        return try repeating(part, count)
    }

    private mutating func atom() throws(StoreError) -> Part {
        let beginning = position
        let scalar = scalars[beginning]
        position += 1
        switch scalar {
        case "(": return try group(at: beginning)
        case "[": return [try consume(set(at: beginning))]
        case ".": return [try consume(.dot)]
        case "^": return [.begin]
        case "$": return [.end]
        case "*", "+", "?": throw repeatsNothing(at: beginning)
        case "{": throw noNumber(at: beginning)
        case "\\":
            switch try escape(at: beginning) {
            case .set(let set): return [try consume(set)]
            case .scalar(let scalar): return [try consume(scalar)]
            }
        default: return [try consume(scalar)]
        }
    }

    private mutating func group(at beginning: Int) throws(StoreError) -> Part {
        guard depth < Regexp.maximumDepth else {
            throw StoreError(
                .tooBig,
                "more than \(Regexp.maximumDepth) groups are within each other at "
                    + "character \(beginning + 1) of the regular expression")
        }
        if take("?"), !take(":") { throw specialGroup(at: beginning) }
        depth += 1
        let part = try alternatives()
        depth -= 1
        guard take(")") else {
            throw error(
                at: beginning, "the ( has no )", "Close the group, or write \\( for the character.")
        }
        return part
    }

    // MARK: Repetition

    private struct Count {
        let minimum: Int
        /// `nil` if there is none.
        let maximum: Int?
    }

    private mutating func quantifier() throws(StoreError) -> Count? {
        if take("*") { return Count(minimum: 0, maximum: nil) }
        if take("+") { return Count(minimum: 1, maximum: nil) }
        if take("?") { return Count(minimum: 0, maximum: 1) }
        let beginning = position
        guard take("{") else { return nil }
        guard let minimum = try number(at: beginning) else { throw noNumber(at: beginning) }
        var maximum: Int? = minimum
        if take(",") { maximum = try number(at: beginning) }
        guard take("}") else { throw noNumber(at: beginning) }
        if let maximum, maximum < minimum {
            throw error(
                at: beginning, "the greatest count of a repetition is less than its least",
                "Write the smaller number first.")
        }
        return Count(minimum: minimum, maximum: maximum)
    }

    /// Digits, if there are any.
    private mutating func number(at beginning: Int) throws(StoreError) -> Int? {
        var number: Int?
        while let digit = scalars[safe: position], ("0"..."9").contains(digit) {
            number = (number ?? 0) * 10 + Int(digit.value - 0x30)
            if let number { try requireRoom(number) }
            position += 1
        }
        return number
    }

    private func repeating(_ part: Part, _ count: Count) throws(StoreError) -> Part {
        // However often it is repeated, nothing is nothing.
        if part.isEmpty { return [] }
        let length = part.count
        // All numbers are within the limit, so no product overflows.
        let optional = count.maximum.map { $0 - count.minimum } ?? 2
        try requireRoom(count.minimum * length + optional * (length + 1))
        var whole: Part = []
        if count.maximum == nil, count.minimum > 0 {
            for _ in 0..<count.minimum { whole += part }
            return whole + [.split(Int32(-length), 1)]
        }
        for _ in 0..<count.minimum { whole += part }
        guard count.maximum != nil else {
            whole.append(.split(1, Int32(length + 2)))
            return whole + part + [.jump(Int32(-length - 1))]
        }
        for left in stride(from: optional, to: 0, by: -1) {
            whole.append(.split(1, Int32(left * (length + 1))))
            whole += part
        }
        return whole
    }

    private func requireRoom(_ count: Int) throws(StoreError) {
        guard count < Regexp.maximumInstructionCount else {
            throw StoreError(
                .tooBig,
                "a regular expression has at most \(Regexp.maximumInstructionCount) states; this "
                    + "one has more by character \(position)",
                hint:
                    "Write smaller numbers of repetitions. Repetitions within each other multiply.")
        }
    }

    // MARK: Classes

    private enum Escape {
        case scalar(Unicode.Scalar)
        case set(RegexpClass)
    }

    private mutating func consume(
        _ scalar: Unicode.Scalar
    ) throws(StoreError)
        -> Regexp.Instruction
    {
        if let known = numbers[scalar] { return .consume(known) }
        let instruction = try consume(.scalar(scalar))
        numbers[scalar] = Int32(classes.count - 1)
        return instruction
    }

    private mutating func consume(_ set: RegexpClass) throws(StoreError) -> Regexp.Instruction {
        let set = ignoresCase ? set.ignoringCase : set
        rangeCount += set.ranges.count
        guard rangeCount <= Regexp.maximumRangeCount else {
            throw StoreError(
                .tooBig,
                "the classes of a regular expression have at most "
                    + "\(Regexp.maximumRangeCount) ranges",
                hint: "Split it into several conditions.")
        }
        classes.append(set)
        return .consume(Int32(classes.count - 1))
    }

    /// The class whose `[` has been read.
    private mutating func set(at beginning: Int) throws(StoreError) -> RegexpClass {
        let isInverted = take("^")
        var ranges: [RegexpClass.Scalars] = []
        let first = position
        while true {
            guard let next = scalars[safe: position] else {
                throw error(
                    at: beginning, "the [ has no ]",
                    "Close the class, or write \\[ for the character.")
            }
            if next == "]" { break }
            ranges += try member()
        }
        guard position > first else {
            throw error(
                at: beginning, "the class is empty", "Write \\] for a ] in a class.")
        }
        position += 1
        let set = RegexpClass(ranges)
        guard isInverted else { return set }
        return (ignoresCase ? set.ignoringCase : set).inverted
    }

    /// A scalar, a range or an escape in a class.
    private mutating func member() throws(StoreError) -> [RegexpClass.Scalars] {
        let beginning = position
        let low: Unicode.Scalar
        switch try element() {
        case .scalar(let scalar): low = scalar
        case .set(let set):
            // A - at the end of a class is the character.
            guard scalars[safe: position] != "-" || scalars[safe: position + 1] == "]" else {
                throw error(
                    at: beginning, "a range cannot begin with a class",
                    "Write \\- for a - in a class.")
            }
            return set.ranges
        }
        guard scalars[safe: position] == "-", let next = scalars[safe: position + 1], next != "]"
        else { return [low.value...low.value] }
        position += 1
        guard case .scalar(let high) = try element() else {
            throw error(
                at: beginning, "a range cannot end with a class", "Write \\- for a - in a class.")
        }
        guard low <= high else {
            throw error(
                at: beginning, "a range ends before it begins", "Write the lower one first.")
        }
        return [low.value...high.value]
    }

    private mutating func element() throws(StoreError) -> Escape {
        let beginning = position
        let scalar = scalars[beginning]
        position += 1
        switch scalar {
        case "\\": return try escape(at: beginning)
        case "[":
            throw error(
                at: beginning, "a class cannot contain another one, nor [:alpha:]",
                "Write \\[ for the character.")
        case "&" where scalars[safe: position] == "&":
            throw error(
                at: beginning, "classes cannot be intersected", "Write one & for the character.")
        default: return .scalar(scalar)
        }
    }

    /// Reads an escape behind its backslash.
    private mutating func escape(at beginning: Int) throws(StoreError) -> Escape {
        guard let scalar = scalars[safe: position] else {
            throw error(
                at: beginning, "the \\ at the end escapes nothing", "Write \\\\ for the character.")
        }
        position += 1
        if let set = RegexpClass.named(scalar) { return .set(set) }
        switch scalar {
        case "n": return .scalar("\n")
        case "t": return .scalar("\t")
        case "r": return .scalar("\r")
        case "f": return .scalar("\u{C}")
        case "v": return .scalar("\u{B}")
        case "0"..."9":
            throw error(
                at: beginning, "the escape is a back-reference, which needs unbounded time",
                "Repeat the part itself, or compare in Swift.")
        case "b", "B":
            throw error(
                at: beginning, "there is no escape for the edge of a word",
                "Write (^|\\W) before a word and (\\W|$) behind it.")
        case "A", "Z", "z":
            throw error(
                at: beginning, "there is no such escape",
                "Write ^ for the beginning of the text and $ for its end.")
        case "a"..."z", "A"..."Z":
            throw error(
                at: beginning, "there is no such escape",
                "The escapes are \\d \\w \\s \\D \\W \\S \\n \\t \\r \\f \\v, and \\ before a sign."
            )
        default: return .scalar(scalar)
        }
    }

    // MARK: Scalars and errors

    private mutating func take(_ scalar: Unicode.Scalar) -> Bool {
        guard scalars[safe: position] == scalar else { return false }
        position += 1
        return true
    }

    /// Names the place by the number of its scalar, and repeats nothing of the pattern.
    private func error(at index: Int, _ message: String, _ hint: String) -> StoreError {
        StoreError(
            .misuse, "\(message), at character \(index + 1) of the regular expression", hint: hint)
    }

    private func repeatsNothing(at index: Int) -> StoreError {
        error(
            at: index, "the quantifier repeats nothing",
            "Write it behind a character, a class or a group, or \\ before it for the character.")
    }

    private func noNumber(at index: Int) -> StoreError {
        error(
            at: index, "the { begins no repetition",
            "Write {2}, {2,}, {2,5} or {0,5} behind what is repeated, or \\{ for the character.")
    }

    private func twoQuantifiers(at index: Int) -> StoreError {
        let hint =
            switch scalars[index] {
            case "?": "Leave out the ?: whether a text matches does not depend on it."
            case "+": "Leave out the +: nothing here goes back."
            default: "Put what is repeated into a group: (?:a{2})*."
            }
        return error(at: index, "a quantifier follows another one", hint)
    }

    /// The error for a group that begins with `(?`, but not with `(?:`.
    private func specialGroup(at index: Int) -> StoreError {
        switch scalars[safe: position] {
        case "=", "!":
            return error(
                at: index, "a group cannot look ahead", "Combine several conditions with && and !.")
        case "<" where ["=", "!"].contains(scalars[safe: position + 1]):
            return error(
                at: index, "a group cannot look behind",
                "Combine several conditions with && and !.")
        case "P", "<", "'":
            return error(at: index, "a group has no name", "Write ( ) alone.")
        case "i":
            return error(
                at: index, "case is ignored in the whole pattern or nowhere",
                "Write (?i) at the beginning, or [Aa].")
        default:
            return error(at: index, "there is no such group", "Write ( ) or (?: ).")
        }
    }
}

extension Array {
    fileprivate subscript(safe index: Int) -> Element? {
        index < count ? self[index] : nil
    }
}
