// A store's reports to a backend of swift-metrics. A process has only one backend, and the stores
// of all tests would report to it.

import Foundation
import Metrics
import MetricsTestKit

@testable import Coffer

/// The dimensions of a store without its own label.
private let dimensions = [("store", "metrics.db")]

/// Must be called before any store is opened.
func bootstrapMetrics() -> TestMetrics {
    let backend = TestMetrics()
    MetricsSystem.bootstrap(backend)
    return backend
}

/// Lets a store write and read, and returns where the backend's figures differ from the store's.
func compareMetrics(_ backend: TestMetrics, _ store: Store) throws -> String {
    try writeAtOnce(store)
    for _ in 0..<5 { _ = try store.read { tx in try tx.rows("SELECT * FROM t").count } }
    try store.close()
    let checkpoints = try compareCheckpoints(backend, store)

    let told = store.statistics
    let writes = told.writes
    let waits = try backend.expectTimer("coffer.write.wait", dimensions).values
    let commits = try backend.expectTimer("coffer.commit", dimensions).values
    let derivations = try backend.expectTimer("coffer.key.derivation", dimensions).values
    let bodies = try backend.expectRecorder("coffer.commit.bodies", dimensions).values
    let undone = try backend.expectCounter("coffer.write.undone", dimensions).totalValue
    let hits = Double(try backend.expectCounter("coffer.cache.hits", dimensions).totalValue)
    let misses = Double(try backend.expectCounter("coffer.cache.misses", dimensions).totalValue)

    let reads = try backend.expectTimer("coffer.read", dimensions).values
    let readWaits = try backend.expectTimer("coffer.read.wait", dimensions).values
    try compareLabels(backend)

    let pairs: [(name: String, backend: Double, store: Double)] = [
        ("waits", Double(waits.count), Double(writes.committedCount + writes.undoneCount)),
        ("longest wait", Double(waits.max() ?? -1), Double(writes.maximumWaitDuration.nanoseconds)),
        ("commits", Double(bodies.count), Double(writes.commitCount)),
        (
            "longest commit", Double(commits.max() ?? -1),
            Double(writes.maximumCommitDuration.nanoseconds)
        ),
        ("bodies", bodies.reduce(0, +), Double(writes.committedCount)),
        ("largest group", bodies.max() ?? -1, Double(writes.maximumGroupWriteCount)),
        ("undone", Double(undone), Double(writes.undoneCount)),
        ("reads", Double(reads.count), 5),
        ("waits of reads", Double(readWaits.count), 5),
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
    let depth = try backend.expectGauge("coffer.write.depth", dimensions).values.max() ?? -1
    return "largest group \(writes.maximumGroupWriteCount), line \(Int(depth)), "
        + "commits \(writes.commitCount), undone \(writes.undoneCount), \(checkpoints)"
}

/// Expects that a store with another label has its own gauges, and so has one without a label.
private func compareLabels(_ backend: TestMetrics) throws {
    let depths = try backend.expectGauge("coffer.write.depth", dimensions).values.count
    for label in ["other", ""] {
        var configuration = Configuration()
        configuration.metricsLabel = label
        try Store(.memory, configuration: configuration).write { _ in }
        let own = label.isEmpty ? [] : [("store", label)]
        let count = try backend.expectGauge("coffer.write.depth", own).values.count
        if count != 1 { say("the store \(label) has told \(count) depths") }
    }
    let count = try backend.expectGauge("coffer.write.depth", dimensions).values.count
    if count != depths { say("the depths of other stores were told as those of the first") }
}

/// Checkpoints run concurrently with the writes and report to one backend after the other, so it
/// takes a while until both have the last report.
private func compareCheckpoints(_ backend: TestMetrics, _ store: Store) throws -> String {
    var (durations, told) = ([Int64](), CheckpointStatistics())
    for _ in 0..<60_000 {
        durations = (try? backend.expectTimer("coffer.checkpoint", dimensions).values) ?? []
        told = store.statistics.checkpoints
        let sum = durations.reduce(0, +)
        if told.count > 0, durations.count == told.count, sum == told.duration.nanoseconds {
            let pages = try backend.expectGauge("coffer.log.pages", dimensions).values
            return pages.contains { $0 >= 1 } ? "checkpoints agree" : "pages \(pages)"
        }
        usleep(1000)
    }
    return "checkpoints: the backend has \(durations), the store \(told)"
}

/// Writes twelve times in one group behind a write that holds the write gate; every fourth fails.
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
