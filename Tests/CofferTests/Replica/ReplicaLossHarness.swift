import Synchronization
import Workload

@testable import Coffer
@testable import CofferReplica

/// Cuts the power of a machine that replicates, and checks what its file and its remote have then.
///
/// The remote keeps what it has got. Nothing of that may be missing in the file: the next owner
/// would send the older pages, and take back what was acknowledged.
struct ReplicaLossHarness {
    let keeping: Keeping
    /// For tests of tests: a disk that only claims to have synced.
    var ignoresSyncs = false

    /// When the power goes.
    enum Strike {
        /// After so many changes of the disk.
        case change(Int)
        /// When the remote has just made so many objects.
        case object(Int)
        /// At the end of the work.
        case end
    }

    private static let passCount = 8

    /// Half of the losses come at some change of the disk, and half when the remote has just got
    /// an object.
    func run(lossCount: Int, seed: UInt64) async throws -> Tally {
        let folder = try TemporaryFolder()
        let template = folder.path("template.db")
        try makeTemplate(template)
        var random = SeededGenerator(seed: seed)
        var tally = Tally()
        let whole = try await loss(folder, template, at: .end, seed: 0)
        tally.add(whole.problems, "\(keeping), power off at the end")
        guard whole.changeCount > 50, whole.objectCount > Self.passCount else {
            throw WorkloadError("\(whole.changeCount) changes, \(whole.objectCount) objects")
        }
        for number in 0..<lossCount {
            let strike: Strike =
                number % 2 == 0
                ? .change(Int.random(in: 0..<whole.changeCount, using: &random))
                : .object(1 + number / 2 % whole.objectCount)
            let restoreSeed = number % 3 == 0 ? 0 : UInt64.random(in: 1 ... .max, using: &random)
            let loss = try await loss(folder, template, at: strike, seed: restoreSeed)
            tally.add(loss.problems, "\(keeping), power off at \(strike), seed \(restoreSeed)")
        }
        return tally
    }

    private func makeTemplate(_ path: String) throws {
        let store = try Store(path: path, key: .numbered(1), configuration: keeping.configuration())
        try store.write { tx in try Ledger.create(tx) }
        try store.close()
    }

    private struct Loss {
        var changeCount = 0
        var objectCount = 0
        var problems: [String] = []
    }

    private func loss(
        _ folder: TemporaryFolder, _ template: String, at strike: Strike, seed: UInt64
    ) async throws -> Loss {
        let path = try folder.copy(template, as: "store.db")
        defer { removeFiles(folder) }
        var skip: Int?
        if case .change(let number) = strike { skip = number }
        let disk = try FaultDisk.recording(powerOffAfter: skip, ignoringSyncs: ignoresSyncs)
        let remote = MemoryRemote()
        let objectCount = Shared(0)
        remote.denyAfterCreate { name in
            // Objects of the proof of the remote do not count.
            guard name.hasPrefix(Slot.folder) else { return false }
            objectCount.update { $0 += 1 }
            if case .object(let number) = strike, number == objectCount.value { disk.cutPower() }
            return false
        }
        let acknowledged = await use(path, disk, remote)
        disk.cutPower()
        try disk.restore(seed: seed)
        unlinkIfPresent(path + "-shm")
        return Loss(
            changeCount: disk.operationCount(.changing), objectCount: objectCount.value,
            problems: await problems(folder, remote, acknowledged))
    }

    private func removeFiles(_ folder: TemporaryFolder) {
        for name in ["store.db", "copy.db"] { removeStore(folder.path(name)) }
    }

    // MARK: Work

    private var options: ReplicaOptions {
        var options = ReplicaOptions.testing
        options.takesOverFrom = "tests"
        options.sleep = { _ in throw CancellationError() }
        return options
    }

    /// Replicates until the power goes.
    ///
    /// - Returns: The entries that the remote had when a pass ended.
    private func use(_ path: String, _ disk: FaultDisk, _ remote: MemoryRemote) async -> Int {
        guard let store = try? open(path, disk) else { return 0 }
        var acknowledged = 0
        if let replica = try? await store.replicate(to: remote, options) {
            var number = 0
            for pass in 0..<Self.passCount where !disk.isOff {
                for _ in 0..<1 + pass % 3 {
                    guard post(number + 1, in: store) else { break }
                    number += 1
                }
                guard !disk.isOff, (try? await replica.caughtUp()) != nil else { break }
                acknowledged = number
            }
            // The machine is gone: its replica says nothing more to the remote.
        }
        close(store)
        return acknowledged
    }

    private func open(_ path: String, _ disk: FaultDisk? = nil) throws -> Store {
        var configuration = keeping.configuration(disk)
        configuration.checkpointPageCount = 30
        return try Store(
            path: path, key: .numbered(1), mode: .mustExist, configuration: configuration)
    }

    private func close(_ store: Store) { try? store.close() }

    private func post(_ number: Int, in store: Store) -> Bool {
        (try? store.write { tx in try Ledger.post(.init(worker: 0, number: number), tx) }) != nil
    }

    // MARK: What is there

    private func problems(
        _ folder: TemporaryFolder, _ remote: MemoryRemote, _ acknowledged: Int
    ) async -> [String] {
        do {
            var (file, problems) = try count(folder.path())
            let before = try await restored(folder, remote)
            if let before, before > file {
                problems.append("the remote has \(before) entries, and the file \(file)")
            }
            if before ?? 0 < acknowledged {
                problems.append("\(acknowledged) entries were acknowledged, and \(before ?? 0) are")
            }
            // The store and its replica go on where they stopped.
            let store = try open(folder.path())
            let replica = try await store.replicate(to: remote, options)
            guard post(file + 1, in: store) else { return problems + ["the store does not go on"] }
            try await replica.close()
            close(store)
            file += 1
            let after = try await restored(folder, remote)
            if after != file {
                problems.append("\(after ?? 0) entries are restored of \(file)")
            }
            return problems
        } catch {
            return ["\(error)"]
        }
    }

    /// The entries of the newest commit; `nil` if the remote has none.
    private func restored(_ folder: TemporaryFolder, _ remote: MemoryRemote) async throws -> Int? {
        let copy = folder.path("copy.db")
        do {
            try await Store.restore(
                from: remote, to: copy, key: .numbered(1), configuration: keeping.configuration())
        } catch let error as StoreError where error.code == .notFound {
            return nil
        }
        defer { removeStore(copy) }
        let (count, problems) = try count(copy)
        guard problems.isEmpty else { throw WorkloadError("restored: \(problems)") }
        return count
    }

    /// The entries of a store, of which none may be missing before the last, and what is wrong.
    private func count(_ path: String) throws -> (Int, problems: [String]) {
        let store = try open(path)
        defer { close(store) }
        let contents = try store.read { tx in
            var contents = try Ledger.contents(tx)
            contents.problems += try tx.integrityProblems()
            return contents
        }
        let count = contents.count(of: 0)
        let isWhole = contents.entries.count == count
        return (count, contents.problems + (isWhole ? [] : ["entries are missing"]))
    }
}
