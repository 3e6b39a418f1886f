import Workload

/// One loss of power during some work on a disk.
struct PowerLoss {
    /// The power goes at an operation of these kinds, after so many others of them.
    typealias Strike = (kinds: FaultDisk.Kinds, skip: Int)

    /// The operations that make changes durable, or free the space of what is durable elsewhere.
    fileprivate static let turns: FaultDisk.Kinds = [.sync, .delete, .truncate]

    /// The operations that the work did on the disk.
    let operations: DiskOperations
    /// What is wrong with the files that the power loss left.
    let problems: [String]

    /// Does the same work once to its end, and then loses power during it again and again.
    ///
    /// - Parameters:
    ///   - lossCount: The number of power losses. Half come at each of the turns, again and again;
    ///     the seed chooses the others from equal parts of all operations.
    ///   - name: The kind of work, for the problems.
    ///   - lose: Does the work, and loses power at the strike; `nil` is the end of the work.
    ///     `restoreSeed` chooses the parts of unsynced changes that are left; 0 leaves none.
    static func tally(
        lossCount: Int, seed: UInt64, _ name: String,
        _ lose: (_ strike: Strike?, _ restoreSeed: UInt64) throws -> PowerLoss
    ) throws -> Tally {
        var tally = Tally()
        let whole = try lose(nil, 0)
        tally.add(whole.problems, "\(name), power off at the end")
        let (operationCount, turnCount) = (whole.operations.count, whole.operations.turnCount)
        guard operationCount > 300, turnCount > 2 else {
            throw WorkloadError("only \(whole.operations)")
        }
        var random = SeededGenerator(seed: seed)
        let count = lossCount / 2
        for number in 0..<lossCount {
            var strike = (kinds: turns, skip: number / 2 % turnCount)
            if number % 2 == 0 {
                let part = number / 2 * operationCount / count
                let end = (number / 2 + 1) * operationCount / count
                strike = (.changing, Int.random(in: part..<max(end, part + 1), using: &random))
            }
            let restoreSeed = random.next() % 3 == 0 ? 0 : random.next()
            tally.add(
                try lose(strike, restoreSeed).problems,
                "\(name), power off at \(strike), seed \(restoreSeed) of \(seed)")
        }
        return tally
    }
}

/// Counts the operations of a disk that change a file.
struct DiskOperations {
    let count: Int
    /// How many of them are turns of a power loss.
    let turnCount: Int

    static func - (left: Self, right: Self) -> Self {
        Self(count: left.count - right.count, turnCount: left.turnCount - right.turnCount)
    }
}

extension DiskOperations {
    /// Counts all operations of the disk up to now.
    init(of disk: FaultDisk) {
        self.init(
            count: disk.operationCount(.changing),
            turnCount: disk.operationCount(PowerLoss.turns))
    }
}
