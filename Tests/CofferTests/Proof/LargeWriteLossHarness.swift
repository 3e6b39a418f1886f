import Foundation
import Workload

@testable import Coffer

/// Cuts the power while a store changes more pages than its cache holds, so that pages reach the
/// disk before the commit, and checks what is left: all of each transaction or nothing of it.
struct LargeWriteLossHarness {
    enum Work: CaseIterable {
        /// One transaction changes every row and adds some.
        case growing
        /// One transaction deletes rows, another one gives their pages back to the disk.
        case shrinking
    }

    let keeping: Keeping
    let work: Work
    /// For tests of tests: a disk that only claims to have synced.
    var ignoresSyncs = false

    private static let rowCount = 100
    /// The number of rows that growing adds, and that shrinking leaves.
    private static let newRowCount = 50
    private static let rowByteCount = 3000

    func run(lossCount: Int, seed: UInt64) throws -> Tally {
        let folder = try TemporaryFolder()
        let template = folder.path("template.db")
        var configuration = keeping.configuration()
        configuration.incrementalVacuum = work == .shrinking
        let store = try Store(path: template, key: .numbered(1), configuration: configuration)
        try store.write { tx in
            try tx.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, v, w UNIQUE)")
            try insert(1...Self.rowCount, tx)
        }
        try store.close()
        return try PowerLoss.tally(
            lossCount: lossCount, seed: seed, "\(keeping), \(work)"
        ) { strike, restoreSeed in
            try loss(folder, template, strike, seed: restoreSeed)
        }
    }

    private func loss(
        _ folder: TemporaryFolder, _ template: String, _ strike: PowerLoss.Strike?, seed: UInt64
    ) throws -> PowerLoss {
        let path = try folder.copy(template, as: "store.db")
        defer { removeStore(path) }
        let disk = try FaultDisk.recording(powerOffAfter: nil, ignoringSyncs: ignoresSyncs)
        var configuration = keeping.configuration(disk)
        configuration.maximumCacheByteCount = 1
        let store = try Store(
            path: path, key: .numbered(1), mode: .mustExist, configuration: configuration)
        let before = DiskOperations(of: disk)
        if let strike { disk.arm(strike.kinds, skip: strike.skip, .powerOff) }
        let isWritten = (try? change(store)) != nil
        try? store.close()
        disk.cutPower()
        try disk.restore(seed: seed)
        unlinkIfPresent(path + "-shm")
        return PowerLoss(
            operations: DiskOperations(of: disk) - before,
            problems: problems(path, isDone: isWritten && keeping.durability == .power))
    }

    private func change(_ store: Store) throws {
        switch work {
        case .growing:
            try store.write { tx in
                try tx.execute("UPDATE t SET v = randomblob(\(Self.rowByteCount)), w = -w")
                try insert(Self.rowCount + 1...Self.rowCount + Self.newRowCount, tx)
            }
        case .shrinking:
            try store.write { tx in
                try tx.execute("DELETE FROM t WHERE id <= \(Self.rowCount - Self.newRowCount)")
                try tx.execute("UPDATE t SET w = -w")
            }
            try store.incrementalVacuum(pageCount: 1_000_000)
        }
    }

    private func insert(_ ids: ClosedRange<Int>, _ tx: borrowing WriteTransaction) throws {
        for id in ids {
            try tx.execute(
                "INSERT INTO t VALUES (\(id), randomblob(\(Self.rowByteCount)), \(id))")
        }
    }

    /// - Parameter isDone: Whether the transactions have to be there.
    private func problems(_ path: String, isDone: Bool) -> [String] {
        do {
            var problems: [String] = []
            let store = try open(path)
            let (rowCount, negativeCount) = try store.read { tx in
                problems += try tx.integrityProblems()
                let row = try tx.firstRow(
                    "SELECT count(*), total(w < 0) FROM t WHERE length(v) = \(Self.rowByteCount)")
                return (
                    try row?.get(0, as: Int.self) ?? -1, try row?.get(1, as: Double.self) ?? -1
                )
            }
            // A WAL without its last frames is not damage, and is gone at the next opening.
            try store.close()
            let reopened = try open(path)
            let report = try reopened.verify()
            try reopened.close()
            if !report.isGood { problems.append("verification: \(report.problems)") }
            let isOld = rowCount == Self.rowCount && negativeCount == 0
            let isNew =
                switch work {
                case .growing:
                    rowCount == Self.rowCount + Self.newRowCount
                        && negativeCount == Double(Self.rowCount)
                case .shrinking:
                    rowCount == Self.newRowCount && negativeCount == Double(Self.newRowCount)
                }
            if !isNew, isDone || !isOld {
                problems.append("\(rowCount) rows, \(negativeCount) changed, done: \(isDone)")
            }
            return problems
        } catch {
            return ["\(error)"]
        }
    }

    private func open(_ path: String) throws -> Store {
        try Store(
            path: path, key: .numbered(1), mode: .mustExist, configuration: keeping.configuration())
    }
}
