import Testing
import Workload

@Suite struct HistoryCheckerTests {
    /// One call on register 0.
    private static func call(
        _ client: Int, _ times: ClosedRange<UInt64>, _ action: RegisterCall.Action
    ) -> RegisterCall {
        RegisterCall(
            client: client, key: 0, action: action, start: times.lowerBound, end: times.upperBound)
    }

    private static let good: [(String, [RegisterCall])] = [
        ("nothing", []),
        ("one after the other", [call(1, 0...1, .write(5)), call(2, 2...3, .read(5))]),
        ("a read beside a write sees it", [call(1, 0...9, .write(5)), call(2, 1...2, .read(5))]),
        ("a read beside a write misses it", [call(1, 0...9, .write(5)), call(2, 1...2, .read(0))]),
        (
            "two reads beside a write, the second sees it",
            [
                call(1, 0...9, .write(5)), call(2, 1...2, .read(0)), call(2, 3...4, .read(5)),
            ]
        ),
        (
            "writes beside each other, in the order that they did not start in",
            [
                call(1, 0...9, .write(5)), call(2, 1...8, .write(6)), call(3, 10...11, .read(5)),
            ]
        ),
        (
            "additions beside each other",
            [
                call(1, 0...9, .add(10, sum: 20)), call(2, 0...9, .add(10, sum: 10)),
                call(3, 0...9, .add(10, sum: 30)),
            ]
        ),
        (
            "a value beside two that take it",
            [
                call(1, 0...1, .write(5)), call(2, 2...9, .take(0)), call(3, 2...9, .take(5)),
            ]
        ),
        (
            "an exchange that fails, since another one was first",
            [
                call(1, 0...9, .exchange(old: 0, new: 1, isDone: true)),
                call(2, 0...9, .exchange(old: 0, new: 2, isDone: false)),
            ]
        ),
    ]

    private static let bad: [(String, [RegisterCall])] = [
        ("a stale read", [call(1, 0...1, .write(5)), call(2, 2...3, .read(0))]),
        ("a value from nowhere", [call(1, 0...9, .write(5)), call(2, 1...2, .read(7))]),
        ("a read of the future", [call(2, 0...1, .read(5)), call(1, 2...3, .write(5))]),
        (
            "a lost update",
            [
                call(1, 0...9, .add(10, sum: 10)), call(2, 0...9, .add(10, sum: 10)),
            ]
        ),
        (
            "a value that is taken twice",
            [
                call(1, 0...1, .write(5)), call(2, 2...9, .take(5)), call(3, 2...9, .take(5)),
            ]
        ),
        (
            "two exchanges of the same value",
            [
                call(1, 0...9, .exchange(old: 0, new: 1, isDone: true)),
                call(2, 0...9, .exchange(old: 0, new: 2, isDone: true)),
            ]
        ),
        (
            "an exchange that fails for no reason",
            [
                call(1, 0...1, .exchange(old: 0, new: 1, isDone: false))
            ]
        ),
        (
            "the new value, then the old one, beside the write",
            [
                call(1, 0...9, .write(5)), call(2, 1...2, .read(5)), call(2, 3...4, .read(0)),
            ]
        ),
        (
            "two readers who see two writes in different orders",
            [
                call(1, 0...9, .write(5)), call(2, 0...9, .write(6)),
                call(3, 10...11, .read(5)), call(4, 12...13, .read(6)),
            ]
        ),
    ]

    @Test(arguments: good.map(\.0))
    func `a history that can be explained is accepted`(name: String) throws {
        let operations = try #require(Self.good.first { $0.0 == name }).1
        #expect(HistoryChecker().inexplicableKeys(operations).isEmpty)
    }

    @Test(arguments: bad.map(\.0))
    func `a history that cannot be explained is rejected`(name: String) throws {
        let operations = try #require(Self.bad.first { $0.0 == name }).1
        #expect(HistoryChecker().inexplicableKeys(operations) == [0])
    }

    @Test func `the checker agrees with trying all orders`() {
        var random = SeededGenerator(seed: 1)
        var goodCount = 0
        for _ in 0..<1000 {
            let operations = Self.arbitrary(&random)
            let isGood = Self.someOrderExplains(operations, value: 0)
            if isGood { goodCount += 1 }
            #expect(HistoryChecker().isLinearizable(operations) == isGood, "\(operations)")
        }
        #expect(goodCount > 50 && goodCount < 950, "one-sided: \(goodCount)")
    }

    @Test func `registers are checked each by itself`() {
        let operations = [
            RegisterCall(client: 1, key: 0, action: .write(5), start: 0, end: 1),
            RegisterCall(client: 1, key: 1, action: .write(6), start: 2, end: 3),
            RegisterCall(client: 2, key: 0, action: .read(5), start: 4, end: 5),
            RegisterCall(client: 2, key: 1, action: .read(0), start: 6, end: 7),
        ]
        #expect(HistoryChecker().inexplicableKeys(operations) == [1])
    }

    @Test(arguments: good.flatMap(\.1))
    func `an operation survives the way through a line of text`(operation: RegisterCall) {
        #expect(RegisterCall(line: operation.line) == operation)
    }

    // MARK: By brute force

    /// Five calls with small values, so that many histories can be explained and many cannot.
    private static func arbitrary(_ random: inout SeededGenerator) -> [RegisterCall] {
        (0..<5).map { client in
            let start = UInt64.random(in: 0..<10, using: &random)
            let end = start + UInt64.random(in: 0..<6, using: &random)
            let (left, right) = (
                Int.random(in: 0..<3, using: &random), Int.random(in: 0..<3, using: &random)
            )
            let action: RegisterCall.Action =
                switch Int.random(in: 0..<6, using: &random) {
                case 0, 1: .read(left)
                case 5: .take(left)
                case 2: .write(left)
                case 3: .add(1, sum: left + 1)
                default: .exchange(old: left, new: right, isDone: Bool.random(using: &random))
                }
            return call(client, start...end, action)
        }
    }

    private static func someOrderExplains(_ operations: [RegisterCall], value: Int) -> Bool {
        if operations.isEmpty { return true }
        for (index, operation) in operations.enumerated() {
            guard operations.allSatisfy({ $0.end >= operation.start }) else { continue }
            let after: Int
            switch operation.action {
            case .read(let seen):
                guard seen == value else { continue }
                after = value
            case .write(let new): after = new
            case .add(let number, let sum):
                guard value + number == sum else { continue }
                after = sum
            case .exchange(let old, let new, let isDone):
                guard (old == value) == isDone else { continue }
                after = isDone ? new : value
            case .take(let seen):
                guard seen == value else { continue }
                after = 0
            }
            var rest = operations
            rest.remove(at: index)
            if someOrderExplains(rest, value: after) { return true }
        }
        return false
    }
}
