// What a store tells a backend of swift-metrics. A process has one backend, and the stores of all
// tests would tell it.

import Foundation
import Metrics
import MetricsTestKit

@testable import Coffer

/// Before any store is opened.
func bootstrapMetrics() -> TestMetrics {
    let backend = TestMetrics()
    MetricsSystem.bootstrap(backend)
    return backend
}

/// Lets a store write and read, and says where the backend has something else than it tells.
func compareMetrics(_ backend: TestMetrics, _ store: Store) throws -> String {
    try writeAtOnce(store)
    for _ in 0..<5 { _ = try store.read { tx in try tx.rows("SELECT * FROM t").count } }
    try store.close()
    let checkpoints = try compareCheckpoints(backend, store)

    let told = store.statistics
    let writes = told.writes
    let waits = try backend.expectTimer("coffer.write.wait").values
    let commits = try backend.expectTimer("coffer.commit").values
    let derivations = try backend.expectTimer("coffer.key.derivation").values
    let bodies = try backend.expectRecorder("coffer.commit.bodies").values
    let undone = try backend.expectCounter("coffer.write.undone").totalValue
    let hits = Double(try backend.expectCounter("coffer.cache.hits").totalValue)
    let misses = Double(try backend.expectCounter("coffer.cache.misses").totalValue)

    let pairs: [(name: String, backend: Double, store: Double)] = [
        ("waits", Double(waits.count), Double(writes.committedCount + writes.undoneCount)),
        ("longest wait", Double(waits.max() ?? -1), Double(writes.waitDurationMax.nanoseconds)),
        ("commits", Double(bodies.count), Double(writes.commitCount)),
        (
            "longest commit", Double(commits.max() ?? -1),
            Double(writes.commitDurationMax.nanoseconds)
        ),
        ("bodies", bodies.reduce(0, +), Double(writes.committedCount)),
        ("largest group", bodies.max() ?? -1, Double(writes.groupCountMax)),
        ("undone", Double(undone), Double(writes.undoneCount)),
        ("derivations", Double(derivations.count), 1),
        (
            "derivation", Double(derivations.last ?? -1),
            Double(told.derivationDuration.nanoseconds)
        ),
        ("hit rate", hits / (hits + misses), told.cacheHitRate),
    ]
    for pair in pairs where pair.backend != pair.store {
        say("\(pair.name): the backend has \(pair.backend), the store \(pair.store)")
    }
    let depth = try backend.expectGauge("coffer.write.depth").values.max() ?? -1
    return "largest group \(writes.groupCountMax), line \(Int(depth)), "
        + "commits \(writes.commitCount), undone \(writes.undoneCount), \(checkpoints)"
}

/// Checkpoints run beside the writes and tell the one after the other, so that it takes a while
/// until both have heard of the last.
private func compareCheckpoints(_ backend: TestMetrics, _ store: Store) throws -> String {
    var (durations, told) = ([Int64](), CheckpointStatistics())
    for _ in 0..<60_000 {
        durations = (try? backend.expectTimer("coffer.checkpoint").values) ?? []
        told = store.statistics.checkpoints
        let sum = durations.reduce(0, +)
        if told.count > 0, durations.count == told.count, sum == told.duration.nanoseconds {
            let pages = try backend.expectGauge("coffer.log.pages").values
            return pages.contains { $0 >= 1 } ? "checkpoints agree" : "pages \(pages)"
        }
        usleep(1000)
    }
    return "checkpoints: the backend has \(durations), the store \(told)"
}

/// Twelve writes in one group behind one that holds the turn, every fourth of which fails.
func writeAtOnce(_ store: Store) throws {
    try store.write { tx in try tx.execute("CREATE TABLE t(v)") }
    let (isEntered, mayEnd) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let isOver = DispatchGroup()
    func start(
        _ mode: TransactionMode,
        _ body: @escaping @Sendable (borrowing WriteTransaction) throws -> Void
    ) {
        isOver.enter()
        Thread.detachNewThread {
            defer { isOver.leave() }
            do { try store.write(mode: mode) { tx in try body(tx) } } catch {}
        }
    }
    start(.deferred) { _ in
        isEntered.signal()
        mayEnd.wait()
    }
    isEntered.wait()
    struct Failure: Error {}
    for number in 0..<12 {
        start(.immediate) { tx in
            try tx.execute("INSERT INTO t VALUES (\(number))")
            if number % 4 == 3 { throw Failure() }
        }
    }
    while store.statistics.waitingWriteCount < 12 { usleep(1000) }
    mayEnd.signal()
    isOver.wait()
}
