/// A pattern such as `yyyy-MM-dd HH:mm:ss`: the part of Unicode's date patterns that has the same
/// meaning in every locale.
///
/// Digits only, UTC, the Gregorian calendar. See
/// <https://www.unicode.org/reports/tr35/tr35-dates.html#Date_Field_Symbol_Table>.
struct DatePattern: Sendable, Equatable {
    private enum Piece: Equatable {
        case field(Field, digitCount: Int)
        /// `Z`: the UTC offset, which is written as `+0000`.
        case offset
        case literal(String)
    }

    private enum Field: Character {
        case year = "y"
        case month = "M"
        case day = "d"
        case hour = "H"
        case minute = "m"
        case second = "s"
        case fraction = "S"

        var path: WritableKeyPath<CivilTime, Int> {
            switch self {
            case .year: \.year
            case .month: \.month
            case .day: \.day
            case .hour: \.hour
            case .minute: \.minute
            case .second: \.second
            case .fraction: \.microsecond
            }
        }

        func allows(_ digitCount: Int) -> Bool {
            switch self {
            case .year: digitCount == 4
            case .fraction: 1...6 ~= digitCount
            default: digitCount == 2
            }
        }
    }

    private var pieces: [Piece] = []

    /// Parses a pattern of `yyyy`, `MM`, `dd`, `HH`, `mm`, `ss`, `S` to `SSSSSS`, `Z`, quoted text
    /// and ASCII characters that are not letters.
    ///
    /// - Throws: `.unsupported` for a pattern with anything else, such as names of months, or with
    ///   a quote that is not closed.
    init(_ pattern: String) throws(StoreError) {
        var rest = pattern[...]
        while let first = rest.first {
            if first == "'" {
                pieces.append(.literal(try Self.takeQuoted(&rest)))
                continue
            }
            let run = rest.prefix { $0 == first }
            rest = rest.dropFirst(run.count)
            if let field = Field(rawValue: first), field.allows(run.count) {
                pieces.append(.field(field, digitCount: run.count))
            } else if run == "Z" {
                pieces.append(.offset)
            } else if first.isASCII, !first.isLetter {
                pieces.append(.literal(String(run)))
            } else {
                throw StoreError(
                    .unsupported, "a date pattern cannot contain \(run)",
                    hint: "Use yyyy MM dd HH mm ss, S to SSSSSS, Z, and 'text' in quotes.")
            }
        }
    }

    /// Removes text in quotes from the beginning of `rest`, and returns it without the quotes. Two
    /// quotes are one quote, inside the text and by themselves. Throws `.unsupported` if the quote
    /// is not closed.
    ///
    /// > "Two adjacent single vertical quotes ('') represent a literal single quote, either inside
    /// > or outside single quotes."
    /// > <https://www.unicode.org/reports/tr35/tr35-dates.html#Date_Format_Patterns>
    private static func takeQuoted(_ rest: inout Substring) throws(StoreError) -> String {
        rest = rest.dropFirst()
        if rest.first == "'" {
            rest = rest.dropFirst()
            return "'"
        }
        var quoted = ""
        while true {
            let text = rest.prefix { $0 != "'" }
            guard text.endIndex < rest.endIndex else {
                throw StoreError(.unsupported, "a quote in the date pattern is not closed")
            }
            quoted += text
            rest = rest[text.endIndex...].dropFirst()
            guard rest.first == "'" else { return quoted }
            quoted += "'"
            rest = rest.dropFirst()
        }
    }

    func text(of time: CivilTime) -> String {
        var text = ""
        for piece in pieces {
            switch piece {
            case .literal(let literal): text += literal
            case .offset: text += "+0000"
            case .field(.fraction, let count):
                text += Self.digits(time.microsecond, 6).prefix(count)
            case .field(let field, let count): text += Self.digits(time[keyPath: field.path], count)
            }
        }
        return text
    }

