import Synchronization
import Testing

@testable import Coffer

/// Tasks that are cancelled at random moments: each returns and has written once, or throws and has
/// written nothing.
///
/// A continuation that is never resumed lets its task wait for ever, and one that is resumed twice
/// ends the process; so a run that returns had neither.
struct CancellationHarness {
    let journalMode: Configuration.JournalMode
    /// For tests of tests: a client takes a cancelled task for one that wrote nothing.
    var misreports = false

    private static let batchCount = 50

    private enum Outcome: Sendable {
        case returned
        case cancelled
        case failed(String)
    }

    func run(cancellationCount: Int) async throws -> Tally {
        let folder = try TemporaryFolder()
        var configuration = Configuration.testing(journalMode)
        configuration.durability = .process
        let store = try await Store(
            path: folder.path(), key: .numbered(1), configuration: configuration)
        try await store.write { tx in
            try tx.execute("CREATE TABLE t(id INTEGER NOT NULL, part INTEGER NOT NULL)")
        }
        var random = SystemRandomNumberGenerator()
        var tally = Tally()
        while tally.triedCount < cancellationCount {
            let first = tally.triedCount
            let tasks = (first..<first + Self.batchCount).map { id in
                id % 5 == 4 ? read(store, id) : write(store, id)
            }
            for task in tasks.shuffled(using: &random) {
                await wait(Int.random(in: 0..<8, using: &random))
                task.cancel()
            }
            var outcomes: [Outcome] = []
            for task in tasks { outcomes.append(await task.value) }
            try await check(outcomes, from: first, store, &tally)
        }
        try await checkIdle(store, configuration, &tally)
        try await store.close()
        return tally
    }

    // MARK: Work

    private func write(_ store: Store, _ id: Int) -> Task<Outcome, Never> {
        Task {
            await outcome {
                try await store.write { tx in
                    try tx.execute("INSERT INTO t VALUES (\(id), 1)")
                    try tx.savepoint { part in
                        try part.execute("INSERT INTO t VALUES (\(id), 2)")
                    }
                    try tx.execute("INSERT INTO t VALUES (\(id), 3)")
                }
            }
        }
    }

    private func read(_ store: Store, _ id: Int) -> Task<Outcome, Never> {
        Task {
            await outcome {
                let counts = try await store.read { tx in
                    try (0..<3).map { _ in try tx.rows("SELECT count(*) FROM t") }
                }
                guard counts.count == 3 else { throw CancellationError() }
            }
        }
    }

    private func outcome(_ work: () async throws -> Void) async -> Outcome {
        do {
            try await work()
            return misreports && Task.isCancelled ? .cancelled : .returned
        } catch let error as StoreError where error.code == .cancelled {
            return .cancelled
        } catch {
            return .failed("\(error)")
        }
    }

    /// Some moments, each of another length on each machine.
    private func wait(_ length: Int) async {
        switch length {
        case 0..<4: break
        case 4..<7: for _ in 0..<length { await Task.yield() }
        default: try? await Task.sleep(for: .microseconds(200))
        }
    }

    // MARK: What is there

    private func check(
        _ outcomes: [Outcome], from first: Int, _ store: Store, _ tally: inout Tally
    ) async throws {
        let rows = try await store.read { tx in
            try tx.rows("SELECT id, part FROM t WHERE id >= \(first) ORDER BY part")
                .map { (try $0.get(0, as: Int.self), try $0.get(1, as: Int.self)) }
        }
        let parts = Dictionary(grouping: rows, by: \.0).mapValues { $0.map(\.1) }
        for (offset, outcome) in outcomes.enumerated() {
            let id = first + offset
            let found = parts[id] ?? []
            var problems: [String] = []
            switch outcome {
            case .failed(let error): problems.append(error)
            case .cancelled: if !found.isEmpty { problems.append("thrown, and \(found) is there") }
            case .returned:
                let expected = id % 5 == 4 ? [] : [1, 2, 3]
                if found != expected { problems.append("returned, and \(found) is there") }
            }
            tally.add(problems, "\(journalMode), task \(id)")
        }
    }

    /// Nobody is left in line, and every permit is back: as many reads as may run do so at once.
    private func checkIdle(
        _ store: Store, _ configuration: Configuration, _ tally: inout Tally
    ) async throws {
        let statistics = store.statistics
        if statistics.waitingReadCount + statistics.waitingWriteCount > 0 {
            tally.addLate("somebody still waits: \(statistics)")
        }
        try await store.write { tx in try tx.execute("DELETE FROM t") }
        guard journalMode == .wal else { return }
        let hold = Hold()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<configuration.readerCountMax {
                group.addTask { try? await store.read { _ in hold.stay() } }
            }
            for _ in 0..<configuration.readerCountMax { await hold.isEntered() }
            for _ in 0..<configuration.readerCountMax { hold.release() }
        }
    }
}
