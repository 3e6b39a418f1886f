/// Looks for a regular expression in texts.
///
/// The machine of a pattern is in a set of places. Each set that a text leads to becomes a state,
/// and the way from a state by a symbol is looked up once. Then a scalar costs one look into a
/// table. When the table is full, it is emptied. Even without it a scalar takes at most one visit
/// of each place. So the time is at most O(*length of the text* × *instructions*).
///
/// It belongs to one thread at a time.
final class RegexpMatcher {
    enum Outcome {
        case found
        case notFound
        /// `mustStop` said so.
        case stopped
    }

    /// How many steps there are between two questions whether to stop: some hundredths of a
    /// millisecond.
    static let stepsBetweenQuestions = 16_384
    /// The most bytes of the table and of the sets, unless two states take more.
    static let maximumByteCount = 1 << 20

    /// Entries of the table that are not the place of a state.
    private static let unknown: Int32 = -1
    private static let matched: Int32 = -2
    private static let hopeless: Int32 = -3

    private let alphabet: RegexpAlphabet
    private var places: RegexpPlaces
    /// Whether a match needs no scalar.
    private let matchesAtOnce: Bool
    /// For each state the entries of all symbols. An entry is the place in this table of the state
    /// to which the symbol leads.
    private var table: [Int32] = []
    private var states: [State] = []
    private var known: [RegexpPlaces.Members: Int32] = [:]
    private var textStepCount = 0

    private struct State {
        let members: RegexpPlaces.Members
        /// Whether the text matches if it ends here.
        let endsInMatch: Bool
    }

    /// Bytes of texts, and visits of places.
    var stepCount: Int { textStepCount + places.visitCount }
    var stateCount: Int { states.count }
    /// How often the table was emptied.
    private(set) var flushCount = 0

    init(_ regexp: Regexp) {
        alphabet = regexp.alphabet
        places = RegexpPlaces(regexp.instructions)
        matchesAtOnce = places.beginning(isText: true) == nil
        addFirstState()
    }

    /// Whether the pattern matches anywhere in a text.
    ///
    /// A byte that is not part of a valid scalar matches nothing, so no match reaches across it.
    ///
    /// - Parameters:
    ///   - text: The bytes of the text, in UTF-8.
    ///   - mustStop: Asked from time to time whether to stop.
    func search(_ text: UnsafeRawBufferPointer, _ mustStop: () -> Bool) -> Outcome {
        if matchesAtOnce { return .found }
        var (state, position) = (0, 0)
        var question = stepCount + Self.stepsBetweenQuestions
        while position < text.count {
            let before = position
            let limit = min(text.count, position + question - stepCount)
            run(text, limit, &state, &position)
            textStepCount += position - before
            if stepCount < question, position < text.count {
                let (symbol, byteCount) = alphabet.symbol(in: text, at: position)
                switch follow(state, symbol) {
                case Self.matched: return .found
                case Self.hopeless: return .notFound
                case let next: state = Int(next)
                }
                position += byteCount
                textStepCount += byteCount
            }
            guard stepCount >= question else { continue }
            if mustStop() { return .stopped }
            question = stepCount + Self.stepsBetweenQuestions
        }
        return states[state / alphabet.symbolCount].endsInMatch ? .found : .notFound
    }

    /// Goes on by the table, to the limit or up to a symbol whose entry is not a state.
    private func run(
        _ text: UnsafeRawBufferPointer, _ limit: Int, _ state: inout Int, _ position: inout Int
    ) {
        var (here, index) = (state, position)
        // Both pointers are used only within the closures, where nothing changes the arrays.
        table.withUnsafeBufferPointer { table in
            alphabet.ascii.withUnsafeBufferPointer { ascii in
                while index < limit {
                    let byte = Int(text[index])
                    var (symbol, byteCount) = (UInt16(0), 1)
                    if byte < 0x80 {
                        symbol = ascii[byte]
                    } else {
                        (symbol, byteCount) = alphabet.symbol(in: text, at: index)
                    }
                    let next = table[here + Int(symbol)]
                    guard next >= 0 else { return }
                    here = Int(next)
                    index += byteCount
                }
            }
        }
        (state, position) = (here, index)
    }

    // MARK: States

    /// The entry of a state for a symbol, which is looked up if it is not known yet.
    private func follow(_ state: Int, _ symbol: UInt16) -> Int32 {
        let entry = state + Int(symbol)
        guard table[entry] == Self.unknown else { return table[entry] }
        let members = states[state / alphabet.symbolCount].members
        guard let reached = places.step(from: members, by: symbol, alphabet) else {
            table[entry] = Self.matched
            return Self.matched
        }
        if places.isHopeless(reached) {
            table[entry] = Self.hopeless
            return Self.hopeless
        }
        if let next = known[reached] {
            table[entry] = next
            return next
        }
        // All states have the same size.
        let stateByteCount = alphabet.symbolCount * 4 + members.count * 16 + 64
        let isFull = states.count > 1 && (states.count + 1) * stateByteCount > Self.maximumByteCount
        if isFull { empty() }
        let next = Int32(table.count)
        add(reached, isFirst: false)
        known[reached] = next
        // In an emptied table the state has no entries any more.
        if !isFull { table[entry] = next }
        return next
    }

    /// Adds the state at the beginning of a text. No other state is like it, because `^` holds
    /// there.
    private func addFirstState() {
        add(places.beginning(isText: true) ?? [], isFirst: true)
    }

    private func add(_ members: RegexpPlaces.Members, isFirst: Bool) {
        let endsInMatch = places.endsInMatch(members, isBeginning: isFirst)
        states.append(State(members: members, endsInMatch: endsInMatch))
        table.append(contentsOf: repeatElement(Self.unknown, count: alphabet.symbolCount))
    }

    private func empty() {
        flushCount += 1
        table.removeAll(keepingCapacity: true)
        states.removeAll(keepingCapacity: true)
        known.removeAll(keepingCapacity: true)
        addFirstState()
    }
}

extension RegexpAlphabet {
    /// The symbol of the scalar at a byte, and how many bytes it has. Each byte that is not part of
    /// a valid scalar is one symbol.
    ///
    /// See table 3-7 of <https://www.unicode.org/versions/Unicode15.0.0/ch03.pdf>.
    func symbol(in text: UnsafeRawBufferPointer, at index: Int) -> (UInt16, Int) {
        let first = UInt32(text[index])
        if first < 0x80 { return (ascii[Int(first)], 1) }
        let count: Int
        var second: ClosedRange<UInt8> = 0x80...0xBF
        switch first {
        case 0xC2...0xDF: count = 2
        case 0xE0: (count, second) = (3, 0xA0...0xBF)
        case 0xED: (count, second) = (3, 0x80...0x9F)
        case 0xE1...0xEF: count = 3
        case 0xF0: (count, second) = (4, 0x90...0xBF)
        case 0xF4: (count, second) = (4, 0x80...0x8F)
        case 0xF1...0xF3: count = 4
        default: return (Self.invalid, 1)
        }
        guard index + count <= text.count, second.contains(text[index + 1]) else {
            return (Self.invalid, 1)
        }
        var scalar = first & (0x7F >> UInt32(count))
        for next in index + 1..<index + count {
            let byte = UInt32(text[next])
            guard byte & 0xC0 == 0x80 else { return (Self.invalid, 1) }
            scalar = scalar << 6 | byte & 0x3F
        }
        return (symbol(of: scalar), count)
    }
}