    /// The time that a text of this pattern gives; `nil` if the text does not match to its end.
    /// Fields that the pattern leaves out are those of 1970-01-01 00:00:00. Does not check ranges:
    /// month 13 is accepted.
    func time(of text: String) -> CivilTime? {
        var time = CivilTime()
        var rest = text.utf8[...]
        for piece in pieces {
            switch piece {
            case .literal(let literal):
                guard rest.starts(with: literal.utf8) else { return nil }
                rest = rest.dropFirst(literal.utf8.count)
            case .offset:
                guard let offset = rest.takeOffset() else { return nil }
                time.offset = offset
            case .field(let field, let count):
                guard let number = rest.takeNumber(count) else { return nil }
                let scale =
                    field == .fraction ? (count..<6).reduce(1) { scale, _ in scale * 10 } : 1
                time[keyPath: field.path] = number * scale
            }
        }
        return rest.isEmpty ? time : nil
    }

    private static func digits(_ number: Int, _ count: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, count - text.utf8.count)) + text
    }
}

extension Substring.UTF8View {
    /// Removes a number of exactly so many digits from the beginning, and returns it. `nil`, and
    /// nothing is removed, if there are fewer.
    mutating func takeNumber(_ digitCount: Int) -> Int? {
        let digits = prefix(digitCount)
        guard digits.count == digitCount, digits.allSatisfy({ 0x30...0x39 ~= $0 }) else {
            return nil
        }
        self = dropFirst(digitCount)
        return digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
    }

    /// Removes `Z`, `+01:00` or `+0100` from the beginning, and returns the minutes east of UTC.
    /// `nil` for anything else, part of which may then be removed.
    mutating func takeOffset() -> Int? {
        guard let sign = popFirst() else { return nil }
        if sign == 0x5a { return 0 }
        guard sign == 0x2b || sign == 0x2d, let hours = takeNumber(2) else { return nil }
        if first == 0x3a { self = dropFirst() }
        guard let minutes = takeNumber(2), hours < 24, minutes < 60 else { return nil }
        return (hours * 60 + minutes) * (sign == 0x2d ? -1 : 1)
    }

    /// Removes the first byte if it is one of these, and returns whether it was.
    mutating func take(_ bytes: UInt8...) -> Bool {
        guard let first, bytes.contains(first) else { return false }
        self = dropFirst()
        return true
    }
}

extension CivilTime {
    /// Reads a text in one of ISO 8601's forms that begin with a date and that SQLite's own date
    /// functions know. The second may have any number of fraction digits, and the offset may lack
    /// its colon. Digits after the microseconds are dropped. `nil` for any other text; ranges, such
    /// as those of months, are not checked.
    /// See <https://www.sqlite.org/lang_datefunc.html#time_values>.
    init?(iso8601 text: String) {
        self.init()
        var rest = text.utf8[...]
        guard let year = rest.takeNumber(4), rest.take(0x2d), let month = rest.takeNumber(2),
            rest.take(0x2d), let day = rest.takeNumber(2)
        else { return nil }
        (self.year, self.month, self.day) = (year, month, day)
        guard !rest.isEmpty else { return }
        guard rest.take(0x54, 0x20), let hour = rest.takeNumber(2), rest.take(0x3a),
            let minute = rest.takeNumber(2)
        else { return nil }
        (self.hour, self.minute) = (hour, minute)
        if rest.take(0x3a) {
            guard let second = rest.takeNumber(2) else { return nil }
            self.second = second
            if rest.take(0x2e) {
                let digits = rest.prefix { 0x30...0x39 ~= $0 }
                guard !digits.isEmpty else { return nil }
                rest = rest.dropFirst(digits.count)
                microsecond = (0..<6).reduce(0) { sum, place in
                    sum * 10 + (digits.dropFirst(place).first.map { Int($0 - 0x30) } ?? 0)
                }
            }
        }
        guard !rest.isEmpty else { return }
        guard let offset = rest.takeOffset(), rest.isEmpty else { return nil }
        self.offset = offset
    }
}
