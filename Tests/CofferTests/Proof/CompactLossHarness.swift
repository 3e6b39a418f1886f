import Foundation
import Workload

@testable import Coffer

/// Cuts the power while a store that is larger than the cache is compacted, and checks what is
/// left: every row, in the old pages or the new ones.
struct CompactLossHarness {
    let keeping: Keeping
    /// For tests of tests: a disk that only claims to have synced.
    var ignoresSyncs = false

    func run(lossCount: Int, seed: UInt64) throws -> Tally {
        let store = try SparseStore(keeping.journalMode, rowCount: 100, rowByteCount: 3000)
        return try PowerLoss.tally(
            lossCount: lossCount, seed: seed, "\(keeping)"
        ) { strike, restoreSeed in
            try loss(store, strike, seed: restoreSeed)
        }
    }

    private func loss(
        _ original: SparseStore, _ strike: PowerLoss.Strike?, seed: UInt64
    ) throws -> PowerLoss {
        let folder = try original.copy()
        let disk = try FaultDisk.recording(powerOffAfter: nil, ignoringSyncs: ignoresSyncs)
        var configuration = keeping.configuration(disk)
        // So small that pages reach the disk before the end.
        configuration.maximumCacheByteCount = 1
        let store = try Store(
            path: folder.path(), key: .numbered(1), mode: .mustExist, configuration: configuration)
        // The WAL is not empty when the compaction begins.
        try store.write { tx in try tx.execute("UPDATE t SET w = w WHERE id < 40") }
        let before = DiskOperations(of: disk)
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
        return PowerLoss(
            operations: DiskOperations(of: disk) - before,
            problems: original.problems(
                folder, isDone: isCompacted && keeping.durability == .power,
                configuration: keeping.configuration()))
    }
}
