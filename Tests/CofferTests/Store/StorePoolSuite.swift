import Synchronization

@testable import Coffer

/// Tests of a pool whose stores have one table of numbers.
protocol StorePoolSuite {
    var folder: TemporaryFolder { get }
}

extension StorePoolSuite {
    /// A configuration with time for a loaded machine, whose stores get a table at their opening.
    func configuration(
        _ maximumOpenStoreCount: Int = 4, idleDuration: Duration? = nil
    ) -> StorePool.Configuration {
        var configuration = StorePool.Configuration(
            maximumOpenStoreCount: maximumOpenStoreCount, idleDuration: idleDuration)
        configuration.waitTimeout = .seconds(300)
        configuration.store = .testing()
        configuration.store.maximumReaderCount = 1
        configuration.store.metricsLabel = ""
        configuration.setUp = { store in
            try store.write { tx in try tx.execute("CREATE TABLE IF NOT EXISTS t(v)") }
        }
        return configuration
    }

    /// A pool whose stores all have the first key.
    func makePool(_ configuration: StorePool.Configuration) throws -> StorePool {
        let key: @Sendable (String) throws -> StoreKey = { _ in .numbered(1) }
        return try StorePool(configuration: configuration, key: key)
    }

    func isOpenElsewhere(_ name: String) -> Bool {
        do {
            try Store(path: folder.path(name), key: .numbered(1)).close()
            return false
        } catch {
            return (error as? StoreError)?.code == .alreadyOpen
        }
    }
}

/// Gives the first key, or what the test says, and keeps callers waiting while the test says so.
final class KeySource: Sendable {
    private struct State {
        var paths: [String] = []
        var isHeld = false
        var failure: StoreError?
        var waiting: [CheckedContinuation<Void, Never>] = []
        var cancelledCount = 0
    }

    private let state = Mutex(State())

    /// The paths whose keys were asked for.
    var paths: [String] { state.withLock { $0.paths } }
    /// How many askers were cancelled, although no answer has come.
    var cancelledCount: Int { state.withLock { $0.cancelledCount } }

    func set(failure: StoreError?) {
        state.withLock { $0.failure = failure }
    }

    /// Lets later callers wait.
    func hold() {
        state.withLock { $0.isHeld = true }
    }

    /// Lets all callers that wait go on, and later ones too.
    func release() {
        let waiting = state.withLock { state in
            state.isHeld = false
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    func key(_ path: String) async throws -> StoreKey {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isHeld = state.withLock { state in
                    state.paths.append(path)
                    if state.isHeld { state.waiting.append(continuation) }
                    return state.isHeld
                }
                if !isHeld { continuation.resume() }
            }
        } onCancel: {
            // It goes on waiting, as a source does that does not know of cancellation.
            state.withLock { $0.cancelledCount += 1 }
        }
        if let failure = state.withLock({ $0.failure }) { throw failure }
        return .numbered(1)
    }
}

extension StorePool {
    /// Adds a number to the store at the path.
    func insert(_ number: Int, at path: String) async throws {
        try await withStore(at: path) { store in
            try await store.write { tx in
                _ = try tx.execute("INSERT INTO t VALUES (\(number))")
            }
        }
    }

    func values(at path: String) async throws -> [Int] {
        try await withStore(at: path) { store in
            try await store.read { tx in
                try tx.rows("SELECT v FROM t ORDER BY rowid").map { try $0.get(0) }
            }
        }
    }
}
