/// The places of a pattern where its machine can be, and how it gets from some to others.
struct RegexpPlaces {
    /// A bit for each instruction that consumes a scalar, or that waits for the end of the text.
    typealias Members = [UInt64]

    private let instructions: [Regexp.Instruction]
    /// The instructions that are members.
    private let waiting: Members
    /// The instructions that can go on only at the end of the text.
    private let ends: Members
    /// Where a match can begin behind the beginning of the text, but for where it needs no scalar.
    private var restart: Members = []
    /// The instructions that were visited at this scalar. Each is visited once.
    private var visited: Members
    private var next: [Int32] = []
    /// The visits so far.
    private(set) var visitCount = 0

    init(_ instructions: [Regexp.Instruction]) {
        self.instructions = instructions
        let none = Members(repeating: 0, count: instructions.count / 64 + 1)
        var (waiting, ends) = (none, none)
        for (place, instruction) in instructions.enumerated() {
            switch instruction {
            case .consume: waiting.insert(place)
            case .end:
                waiting.insert(place)
                ends.insert(place)
            default: break
            }
        }
        (self.waiting, self.ends, visited) = (waiting, ends, none)
        restart = beginning(isText: false) ?? none
    }

    /// Where a match can begin; `nil` if it ends there too.
    ///
    /// - Parameter isText: Whether it is the beginning of the text.
    mutating func beginning(isText: Bool) -> Members? {
        visited.removeAll()
        guard !visit(0, isBeginning: isText) else { return nil }
        return visited.intersection(waiting)
    }

    /// Where some members lead to by a symbol, and where a match can begin behind it; `nil` if a
    /// match ends there.
    mutating func step(
        from members: Members, by symbol: UInt16, _ alphabet: RegexpAlphabet
    ) -> Members? {
        visited.removeAll()
        var hasMatched = false
        members.forEachMember { place in
            visitCount += 1
            guard case .consume(let number) = instructions[place], alphabet.has(symbol, in: number)
            else { return }
            if visit(place + 1) { hasMatched = true }
        }
        if visit(0) || hasMatched { return nil }
        return visited.intersection(waiting)
    }

    /// Whether a match ends at the end of the text.
    mutating func endsInMatch(_ members: Members, isBeginning: Bool) -> Bool {
        visited.removeAll()
        var hasMatched = false
        members.intersection(ends).forEachMember { place in
            if visit(place, isBeginning: isBeginning, isEnd: true) { hasMatched = true }
        }
        return hasMatched
    }

    /// Whether nothing that follows can match.
    func isHopeless(_ members: Members) -> Bool {
        members.allSatisfy { $0 == 0 } && restart.allSatisfy { $0 == 0 }
    }

    /// Visits a place and those to which it leads without a scalar; returns whether a match is
    /// among them.
    private mutating func visit(
        _ place: Int, isBeginning: Bool = false, isEnd: Bool = false
    ) -> Bool {
        var hasMatched = false
        next.append(Int32(place))
        while let here = next.popLast() {
            guard visited.insert(Int(here)) else { continue }
            visitCount += 1
            switch instructions[Int(here)] {
            case .consume: break
            case .split(let first, let second):
                next.append(here + second)
                next.append(here + first)
            case .jump(let distance): next.append(here + distance)
            case .begin: if isBeginning { next.append(here + 1) }
            case .end: if isEnd { next.append(here + 1) }
            case .match: hasMatched = true
            }
        }
        return hasMatched
    }
}

extension RegexpPlaces.Members {
    /// Returns whether the place was not a member before.
    @discardableResult
    fileprivate mutating func insert(_ place: Int) -> Bool {
        let bit: UInt64 = 1 << UInt64(place & 63)
        guard self[place >> 6] & bit == 0 else { return false }
        self[place >> 6] |= bit
        return true
    }

    fileprivate mutating func removeAll() {
        for index in indices { self[index] = 0 }
    }

    fileprivate func intersection(_ other: RegexpPlaces.Members) -> RegexpPlaces.Members {
        zip(self, other).map { $0 & $1 }
    }

    fileprivate func forEachMember(_ body: (Int) -> Void) {
        for (index, word) in enumerated() {
            var rest = word
            while rest != 0 {
                body(index << 6 + rest.trailingZeroBitCount)
                rest &= rest - 1
            }
        }
    }
}
