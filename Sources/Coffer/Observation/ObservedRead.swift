import Synchronization

/// What one loop over `Store.observe` has read, and whether that is still current.
///
/// Any number of commits between two fetches make it stale once.
final class ObservedRead: Sendable {
    private struct State {
        /// The tables that the last fetch has read.
        var tables = TableSet.everything
        /// The tables changed since the running fetch began; `nil` while none runs.
        var touched: TableSet?
        var isStale = true
        var closed: StoreError?
    }

    private let state = Mutex(State())
    private let wakeup = Wakeup()

    /// Records a commit to these tables. The value becomes stale if the last fetch read one of
    /// them; during a fetch, `endFetch(_:)` decides that.
    func touch(_ tables: TableSet) {
        let wakes = state.withLock { state in
            if state.touched != nil {
                // What the fetch reads is known only at its end.
                state.touched?.formUnion(tables)
                return false
            }
            guard !state.isStale, state.tables.intersects(tables) else { return false }
            state.isStale = true
            return true
        }
        if wakes { wakeup.signal() }
    }

    func close(_ reason: StoreError) {
        state.withLock { $0.closed = reason }
        wakeup.signal()
    }

    /// Waits until the value is stale, which it is at first, and marks a fetch as running.
    ///
    /// - Parameter pause: Runs once the value is stale, before the fetch. Closing ends it.
    /// - Throws: The reason of `close(_:)`, which is `.closed`; `.cancelled` if the task was
    ///   cancelled.
    func beginFetch(after pause: (@Sendable () async -> Void)?) async throws(StoreError) {
        try await waitUntilStale()
        if let pause { await run(pause) }
        if Task.isCancelled { throw Self.cancelled }
        try state.withLock { state throws(StoreError) in
            if let closed = state.closed { throw closed }
            state.isStale = false
            state.touched = TableSet()
        }
    }

    private func waitUntilStale() async throws(StoreError) {
        while true {
            if Task.isCancelled { throw Self.cancelled }
            let isStale = try state.withLock { state throws(StoreError) in
                if let closed = state.closed { throw closed }
                return state.isStale
            }
            if isStale { return }
            await wakeup.wait()
        }
    }

    /// Returns when `pause` does, when the store closes, or when the task is cancelled.
    private func run(_ pause: @escaping @Sendable () async -> Void) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await pause() }
            group.addTask {
                // A signal may be left from a commit.
                while !Task.isCancelled, !self.isClosed { await self.wakeup.wait() }
            }
            await group.next()
            group.cancelAll()
        }
    }

    private var isClosed: Bool { state.withLock { $0.closed != nil } }

    /// Ends a fetch that succeeded. The value is stale at once if a commit during the fetch touched
    /// one of the tables that it read.
    ///
    /// - Parameter tables: The tables that the fetch has read.
    func endFetch(_ tables: TableSet) {
        state.withLock { state in
            state.tables = tables
            state.isStale = state.touched?.intersects(tables) ?? true
            state.touched = nil
        }
    }

    /// Ends a fetch that failed because the store was suspended. A commit to any table, during the
    /// fetch or later, leads to the next fetch.
    func endFetchInVain() {
        state.withLock { state in
            state.tables = .everything
            // Nothing is committed during a pause, and its end touches everything.
            state.isStale = state.touched?.isEmpty == false
            state.touched = nil
        }
    }

    static let cancelled = StoreError(.cancelled, "the task that observes was cancelled")
}

/// Collects which tables the statements of one read have read.
final class ReadRecording: TouchObserver {
    /// Includes the schema itself, because a table that is missing now may be created.
    private(set) var tables = TableSet([TableSet.schemaTable])
    private var last: StatementFootprint?

    func willRun(_ statement: Statement, on connection: Connection) {
        do throws(StoreError) {
            let footprint = try statement.footprint(on: connection)
            // A loop runs the same statement again and again.
            if footprint === last { return }
            last = footprint
            tables.formUnion(footprint.reads)
        } catch {
            tables.insertEverything()
        }
    }

    func willWrite(_ cell: BlobCell, on connection: Connection) {}
}
