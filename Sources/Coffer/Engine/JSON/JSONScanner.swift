/// Finds one value in a JSON text without making the others.
///
/// Reads the text up to that value, and all of it if the value is missing. Accepts what
/// `JSONDecoder` accepts, so that a condition and a record agree: the first of two equal keys
/// counts, a comma may end an object or an array, and 512 levels may be nested.
struct JSONScanner {
    /// The error for a text that is not JSON. It has no place in the text, which may be a secret.
    struct Malformed: Error {}

    /// One step from a value to a value inside.
    enum Step<Key> {
        case key(Key)
        case index(Int)
    }

    /// A value that was found.
    enum Found {
        case null
        case bool(Bool)
        /// The bytes of a number.
        case number(Range<Int>)
        /// The bytes between the quotes, and whether they are the text as it is.
        case string(Range<Int>, isPlain: Bool)
        /// An object or an array.
        case container
    }

    static let maximumDepth = 512

    private let bytes: UnsafeRawBufferPointer
    private var place = 0

    init(_ bytes: UnsafeRawBufferPointer) {
        self.bytes = bytes
        // A byte order mark.
        if bytes.count >= 3, bytes[0] == 0xEF, bytes[1] == 0xBB, bytes[2] == 0xBF { place = 3 }
    }

    /// Returns the value at the end of the path. Returns `nil` if the path leads to a key or an
    /// index that is missing, or through a value that is neither an object nor an array.
    ///
    /// - Complexity: O(*bytes* × *length of the path*), and mostly O(*bytes*).
    mutating func find<Key: Sequence<UInt8>>(
        _ path: some Sequence<Step<Key>>
    ) throws(Malformed) -> Found? {
        for step in path {
            let isInside =
                switch step {
                case .key(let key): try enterObject(at: key)
                case .index(let index): try enterArray(at: index)
                }
            guard isInside else { return nil }
        }
        return try value()
    }

    // MARK: Steps

    /// Moves to the value of a key. Moves behind the value here if it lacks the key.
    private mutating func enterObject(
        at wanted: some Sequence<UInt8>
    ) throws(Malformed) -> Bool {
        guard try next() == UInt8(ascii: "{") else {
            try skip()
            return false
        }
        place += 1
        while try next() != UInt8(ascii: "}") {
            let (key, isPlain) = try string()
            guard try next() == UInt8(ascii: ":") else { throw Malformed() }
            place += 1
            if try isEqual(key, isPlain, wanted) { return true }
            try skip()
            try passComma(or: UInt8(ascii: "}"))
        }
        place += 1
        return false
    }

    /// Moves to an element. Moves behind the value here if it lacks the element.
    private mutating func enterArray(at index: Int) throws(Malformed) -> Bool {
        guard try next() == UInt8(ascii: "[") else {
            try skip()
            return false
        }
        place += 1
        var position = 0
        while try next() != UInt8(ascii: "]") {
            if position == index { return true }
            position += 1
            try skip()
            try passComma(or: UInt8(ascii: "]"))
        }
        place += 1
        return false
    }

    private mutating func passComma(or end: UInt8) throws(Malformed) {
        let byte = try next()
        if byte == UInt8(ascii: ",") {
            place += 1
        } else if byte != end {
            throw Malformed()
        }
    }

    private func isEqual(
        _ key: Range<Int>, _ isPlain: Bool, _ wanted: some Sequence<UInt8>
    ) throws(Malformed) -> Bool {
        guard !isPlain else { return bytes[key].elementsEqual(wanted) }
        return try Self.unescaped(UnsafeRawBufferPointer(rebasing: bytes[key]))
            .elementsEqual(wanted)
    }

    // MARK: Values

    private mutating func value() throws(Malformed) -> Found {
        switch try next() {
        case UInt8(ascii: "\""):
            let (range, isPlain) = try string()
            return .string(range, isPlain: isPlain)
        case UInt8(ascii: "{"), UInt8(ascii: "["):
            try skip()
            return .container
        case UInt8(ascii: "t"):
            try word("true")
            return .bool(true)
        case UInt8(ascii: "f"):
            try word("false")
            return .bool(false)
        case UInt8(ascii: "n"):
            try word("null")
            return .null
        default: return .number(try number())
        }
    }

    /// Moves behind the value here, with all values inside.
    private mutating func skip() throws(Malformed) {
        // A bit for each level: set for an object.
        var kinds = SIMD8<UInt64>()
        var depth = 0
        repeat {
            let byte = try next()
            if byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[") {
                guard depth < Self.maximumDepth else { throw Malformed() }
                let (word, bit) = (depth >> 6, UInt64(1) << UInt64(depth & 63))
                let isObject = byte == UInt8(ascii: "{")
                kinds[word] = isObject ? kinds[word] | bit : kinds[word] & ~bit
                depth += 1
                place += 1
                if try next() == (isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) {
                    try leave(&depth, kinds)
                } else if isObject {
                    try passKey()
                }
            } else {
                _ = try value()
                if depth > 0 { try leave(&depth, kinds, hasValue: true) }
            }
        } while depth > 0
    }

    /// Moves behind a value, to the next one of the same container, or out of containers that end
    /// here.
    private mutating func leave(
        _ depth: inout Int, _ kinds: SIMD8<UInt64>, hasValue: Bool = false
    ) throws(Malformed) {
        if !hasValue {
            place += 1
            depth -= 1
        }
        while depth > 0 {
            let isObject = kinds[(depth - 1) >> 6] >> UInt64((depth - 1) & 63) & 1 == 1
            let end = isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")
            try passComma(or: end)
            if try next() != end {
                if isObject { try passKey() }
                return
            }
            place += 1
            depth -= 1
        }
    }

