import Synchronization
import Testing
import Workload

@testable import Coffer

/// Writes to a store until its disk loses power at some operation, and checks what is left of it.
///
/// What is left is what was synced, and an arbitrary part of the rest.
struct PowerLossHarness {
    let keeping: Keeping
    /// For tests of tests: a disk that only claims to have synced.
    var ignoresSyncs = false

    /// Loses power this many times.
    func run(lossCount: Int, seed: UInt64) async throws -> Tally {
        let folder = try TemporaryFolder()
        let template = folder.path("template.db")
        try makeTemplate(template)
        var random = SeededGenerator(seed: seed)
        // The number of operations to choose from.
        let all = try await loss(folder, template, after: nil, seed: 0).operationCount
        var tally = Tally()
        for number in 0..<lossCount {
            let skip = Int.random(in: 0..<all, using: &random)
            let restoreSeed = number % 4 == 0 ? 0 : UInt64.random(in: 1 ... .max, using: &random)
            let loss = try await loss(folder, template, after: skip, seed: restoreSeed)
            tally.add(loss.problems, "\(keeping), power off after \(skip), seed \(restoreSeed)")
        }
        return tally
    }

    private func makeTemplate(_ path: String) throws {
        let store = try Store(path: path, key: .numbered(1), configuration: keeping.configuration())
        try store.write { tx in try Ledger.create(tx) }
        try store.close()
    }

    private struct Loss {
        var operationCount = 0
        var problems: [String] = []
    }

    private func loss(
        _ folder: TemporaryFolder, _ template: String, after skip: Int?, seed: UInt64
    ) async throws -> Loss {
        let path = try folder.copy(template, as: "store.db")
        defer { removeStore(path) }
        let disk = try FaultDisk.recording(powerOffAfter: skip, ignoringSyncs: ignoresSyncs)
        let notes = Notes()
        for _ in 0..<2 where !disk.isOff { await use(path, disk, notes) }
        disk.cutPower()
        try disk.restore(seed: seed)
        unlinkIfPresent(path + "-shm")
        return Loss(
            operationCount: disk.operationCount(.changing),
            problems: check(path, attempted: notes.attempted, acknowledged: notes.acknowledged))
    }

    // MARK: Work

    /// The writers' acknowledged writes, in the order of the acknowledgements.
    private final class Notes: Sendable {
        private let state = Mutex((attempted: [Ledger.Entry](), acknowledged: [Ledger.Entry]()))

        var attempted: [Ledger.Entry] { state.withLock { $0.attempted } }
        var acknowledged: [Ledger.Entry] { state.withLock { $0.acknowledged } }

        func next(_ worker: Int) -> Ledger.Entry {
            state.withLock { state in
                let count = state.attempted.count { $0.worker == worker }
                let entry = Ledger.Entry(worker: worker, number: count + 1)
                state.attempted.append(entry)
                return entry
            }
        }

        func acknowledge(_ entry: Ledger.Entry) {
            state.withLock { $0.acknowledged.append(entry) }
        }
    }

    /// Opens, writes and closes, which checkpoints the WAL, until the power goes.
    private func use(_ path: String, _ disk: FaultDisk, _ notes: Notes) async {
        guard let store = try? openSync(path, disk) else {
            #expect(disk.isOff, "the store does not open")
            return
        }
        for _ in 0..<2 where !disk.isOff {
            writeOnThread(store, notes)
            await withTaskGroup(of: Void.self) { group in
                for worker in 1...3 {
                    group.addTask {
                        for _ in 0..<2 {
                            let entry = notes.next(worker)
                            guard
                                (try? await store.write { tx in try Ledger.post(entry, tx) }) != nil
                            else { return }
                            notes.acknowledge(entry)
                        }
                    }
                }
            }
        }
        closeSync(store)
    }

    private func openSync(_ path: String, _ disk: FaultDisk) throws -> Store {
        var configuration = keeping.configuration(disk)
        // The engine does this by itself after 1 000 pages; 30 make it happen often enough.
        configuration.checkpointPageCount = 30
        return try Store(
            path: path, key: .numbered(1), mode: .mustExist, configuration: configuration)
    }

    private func closeSync(_ store: Store) {
        try? store.close()
    }

    private func writeOnThread(_ store: Store, _ notes: Notes) {
        for _ in 0..<3 {
            let entry = notes.next(0)
            guard (try? store.write { tx in try Ledger.post(entry, tx) }) != nil else { return }
            notes.acknowledge(entry)
        }
    }

    // MARK: What is there

    private func check(
        _ path: String, attempted: [Ledger.Entry], acknowledged: [Ledger.Entry]
    ) -> [String] {
        do {
            let contents = try contentsWithIntegrity(path)
            return contents.problems
                + problems(contents, attempted: attempted, acknowledged: acknowledged)
        } catch {
            return ["cannot be read: \(error)"]
        }
    }

    private func contentsWithIntegrity(_ path: String) throws -> Ledger.Contents {
        let store = try Store(
            path: path, key: .numbered(1), mode: .mustExist, configuration: keeping.configuration())
        let contents = try store.read { tx in
            var contents = try Ledger.contents(tx)
            contents.problems += try tx.integrityProblems()
            return contents
        }
        // The store goes on where it stopped.
        try store.write { tx in try Ledger.post(Ledger.Entry(worker: 7, number: 1), tx) }
        try store.close()
        return contents
    }

    private func problems(
        _ contents: Ledger.Contents, attempted: [Ledger.Entry], acknowledged: [Ledger.Entry]
    ) -> [String] {
        var problems: [String] = []
        let lost = Set(acknowledged).subtracting(contents.entries)
        if keeping.durability == .power, !lost.isEmpty {
            problems.append("acknowledged and lost: \(lost)")
        }
        let strange = contents.entries.subtracting(attempted)
        if !strange.isEmpty { problems.append("never written: \(strange)") }
        for worker in 0..<Ledger.workerCount {
            let numbers = contents.entries.filter { $0.worker == worker }.map(\.number)
            if numbers.count != contents.count(of: worker) {
                problems.append("of worker \(worker) only \(numbers.sorted()) are there")
            }
        }
        return problems
    }
}
