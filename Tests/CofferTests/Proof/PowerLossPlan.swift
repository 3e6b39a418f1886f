import Workload

/// Where the power of a disk goes, and what is left of it then: half of the losses come at each of
/// the turns, again and again, and half anywhere.
struct PowerLossPlan {
    typealias Strike = (kinds: FaultDisk.Kinds, skip: Int)

    /// The operations that make changes durable, or free the space of what is durable elsewhere.
    static let turns: FaultDisk.Kinds = [.sync, .delete, .truncate]

    /// Operations that change a file, from the beginning of the work.
    var operationCount = 0
    /// How many of these operations are in `turns`.
    var turnCount = 0

    init() {}

    /// What a disk has done so far.
    init(_ disk: FaultDisk) {
        operationCount = disk.operationCount(.changing)
        turnCount = disk.operationCount(Self.turns)
    }

    static func - (left: Self, right: Self) -> Self {
        var difference = left
        difference.operationCount -= right.operationCount
        difference.turnCount -= right.turnCount
        return difference
    }

    /// Chooses the losses of work that does these operations.
    ///
    /// - Parameters:
    ///   - lossCount: How many; the seed chooses half of them from equal parts of all operations.
    ///   - lose: Gets the seed of what is left, too: 0 loses everything that was not synced.
    func run(
        lossCount: Int, seed: UInt64,
        _ lose: (_ strike: Strike, _ restoreSeed: UInt64) throws -> Void
    ) throws {
        guard operationCount > 300, turnCount > 2 else { throw WorkloadError("only \(self)") }
        var random = SeededGenerator(seed: seed)
        let count = lossCount / 2
        for number in 0..<lossCount {
            var strike = (kinds: Self.turns, skip: number / 2 % turnCount)
            if number % 2 == 0 {
                let part = number / 2 * operationCount / count
                let end = (number / 2 + 1) * operationCount / count
                strike = (.changing, Int.random(in: part..<max(end, part + 1), using: &random))
            }
            try lose(strike, random.next() % 3 == 0 ? 0 : random.next())
        }
    }
}
