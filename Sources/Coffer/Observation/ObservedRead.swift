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

    /// Notes a commit to these tables.
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

    /// Waits until there may be another value, and begins to fetch it.
    ///
    /// - Throws: `.closed`, `.cancelled`.
    func beginFetch() async throws(StoreError) {
        while true {
            if Task.isCancelled { throw Self.cancelled }
            let isStale = try state.withLock { state throws(StoreError) in
                if let closed = state.closed { throw closed }
                guard state.isStale else { return false }
                state.isStale = false
                state.touched = TableSet()
                return true
            }
            if isStale { return }
            await wakeup.wait()
        }
    }

    /// - Parameter tables: The tables that the fetch has read.
    func endFetch(_ tables: TableSet) {
        state.withLock { state in
            state.tables = tables
            state.isStale = state.touched?.intersects(tables) ?? true
            state.touched = nil
        }
    }

    /// Ends a fetch that failed because the store was suspended. Changes until now, and later ones,
    /// lead to the next fetch.
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
