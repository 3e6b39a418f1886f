import Foundation
import Testing
import Workload

@testable import Coffer

/// Power losses while a file is made, or gets another key.
///
/// The power goes at each operation of the disk in turn; a long run restores each state many times.
/// A file is made under another name. The disk takes for granted that a rename is durable.
@Suite(.againstHanging, .onOwnThreads) struct PowerLossOfKeyTests {
    @Test(arguments: Keeping.all)
    func `a power loss during rekey leaves one of the two keys, and every row`(
        keeping: Keeping
    ) throws {
        try rekeyLosses(keeping).expectNothingLost("power losses of a key")
    }

    @Test(arguments: Keeping.all)
    func `a power loss while a file is made leaves none, or one that opens`(
        keeping: Keeping
    ) throws {
        try creationLosses(keeping).expectNothingLost("power losses of a key")
    }

    @Test(arguments: journalModes)
    func `both find a disk that does not sync`(mode: Configuration.JournalMode) throws {
        let keeping = Keeping(journalMode: mode, durability: .power)
        #expect(try rekeyLosses(keeping, ignoringSyncs: true).lostCount > 0)
        #expect(try creationLosses(keeping, ignoringSyncs: true).lostCount > 0)
    }

    // MARK: Losses

    private func rekeyLosses(_ keeping: Keeping, ignoringSyncs: Bool = false) throws -> Tally {
        let folder = try TemporaryFolder()
        let template = folder.path("template.db")
        try Self.fill(Store(path: template, key: .numbered(1), configuration: .testing()))
        return try losses { skip, seed in
            let path = try folder.copy(template, as: "store.db")
            defer { removeStore(path) }
            let disk = try FaultDisk.recording(
                powerOffAfter: skip, ignoringSyncs: ignoringSyncs)
            let store = try? Store(
                path: path, key: .numbered(1), mode: .mustExist,
                configuration: keeping.configuration(disk))
            let isRekeyed = (try? store?.rekey(to: .numbered(2))) != nil
            try? store?.close()
            let operationCount = try end(disk, seed)
            let left = [UInt8(1), 2].filter { Self.holdsAll(path, key: $0, keeping) }
            let isRight = left == [2] || left == [1] && !isRekeyed
            let problem = "rekey has \(isRekeyed ? "" : "not ")returned, and keys \(left) open it"
            return (operationCount, isRight ? [] : [problem])
        }
    }

    private func creationLosses(_ keeping: Keeping, ignoringSyncs: Bool = false) throws -> Tally {
        let folder = try TemporaryFolder()
        let path = folder.path("store.db")
        return try losses { skip, seed in
            defer { removeStore(path) }
            let disk = try FaultDisk.recording(
                powerOffAfter: skip, ignoringSyncs: ignoringSyncs)
            let store = try? Store(
                path: path, key: .numbered(1), configuration: keeping.configuration(disk))
            let isFilled = store.map { (try? Self.fill($0)) != nil } ?? false
            let operationCount = try end(disk, seed)
            return (operationCount, problems(path, keeping, isFilled: isFilled))
        }
    }

    /// Loses power after each operation in turn, and restores what is left in several ways.
    ///
    /// - Parameter lose: Returns the number of operations, and what is wrong with what is left;
    ///   `nil` leaves the power on until the end.
    private func losses(
        _ lose: (_ skip: Int?, _ seed: UInt64) throws -> (operationCount: Int, problems: [String])
    ) throws -> Tally {
        let (all, problems) = try lose(nil, 0)
        var tally = Tally()
        tally.add(problems, "power off at the end")
        try #require(all > 10)
        for skip in 0..<all {
            for number in 0..<tryCount(1, long: 50) {
                // 0 loses everything that was not synced.
                let seed = UInt64((skip + number) % 2 * (number + 1))
                tally.add(try lose(skip, seed).problems, "power off after \(skip), seed \(seed)")
            }
        }
        return tally
    }

    /// Returns the number of operations.
    private func end(_ disk: FaultDisk, _ seed: UInt64) throws -> Int {
        disk.cutPower()
        try disk.restore(seed: seed)
        return disk.operationCount(.changing)
    }

    // MARK: What is there

    private static let entries = (1...12).map { Ledger.Entry(worker: 1, number: $0) }

    private static func fill(_ store: Store) throws {
        defer { try? store.close() }
        try store.write { tx in
            try Ledger.create(tx)
            for entry in entries { try Ledger.post(entry, tx) }
        }
    }

    private static func holdsAll(_ path: String, key: UInt8, _ keeping: Keeping) -> Bool {
        (try? contents(path, key: key, keeping))?.map { Set($0) } == Set(entries)
    }

    /// The entries of a sound file; `nil` if there is none, or it has no tables.
    private static func contents(
        _ path: String, key: UInt8, _ keeping: Keeping
    ) throws -> [Ledger.Entry]? {
        guard FileManager.default.fileExists(atPath: path) else { return nil }
        unlinkIfPresent(path + "-shm")
        let store = try Store(
            path: path, key: .numbered(key), mode: .mustExist,
            configuration: keeping.configuration())
        defer { try? store.close() }
        return try store.read { tx in
            let problems = try tx.integrityProblems()
            // Thrown, not required, because this must happen on the disk that does not sync.
            guard problems.isEmpty else { throw WorkloadError("\(problems)") }
            let table = try tx.firstRow("SELECT 1 FROM sqlite_master WHERE name = 'entry'")
            guard table != nil else { return nil }
            let contents = try Ledger.contents(tx)
            guard contents.problems.isEmpty else { throw WorkloadError("\(contents.problems)") }
            return Array(contents.entries)
        }
    }

    private func problems(_ path: String, _ keeping: Keeping, isFilled: Bool) -> [String] {
        do {
            let entries = try Self.contents(path, key: 1, keeping)
            if let entries {
                return Set(entries) == Set(Self.entries)
                    ? [] : ["of all rows, \(entries) are there"]
            }
            return isFilled && keeping.isDurable ? ["acknowledged, and there is nothing"] : []
        } catch {
            return ["does not open: \(error)"]
        }
    }
}

extension Keeping {
    fileprivate var isDurable: Bool { durability == .power }
}
