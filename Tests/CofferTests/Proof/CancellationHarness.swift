import Foundation
import Workload

@testable import Coffer

/// Tasks that are cancelled at random moments: each returns and has written once, or throws and has
/// written nothing. Some have a deadline, some read in a snapshot, some observe, and now and then
/// the store is paused.
///
/// A continuation that is never resumed lets its task wait indefinitely, and one that is resumed
/// twice ends the process; so a run that returns had neither. Each read must also see one snapshot,
/// and at the end every slot of the two queues must be free again.
struct CancellationHarness {
    let journalMode: Configuration.JournalMode
    /// For tests of tests: a client takes a cancelled task for one that wrote nothing.
    var misreports = false

    private static let batchCount = 50
    /// The longest wait for a slot that nobody else waits for.
    private static let patience = Duration.seconds(20)

    private enum Outcome: Sendable, Equatable {
        case returned
        case cancelled
        /// Refused by a deadline or a pause.
        case refused
        case failed(String)
    }

    func run(cancellationCount: Int, seed: UInt64) async throws -> Tally {
        let folder = try TemporaryFolder()
        var configuration = Configuration.testing(journalMode)
        configuration.durability = .process
        let store = try await Store(
            path: folder.path(), key: .numbered(1), configuration: configuration)
        try await store.write { tx in
            try tx.execute("CREATE TABLE t(id INTEGER NOT NULL, part INTEGER NOT NULL)")
        }
        var random = SeededGenerator(seed: seed)
        var tally = Tally()
        var returnedCount = 0
        do {
            // A slot that was lost once would be lost again and again.
            while tally.triedCount < cancellationCount, tally.problems.isEmpty {
                let outcomes = try await cancelSome(
                    store, from: tally.triedCount, using: &random)
                returnedCount += outcomes.count { $0 == .returned }
                try await check(outcomes, from: tally.triedCount, store, &tally)
                // Only this check finds a lost slot.
                if tally.triedCount / Self.batchCount % 10 == 0 {
                    try await checkIdle(store, configuration)
                }
            }
            try await checkIdle(store, configuration)
            try await store.close()
        } catch {
            tally.addLate("\(journalMode), the store does not go on: \(error)")
        }
        // Tasks that are all cancelled before they begin, or none of them, prove little.
        if returnedCount == 0 || returnedCount == tally.triedCount {
            tally.addLate("\(journalMode), \(returnedCount) of \(tally.triedCount) tasks returned")
        }
        return tally
    }

    /// Starts some tasks and cancels each at a random moment.
    private func cancelSome(
        _ store: Store, from first: Int, using random: inout SeededGenerator
    ) async throws -> [Outcome] {
        let tasks = (first..<first + Self.batchCount).map { id in
            id % 20 == 19 ? observe(store, id) : id % 5 == 4 ? read(store, id) : write(store, id)
        }
        let isPaused = isPaused(first)
        let pause = Task {
            guard isPaused else { return }
            try await store.suspend()
            try await store.resume()
        }
        for task in tasks.shuffled(using: &random) {
            await wait(Int.random(in: 0..<9, using: &random))
            task.cancel()
        }
        var outcomes: [Outcome] = []
        for task in tasks { outcomes.append(await task.value) }
        try await pause.value
        return outcomes
    }

    /// Whether there is a pause while the tasks from this one on run.
    private func isPaused(_ first: Int) -> Bool { first / Self.batchCount % 10 == 9 }

    /// The deadline of the tasks that have one; it is so short that some are refused.
    private func deadline(_ id: Int) -> Duration? {
        id % 7 == 3 && id % 5 != 4 ? .microseconds(500) : nil
    }

    // MARK: Work

    private func write(_ store: Store, _ id: Int) -> Task<Outcome, Never> {
        // Some take so long that they are also cancelled in the middle of a statement.
        let stepCount = id % 5 == 0 ? 3000 : 1
        let timeout = deadline(id)
        return Task {
            await outcome(id) {
                try await store.write(timeout: timeout) { tx in
                    try tx.execute("INSERT INTO t VALUES (\(id), 1)")
                    try tx.savepoint { part in
                        try part.execute(
                            """
                            WITH RECURSIVE step(number) AS (
                                SELECT 1
                                UNION ALL
                                SELECT number + 1 FROM step WHERE number < \(stepCount))
                            INSERT INTO t SELECT \(id), 2 FROM step WHERE number = \(stepCount)
                            """)
                    }
                    try tx.execute("INSERT INTO t VALUES (\(id), 3)")
                }
            }
        }
    }