    private mutating func passKey() throws(Malformed) {
        _ = try string()
        guard try next() == UInt8(ascii: ":") else { throw Malformed() }
        place += 1
    }

    // MARK: Tokens

    /// Moves to the next byte that is not white space, and returns it.
    private mutating func next() throws(Malformed) -> UInt8 {
        while place < bytes.count {
            let byte = bytes[place]
            guard byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 else { return byte }
            place += 1
        }
        throw Malformed()
    }

    /// Moves behind the string here. Returns the bytes between its quotes, and whether they are its
    /// text. `unescaped` makes the text of others, and refuses control characters.
    private mutating func string() throws(Malformed) -> (Range<Int>, isPlain: Bool) {
        guard try next() == UInt8(ascii: "\"") else { throw Malformed() }
        place += 1
        let start = place
        var isPlain = true
        while place < bytes.count {
            let byte = bytes[place]
            if byte == UInt8(ascii: "\"") {
                place += 1
                return (start..<(place - 1), isPlain)
            }
            if byte < 0x20 { isPlain = false }
            if byte == UInt8(ascii: "\\") {
                isPlain = false
                place += 1
            }
            place += 1
        }
        throw Malformed()
    }

    private mutating func word(_ word: StaticString) throws(Malformed) {
        let end = place + word.utf8CodeUnitCount
        guard end <= bytes.count else { throw Malformed() }
        for (offset, index) in (place..<end).enumerated() {
            guard bytes[index] == word.utf8Start[offset] else { throw Malformed() }
        }
        place = end
    }

    private mutating func number() throws(Malformed) -> Range<Int> {
        let start = place
        while place < bytes.count {
            switch bytes[place] {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "+"),
                UInt8(ascii: "."), UInt8(ascii: "e"), UInt8(ascii: "E"):
                place += 1
                continue
            default: break
            }
            break
        }
        guard place > start else { throw Malformed() }
        return start..<place
    }
}

// MARK: Contents

extension JSONScanner {
    /// The bytes of a string whose `\` are resolved.
    static func unescaped(_ bytes: UnsafeRawBufferPointer) throws(Malformed) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(bytes.count)
        var place = 0
        while place < bytes.count {
            let byte = bytes[place]
            place += 1
            guard byte == UInt8(ascii: "\\") else {
                guard byte >= 0x20 else { throw Malformed() }
                text.append(byte)
                continue
            }
            guard place < bytes.count else { throw Malformed() }
            let sign = bytes[place]
            place += 1
            switch sign {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(sign)
            case UInt8(ascii: "b"): text.append(0x08)
            case UInt8(ascii: "f"): text.append(0x0C)
            case UInt8(ascii: "n"): text.append(0x0A)
            case UInt8(ascii: "r"): text.append(0x0D)
            case UInt8(ascii: "t"): text.append(0x09)
            case UInt8(ascii: "u"): text += try scalar(bytes, &place).utf8
            default: throw Malformed()
            }
        }
        return text
    }

    /// The scalar whose hexadecimal digits are here, of two UTF-16 units if it needs them.
    private static func scalar(
        _ bytes: UnsafeRawBufferPointer, _ place: inout Int
    ) throws(Malformed) -> String {
        let first = try unit(bytes, &place)
        if let scalar = Unicode.Scalar(first) { return String(scalar) }
        guard place + 1 < bytes.count, bytes[place] == UInt8(ascii: "\\"),
            bytes[place + 1] == UInt8(ascii: "u")
        else { throw Malformed() }
        place += 2
        let second = try unit(bytes, &place)
        guard first < 0xDC00, 0xDC00...0xDFFF ~= second,
            let scalar = Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))
        else { throw Malformed() }
        return String(scalar)
    }

    private static func unit(
        _ bytes: UnsafeRawBufferPointer, _ place: inout Int
    ) throws(Malformed) -> UInt32 {
        guard place + 4 <= bytes.count else { throw Malformed() }
        var unit: UInt32 = 0
        for byte in bytes[place..<(place + 4)] {
            let digit = Character(Unicode.Scalar(byte)).hexDigitValue
            guard let digit, byte < 0x80 else { throw Malformed() }
            unit = unit << 4 | UInt32(digit)
        }
        place += 4
        return unit
    }

    /// The number that some bytes are: an integer if it is written as one and fits 64 bits, or else
    /// the nearest floating-point number.
    static func number(_ bytes: UnsafeRawBufferPointer) throws(Malformed) -> Value {
        guard isNumber(bytes) else { throw Malformed() }
        let text = String(decoding: bytes, as: UTF8.self)
        if let integer = Int64(text) { return .integer(integer) }
        guard let real = Double(text), real.isFinite else { throw Malformed() }
        return .real(real)
    }

    /// Whether the bytes are a number by the grammar of JSON:
    /// <https://www.rfc-editor.org/rfc/rfc8259#section-6>.
    private static func isNumber(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var place = 0
        func digits() -> Int {
            let start = place
            while place < bytes.count, UInt8(ascii: "0")...UInt8(ascii: "9") ~= bytes[place] {
                place += 1
            }
            return place - start
        }
        func take(_ signs: UInt8...) -> Bool {
            guard place < bytes.count, signs.contains(bytes[place]) else { return false }
            place += 1
            return true
        }
        _ = take(UInt8(ascii: "-"))
        let isZero = place < bytes.count && bytes[place] == UInt8(ascii: "0")
        let count = digits()
        guard count > 0, !isZero || count == 1 else { return false }
        if take(UInt8(ascii: ".")), digits() == 0 { return false }
        if take(UInt8(ascii: "e"), UInt8(ascii: "E")) {
            _ = take(UInt8(ascii: "+"), UInt8(ascii: "-"))
            if digits() == 0 { return false }
        }
        return place == bytes.count
    }
}
