import Foundation
import Workload

@testable import Coffer

/// Cuts the power while a store that is larger than the cache is compacted, and checks what is
/// left: every row, in the old pages or the new ones.
struct CompactLossHarness {
    let keeping: Keeping
    /// For tests of tests: a disk that only claims to have synced.
    var ignoresSyncs = false

    /// The operations that make changes durable, or free the space of what is durable elsewhere.
    private static let turns: FaultDisk.Kinds = [.sync, .delete, .truncate]

    private struct Loss {
        /// Operations that change a file, from the beginning of the compaction.
        var operationCount = 0
        /// How many of these operations are in `turns`.
        var turnCount = 0
        var problems: [String] = []
    }

    /// - Parameter lossCount: The number of power losses. Half come at each of the turns, again and
    ///   again; the seed chooses the others from equal parts of all operations.
    func run(lossCount: Int, seed: UInt64) throws -> Tally {
        let store = try SparseStore(keeping.journalMode, rowCount: 100, rowByteCount: 3000)
        var random = SeededGenerator(seed: seed)
        var tally = Tally()
        let whole = try loss(store, nil, seed: 0)
        tally.add(whole.problems, "\(keeping), power off at the end")
        guard whole.operationCount > 300, whole.turnCount > 2 else {
            throw WorkloadError("only \(whole)")
        }
        let count = lossCount / 2
        for number in 0..<lossCount {
            var strike = (kinds: Self.turns, skip: number / 2 % whole.turnCount)
            if number % 2 == 0 {
                let part = number / 2 * whole.operationCount / count
                let end = (number / 2 + 1) * whole.operationCount / count
                strike = (.changing, Int.random(in: part..<max(end, part + 1), using: &random))
            }
            // 0 loses everything that was not synced.
            let restoreSeed = random.next() % 3 == 0 ? 0 : random.next()
            let found = try loss(store, strike, seed: restoreSeed)
            tally.add(
                found.problems,
                "\(keeping), power off at \(strike), seed \(restoreSeed) of \(seed)")
        }
        return tally
    }

    private func loss(
        _ original: SparseStore, _ strike: (kinds: FaultDisk.Kinds, skip: Int)?, seed: UInt64
    ) throws -> Loss {
        let folder = try original.copy()
        let disk = try FaultDisk.recording(powerOffAfter: nil, ignoringSyncs: ignoresSyncs)
        var configuration = keeping.configuration(disk)
        // So small that pages reach the disk before the end.
        configuration.maximumCacheByteCount = 1
        let store = try Store(
            path: folder.path(), key: .numbered(1), mode: .mustExist, configuration: configuration)
        // The WAL is not empty when the compaction begins.
        try store.write { tx in try tx.execute("UPDATE t SET w = w WHERE id < 40") }
        func counts() -> Loss {
            Loss(
                operationCount: disk.operationCount(.changing),
                turnCount: disk.operationCount(Self.turns))
        }
        let before = counts()
        if let strike { disk.arm(strike.kinds, skip: strike.skip, .powerOff) }
        let isCompacted = (try? store.compact()) != nil
        try? store.close()
        disk.cutPower()
        try disk.restore(seed: seed)
        unlinkIfPresent(folder.path() + "-shm")
        // The folder of the system that lost its power has them, and this one removed their locks.
        for name in try original.names(in: folder) where name.contains(".new-") {
            unlinkIfPresent(folder.path(name))
        }
        var loss = counts()
        loss.operationCount -= before.operationCount
        loss.turnCount -= before.turnCount
        loss.problems = original.problems(
            folder, isDone: isCompacted && keeping.durability == .power,
            configuration: keeping.configuration())
        return loss
    }
}
