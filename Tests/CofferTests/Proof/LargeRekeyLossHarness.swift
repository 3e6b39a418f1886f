import Foundation
import Workload

@testable import Coffer

/// Cuts the power while a store that is much larger than the cache changes its key, and checks what
/// is left: one of the two keys opens every row.
///
/// The pages spill: the file holds both keys before the commit, and a checkpoint moves all of them.
struct LargeRekeyLossHarness {
    let keeping: Keeping
    /// For tests of tests: a disk that only claims to have synced.
    var ignoresSyncs = false

    private static let rowCount = 44
    /// Some 25 pages of 4 096 bytes.
    private static let rowByteCount = 100_000
    private static let pageCountMin = 1000

    /// - Parameter lossCount: The number of power losses, each after some number of operations. The
    ///   seed chooses half of these numbers from equal parts of the whole; half are at its end,
    ///   where the change is committed. All, if there are no more.
    func run(lossCount: Int, seed: UInt64) throws -> Tally {
        let folder = try TemporaryFolder()
        let template = folder.path("template.db")
        try makeTemplate(template)
        var random = SeededGenerator(seed: seed)
        var tally = Tally()
        let whole = try loss(folder, template, after: nil, seed: 0)
        tally.add(whole.problems, "\(keeping), power off at the end")
        // Each page is written to the journal or the WAL, and to the file.
        guard whole.operationCount > 2 * Self.pageCountMin else {
            throw WorkloadError("only \(whole.operationCount) operations")
        }
        for skip in places(of: whole.operationCount, lossCount, using: &random) {
            // 0 loses everything that was not synced.
            let restoreSeed = random.next() % 3 == 0 ? 0 : random.next()
            let found = try loss(folder, template, after: skip, seed: restoreSeed)
            tally.add(
                found.problems,
                "\(keeping), power off after \(skip), seed \(restoreSeed) of \(seed)")
        }
        return tally
    }

    private func places(
        of operationCount: Int, _ lossCount: Int, using random: inout SeededGenerator
    ) -> [Int] {
        guard lossCount < operationCount else { return Array(0..<operationCount) }
        let count = lossCount / 2
        let end = operationCount - count
        return (0..<count).map { number in
            Int.random(in: (number * end / count)..<((number + 1) * end / count), using: &random)
        } + Array(end..<operationCount)
    }

    private func makeTemplate(_ path: String) throws {
        let store = try Store(path: path, key: .numbered(1), configuration: .testing())
        try store.write { tx in
            try tx.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, v)")
            for _ in 0..<Self.rowCount {
                try tx.execute("INSERT INTO t(v) VALUES (randomblob(\(Self.rowByteCount)))")
            }
        }
        try store.close()
    }

    private struct Loss {
        let operationCount: Int
        let problems: [String]
    }

    private func loss(
        _ folder: TemporaryFolder, _ template: String, after skip: Int?, seed: UInt64
    ) throws -> Loss {
        let path = try folder.copy(template, as: "store.db")
        defer { removeStore(path) }
        let disk = try FaultDisk.recording(powerOffAfter: skip, ignoringSyncs: ignoresSyncs)
        var configuration = keeping.configuration(disk)
        configuration.prepare = { connection in
            try connection.current().run("PRAGMA cache_size = 20")
        }
        let store = try? Store(
            path: path, key: .numbered(1), mode: .mustExist, configuration: configuration)
        let isRekeyed = (try? store?.rekey(to: .numbered(2))) != nil
        try? store?.close()
        disk.cutPower()
        try disk.restore(seed: seed)
        unlinkIfPresent(path + "-shm")
        let left = [UInt8(1), 2].filter { holdsAll(path, key: $0) }
        // A reported rekey survives a power loss, whatever the store's durability.
        let isRight = left == [2] || left == [1] && !isRekeyed
        return Loss(
            operationCount: disk.operationCount(.changing),
            problems: isRight
                ? [] : ["rekey has \(isRekeyed ? "" : "not ")returned, and keys \(left) open it"])
    }

    private func holdsAll(_ path: String, key: UInt8) -> Bool {
        guard
            let connection = try? Connection(
                path: path, key: .numbered(key), mode: .mustExist,
                configuration: keeping.configuration())
        else { return false }
        defer { connection.close() }
        let row = try? connection.firstRow("SELECT count(*), sum(length(v)) FROM t")
        let check = try? connection.firstRow("PRAGMA integrity_check")
        return check?[0] == .text("ok")
            && row?.values == [
                .integer(Int64(Self.rowCount)), .integer(Int64(Self.rowCount * Self.rowByteCount)),
            ]
    }
}
