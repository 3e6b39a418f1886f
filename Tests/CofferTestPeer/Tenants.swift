import Foundation
import Synchronization

@testable import Coffer

#if COFFER_TSAN
/// Synchronization's is not instrumented: see `SanitizedMutex`.
private typealias Mutex<Value> = Coffer.Mutex<Value>
#endif

/// Gives every store the same key.
private let oneKey: @Sendable (String) throws -> StoreKey = { _ in
    .raw([UInt8](repeating: 1, count: 32))
}

/// Lets this many users use a store each, all at once and again and again, and returns whether
/// every row is there.
func serveTenants() async throws -> String {
    let folder = next()
    let (count, roundCount) = (Int(next()) ?? 0, Int(next()) ?? 0)
    Store.maximumProcessCacheByteCount = (Int(next()) ?? 0) << 20
    var configuration = StorePool.Configuration(maximumOpenStoreCount: 10_000)
    configuration.waitTimeout = .seconds(600)
    configuration.setUp = { store in
        try store.write { tx in try tx.execute("CREATE TABLE IF NOT EXISTS t(v)") }
    }
    let pool = try StorePool(configuration: configuration, key: oneKey)
    let peak = Peak()
    try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<count {
            group.addTask {
                for round in 0..<roundCount {
                    try await pool.withStore(at: "\(folder)/\(number).db") { store in
                        try await store.write { tx in
                            _ = try tx.execute("INSERT INTO t VALUES (\(round))")
                        }
                        peak.add(ProcessFigures().descriptorCount)
                    }
                }
            }
        }
        try await group.waitForAll()
    }
    var lostCount = 0
    for number in 0..<count {
        let rows = try await pool.withStore(at: "\(folder)/\(number).db") { store in
            try await store.read { tx in
                try tx.rows("SELECT v FROM t ORDER BY v").map { try $0.get(0, as: Int.self) }
            }
        }
        if rows != Array(0..<roundCount) { lostCount += 1 }
    }
    let statistics = pool.statistics
    say(
        "peak \(peak.value), places \(statistics.maximumOpenStoreCount), "
            + "refused \(statistics.counts.tooManyFilesCount)")
    try await pool.close()
    return "lost \(lostCount)"
}

/// Uses some of many stores at once, and then all of them in turn, and returns what it took.
func measureTenants() async throws -> String {
    let folder = next()
    let (count, usedCount) = (Int(next()) ?? 0, Int(next()) ?? 0)
    try makeTenants(folder, count)
    var configuration = StorePool.Configuration(
        maximumOpenStoreCount: usedCount, idleDuration: nil)
    configuration.waitTimeout = .seconds(600)
    configuration.maximumDescriptorCount = 4_000
    let pool = try StorePool(configuration: configuration, key: oneKey)
    say("before: \(ProcessFigures())")
    let crowd = Crowd(count: usedCount)
    try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<usedCount {
            group.addTask {
                try await pool.withStore(at: "\(folder)/\(number).db") { store in
                    try await use(store)
                    await crowd.isHere()
                    try await use(store)
                }
            }
        }
        await crowd.isComplete()
        say("in use: \(ProcessFigures()); pinned \(pool.statistics.pinnedStoreCount)")
        crowd.release()
        try await group.waitForAll()
    }
    say("used: \(ProcessFigures())")
    for part in 0..<4 {
        let beginning = ContinuousClock.now
        for number in part * count / 4..<(part + 1) * count / 4 {
            try await pool.withStore(at: "\(folder)/\(number).db") { try await use($0) }
        }
        let each = beginning.duration(to: .now) / (count / 4)
        say("quarter \(part + 1): \(each) each; \(ProcessFigures())")
    }
    try await pool.parkIdleStores()
    say("parked: \(ProcessFigures()); \(pool.statistics.counts)")
    for bound in [1, usedCount] { try await measureOpening(folder, bound) }
    try await pool.close()
    return "measured"
}

/// Says what one opening costs, and the parking for it, in a pool with this many open stores.
private func measureOpening(_ folder: String, _ bound: Int) async throws {
    let pool = try StorePool(
        configuration: .init(maximumOpenStoreCount: bound, idleDuration: nil), key: oneKey)
    for number in 0..<bound {
        try await pool.withStore(at: "\(folder)/\(number).db") { _ in }
    }
    let beginning = ContinuousClock.now
    let count = 100
    for number in bound..<bound + count {
        try await pool.withStore(at: "\(folder)/\(number).db") { _ in }
    }
    let each = beginning.duration(to: .now) / count
    say("with \(bound) open: \(each) for an opening; \(ProcessFigures())")
    try await pool.close()
}

private func use(_ store: Store) async throws {
    try await store.write { tx in _ = try tx.execute("INSERT INTO t VALUES (zeroblob(3000))") }
    _ = try await store.read { tx in try tx.rows("SELECT sum(length(v)) FROM t").count }
}

/// Makes this many stores with 100 rows: copies of one.
private func makeTenants(_ folder: String, _ count: Int) throws {
    let first = "\(folder)/0.db"
    let store = try Store(path: first, key: oneKey(first))
    try store.write { tx in
        try tx.execute("CREATE TABLE t(v)")
        for _ in 0..<100 { _ = try tx.execute("INSERT INTO t VALUES (zeroblob(300))") }
    }
    try store.close()
    for number in 1..<count {
        try FileManager.default.copyItem(atPath: first, toPath: "\(folder)/\(number).db")
    }
}

/// The highest of several numbers.
private final class Peak: Sendable {
    private let highest = Mutex(0)

    var value: Int { highest.withLock { $0 } }

    func add(_ number: Int) {
        highest.withLock { $0 = max($0, number) }
    }
}

/// Tasks that wait for each other, without threads.
private final class Crowd: Sendable {
    private struct State {
        var missingCount: Int
        var waiting: [CheckedContinuation<Void, Never>] = []
        var watcher: CheckedContinuation<Void, Never>?
    }

    private let state: Mutex<State>

    init(count: Int) {
        state = Mutex(State(missingCount: count))
    }

    /// Waits until the crowd is released.
    func isHere() async {
        await withCheckedContinuation { continuation in
            let watcher = state.withLock { state -> CheckedContinuation<Void, Never>? in
                state.waiting.append(continuation)
                state.missingCount -= 1
                guard state.missingCount == 0 else { return nil }
                return state.watcher.take()
            }
            watcher?.resume()
        }
    }

    /// Waits until all are here.
    func isComplete() async {
        await withCheckedContinuation { continuation in
            let isComplete = state.withLock { state in
                if state.missingCount > 0 { state.watcher = continuation }
                return state.missingCount == 0
            }
            if isComplete { continuation.resume() }
        }
    }

    func release() {
        let waiting = state.withLock { $0.waiting }
        for continuation in waiting { continuation.resume() }
    }
}

/// The memory, threads and file descriptors of this process at one moment. They are 0 on a system
/// without `/proc`.
private struct ProcessFigures: CustomStringConvertible {
    let residentByteCount: Int
    let threadCount: Int
    let descriptorCount: Int

    init() {
        let text = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        func figure(_ name: String) -> Int {
            let line = text.split(separator: "\n").first { $0.hasPrefix("\(name):") }
            let words = line?.split(whereSeparator: \.isWhitespace) ?? []
            return words.count > 1 ? Int(words[1]) ?? 0 : 0
        }
        residentByteCount = figure("VmRSS") << 10
        threadCount = figure("Threads")
        let names = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
        descriptorCount = names?.count ?? 0
    }

    var description: String {
        "\(residentByteCount >> 20) MiB, \(threadCount) threads, \(descriptorCount) descriptors"
    }
}
