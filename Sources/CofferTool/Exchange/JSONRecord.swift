import Coffer

/// A problem with a line of JSON.
struct JSONProblem: Error {
    let message: String
    var hint: String?
}

/// Reads one JSON object with values that a table can hold, and keeps the order of its members.
///
/// A separate scanner, because Foundation's loses facts that an import needs: the order of the
/// keys, duplicate keys, and (in `JSONSerialization`) the difference between 1 and 1.0.
struct JSONRecord {
    typealias Member = (key: String, value: BorrowedValue)
    private typealias Text = UnsafeMutableBufferPointer<UInt8>

    private let bytes: Text
    private var index = 0

    /// Parses the bytes and returns the members of their object. A key may appear several times.
    ///
    /// - Parameter bytes: Escapes are replaced in place, where the texts and blobs then are.
    /// - Throws: `JSONProblem`, which repeats keys but not values.
    static func members(
        of bytes: UnsafeMutableBufferPointer<UInt8>
    ) throws(JSONProblem) -> [Member] {
        var members: [Member] = []
        try read(bytes) { record, key throws(JSONProblem) in
            members.append((key, try record.value(of: key)))
        }
        return members
    }

    /// Parses the bytes, which must be an object.
    ///
    /// - Parameters:
    ///   - bytes: As for `members(of:)`.
    ///   - member: Must read the value of the key that it gets.
    static func read(
        _ bytes: UnsafeMutableBufferPointer<UInt8>,
        _ member: (inout JSONRecord, String) throws(JSONProblem) -> Void
    ) throws(JSONProblem) {
        var record = JSONRecord(bytes: bytes)
        try record.object(member)
    }

    private init(bytes: Text) {
        self.bytes = bytes
    }

    private mutating func object(
        _ member: (inout JSONRecord, String) throws(JSONProblem) -> Void
    ) throws(JSONProblem) {
        skipSpace()
        guard take(0x7b) else { throw problem("an object is expected on each line") }
        skipSpace()
        if !take(0x7d) {
            repeat {
                skipSpace()
                let key = String(decoding: try string(), as: UTF8.self)
                skipSpace()
                guard take(0x3a) else { throw problem("a colon is missing after the key \(key)") }
                skipSpace()
                try member(&self, key)
                skipSpace()
            } while take(0x2c)
            guard take(0x7d) else { throw problem("the object does not end") }
        }
        skipSpace()
        guard index == bytes.count else { throw problem("something follows the object") }
    }

    /// The values of an array; `nil` if there is something else, which is then not read.
    mutating func list(of key: String) throws(JSONProblem) -> [BorrowedValue]? {
        guard take(0x5b) else { return nil }
        var values: [BorrowedValue] = []
        skipSpace()
        guard !take(0x5d) else { return values }
        repeat {
            skipSpace()
            values.append(try value(of: key))
            skipSpace()
        } while take(0x2c)
        guard take(0x5d) else { throw problem("the array of \(key) does not end") }
        return values
    }

    /// A value that a column holds.
    mutating func value(of key: String) throws(JSONProblem) -> BorrowedValue {
        guard index < bytes.count else { throw problem("the line ends too early") }
        switch bytes[index] {
        case 0x22: return .text(UnsafeBufferPointer(try string()))
        case 0x7b: return try special(of: key)
        case 0x5b: throw problem("the value of \(key) is an array, which no column holds")
        case 0x2d, 0x30...0x39: return try number(of: key)
        default:
            if take("null") { return .null }
            // SQLite has no type for them; its own JSON functions return the same integers.
            if take("true") { return .integer(1) }
            if take("false") { return .integer(0) }
            throw problem("the value of \(key) is not JSON")
        }
    }

    private mutating func special(of key: String) throws(JSONProblem) -> BorrowedValue {
        let unusable = problem(
            "the value of \(key) is an object other than {\"$base64\":…} and {\"$real\":…}")
        index += 1
        skipSpace()
        guard index < bytes.count, bytes[index] == 0x22 else { throw unusable }
        let member = String(decoding: try string(), as: UTF8.self)
        skipSpace()
        guard take(0x3a) else { throw unusable }
        skipSpace()
        guard index < bytes.count, bytes[index] == 0x22 else { throw unusable }
        let text = try string()
        skipSpace()
        guard take(0x7d), let value = JSONValue.special(member: member, text: text) else {
            throw unusable
        }
        return value
    }

    // MARK: Numbers