    private func read(_ store: Store, _ id: Int) -> Task<Outcome, Never> {
        Task {
            await outcome(id) {
                let body: @Sendable (inout ReadTransaction) throws -> [Int] = { tx in
                    try (0..<3).map { _ in
                        // Some take so long that writes end during the read.
                        if id % 40 == 4 { usleep(1000) }
                        return try tx.firstRow("SELECT count(*) FROM t")?.get(0, as: Int.self) ?? -1
                    }
                }
                let isInSnapshot = id % 10 == 9 && journalMode == .wal
                let counts =
                    isInSnapshot
                    ? try await store.snapshot().read(body) : try await store.read(body)
                // The read sees one snapshot, which has every write in it completely.
                guard Set(counts).count == 1, counts[0] % 3 == 0 else {
                    throw WorkloadError("one read counted \(counts) rows")
                }
            }
        }
    }

    private func observe(_ store: Store, _ id: Int) -> Task<Outcome, Never> {
        Task {
            await outcome(id) {
                var seen = 0
                for try await count in store.observe({ tx in
                    try tx.firstRow("SELECT count(*) FROM t")?.get(0, as: Int.self) ?? -1
                }) {
                    guard count % 3 == 0 else { throw WorkloadError("observed \(count) rows") }
                    seen += 1
                    if seen == 2 { break }
                }
            }
        }
    }

    private func outcome(_ id: Int, _ work: () async throws -> Void) async -> Outcome {
        do {
            try await work()
            return misreports && Task.isCancelled ? .cancelled : .returned
        } catch is CancellationError {
            return .cancelled
        } catch let error as StoreError where error.code == .busy && deadline(id) != nil {
            return .refused
        } catch let error as StoreError where error.code == .suspended && isPaused(id) {
            return .refused
        } catch {
            return .failed("\(error)")
        }
    }

    /// Waits for a number of moments, whose length differs on each machine.
    private func wait(_ length: Int) async {
        switch length {
        case 0..<4: break
        case 4..<7: for _ in 0..<length { await Task.yield() }
        case 7: try? await Task.sleep(for: .microseconds(200))
        // Enough for some to return, under the sanitizer too.
        default: try? await Task.sleep(for: .milliseconds(5))
        }
    }

    // MARK: What is there

    private func check(
        _ outcomes: [Outcome], from first: Int, _ store: Store, _ tally: inout Tally
    ) async throws {
        let rows = try await store.read(timeout: Self.patience) { tx in
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
            case .cancelled, .refused:
                if !found.isEmpty { problems.append("thrown, and \(found) is there") }
            case .returned:
                let expected = id % 5 == 4 ? [] : [1, 2, 3]
                if found != expected { problems.append("returned, and \(found) is there") }
            }
            tally.add(problems, "\(journalMode), task \(id)")
        }
    }

    /// Nobody is left in a queue, and every permit is returned: the maximum number of reads run at
    /// once.
    private func checkIdle(_ store: Store, _ configuration: Configuration) async throws {
        let statistics = store.statistics
        guard statistics.waitingReadCount + statistics.waitingWriteCount == 0 else {
            throw WorkloadError("somebody still waits: \(statistics)")
        }
        let observerCount = store.core.observation.observerCount
        guard observerCount == 0 else {
            throw WorkloadError("\(observerCount) loops are still told")
        }
        try await store.write(timeout: Self.patience) { tx in try tx.execute("DELETE FROM t") }
        guard journalMode == .wal else { return }
        let hold = Hold()
        let begun = Shared(0)
        let reads = (0..<configuration.maximumReaderCount).map { _ in
            Task {
                try await store.read(timeout: Self.patience) { _ in
                    begun.update { $0 += 1 }
                    hold.stay()
                }
            }
        }
        let end = ContinuousClock.now + Self.patience
        while begun.value < reads.count, ContinuousClock.now < end {
            try await Task.sleep(for: .milliseconds(1))
        }
        let count = begun.value
        for _ in reads { hold.release() }
        for read in reads { try await read.value }
        guard count == reads.count else {
            throw WorkloadError("only \(count) of \(reads.count) reads began at once")
        }
    }
}