    private mutating func number(of key: String) throws(JSONProblem) -> BorrowedValue {
        let start = index
        _ = take(0x2d)
        let digitCount = skipDigits(from: index)
        var isWellFormed = digitCount == 1 || (digitCount > 1 && bytes[index - digitCount] != 0x30)
        var isReal = false
        if take(0x2e) {
            isReal = true
            isWellFormed = skipDigits(from: index) > 0 && isWellFormed
        }
        if take(0x65) || take(0x45) {
            isReal = true
            if !take(0x2b) { _ = take(0x2d) }
            isWellFormed = skipDigits(from: index) > 0 && isWellFormed
        }
        guard isWellFormed else { throw problem("the value of \(key) is not a JSON number") }
        let number = UnsafeBufferPointer(rebasing: bytes[start..<index])
        let text = String(decoding: number, as: UTF8.self)
        if isReal {
            guard Double(text)?.isFinite == true else {
                throw problem("the number of \(key) is too large for a real")
            }
            guard let real = CanonicalNumber.real(number) else {
                throw JSONProblem(
                    message: "the number of \(key) would be rounded to one that a real holds",
                    hint: "Write it in quotes: a text keeps all digits.")
            }
            return .real(real)
        }
        guard let integer = Int64(text) else {
            throw problem("the integer of \(key) needs more than 64 bits")
        }
        return .integer(integer)
    }

    private mutating func skipDigits(from start: Int) -> Int {
        while index < bytes.count, bytes[index] >= 0x30, bytes[index] <= 0x39 { index += 1 }
        return index - start
    }

    // MARK: Text

    /// Reads a text and replaces its escapes, which are longer than their characters.
    private mutating func string() throws(JSONProblem) -> Text {
        guard take(0x22) else { throw problem("a key or text in quotes is expected") }
        let start = index
        var end = index
        while index < bytes.count {
            let byte = bytes[index]
            index += 1
            switch byte {
            case 0x22:
                let text = Text(rebasing: bytes[start..<end])
                guard UTF8Check.isValid(UnsafeBufferPointer(text)) else {
                    throw problem("a text is not UTF-8")
                }
                return text
            case 0x5c: try replaceEscape(at: &end)
            case ..<0x20: throw problem("a text holds a control character that is not escaped")
            default:
                bytes[end] = byte
                end += 1
            }
        }
        throw problem("a text does not end")
    }

    private mutating func replaceEscape(at end: inout Int) throws(JSONProblem) {
        guard index < bytes.count else { throw problem("a text does not end") }
        let byte = bytes[index]
        index += 1
        switch byte {
        case 0x22, 0x5c, 0x2f: bytes[end] = byte
        case 0x62: bytes[end] = 0x08
        case 0x66: bytes[end] = 0x0c
        case 0x6e: bytes[end] = 0x0a
        case 0x72: bytes[end] = 0x0d
        case 0x74: bytes[end] = 0x09
        case 0x75:
            for byte in try scalar() {
                bytes[end] = byte
                end += 1
            }
            return
        default: throw problem("a text holds an unknown escape")
        }
        end += 1
    }

    /// The scalar of `\uXXXX`, or of two of them that form a surrogate pair.
    private mutating func scalar() throws(JSONProblem) -> UTF8.EncodedScalar {
        var code = try codeUnit()
        if code & 0xfc00 == 0xd800, take("\\u") {
            let low = try codeUnit()
            guard low & 0xfc00 == 0xdc00 else { throw problem("half a surrogate pair") }
            code = 0x10000 + (code & 0x3ff) << 10 + low & 0x3ff
        }
        guard let scalar = Unicode.Scalar(code), let encoded = UTF8.encode(scalar) else {
            throw problem("half a surrogate pair")
        }
        return encoded
    }

    private mutating func codeUnit() throws(JSONProblem) -> UInt32 {
        guard index + 4 <= bytes.count else { throw problem("a text does not end") }
        var code: UInt32 = 0
        for byte in bytes[index..<index + 4] {
            guard let digit = Character(Unicode.Scalar(byte)).hexDigitValue else {
                throw problem("\\u needs four hex digits")
            }
            code = code << 4 | UInt32(digit)
        }
        index += 4
        return code
    }

    // MARK: Bytes

    static func isSpace(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x09 || byte == 0x0d || byte == 0x0a
    }

    private mutating func skipSpace() {
        while index < bytes.count, Self.isSpace(bytes[index]) { index += 1 }
    }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard index < bytes.count, bytes[index] == byte else { return false }
        index += 1
        return true
    }

    private mutating func take(_ word: StaticString) -> Bool {
        let word = UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount)
        guard bytes[index...].starts(with: word) else { return false }
        index += word.count
        return true
    }

    private func problem(_ message: String) -> JSONProblem {
        JSONProblem(message: message)
    }
}
